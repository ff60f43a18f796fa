//! A program that runs in its box.

use std::fmt;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::error::ExecError;
use crate::exec::{ExecSpec, Executed};
use crate::process::Process;
use crate::sandbox::Inner;
use crate::sweeper::Remains;

/// What a program reads. Dropping it is the end of its input.
pub type Input = Box<dyn AsyncWrite + Send + Unpin>;
/// What a program says.
pub type Output = Box<dyn AsyncRead + Send + Unpin>;

/// A program that runs in its box. Dropping it ends both at once.
#[derive(Debug)]
#[must_use = "a box that is dropped is ended"]
pub struct Confined {
    /// What the program reads and says.
    pub pipes: Pipes,
    /// The program, to be waited for and signalled.
    pub process: Process,
    /// What keeps the box.
    pub hold: Hold,
}

/// The three pipes of a program. However fast it writes, it waits for whoever reads.
pub struct Pipes {
    /// Its input.
    pub stdin: Input,
    /// Its output.
    pub stdout: Output,
    /// Its error output; whether it is read or not, the other one flows.
    pub stderr: Output,
}

/// Keeps a box. Dropping it ends everything in the box, and removes what the box has outside.
#[derive(Debug)]
#[must_use = "a box that is dropped is ended"]
pub struct Hold {
    pub(crate) sandbox: Arc<Inner>,
    pub(crate) name: Arc<str>,
    pub(crate) remains: Option<Remains>,
}

/// Names a box for as long as it is there. It keeps nothing: the box ends with its [`Hold`].
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

impl Hold {
    /// To reach the box from elsewhere.
    #[must_use]
    pub fn handle(&self) -> BoxHandle {
        BoxHandle { sandbox: Arc::clone(&self.sandbox), name: Arc::clone(&self.name) }
    }

    /// Ends everything that is left in the box, and returns when it is gone and cleaned up.
    ///
    /// # Cancel safety
    /// It is ended and cleaned up all the same.
    pub async fn gone(mut self) {
        let (done_in, done) = oneshot::channel();
        self.sandbox.guard().forget(&self.name);
        if let Some(remains) = self.remains.take() {
            self.sandbox.sweep(remains, Some(done_in));
            // Without an answer, the thread is gone, and cleaning up was tried on the spot.
            drop(done.await);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.sandbox.guard().forget(&self.name);
        if let Some(remains) = self.remains.take() {
            self.sandbox.sweep(remains, None);
        }
    }
}

impl BoxHandle {
    /// The name of the box, which no other ever had.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a further command in the box, with the same walls and limits, and waits for its end.
    ///
    /// # Errors
    /// When the box is gone or takes no further command, as none that bubblewrap made does.
    ///
    /// # Cancel safety
    /// The command is ended.
    pub async fn exec(&self, spec: ExecSpec) -> Result<Executed, ExecError> {
        self.sandbox.exec(&self.name, spec).await
    }
}
