//! SoundFonts: their contents, and how to find one.
//!
//! A font is checked before it is read: every chunk lies in the file, every index points into its
//! table. So a hostile font takes no more memory than its own size, and the error names the byte.

mod check;
mod find;
mod inspect;

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use rustysynth::SoundFont;

pub use find::{FindFontError, SEARCHED_DIRS, find};
pub use inspect::{DrumKey, FontInfo, PresetId, PresetInfo, Region};

/// The largest font that is read: the big orchestral ones have about 1 GB, and a font is kept in
/// memory while it plays.
pub const FONT_BYTES_MAX: u64 = 1 << 30;

/// Why a SoundFont cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FontError {
    /// It is too large.
    #[error("the SoundFont has {bytes} bytes, the limit is {bytes_max}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// It violates the format.
    #[error("not a valid SoundFont 2 file: {what}, at byte {at}")]
    Malformed {
        /// The place.
        at: usize,
        /// What is wrong there.
        what: String,
    },
    /// The structure is valid, its contents are not.
    #[error("the SoundFont cannot be played: {what}")]
    Unplayable {
        /// What is wrong.
        what: String,
    },
    /// SF3.
    #[error("the SoundFont's samples are compressed (SF3); convert it to SF2 first")]
    Compressed,
    /// The preset does not exist.
    #[error("the SoundFont has no preset {id}; `soundfont_inspect` lists those it has")]
    NoPreset {
        /// The requested preset.
        id: PresetId,
    },
}

/// A SoundFont in memory. Cheap to clone; several renders may share it.
#[derive(Debug, Clone)]
pub struct Font(Arc<SoundFont>);

impl Font {
    /// Reads a font.
    ///
    /// # Errors
    /// If the font is too large, damaged, compressed, or invalid.
    pub fn read(bytes: &[u8]) -> Result<Self, FontError> {
        let size = bytes.len() as u64;
        if size > FONT_BYTES_MAX {
            return Err(FontError::TooLarge { bytes: size, bytes_max: FONT_BYTES_MAX });
        }
        check::check(bytes)?;
        // The reader indexes and adds without checks in places that the structure check does not
        // cover.
        let read = panic::catch_unwind(AssertUnwindSafe(|| SoundFont::new(&mut &bytes[..])));
        match read {
            Ok(Ok(font)) => Ok(Self(Arc::new(font))),
            Ok(Err(rustysynth::SoundFontError::UnsupportedSampleFormat)) => {
                Err(FontError::Compressed)
            }
            Ok(Err(error)) => Err(FontError::Unplayable { what: error.to_string() }),
            Err(_) => {
                Err(FontError::Unplayable { what: "a value in it is out of range".to_owned() })
            }
        }
    }

    pub(crate) const fn inner(&self) -> &Arc<SoundFont> {
        &self.0
    }
}
