//! The monitor: sends what the device plays to the daemon, from the moment it asks until an answer
//! says that nobody listens.

use std::time::Duration;

use ringback_client::Client;
use ringback_proto::data::Data;
use ringback_proto::garden::command::MonitorAnswer;
use ringback_proto::request::GardenMonitorRequest;
use ringback_proto::tool::tools::GardenMonitor;
use ringback_proto::{Error, ErrorKind};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::tap::TapReader;

/// The time between two looks at the ring: what a listener hears is late by as much.
const LOOK_TIME: Duration = Duration::from_millis(50);
/// The most frames of a piece, 128 KiB: half of what the daemon accepts, and more than the device
/// plays between two looks.
const PIECE_FRAMES_MAX: usize = 16_384;
/// How long the daemon may take for a piece. It only passes it on; one that takes longer is away.
const SEND_TIME: Duration = Duration::from_secs(2);

/// Starts the monitor: cheap to copy.
#[derive(Debug, Clone)]
pub(crate) struct MonitorSwitch {
    /// How often the daemon asked.
    n_asked: watch::Sender<u64>,
    sample_rate: u32,
}

/// Sends what is heard until the garden ends.
#[derive(Debug)]
pub(crate) struct Monitor {
    tasks: JoinSet<()>,
}

/// Where the sound goes.
pub(crate) trait Receiver: Send + Sync {
    /// Passes a piece on and returns the number of listeners.
    fn pass_on(
        &self,
        piece: GardenMonitorRequest,
    ) -> impl Future<Output = Result<u32, Error>> + Send;
}

impl Receiver for Client {
    async fn pass_on(&self, piece: GardenMonitorRequest) -> Result<u32, Error> {
        Ok(self.call::<GardenMonitor>(piece).await?.listeners)
    }
}

impl MonitorSwitch {
    pub(crate) fn new(sample_rate: u32) -> Self {
        Self { n_asked: watch::Sender::new(0), sample_rate }
    }

    /// Starts to send, or goes on.
    pub(crate) fn start(&self) -> MonitorAnswer {
        self.n_asked.send_modify(|n_asked| *n_asked += 1);
        MonitorAnswer { sample_rate: self.sample_rate }
    }
}

impl Monitor {
    pub(crate) fn new(
        switch: &MonitorSwitch,
        tap: TapReader,
        receiver: impl Receiver + 'static,
    ) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(send_when_asked(switch.n_asked.subscribe(), tap, receiver));
        Self { tasks }
    }

    /// Stops it.
    pub(crate) async fn end(mut self) {
        self.tasks.shutdown().await;
    }
}

async fn send_when_asked(
    mut asked: watch::Receiver<u64>,
    mut tap: TapReader,
    receiver: impl Receiver,
) {
    while asked.changed().await.is_ok() {
        tap.start();
        let sent = send(&mut asked, &mut tap, &receiver).await;
        tap.stop();
        if let Err(error) = sent {
            // The daemon asks again if it still has listeners.
            tracing::info!(%error, "cannot send what is heard; the monitor stops");
        }
    }
}

/// Sends pieces until nobody listens.
async fn send(
    asked: &mut watch::Receiver<u64>,
    tap: &mut TapReader,
    receiver: &impl Receiver,
) -> Result<(), Error> {
    let mut looks = tokio::time::interval(LOOK_TIME);
    // A look that came late is not made up for: the ring has everything.
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        while let Some(piece) = tap.take(PIECE_FRAMES_MAX) {
            // A listener that the answer does not count asks after this.
            asked.mark_unchanged();
            let missed = piece.n_missed;
            let request = GardenMonitorRequest { frames: Data::from(piece.frames), missed };
            let passed_on = tokio::time::timeout(SEND_TIME, receiver.pass_on(request)).await;
            let n_listeners = passed_on.map_err(|_| too_slow())??;
            // An error means that the garden ends.
            if n_listeners == 0 && !asked.has_changed().unwrap_or(false) {
                return Ok(());
            }
        }
    }
}

fn too_slow() -> Error {
    let message = format!("the daemon did not take a piece of sound within {SEND_TIME:?}");
    Error::new(ErrorKind::Timeout, message)
}

#[cfg(test)]
mod tests;
