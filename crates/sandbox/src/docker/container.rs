//! A running container.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use bollard::errors::Error;
use bollard::query_parameters::WaitContainerOptions;
use futures_util::StreamExt as _;
use tokio_util::task::AbortOnDropHandle;

use super::engine::Engine;
use super::worker::WorkerHandle;

/// The program of a container, to wait for and to signal.
#[derive(Debug)]
pub(crate) struct Container {
    engine: Engine,
    handle: WorkerHandle,
    name: String,
    pub(crate) id: Option<u32>,
    exit: Exit,
}

#[derive(Debug)]
enum Exit {
    /// A pending wait, started early so that the result survives the removal of the container.
    Waiting(AbortOnDropHandle<io::Result<i32>>),
    /// Its exit status.
    Over(ExitStatus),
}

impl Container {
    pub(super) fn new(engine: Engine, handle: WorkerHandle, name: String, id: Option<u32>) -> Self {
        let exit = Exit::Waiting(handle.hold(ended(engine.clone(), name.clone())));
        Self { engine, handle, name, id, exit }
    }

    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let waiting = match &mut self.exit {
            Exit::Over(status) => return Ok(*status),
            Exit::Waiting(waiting) => waiting,
        };
        let code = waiting.await.map_err(io::Error::other)??;
        // The kernel's encoding: the code is above the signal.
        let status = ExitStatus::from_raw((code & 0xff) << 8);
        self.exit = Exit::Over(status);
        Ok(status)
    }

    /// Sends a signal, unless the program is known to have ended.
    pub(crate) fn signal(&self, signal: &'static str) {
        if matches!(self.exit, Exit::Over(_)) {
            return;
        }
        let (engine, name) = (self.engine.clone(), self.name.clone());
        self.handle.hand_over(async move {
            if let Err(error) = engine.kill(&name, signal).await {
                tracing::warn!(%error, name, "cannot signal a container");
            }
        });
    }
}

/// Waits until a container ends.
async fn ended(engine: Engine, name: String) -> io::Result<i32> {
    let code = loop {
        let options = WaitContainerOptions { condition: "not-running".to_owned() };
        let mut waiting = Box::pin(engine.client().wait_container(&name, Some(options)));
        match waiting.next().await {
            Some(Ok(ended)) => break ended.status_code,
            // The client reports any code but zero as an error.
            Some(Err(Error::DockerContainerWaitError { code, .. })) => break code,
            // Some engines send no headers before the container ends.
            Some(Err(Error::RequestTimeoutError)) => {}
            Some(Err(error)) => return Err(io::Error::other(error)),
            None => {
                return Err(io::Error::other(
                    "the container engine did not report how the container ended",
                ));
            }
        }
    };
    i32::try_from(code).map_err(io::Error::other)
}
