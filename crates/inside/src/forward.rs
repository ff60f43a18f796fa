//! `forward`: an address on this machine's loopback for the socket of the session's model, for as
//! long as an agent runs that knows models by addresses alone.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncWriteExt as _, copy, sink};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::log;

/// What stands for the address in the arguments and the environment of the command.
const MODEL: &str = "{model}";
/// As many as the daemon takes; more wait until one ends.
const CONNECTIONS_MAX: usize = 64;
/// After the daemon's last word, what the agent still sends is read for so long: closing before
/// would take that word back.
const LINGER: Duration = Duration::from_secs(1);
/// What shells say of a command that cannot be started.
const EXIT_NOT_FOUND: u8 = 127;
const EXIT_NOT_STARTED: u8 = 126;
/// What shells add to the number of the signal that ended a command.
const EXIT_SIGNAL: i32 = 128;

/// What to run, and the socket to make reachable for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// The socket of the session's model.
    pub socket: PathBuf,
    /// The program.
    pub command: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// Runs the command until it ends, with its exit code. `{model}` in its arguments and in `env` is the
/// address.
///
/// # Cancel safety
/// Dropping the future closes the address and leaves the command.
pub async fn forward(
    options: &Forward,
    env: impl IntoIterator<Item = (OsString, OsString)>,
) -> ExitCode {
    match Forwarder::start(options, env).await {
        Ok(mut forwarder) => forwarder.run().await,
        Err(error) => {
            log(&format!("cannot run `{}`: {error}", options.command.display()));
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            ExitCode::from(if is_missing { EXIT_NOT_FOUND } else { EXIT_NOT_STARTED })
        }
    }
}

struct Forwarder {
    socket: PathBuf,
    listener: TcpListener,
    connections: JoinSet<io::Result<()>>,
    child: Child,
    terminate: Signals,
    interrupt: Signals,
    hang_up: Signals,
    /// Said once per outage.
    has_warned: bool,
}

impl Forwarder {
    async fn start(
        options: &Forward,
        env: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = format!("http://{}", listener.local_addr()?);
        let [terminate, interrupt, hang_up] =
            [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
        let child = Command::new(&options.command)
            .args(options.args.iter().map(|arg| filled(arg, &address)))
            .envs(env.into_iter().map(|(name, value)| (name, filled(&value, &address))))
            .spawn()?;
        Ok(Self {
            socket: options.socket.clone(),
            listener,
            connections: JoinSet::new(),
            child,
            terminate: terminate?,
            interrupt: interrupt?,
            hang_up: hang_up?,
            has_warned: false,
        })
    }

    async fn run(&mut self) -> ExitCode {
        loop {
            let has_room = self.connections.len() < CONNECTIONS_MAX;
            tokio::select! {
                ended = self.child.wait() => return exit_code(ended),
                Some(()) = self.terminate.recv() => self.pass_on(Signal::TERM),
                Some(()) = self.interrupt.recv() => self.pass_on(Signal::INT),
                Some(()) = self.hang_up.recv() => self.pass_on(Signal::HUP),
                Some(ended) = self.connections.join_next() => self.on_ended(ended),
                accepted = self.listener.accept(), if has_room => self.on_accepted(accepted).await,
            }
        }
    }

    /// The child has not been waited for, so its number is nobody else's.
    fn pass_on(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(Err(error)) = pid.map(|pid| kill_process(pid, signal)) {
            log(&format!("cannot pass a signal on: {error}"));
        }
    }

    fn on_ended(&mut self, ended: Result<io::Result<()>, tokio::task::JoinError>) {
        match ended {
            Ok(Ok(())) => self.has_warned = false,
            Ok(Err(error)) => {
                if !std::mem::replace(&mut self.has_warned, true) {
                    log(&format!("no model at {}: {error}", self.socket.display()));
                }
            }
            Err(error) => log(&format!("a connection failed: {error}")),
        }
    }

    async fn on_accepted(&mut self, accepted: io::Result<(TcpStream, std::net::SocketAddr)>) {
        match accepted {
            Ok((stream, _)) => {
                let socket = self.socket.clone();
                self.connections.spawn(async move { join(stream, &socket).await });
            }
            Err(error) => {
                log(&format!("cannot take a connection: {error}"));
                // Most often there are too many files open, and some will be closed.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Copies both ways until the daemon closes its end. Only a socket that cannot be reached is an error.
async fn join(mut near: TcpStream, socket: &Path) -> io::Result<()> {
    let mut far = UnixStream::connect(socket).await?;
    near.set_nodelay(true)?;
    let (mut near_reader, mut near_writer) = near.split();
    let (mut far_reader, mut far_writer) = far.split();
    let up = async {
        if copy(&mut near_reader, &mut far_writer).await.is_err() {
            // It has heard enough, and its answer is what counts.
            drop(copy(&mut near_reader, &mut sink()).await);
        }
        drop(far_writer.shutdown().await);
    };
    let down = async {
        drop(copy(&mut far_reader, &mut near_writer).await);
        drop(near_writer.shutdown().await);
    };
    let mut up = std::pin::pin!(up);
    let mut down = std::pin::pin!(down);
    tokio::select! {
        () = &mut up => down.await,
        () = &mut down => drop(timeout(LINGER, up).await),
    }
    Ok(())
}

fn filled(text: &OsStr, address: &str) -> OsString {
    match text.to_str() {
        Some(text) if text.contains(MODEL) => text.replace(MODEL, address).into(),
        Some(_) | None => text.to_owned(),
    }
}

fn exit_code(ended: io::Result<ExitStatus>) -> ExitCode {
    let code = match ended {
        Ok(status) => status.code().or_else(|| status.signal().map(|signal| EXIT_SIGNAL + signal)),
        Err(error) => {
            log(&format!("cannot tell how the command ended: {error}"));
            None
        }
    };
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
