//! The device that is a program: raw samples on its standard input.

use std::io::{ErrorKind, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::{Device, DeviceError, Format, Pace, Stop};
use crate::player::Player;

/// How often a program that does not read is looked at, to see whether to stop.
const LOOK_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// The program is lost if it reads nothing for so long; sound cards have a second of room at most.
const SILENCE_MAX: Duration = Duration::from_secs(5);

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
        if let Some(stdin) = &stdin {
            // The program may stop reading; this thread must not wait for it for ever.
            fcntl_getfl(stdin)
                .and_then(|flags| fcntl_setfl(stdin, flags | OFlags::NONBLOCK))
                .map_err(DeviceError::on("start", command))?;
        }
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
                let written = write_all(stdin, &bytes, stop);
                written.map_err(DeviceError::on("write to", &self.command))?;
            }
            pace.wait(self.format.buffer_frames);
        }
        Ok(())
    }
}

/// Writes all bytes, unless it is stopped before.
fn write_all(stdin: &mut ChildStdin, mut bytes: &[u8], stop: &Stop) -> std::io::Result<()> {
    let mut last_written = Instant::now();
    while !bytes.is_empty() && !stop.is_set() {
        match stdin.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n_bytes) => {
                bytes = &bytes[n_bytes..];
                last_written = Instant::now();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if last_written.elapsed() > SILENCE_MAX {
                    let reason = format!("the program has read nothing for {SILENCE_MAX:?}");
                    return Err(std::io::Error::new(ErrorKind::TimedOut, reason));
                }
                poll(&mut [PollFd::new(stdin, PollFlags::OUT)], Some(&LOOK_TIME))?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Rule: a program that stops reading does not keep the garden from ending.
    #[test]
    fn a_program_that_reads_nothing_does_not_hold_the_garden() {
        let format = Format { sample_rate: 48_000, buffer_frames: 128 };
        let mut device = Command::start("sleep 600", format).unwrap();
        let stdin = device.stdin.as_mut().unwrap();
        let full = loop {
            if let Err(error) = stdin.write(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
        let flag = AtomicBool::new(false);
        let stop = Stop::new(&flag, Some(Duration::from_millis(60)));
        write_all(stdin, &[0; 4096], &stop).unwrap();
        assert!(stop.is_set(), "it waited for the program until it was stopped");
    }
}
