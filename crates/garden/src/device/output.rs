//! The thread that plays: on the chosen device, or on none while that is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringback_proto::garden::{GardenDevice, GardenDeviceState};
use ringback_sync::lock;

use super::null::Null;
use super::{Device, Format, Stop, open};
use crate::player::Player;
use crate::renderer::{Delivery, Orders};
use crate::settings::DeviceChoice;

/// How long the garden plays nowhere before it tries a lost device again: quick for a person who
/// plugs a cable in, slow for a server that is gone.
const RETRY_TIME: Duration = Duration::from_secs(2);

/// The device as the status shows it.
#[derive(Debug, Clone)]
pub struct OutputState(Arc<Mutex<GardenDevice>>);

impl OutputState {
    /// Makes the state of a device that is not open yet.
    #[must_use]
    pub fn new(format: Format) -> Self {
        let Format { sample_rate, buffer_frames } = format;
        Self(Arc::new(Mutex::new(GardenDevice {
            kind: "null".to_owned(),
            name: "null".to_owned(),
            sample_rate,
            buffer_frames,
            state: GardenDeviceState::Lost,
            message: Some("the device is being opened".to_owned()),
            realtime: false,
        })))
    }

    /// Returns the current state.
    #[must_use]
    pub fn get(&self) -> GardenDevice {
        lock(&self.0).clone()
    }

    fn set(&self, change: impl FnOnce(&mut GardenDevice)) {
        change(&mut lock(&self.0));
    }
}

/// Plays on the chosen device until it is stopped.
#[derive(Debug)]
pub struct Output {
    /// Where the sound goes.
    pub choice: DeviceChoice,
    /// The sound format.
    pub format: Format,
    /// What the status shows.
    pub state: OutputState,
    /// Ends it.
    pub stop: Arc<AtomicBool>,
    /// Where trouble is reported.
    pub orders: Orders,
    /// How long to play nowhere before the device is tried again.
    pub retry_time: Duration,
}

impl Output {
    /// Plays on a device, with trouble reported to the renderer.
    #[must_use]
    pub fn new(choice: DeviceChoice, format: Format, orders: Orders) -> Self {
        let (state, stop) = (OutputState::new(format), Arc::default());
        Self { choice, format, state, stop, orders, retry_time: RETRY_TIME }
    }

    /// Plays. The calling thread becomes the device's thread.
    pub fn run(self, mut player: Player) {
        let realtime = crate::realtime::request();
        self.state.set(|device| device.realtime = realtime);
        let mut was_open = false;
        while !self.stop.load(Ordering::Relaxed) {
            let played = open(&self.choice, self.format).and_then(|mut device| {
                was_open = true;
                self.show(device.as_ref(), GardenDeviceState::Running, None);
                device.run(&mut player, &Stop::new(&self.stop, None))
            });
            if let Err(error) = played {
                self.play_nowhere(&mut player, was_open, error.to_string());
            }
        }
    }

    fn play_nowhere(&self, player: &mut Player, was_open: bool, message: String) {
        let state = if was_open { GardenDeviceState::Lost } else { GardenDeviceState::Fallback };
        if self.state.get().message.as_ref() != Some(&message) {
            tracing::warn!(%message, "playing nowhere until the device answers");
            self.orders.deliver(Delivery::DeviceTrouble(message.clone()));
        }
        let mut null = Null::new(self.format);
        self.show(&null, state, Some(message));
        // A file that is opened again would lose what it has.
        let is_recording = was_open && matches!(self.choice, DeviceChoice::File(_));
        let stop = Stop::new(&self.stop, (!is_recording).then_some(self.retry_time));
        if let Err(error) = null.run(player, &stop) {
            tracing::debug!(%error, "the null device ended");
        }
    }

    fn show(&self, device: &dyn Device, state: GardenDeviceState, message: Option<String>) {
        let (kind, name) = (device.kind().to_owned(), device.name());
        self.state.set(|shown| {
            (shown.kind, shown.name, shown.state, shown.message) = (kind, name, state, message);
        });
    }
}
