//! The device that plays nowhere, in real time.

use super::{Device, DeviceError, Format, Pace, Stop};
use crate::player::Player;

/// Plays nowhere.
#[derive(Debug)]
pub(super) struct Null {
    format: Format,
}

impl Null {
    pub(super) const fn new(format: Format) -> Self {
        Self { format }
    }
}

impl Device for Null {
    fn kind(&self) -> &'static str {
        "null"
    }

    fn name(&self) -> String {
        "null".to_owned()
    }

    fn run(&mut self, player: &mut Player, stop: &Stop) -> Result<(), DeviceError> {
        let mut buffer = self.format.buffer();
        let mut pace = Pace::new(self.format.sample_rate);
        while !stop.is_set() {
            player.fill(&mut buffer);
            pace.wait(self.format.buffer_frames);
        }
        Ok(())
    }
}
