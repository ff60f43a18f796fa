//! The garden process, as the broker knows it: something that can be started.

use std::fmt;

/// Starts the garden process. The broker gets one when it starts
/// ([`Config::garden`](crate::Config::garden)).
pub trait GardenProcess: fmt::Debug + Send + Sync {
    /// Starts the process if it is not running, and returns immediately.
    ///
    /// # Errors
    /// If it will not be started: what to do instead, for the caller of a tool.
    fn wake(&self) -> Result<(), String>;
}

/// No process: the garden plays only if someone else starts it.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGardenProcess;

impl GardenProcess for NoGardenProcess {
    fn wake(&self) -> Result<(), String> {
        Err("start it with `ringback garden run`, or set `garden.start` and `hoot.ipc`".to_owned())
    }
}
