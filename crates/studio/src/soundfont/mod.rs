//! SoundFonts: what is in one, and where to find one.
//!
//! A font is checked before it is read: every chunk lies in the file, every index points into its
//! table. So a hostile font costs no more memory than its own size, and the error names the byte.

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
    /// Over the limit.
    #[error("the SoundFont has {bytes} bytes, and at most {bytes_max} are read")]
    TooLarge {
        /// What it has.
        bytes: u64,
        /// What it may have.
        bytes_max: u64,
    },
    /// Not what the format says.
    #[error("not a whole SoundFont 2 file: {what}, at byte {at}")]
    Malformed {
        /// Where.
        at: usize,
        /// What is wrong there.
        what: String,
    },
    /// The structure is whole, its contents make no sense.
    #[error("the SoundFont cannot be played: {what}")]
    Unplayable {
        /// What is wrong.
        what: String,
    },
    /// SF3.
    #[error("the SoundFont's samples are compressed (SF3); convert it to SF2 first")]
    Compressed,
    /// There is no such preset.
    #[error("the SoundFont has no preset {id}; `soundfont_inspect` lists those it has")]
    NoPreset {
        /// Which was asked for.
        id: PresetId,
    },
}

/// A SoundFont in memory. Cheap to clone; several renders may use it at once.
#[derive(Debug, Clone)]
pub struct Font(Arc<SoundFont>);

impl Font {
    /// Reads a font.
    ///
    /// # Errors
    /// The font is too large, not whole, compressed, or makes no sense.
    pub fn read(bytes: &[u8]) -> Result<Self, FontError> {
        let size = bytes.len() as u64;
        if size > FONT_BYTES_MAX {
            return Err(FontError::TooLarge { bytes: size, bytes_max: FONT_BYTES_MAX });
        }
        check::check(bytes)?;
        // The reader indexes and adds without looking in places that no structure check covers.
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
