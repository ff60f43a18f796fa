//! What can go wrong.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::probe::Layer;

/// Why there is no sandbox at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its own files cannot be written.
    #[error("cannot write the files of the sandbox at `{}`", path.display())]
    State {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The system gives no thread.
    #[error("cannot start a thread for the sandbox")]
    Thread(#[source] io::Error),
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A promised layer cannot be given.
    #[error("the sandbox cannot give {layer}: {why}; {fix}")]
    Layer {
        /// Which.
        layer: Layer,
        /// Why not.
        why: String,
        /// What to do about it.
        fix: String,
    },
    /// Something to mount is not there.
    #[error("cannot put {what} `{}` into the sandbox", path.display())]
    Mount {
        /// What it would have been.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Something to mount would show what no box may see.
    #[error("`{}` must not be in a sandbox: it would show `{}`", path.display(), hidden.display())]
    Hidden {
        /// What was to be mounted.
        path: PathBuf,
        /// What would be seen.
        hidden: PathBuf,
    },
    /// A name or value cannot be handed over.
    #[error("{what} has a zero byte in it")]
    ZeroByte {
        /// Which.
        what: &'static str,
    },
    /// A file or control group of the sandbox cannot be written.
    #[error("cannot write `{}` for the sandbox", path.display())]
    State {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// bubblewrap did not start.
    #[error("cannot start `{}`", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// bubblewrap could not make the box.
    #[error("bubblewrap made no sandbox: {said}")]
    Refused {
        /// What it said.
        said: String,
    },
    /// bubblewrap did not get as far as to have a first process.
    #[error("bubblewrap made no sandbox within {limit:?}")]
    TooSlow {
        /// How long it had.
        limit: Duration,
    },
    /// The sandbox is being closed.
    #[error("the sandbox is closed")]
    Closed,
}
