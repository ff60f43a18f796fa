//! Frames, the units of append-only files: the length of the payload (4 bytes, little-endian), the
//! first 8 bytes of the payload's BLAKE3 hash, and the payload. An incomplete tail left by a crash
//! is recognised and cut off.

use std::fs::{self, File};
use std::io::{self, Read};

use camino::Utf8Path;

const LENGTH_BYTES: usize = 4;
const CHECK_BYTES: usize = 8;
/// The size of a frame without its payload.
pub(crate) const HEAD_BYTES: usize = LENGTH_BYTES + CHECK_BYTES;

/// Adds a payload as a frame. It is never empty: zeros that a crash left must not look like a
/// frame.
pub(crate) fn encode(payload: &[u8], frames: &mut Vec<u8>) {
    debug_assert!(!payload.is_empty(), "an empty payload looks like zeros");
    let length = u32::try_from(payload.len()).expect("a payload is shorter than 4 GiB");
    frames.extend_from_slice(&length.to_le_bytes());
    frames.extend_from_slice(&check(payload));
    frames.extend_from_slice(payload);
}

/// Returns the payloads of the complete frames at the start of a file, and the length they cover.
pub(crate) fn split(data: &[u8]) -> (Vec<&[u8]>, usize) {
    let mut payloads = Vec::new();
    let mut rest = data;
    while let Some((payload, after)) = frame(rest) {
        payloads.push(payload);
        rest = after;
    }
    (payloads, data.len() - rest.len())
}

/// Reads the payload of the next frame of a file that was found intact before.
pub(crate) fn read(from: &mut impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut head = [0; HEAD_BYTES];
    from.read_exact(&mut head)?;
    let (length, expected) = head.split_at(LENGTH_BYTES);
    let length = length.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a frame is damaged");
    if length == 0 || length > bytes_max {
        return Err(damaged());
    }
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    if check(&payload) == expected { Ok(payload) } else { Err(damaged()) }
}

/// Cuts off an incomplete tail, and returns the rest.
pub(crate) fn cut_torn_tail(file: &File, path: &Utf8Path) -> io::Result<Vec<u8>> {
    let mut data = fs::read(path)?;
    let (_, whole) = split(&data);
    if whole < data.len() {
        tracing::warn!(%path, bytes = data.len() - whole, "cut a torn tail off a file");
        file.set_len(whole as u64)?;
        file.sync_all()?;
        data.truncate(whole);
    }
    Ok(data)
}

pub(crate) fn sync_dir(dir: &Utf8Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn frame(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<LENGTH_BYTES>()?;
    let (expected, rest) = rest.split_first_chunk::<CHECK_BYTES>()?;
    let (payload, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (!payload.is_empty() && check(payload) == *expected).then_some((payload, rest))
}

fn check(payload: &[u8]) -> [u8; CHECK_BYTES] {
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&blake3::hash(payload).as_bytes()[..CHECK_BYTES]);
    check
}
