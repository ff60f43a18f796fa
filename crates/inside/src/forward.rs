//! `forward`: loopback addresses for the sockets of the session's model proxy and network proxy,
//! while an agent runs that only supports addresses.

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

/// The placeholders for addresses in the arguments and the environment of the command.
const MODEL: &str = "{model}";
const PROXY: &str = "{proxy}";
/// As many as the daemon accepts at each proxy; more wait until one ends.
const MODEL_CONNECTIONS_MAX: usize = 64;
const PROXY_CONNECTIONS_MAX: usize = 128;
/// How long to read what the agent still sends after the end of the daemon's answer: closing
/// earlier would discard that answer.
const LINGER: Duration = Duration::from_secs(1);
/// The exit codes of shells for a command that cannot be started.
const EXIT_NOT_FOUND: u8 = 127;
const EXIT_NOT_STARTED: u8 = 126;
/// What shells add to the number of the signal that ended a command.
const EXIT_SIGNAL: i32 = 128;

/// The command to run, and the sockets to make reachable for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// The socket of the model proxy.
    pub model: Option<PathBuf>,
    /// The socket of the network proxy.
    pub proxy: Option<PathBuf>,
    /// The program.
    pub command: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// Runs the command until it ends, and returns its exit code. `{model}` and `{proxy}` in its
/// arguments and in `env` stand for the addresses.
///
/// # Cancel safety
/// Dropping the future closes the addresses and leaves the command.
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
    doors: JoinSet<()>,
    child: Child,
    terminate: Signals,
    interrupt: Signals,
    hang_up: Signals,
}

/// A socket of the daemon, and the listener that leads to it.
struct Door {
    socket: PathBuf,
    listener: TcpListener,
    connections: JoinSet<io::Result<()>>,
    connections_max: usize,
    /// Logged once per outage.
    has_warned: bool,
}

/// A placeholder and its address.
type Address = (&'static str, String);

impl Forwarder {
    async fn start(
        options: &Forward,
        env: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        let (mut doors, mut addresses) = (JoinSet::new(), Vec::new());
        let wanted = [
            (MODEL, &options.model, MODEL_CONNECTIONS_MAX),
            (PROXY, &options.proxy, PROXY_CONNECTIONS_MAX),
        ];
        for (name, socket, connections_max) in wanted {
            let Some(socket) = socket else { continue };
            let door = Door::bind(socket, connections_max).await?;
            addresses.push((name, format!("http://{}", door.listener.local_addr()?)));
            doors.spawn(door.serve());
        }
        let [terminate, interrupt, hang_up] =
            [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
        let child = Command::new(&options.command)
            .args(options.args.iter().map(|arg| filled(arg, &addresses)))
            .envs(env.into_iter().map(|(name, value)| (name, filled(&value, &addresses))))
            .spawn()?;
        Ok(Self { doors, child, terminate: terminate?, interrupt: interrupt?, hang_up: hang_up? })
    }

    async fn run(&mut self) -> ExitCode {
        loop {
            tokio::select! {
                ended = self.child.wait() => return exit_code(ended),
                Some(()) = self.terminate.recv() => self.pass_on(Signal::TERM),
                Some(()) = self.interrupt.recv() => self.pass_on(Signal::INT),
                Some(()) = self.hang_up.recv() => self.pass_on(Signal::HUP),
                Some(Err(error)) = self.doors.join_next() => log(&format!("a proxy failed: {error}")),
            }
        }
    }

    /// The child has not been waited for, so its process id is not reused.
    fn pass_on(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(Err(error)) = pid.map(|pid| kill_process(pid, signal)) {
            log(&format!("cannot forward a signal: {error}"));
        }
    }
}

impl Door {
    async fn bind(socket: &Path, connections_max: usize) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (socket, connections) = (socket.to_owned(), JoinSet::new());
        Ok(Self { socket, listener, connections, connections_max, has_warned: false })
    }

    async fn serve(mut self) {
        loop {
            let has_room = self.connections.len() < self.connections_max;
            tokio::select! {
                Some(ended) = self.connections.join_next() => self.on_ended(ended),
                accepted = self.listener.accept(), if has_room => self.on_accepted(accepted).await,
            }
        }
    }

    fn on_ended(&mut self, ended: Result<io::Result<()>, tokio::task::JoinError>) {
        match ended {
            Ok(Ok(())) => self.has_warned = false,
            Ok(Err(error)) => {
                if !std::mem::replace(&mut self.has_warned, true) {
                    log(&format!("cannot connect to {}: {error}", self.socket.display()));
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
                log(&format!("cannot accept a connection: {error}"));
                // The usual cause is too many open files, and some will be closed.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Copies both ways until the daemon closes its end. Only a socket that cannot be reached is an
/// error.
async fn join(mut near: TcpStream, socket: &Path) -> io::Result<()> {
    let mut far = UnixStream::connect(socket).await?;
    near.set_nodelay(true)?;
    let (mut near_reader, mut near_writer) = near.split();
    let (mut far_reader, mut far_writer) = far.split();
    let up = async {
        if copy(&mut near_reader, &mut far_writer).await.is_err() {
            // The daemon has read enough, and its answer is what counts.
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

fn filled(text: &OsStr, addresses: &[Address]) -> OsString {
    let Some(text) = text.to_str() else { return text.to_owned() };
    let fill = |text: String, (name, address): &Address| text.replace(name, address);
    addresses.iter().fold(text.to_owned(), fill).into()
}

fn exit_code(ended: io::Result<ExitStatus>) -> ExitCode {
    let code = match ended {
        Ok(status) => status.code().or_else(|| status.signal().map(|signal| EXIT_SIGNAL + signal)),
        Err(error) => {
            log(&format!("cannot wait for the command: {error}"));
            None
        }
    };
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
