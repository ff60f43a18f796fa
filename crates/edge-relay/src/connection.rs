//! One connection: bytes in, lines of text out, in one task.

use std::io;
use std::sync::Arc;

use futures_util::StreamExt as _;
use ringback_mcp_wire::Lines;
use tokio::io::{Interest, Ready};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::methods::{RunningRequest, Step};
use crate::protocol::ProtocolState;
use crate::socket::SocketContext;

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// The peer left.
    Left,
    /// The peer did not read.
    Slow,
    /// The peer belongs to another project.
    Refused,
    /// The session, or the daemon, ended.
    Stopped,
}

/// One connection.
pub(crate) struct Connection {
    socket_context: Arc<SocketContext>,
    stream: UnixStream,
    lines: Lines,
    protocol_state: ProtocolState,
    changes: watch::Receiver<u64>,
    /// When the peer last read something, or had nothing to read.
    read_at: Instant,
}

/// The next event.
enum Event {
    Stopped,
    Stalled,
    Step(u64, RunningRequest, Step),
    Ready(io::Result<Ready>),
    Changed,
}

impl Connection {
    pub(crate) fn new(socket_context: Arc<SocketContext>, stream: UnixStream) -> Self {
        Self {
            stream,
            lines: Lines::new(socket_context.config.line_bytes_max),
            protocol_state: ProtocolState::new(Arc::clone(&socket_context)),
            changes: socket_context.broker.lines().changes(),
            read_at: Instant::now(),
            socket_context,
        }
    }

    /// Serves until either side ends it. Running requests are then cancelled.
    pub(crate) async fn run(mut self) -> EndReason {
        self.protocol_state.tell_tools();
        loop {
            if let Err(ended) = self.write() {
                return ended;
            }
            let event = self.next().await;
            if let Err(ended) = self.on_event(event) {
                // The outbox says why; if the peer does not accept that immediately, it never will.
                drop(self.protocol_state.outbox.write_to(&self.stream));
                return ended;
            }
        }
    }

    async fn next(&mut self) -> Event {
        let waits = !self.protocol_state.outbox.is_empty();
        let interest =
            if waits { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        // Answers are taken at the pace of the peer, so that many large ones are not all in memory.
        let has_room =
            self.protocol_state.outbox.len() <= self.socket_context.config.outbox_bytes_max / 4;
        tokio::select! {
            biased;
            () = self.socket_context.scope.stop.cancelled() => Event::Stopped,
            () = sleep_until(self.read_at + self.socket_context.config.stall), if waits => Event::Stalled,
            Some((number, work, step)) = self.protocol_state.requests.next(), if has_room => {
                Event::Step(number, work, step)
            }
            ready = self.stream.ready(interest) => Event::Ready(ready),
            Ok(()) = self.changes.changed() => Event::Changed,
        }
    }

    fn on_event(&mut self, event: Event) -> Result<(), EndReason> {
        match event {
            Event::Stopped => Err(EndReason::Stopped),
            Event::Stalled => Err(EndReason::Slow),
            Event::Step(number, work, step) => {
                self.protocol_state.on_step(number, work, step);
                Ok(())
            }
            Event::Ready(Err(_)) => Err(EndReason::Left),
            Event::Ready(Ok(ready)) if ready.is_readable() || ready.is_read_closed() => self.read(),
            // Data is written before the next event.
            Event::Ready(Ok(_)) => Ok(()),
            Event::Changed => {
                self.protocol_state.tell_tools();
                Ok(())
            }
        }
    }

    /// Reads what has arrived. An unfinished line when the peer leaves is discarded.
    fn read(&mut self) -> Result<(), EndReason> {
        match self.stream.try_read_buf(self.lines.room()) {
            Ok(0) => return Err(EndReason::Left),
            Ok(_) => {}
            // Nothing had arrived after all, so there is nothing to look at below.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(EndReason::Left),
        }
        while let Some(line) = self.lines.pop() {
            self.protocol_state.on_line(&line)?;
        }
        let room = self.lines.room();
        if room.is_empty() {
            // An idle connection keeps no memory.
            *room = Vec::new();
        }
        Ok(())
    }

    /// Writes what the peer accepts now.
    fn write(&mut self) -> Result<(), EndReason> {
        let n_written =
            self.protocol_state.outbox.write_to(&self.stream).map_err(|_| EndReason::Left)?;
        if n_written > 0 || self.protocol_state.outbox.is_empty() {
            self.read_at = Instant::now();
        }
        if self.protocol_state.outbox.len() > self.socket_context.config.outbox_bytes_max {
            return Err(EndReason::Slow);
        }
        Ok(())
    }
}
