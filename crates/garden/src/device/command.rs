//! The device that is a program: raw samples on its standard input.

use std::io::Write;
use std::process::{Child, ChildStdin, Stdio};

use super::{Device, DeviceError, Format, Pace, Stop};
use crate::player::Player;

/// A program that plays what it reads: 32-bit little-endian floats, two channels.
#[derive(Debug)]
pub(super) struct Command {
    command: String,
    format: Format,
    child: Child,
    /// `None` once it is closed, so that the program sees the end.
    stdin: Option<ChildStdin>,
}

impl Command {
    pub(super) fn start(command: &str, format: Format) -> Result<Self, DeviceError> {
        let mut words = command.split_whitespace();
        let program = words.next().unwrap_or_default();
        let mut child = std::process::Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(DeviceError::on("start", command))?;
        let stdin = child.stdin.take();
        Ok(Self { command: command.to_owned(), format, child, stdin })
    }
}

impl Device for Command {
    fn kind(&self) -> &'static str {
        "command"
    }

    fn name(&self) -> String {
        self.command.clone()
    }

    fn run(&mut self, player: &mut Player, stop: &Stop) -> Result<(), DeviceError> {
        let mut buffer = self.format.buffer();
        let mut bytes = vec![0; size_of_val(buffer.as_slice())];
        let mut pace = Pace::new(self.format.sample_rate);
        while !stop.is_set() {
            player.fill(&mut buffer);
            to_bytes(&buffer, &mut bytes);
            if let Some(stdin) = &mut self.stdin {
                let written = stdin.write_all(&bytes).and_then(|()| stdin.flush());
                written.map_err(DeviceError::on("write to", &self.command))?;
            }
            pace.wait(self.format.buffer_frames);
        }
        Ok(())
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        self.stdin = None;
        // It has read to the end of its input, or it is of no use.
        if !matches!(self.child.try_wait(), Ok(Some(_)))
            && let Err(error) = self.child.kill()
        {
            tracing::debug!(%error, "the program of the device had ended");
        }
        if let Err(error) = self.child.wait() {
            tracing::debug!(%error, "cannot wait for the program of the device");
        }
    }
}

/// Writes samples as little-endian bytes; both have the same length in bytes.
pub(super) fn to_bytes(samples: &[f32], bytes: &mut [u8]) {
    for (to, sample) in bytes.chunks_exact_mut(size_of::<f32>()).zip(samples) {
        to.copy_from_slice(&sample.to_le_bytes());
    }
}
