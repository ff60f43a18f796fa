//! Sound files: decoding WAV, FLAC, MP3 and Ogg Vorbis, and changing the sample rate.

mod decode;
mod resample;

pub use decode::{AudioInfo, DecodeError, DecodeLimits, Samples, decode};
pub use resample::{Resampler, resample};
