//! A program that runs in its box.

use std::sync::Arc;

use rustix::process::Pid;
use tokio::process::Child;
use tokio::sync::oneshot;

use crate::sandbox::Inner;
use crate::sweeper::Remains;

/// A program that runs in its box. Dropping it ends both at once.
#[derive(Debug)]
#[must_use = "a box that is dropped is ended"]
pub struct Confined {
    /// The process that stands for the box outside of it: its three pipes are the program's, and it
    /// ends as the program does, with 128 and the number of the signal if it was one.
    pub child: Child,
    /// What keeps the box.
    pub hold: Hold,
}

/// Keeps a box. Dropping it ends everything in the box, and removes what the box has outside.
#[derive(Debug)]
#[must_use = "a box that is dropped is ended"]
pub struct Hold {
    pub(crate) sandbox: Arc<Inner>,
    pub(crate) remains: Option<Remains>,
    pub(crate) first: Pid,
}

impl Hold {
    /// The process group of the box, for signals: asked to end, the program is; killed, everything in
    /// the box is. It is not the group of [`Confined::child`], which must not be asked to end: it would
    /// take the program with it at once.
    #[must_use]
    pub const fn group(&self) -> Pid {
        self.first
    }

    /// Ends everything that is left in the box, and returns when it is gone and cleaned up.
    ///
    /// # Cancel safety
    /// It is ended and cleaned up all the same.
    pub async fn gone(mut self) {
        let (done_in, done) = oneshot::channel();
        if let Some(remains) = self.remains.take() {
            self.sandbox.sweeper().sweep(remains, Some(done_in));
            // Without an answer, the thread is gone, and cleaning up was tried on the spot.
            drop(done.await);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(remains) = self.remains.take() {
            self.sandbox.sweeper().sweep(remains, None);
        }
    }
}
