//! The monitor: what the garden plays, for everyone who listens. The garden sends one stream; each
//! listener reads it at its own pace and misses what it is too slow for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use ringback_proto::garden::command::{self, MonitorAnswer};
use ringback_proto::garden::{GardenTroubleEvent, SERVICE, TroubleKind};
use ringback_proto::principal::PrincipalId;
use ringback_proto::request::{GardenMonitorRequest, GardenMonitorResponse};
use ringback_proto::{Error, Event, Result};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::{ACCEPT_WAIT, Garden, NoArguments};
use crate::sync::lock;

/// Pieces that a listener may be behind: the garden sends twenty a second.
const PIECES_MAX: usize = 64;
/// The bytes of one piece: a sixth of a second at the highest sample rate. What listeners
/// have not read takes 16 MiB at most, however many they are.
const PIECE_BYTES_MAX: usize = 256 << 10;
/// Left and right, 32-bit floats.
const FRAME_BYTES: usize = 8;
/// Everyone who may listen at the same time.
const LISTENERS_MAX: usize = 256;
/// So that no single principal takes all places.
const LISTENERS_PER_PRINCIPAL_MAX: usize = 32;
/// The garden sends silence as well, so one that sends nothing for so long has stopped sending.
const QUIET_MAX: Duration = Duration::from_secs(2);
/// Between two events about missing sound: a slow listener must not push other events out of the
/// ring.
const TROUBLE_PAUSE_MS: u64 = 1000;

/// The stream of the garden.
#[derive(Debug)]
pub(super) struct Channel {
    pieces: broadcast::Sender<Bytes>,
    /// The listeners of each principal.
    listeners: Mutex<HashMap<PrincipalId, usize>>,
    /// The bits of the beat that the garden last reported.
    position: AtomicU64,
    /// When the next event about missing sound may be published.
    next_trouble: AtomicU64,
}

impl Channel {
    pub(super) fn new() -> Self {
        Self {
            pieces: broadcast::channel(PIECES_MAX).0,
            listeners: Mutex::default(),
            position: AtomicU64::default(),
            next_trouble: AtomicU64::default(),
        }
    }

    pub(super) fn set_position(&self, beats: f64) {
        self.position.store(beats.to_bits(), Ordering::Relaxed);
    }
}

/// A listener of the monitor. It counts until it is dropped.
#[derive(Debug)]
pub struct Monitor {
    place: Place,
    pieces: broadcast::Receiver<Bytes>,
    services: watch::Receiver<u64>,
    sample_rate: u32,
}

/// A place among the listeners.
#[derive(Debug)]
struct Place {
    garden: Arc<Garden>,
    principal: PrincipalId,
}

impl Place {
    fn take(garden: &Arc<Garden>, principal: PrincipalId) -> Result<Self> {
        let mut listeners = lock(&garden.monitor.listeners);
        let n_own = listeners.get(&principal).copied().unwrap_or_default();
        if n_own >= LISTENERS_PER_PRINCIPAL_MAX {
            return Err(Error::busy("your part of the places at the garden's monitor"));
        }
        if listeners.values().sum::<usize>() >= LISTENERS_MAX {
            return Err(Error::busy("the garden's monitor"));
        }
        listeners.insert(principal, n_own + 1);
        Ok(Self { garden: Arc::clone(garden), principal })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut listeners = lock(&self.garden.monitor.listeners);
        if let Some(n_own) = listeners.get_mut(&self.principal) {
            *n_own -= 1;
            if *n_own == 0 {
                listeners.remove(&self.principal);
            }
        }
    }
}

impl Garden {
    /// Starts to listen. The garden has to run: one that does not is not heard.
    pub(crate) async fn listen(self: &Arc<Self>, principal: PrincipalId) -> Result<Monitor> {
        let place = Place::take(self, principal)?;
        // Before the garden is asked: it stops when an answer says that nobody listens.
        let pieces = self.monitor.pieces.subscribe();
        let services = self.lines.service_changes();
        let sample_rate = self.start_monitor().await?;
        Ok(Monitor { place, pieces, services, sample_rate })
    }

    /// Passes a piece on to the listeners.
    pub(crate) fn pass_on(&self, request: GardenMonitorRequest) -> Result<GardenMonitorResponse> {
        let GardenMonitorRequest { frames, missed } = request;
        let frames = frames.0;
        if frames.len() > PIECE_BYTES_MAX || !frames.len().is_multiple_of(FRAME_BYTES) {
            let message = format!(
                "`frames` must be whole frames of {FRAME_BYTES} bytes, {PIECE_BYTES_MAX} bytes at \
                 most"
            );
            return Err(Error::invalid_field("frames", message));
        }
        // An error means that nobody listens.
        let n_listeners = self.monitor.pieces.send(frames).unwrap_or_default();
        if missed > 0 && n_listeners > 0 {
            self.report_missing(|| {
                format!("the daemon was too slow: all listeners missed {missed} frames of sound")
            });
        }
        Ok(GardenMonitorResponse { listeners: u32::try_from(n_listeners).unwrap_or(u32::MAX) })
    }

    async fn start_monitor(&self) -> Result<u32> {
        self.check_served(SERVICE, command::MONITOR)?;
        let started: MonitorAnswer =
            self.ask(SERVICE, command::MONITOR, &NoArguments {}, None, ACCEPT_WAIT).await?;
        Ok(started.sample_rate)
    }

    /// Publishes that listeners missed sound, unless that was published a moment ago.
    fn report_missing(&self, cause: impl FnOnce() -> String) {
        let now = self.kernel.now().mono;
        let next = &self.monitor.next_trouble;
        let due = |at| (at <= now).then_some(now + TROUBLE_PAUSE_MS);
        if next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, due).is_err() {
            return;
        }
        let event = Event::GardenTrouble(GardenTroubleEvent {
            kind: TroubleKind::Monitor,
            position_beats: f64::from_bits(self.monitor.position.load(Ordering::Relaxed)),
            cause: cause(),
            region_id: None,
        });
        self.kernel.publish(event, PrincipalId::Local, None);
    }
}

impl Monitor {
    /// Returns the frames per second.
    #[must_use]
    pub const fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    /// Returns the next frames, 32-bit floats, little-endian, left and right in turn; `None` when
    /// the garden has ended, or has another sample rate.
    ///
    /// # Cancel safety
    /// A wait that is dropped loses no frames.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                // Frames of a garden with another sample rate must not come first.
                biased;
                changed = self.services.changed() => {
                    changed.ok()?;
                    self.ask_again().await?;
                }
                piece = self.pieces.recv() => match piece {
                    Ok(frames) => return Some(frames),
                    Err(RecvError::Lagged(n_missed)) => self.missed(n_missed),
                    Err(RecvError::Closed) => return None,
                },
                () = tokio::time::sleep(QUIET_MAX) => self.ask_again().await?,
            }
        }
    }

    /// Asks the garden to send: one that has restarted does not know its listeners, and one that
    /// could not reach the daemon for a moment has stopped.
    async fn ask_again(&self) -> Option<()> {
        let sample_rate = self.place.garden.start_monitor().await.ok()?;
        (sample_rate == self.sample_rate).then_some(())
    }

    /// Publishes that this listener is too slow, and goes on with what is heard now: otherwise it
    /// would be too slow for every piece.
    fn missed(&mut self, n_missed: u64) {
        self.pieces = self.pieces.resubscribe();
        self.place.garden.report_missing(|| {
            format!("a listener was too slow and missed {n_missed} or more pieces of sound")
        });
    }
}
