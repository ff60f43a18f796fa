//! Errors.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::probe::Layer;

/// Why the sandbox cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its own files cannot be written.
    #[error("cannot write the files of the sandbox at `{}`", path.display())]
    State {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The system refuses a thread.
    #[error("cannot start a thread for the sandbox")]
    Thread(#[source] io::Error),
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A promised layer is missing.
    #[error("the sandbox cannot provide {layer}: {why}; {fix}")]
    Layer {
        /// The layer.
        layer: Layer,
        /// The reason.
        why: String,
        /// How to get it.
        fix: String,
    },
    /// No backend provides every promised layer.
    #[error("{bubblewrap}; or use Docker: {docker}")]
    Neither {
        /// What bubblewrap lacks.
        bubblewrap: Box<Self>,
        /// What a container engine lacks.
        docker: Box<Self>,
    },
    /// Something to mount does not exist.
    #[error("cannot mount {what} `{}` in the sandbox", path.display())]
    Mount {
        /// Its role.
        what: &'static str,
        /// Its expected path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A mount would expose something that no sandbox may see.
    #[error(
        "`{}` must not be in a sandbox: it would expose `{}`, which belongs to the daemon; keep \
         that elsewhere, or list a narrower path in sandbox.read_only",
        path.display(), hidden.display()
    )]
    Hidden {
        /// The path to mount.
        path: PathBuf,
        /// The path that would be exposed.
        hidden: PathBuf,
    },
    /// A name or value cannot be passed to an engine.
    #[error("{what} is not valid UTF-8, which container engines require")]
    NotText {
        /// Its role.
        what: &'static str,
    },
    /// A name or value cannot be passed on.
    #[error("{what} contains a zero byte")]
    ZeroByte {
        /// Its role.
        what: &'static str,
    },
    /// A file or cgroup of the sandbox cannot be written.
    #[error("cannot write `{}` for the sandbox", path.display())]
    State {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// bubblewrap did not start.
    #[error("cannot start `{}`", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// bubblewrap could not make the sandbox.
    #[error("bubblewrap could not make a sandbox: {said}")]
    Refused {
        /// Its error output.
        said: String,
    },
    /// bubblewrap did not report a first process.
    #[error("bubblewrap did not make a sandbox within {limit:?}")]
    TooSlow {
        /// The time limit.
        limit: Duration,
    },
    /// The container engine refused a request.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The sandbox is being closed.
    #[error("the sandbox is closed")]
    Closed,
}

/// Why a container engine cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Sandboxes are not made by an engine.
    #[error(
        "sandboxes are made by bubblewrap here, which has no images; set `sandbox.backend = \
         \"docker\"`"
    )]
    NotUsed,
    /// It is not on this machine, where the workspaces are.
    #[error(
        "`{address}` is not a socket on this machine; set `sandbox.docker` to one, such as \
         `unix:///var/run/docker.sock`"
    )]
    Elsewhere {
        /// The configured address.
        address: String,
    },
    /// No engine answers.
    #[error(
        "no container engine answers at `{}`; install and start one, for example with `apt install \
         docker.io`, or set `sandbox.docker` to the socket of one", socket.display()
    )]
    Absent {
        /// Its expected path.
        socket: PathBuf,
    },
    /// This user may not use it.
    #[error(
        "this user may not use the container engine at `{}`; run `usermod -aG docker USER` as root \
         and log in again, or set `sandbox.docker` to an engine of its own", socket.display()
    )]
    Denied {
        /// Its path.
        socket: PathBuf,
    },
    /// It refused, or its answer makes no sense.
    #[error("the container engine cannot {action}: {said}")]
    Refused {
        /// The request.
        action: &'static str,
        /// Its message.
        said: String,
    },
    /// It took too long.
    #[error("the container engine did not {action} within {limit:?}")]
    TooSlow {
        /// The request.
        action: &'static str,
        /// The time limit.
        limit: Duration,
    },
    /// The sandbox is being closed.
    #[error("the sandbox is closed")]
    Closed,
}

/// Why a further command did not run.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// Sandboxes of this kind accept no further commands.
    #[error(
        "a sandbox made by bubblewrap accepts no further commands; run the command in a \
             sandbox of its own"
    )]
    NotPossible,
    /// The command has no words.
    #[error("the command is empty")]
    Empty,
    /// A name or value cannot be passed on.
    #[error("{what} is not valid UTF-8, which container engines require")]
    NotText {
        /// Its role.
        what: &'static str,
    },
    /// The sandbox has ended.
    #[error("the sandbox `{name}` has ended")]
    Gone {
        /// Its name.
        name: String,
    },
    /// The container engine refused a request.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why an image was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Part of its directory cannot be read.
    #[error("cannot read `{}` for the image", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Its directory contains something that no sandbox may see.
    #[error(
        "cannot build an image from `{}`: it contains `{}`, which belongs to the daemon; keep \
         only what its Dockerfile needs there", dir.display(), hidden.display()
    )]
    Hidden {
        /// The directory.
        dir: PathBuf,
        /// The path that would be in the image.
        hidden: PathBuf,
    },
    /// Its directory is too large.
    #[error(
        "`{}` has more than {limit} for the image; keep only what its Dockerfile needs there",
        dir.display()
    )]
    TooLarge {
        /// The directory.
        dir: PathBuf,
        /// The limit.
        limit: String,
    },
    /// A build step failed.
    #[error("cannot build the image: {said}")]
    Step {
        /// The engine's message.
        said: String,
    },
    /// The container engine refused a request.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
