//! An open connection: its bytes are counted, and it ends when it is no longer allowed or idle for
//! too long.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ringback_broker::network::permits_address;
use ringback_broker::{NetworkConnection, NetworkOutcome};
use ringback_proto::network::Destination;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_util::io::{InspectReader, InspectWriter};

use super::door::Door;
use super::reach::whose;

/// Both directions of a connection.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A connection to a host whose bytes are counted.
pub(super) type Stream = Box<dyn Wire>;

/// A requested place: recorded when it is dropped, however it ended.
#[derive(Debug)]
pub(super) struct Account {
    door: Arc<Door>,
    place: String,
    started: Instant,
    passed: Arc<ByteCounts>,
    pub(super) outcome: NetworkOutcome,
}

#[derive(Debug, Default)]
struct ByteCounts {
    up: AtomicU64,
    down: AtomicU64,
}

/// A connection, and the conditions that end it.
#[derive(Debug)]
pub(super) struct Passage {
    account: Account,
    to: Destination,
    address: IpAddr,
}

impl Account {
    pub(super) fn new(door: Arc<Door>, to: &Destination) -> Self {
        Self {
            door,
            place: to.to_string(),
            started: Instant::now(),
            passed: Arc::default(),
            outcome: NetworkOutcome::GivenUp,
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let asked = NetworkConnection {
            place: std::mem::take(&mut self.place),
            outcome: self.outcome,
            duration: self.started.elapsed(),
            bytes_up: self.passed.up.load(Ordering::Relaxed),
            bytes_down: self.passed.down.load(Ordering::Relaxed),
        };
        self.door.recorder.record(self.door.session, &asked);
    }
}

impl ByteCounts {
    fn sum(&self) -> u64 {
        let [up, down] = [&self.up, &self.down].map(|counter| counter.load(Ordering::Relaxed));
        up.wrapping_add(down)
    }
}

impl Passage {
    pub(super) fn new(
        account: Account,
        to: Destination,
        address: IpAddr,
        stream: TcpStream,
    ) -> (Stream, Self) {
        let (up, down) = (Arc::clone(&account.passed), Arc::clone(&account.passed));
        let count = |counter: &AtomicU64, bytes: &[u8]| {
            counter.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        };
        let stream = InspectWriter::new(stream, move |bytes: &[u8]| count(&up.up, bytes));
        let stream = InspectReader::new(stream, move |bytes: &[u8]| count(&down.down, bytes));
        (Box::new(stream), Self { account, to, address })
    }

    /// Runs a conversation for as long as it is allowed.
    ///
    /// # Cancel safety
    /// Dropping it ends the conversation.
    pub(super) async fn hold(mut self, conversation: impl Future<Output = ()>) {
        self.account.outcome = NetworkOutcome::Closed;
        let outcome = tokio::select! {
            biased;
            outcome = self.over() => outcome,
            () = conversation => NetworkOutcome::Passed,
        };
        self.account.outcome = outcome;
    }

    /// Returns when the connection is no longer allowed.
    async fn over(&self) -> NetworkOutcome {
        let Self { account, to, address } = self;
        let mut policy = account.door.policy.clone();
        // An error means that the session is over.
        let forbidden = policy
            .wait_for(|policy| permits_address(policy, to, *address, whose(*address)).is_err());
        tokio::select! {
            () = account.door.scope.stop.cancelled() => NetworkOutcome::Closed,
            _ = forbidden => NetworkOutcome::Closed,
            () = self.idle() => NetworkOutcome::Idle,
        }
    }

    async fn idle(&self) {
        let mut before = None;
        loop {
            let now = self.account.passed.sum();
            if before == Some(now) {
                return;
            }
            before = Some(now);
            sleep(self.account.door.config.idle_timeout).await;
        }
    }
}
