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
    /// No backend gives all that is promised.
    #[error("{bubblewrap}; or use Docker: {docker}")]
    Neither {
        /// What bubblewrap lacks.
        bubblewrap: Box<Self>,
        /// What a container engine lacks.
        docker: Box<Self>,
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
    #[error(
        "`{}` must not be in a sandbox: it would show `{}`, which is the daemon's own; keep that \
         elsewhere, or show less (sandbox.readOnly)", path.display(), hidden.display()
    )]
    Hidden {
        /// What was to be mounted.
        path: PathBuf,
        /// What would be seen.
        hidden: PathBuf,
    },
    /// A name or value cannot be handed over to an engine.
    #[error("{what} is not text, which is all that a container engine takes")]
    NotText {
        /// Which.
        what: &'static str,
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
    /// The container engine did not do what it was asked to.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The sandbox is being closed.
    #[error("the sandbox is closed")]
    Closed,
}

/// Why a container engine is of no use.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Boxes are not made by an engine.
    #[error(
        "bubblewrap makes the sandboxes here, and it has no images; set `sandbox.backend = \"docker\"`"
    )]
    NotUsed,
    /// It is not on this machine, where the workspaces are.
    #[error(
        "`{address}` is no socket on this machine; set `sandbox.docker` to one, such as \
         `unix:///var/run/docker.sock`"
    )]
    Elsewhere {
        /// Where it is said to be.
        address: String,
    },
    /// Nobody answers.
    #[error(
        "no container engine answers at `{}`; install and start one, for example with `apt install \
         docker.io`, or set `sandbox.docker` to the socket of one", socket.display()
    )]
    Absent {
        /// Where it should be.
        socket: PathBuf,
    },
    /// This user may not use it.
    #[error(
        "this user may not use the container engine at `{}`; run `usermod -aG docker USER` as root \
         and log in again, or set `sandbox.docker` to an engine of its own", socket.display()
    )]
    Denied {
        /// Where it is.
        socket: PathBuf,
    },
    /// It said no, or nothing that makes sense.
    #[error("the container engine cannot {action}: {said}")]
    Refused {
        /// What it was asked to do.
        action: &'static str,
        /// What it said.
        said: String,
    },
    /// It took too long.
    #[error("the container engine did not {action} within {limit:?}")]
    TooSlow {
        /// What it was asked to do.
        action: &'static str,
        /// How long it had.
        limit: Duration,
    },
    /// The sandbox is being closed.
    #[error("the sandbox is closed")]
    Closed,
}

/// Why a further command did not run.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// Boxes of this kind take no further command.
    #[error("a sandbox made by bubblewrap takes no further command; run it in one of its own")]
    NotPossible,
    /// There is nothing to run.
    #[error("the command is empty")]
    Empty,
    /// A name or value cannot be handed over.
    #[error("{what} is not text, which is all that a container engine takes")]
    NotText {
        /// Which.
        what: &'static str,
    },
    /// The box has ended.
    #[error("the sandbox `{name}` has ended")]
    Gone {
        /// Its name.
        name: String,
    },
    /// The container engine did not do what it was asked to.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Something that it is to be built of cannot be read.
    #[error("cannot read `{}` for the image", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What it is to be built of has something in it that no box may see.
    #[error(
        "no image is built of `{}`: `{}` is in it, which is the daemon's own; keep only what its \
         Dockerfile needs there", dir.display(), hidden.display()
    )]
    Hidden {
        /// The directory.
        dir: PathBuf,
        /// What would be in the image.
        hidden: PathBuf,
    },
    /// What it is to be built of is too much.
    #[error("`{}` has more than {limit} for the image; keep only what its Dockerfile needs there", dir.display())]
    TooLarge {
        /// The directory.
        dir: PathBuf,
        /// How much may be in it.
        limit: String,
    },
    /// A step of it failed.
    #[error("the image was not built: {said}")]
    Step {
        /// What the engine said.
        said: String,
    },
    /// The container engine did not do what it was asked to.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
