//! A program running in its sandbox.

use std::fmt;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::error::ExecError;
use crate::exec::{ExecOutput, ExecSpec};
use crate::process::Process;
use crate::sandbox::Inner;
use crate::sweeper::Remains;

/// A program's standard input. Dropping it closes the input.
pub type Input = Box<dyn AsyncWrite + Send + Unpin>;
/// An output of a program.
pub type Output = Box<dyn AsyncRead + Send + Unpin>;

/// A program running in its sandbox. Dropping it ends both immediately.
#[derive(Debug)]
#[must_use = "dropping it ends the sandbox"]
pub struct ConfinedProgram {
    /// The program's input and outputs.
    pub pipes: Pipes,
    /// The program, to wait for and to signal.
    pub process: Process,
    /// The guard of the sandbox.
    pub hold: SandboxGuard,
}

/// The three pipes of a program. A program that writes faster than it is read has to wait.
pub struct Pipes {
    /// Its input.
    pub stdin: Input,
    /// Its output.
    pub stdout: Output,
    /// Its error output; whether it is read or not, the other one flows.
    pub stderr: Output,
}

/// The guard of a sandbox. Dropping it ends everything in the sandbox and removes its remains
/// outside.
#[derive(Debug)]
#[must_use = "dropping it ends the sandbox"]
pub struct SandboxGuard {
    pub(crate) sandbox: Arc<Inner>,
    pub(crate) name: Arc<str>,
    pub(crate) remains: Option<Remains>,
}

/// Names a sandbox while it exists. It does not keep it alive: the sandbox ends with its
/// [`SandboxGuard`].
#[derive(Debug, Clone)]
pub struct BoxHandle {
    sandbox: Arc<Inner>,
    name: Arc<str>,
}

impl fmt::Debug for Pipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipes").finish_non_exhaustive()
    }
}

impl SandboxGuard {
    /// Returns a handle that reaches the sandbox from elsewhere.
    #[must_use]
    pub fn handle(&self) -> BoxHandle {
        BoxHandle { sandbox: Arc::clone(&self.sandbox), name: Arc::clone(&self.name) }
    }

    /// Ends everything in the sandbox, and returns once it is gone and cleaned up.
    ///
    /// # Cancel safety
    /// The sandbox is still ended and cleaned up.
    pub async fn gone(mut self) {
        let (done_in, done) = oneshot::channel();
        self.sandbox.guard().forget(&self.name);
        if let Some(remains) = self.remains.take() {
            self.sandbox.sweep(remains, Some(done_in));
            // Without an answer the thread is gone, and cleaning up was tried synchronously.
            drop(done.await);
        }
    }
}

impl Drop for SandboxGuard {
    fn drop(&mut self) {
        self.sandbox.guard().forget(&self.name);
        if let Some(remains) = self.remains.take() {
            self.sandbox.sweep(remains, None);
        }
    }
}

impl BoxHandle {
    /// Returns the name of the sandbox, which is never reused.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a further command in the sandbox, with the same isolation and limits, and waits for its
    /// end.
    ///
    /// # Errors
    /// If the sandbox is gone or accepts no further commands, as is the case with bubblewrap.
    ///
    /// # Cancel safety
    /// The command is ended.
    pub async fn exec(&self, spec: ExecSpec) -> Result<ExecOutput, ExecError> {
        self.sandbox.exec(&self.name, spec).await
    }
}
