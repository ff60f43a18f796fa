//! The pipes to the agent and the socket to the daemon.

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use crate::lines::LineReader;
use crate::options::{Key, Options, Target};
use crate::outbox::Outbox;
use crate::server::Server;
use crate::url::Remote;
use crate::{log, stdio};

/// While this much waits for an agent that does not read, no more input is read.
const TO_CLIENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long answers may still arrive after the end of the agent's input; agents then lose patience.
const END_GRACE: Duration = Duration::from_millis(1500);
/// How long to wait before reconnecting, at first and at most.
const RECONNECT_MIN: Duration = Duration::from_millis(20);
const RECONNECT_MAX: Duration = Duration::from_secs(1);

/// The pipe between the two halves of the program, for a session at a URL.
const DUPLEX_BYTES: usize = 64 * 1024;

type Reader = Box<dyn AsyncRead + Unpin>;
type Writer = Box<dyn AsyncWrite + Unpin>;

/// Serves standard input and output until the agent closes its end.
///
/// # Cancel safety
/// Dropping the future closes the session's connection; running calls are lost.
pub async fn run(options: Options) -> ExitCode {
    let now = Instant::now();
    let mut shell = Shell {
        input: LineReader::new(stdio::input()),
        output: stdio::output(),
        link: Link::new(options.target.clone(), options.key.clone(), now),
        server: Server::new(options, now),
        ends_at: None,
    };
    match shell.serve().await {
        Ok(()) => ExitCode::SUCCESS,
        // The usual end of an agent that is killed.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            log(&format!("standard input or output failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

struct Shell {
    input: LineReader<Reader>,
    output: Writer,
    link: Link,
    server: Server,
    /// Set at the end of the input.
    ends_at: Option<Instant>,
}

/// The connection to the daemon, or when to retry.
struct Link {
    target: Target,
    /// For a session at a URL, sent with every request.
    key: Option<Key>,
    reader: Option<LineReader<Reader>>,
    writer: Option<Writer>,
    /// The half that talks HTTP, for a session at a URL. It ends with its connection.
    remote: JoinSet<()>,
    retry_at: Instant,
    retry_after: Duration,
    /// Logged once per outage.
    has_warned: bool,
}

impl Shell {
    async fn serve(&mut self) -> io::Result<()> {
        loop {
            let now = Instant::now();
            if self.link.is_due(now) {
                self.connect(now).await;
            }
            self.server.settle(now);
            self.server.warnings.drain(..).for_each(|line| log(&line));
            if self.is_over(now) {
                let last_words = self.server.to_client.flush(&mut self.output);
                return timeout(END_GRACE, last_words).await.unwrap_or(Ok(()));
            }
            self.step().await?;
        }
    }

    /// Waits until something happens, and handles it.
    async fn step(&mut self) -> io::Result<()> {
        let has_room = self.server.to_client.len() < TO_CLIENT_BYTES_MAX;
        let is_open = self.ends_at.is_none();
        let deadline = self.deadline();
        let Self { input, output, link, server, .. } = self;
        let Link { reader, writer, .. } = link;
        tokio::select! {
            filled = input.fill(), if has_room && is_open => {
                let is_end = !filled?;
                self.on_input(is_end);
            }
            filled = fill(reader), if has_room && reader.is_some() => self.on_daemon(filled),
            flushed = server.to_client.flush(output), if !server.to_client.is_empty() => flushed?,
            flushed = flush(&mut server.to_daemon, writer), if !server.to_daemon.is_empty() => {
                if flushed.is_err() {
                    self.disconnect("it accepts no more data");
                }
            }
            () = wait_until(deadline) => {}
        }
        Ok(())
    }

    fn on_input(&mut self, is_end: bool) {
        while let Some(line) = self.input.pop() {
            self.server.on_client(&line);
        }
        if is_end {
            if let Some(line) = self.input.rest() {
                self.server.on_client(&line);
            }
            self.server.on_client_end();
            self.ends_at = Some(Instant::now() + END_GRACE);
        }
    }

    fn on_daemon(&mut self, filled: io::Result<bool>) {
        let Some(reader) = &mut self.link.reader else { return };
        let now = Instant::now();
        while let Some(line) = reader.pop() {
            self.link.retry_after = RECONNECT_MIN;
            if let Err(garbage) = self.server.on_daemon_line(&line, now) {
                return self.disconnect(&format!("it sent {garbage}"));
            }
        }
        match filled {
            Ok(true) => {}
            Ok(false) => self.disconnect("it closed the connection"),
            Err(error) => self.disconnect(&error.to_string()),
        }
    }

    async fn connect(&mut self, now: Instant) {
        match self.link.connect().await {
            Ok(()) => self.server.on_daemon_up(),
            Err(error) => {
                if !std::mem::replace(&mut self.link.has_warned, true) {
                    log(&format!(
                        "cannot connect to the daemon at {}: {error}; retrying",
                        self.link.target
                    ));
                }
                self.link.wait(now);
            }
        }
    }

    fn disconnect(&mut self, reason: &str) {
        log(&format!("lost the daemon: {reason}; reconnecting"));
        self.link.has_warned = true;
        self.link.reader = None;
        self.link.writer = None;
        self.link.wait(Instant::now());
        self.server.on_daemon_down();
    }

    fn is_over(&self, now: Instant) -> bool {
        let is_said = self.server.is_idle() && self.server.to_daemon.is_empty();
        self.ends_at.is_some_and(|ends_at| is_said || now >= ends_at)
    }

    fn deadline(&self) -> Option<Instant> {
        let retry = self.link.reader.is_none().then_some(self.link.retry_at);
        [self.server.deadline(), retry, self.ends_at].into_iter().flatten().min()
    }
}

impl Link {
    fn new(target: Target, key: Option<Key>, now: Instant) -> Self {
        Self {
            target,
            key,
            reader: None,
            writer: None,
            remote: JoinSet::new(),
            retry_at: now,
            retry_after: RECONNECT_MIN,
            has_warned: false,
        }
    }

    async fn connect(&mut self) -> io::Result<()> {
        let (reader, writer): (Reader, Writer) = match &self.target {
            Target::Socket(socket) => {
                let (reader, writer) = UnixStream::connect(socket).await?.into_split();
                (Box::new(reader), Box::new(writer))
            }
            Target::Url(uri, bearer) => {
                let (near, far) = tokio::io::duplex(DUPLEX_BYTES);
                let remote = Remote::new(uri.clone(), bearer.as_ref(), self.key.as_ref(), far);
                self.remote.abort_all();
                self.remote.spawn(remote.run());
                let (reader, writer) = tokio::io::split(near);
                (Box::new(reader), Box::new(writer))
            }
        };
        self.reader = Some(LineReader::new(reader));
        self.writer = Some(writer);
        self.has_warned = false;
        Ok(())
    }

    fn is_due(&self, now: Instant) -> bool {
        self.reader.is_none() && now >= self.retry_at
    }

    fn wait(&mut self, now: Instant) {
        self.retry_at = now + self.retry_after;
        self.retry_after = (self.retry_after * 2).min(RECONNECT_MAX);
    }
}

async fn fill(reader: &mut Option<LineReader<Reader>>) -> io::Result<bool> {
    match reader {
        Some(reader) => reader.fill().await,
        None => std::future::pending().await,
    }
}

async fn flush(outbox: &mut Outbox, writer: &mut Option<Writer>) -> io::Result<()> {
    match writer {
        Some(writer) => outbox.flush(writer).await,
        None => std::future::pending().await,
    }
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
