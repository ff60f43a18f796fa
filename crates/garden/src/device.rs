//! Devices: where the sound goes. A device drives the callback in its own time, on the thread that
//! calls it.

mod command;
mod file;
mod null;
mod output;
mod pulse;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::player::Player;
use crate::settings::DeviceChoice;

pub use output::{Output, OutputState};

/// A device that is open.
pub trait Device: Send {
    /// Returns its kind, as in `garden.device`.
    fn kind(&self) -> &'static str;

    /// Returns its name.
    fn name(&self) -> String;

    /// Plays until it is stopped or lost.
    ///
    /// # Errors
    /// Why it was lost.
    fn run(&mut self, player: &mut Player, stop: &Stop) -> Result<(), DeviceError>;
}

/// Why a device cannot be used, or was lost.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the device `{name}`: {reason}")]
pub struct DeviceError {
    /// The attempted action.
    pub action: &'static str,
    /// The device.
    pub name: String,
    /// What the system or the device reports.
    pub reason: String,
}

impl DeviceError {
    pub(crate) fn on<'a, E: std::fmt::Display>(
        action: &'static str,
        name: &'a str,
    ) -> impl FnOnce(E) -> Self + use<'a, E> {
        move |error| Self { action, name: name.to_owned(), reason: error.to_string() }
    }
}

/// Ends a device: when the garden stops, or at a time, to try another one.
#[derive(Debug)]
pub struct Stop<'a> {
    flag: &'a AtomicBool,
    until: Option<Instant>,
}

impl<'a> Stop<'a> {
    /// Stops when the flag is set, and at the latest after `limit`.
    #[must_use]
    pub fn new(flag: &'a AtomicBool, limit: Option<Duration>) -> Self {
        Self { flag, until: limit.map(|limit| Instant::now() + limit) }
    }

    /// Returns whether to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed) || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// The sound format of all devices: 32-bit floats, left and right in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Frames per second.
    pub sample_rate: u32,
    /// The frames of one buffer.
    pub buffer_frames: u32,
}

impl Format {
    fn buffer(self) -> Vec<f32> {
        vec![0.0; self.buffer_frames as usize * crate::sound::CHANNELS]
    }
}

/// Opens a device.
///
/// # Errors
/// If it does not exist or refuses.
pub fn open(choice: &DeviceChoice, format: Format) -> Result<Box<dyn Device>, DeviceError> {
    Ok(match choice {
        DeviceChoice::Auto | DeviceChoice::Pulse => Box::new(pulse::Pulse::open(format)?),
        DeviceChoice::Null => Box::new(null::Null::new(format)),
        DeviceChoice::File(path) => Box::new(file::File::create(path, format)?),
        DeviceChoice::Command(command) => Box::new(command::Command::start(command, format)?),
    })
}

/// Keeps real time where a device has no clock of its own.
#[derive(Debug)]
struct Pace {
    start: Instant,
    n_frames: u64,
    rate: u32,
}

/// A machine that slept is not played what it missed.
const BEHIND_MAX: Duration = Duration::from_millis(500);

impl Pace {
    fn new(rate: u32) -> Self {
        Self { start: Instant::now(), n_frames: 0, rate }
    }

    /// Waits until it is time for more frames.
    fn wait(&mut self, n_frames: u32) {
        self.n_frames += u64::from(n_frames);
        let seconds = self.n_frames as f64 / f64::from(self.rate);
        let due = self.start + Duration::from_secs_f64(seconds);
        let now = Instant::now();
        if due > now {
            std::thread::sleep(due - now);
        } else if now - due > BEHIND_MAX {
            (self.start, self.n_frames) = (now, 0);
        }
    }
}
