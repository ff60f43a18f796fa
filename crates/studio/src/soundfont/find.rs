//! The default SoundFont.

use std::fs;
use std::path::{Path, PathBuf};

/// The directories where distributions install SoundFonts, the most common first.
pub const SEARCHED_DIRS: [&str; 3] =
    ["/usr/share/sounds/sf2", "/usr/share/soundfonts", "/usr/local/share/soundfonts"];

/// The name of a distribution's preferred font, then fonts that are known to be complete General
/// MIDI sets.
const PREFERRED: [&str; 4] = ["default-GM.sf2", "default.sf2", "FluidR3_GM.sf2", "TimGM6mb.sf2"];

/// Why no SoundFont is available.
#[derive(Debug, thiserror::Error)]
pub enum FindFontError {
    /// The configured one does not exist.
    #[error("no SoundFont at `{path}`, which `studio.soundfont` names")]
    NotThere {
        /// The configured path.
        path: PathBuf,
    },
    /// None is configured, and no other was found.
    #[error(
        "no SoundFont: `studio.soundfont` is not set, and {searched} contain no .sf2 file; \
         install one, for example with `apt-get install timgm6mb-soundfont` (6 MB) or `apt-get \
         install fluid-soundfont-gm` (140 MB), or upload one and pass its hash"
    )]
    None {
        /// The searched directories.
        searched: String,
    },
}

/// Returns the configured font, or the best one in `dirs` (usually [`SEARCHED_DIRS`]).
///
/// # Errors
/// If the configured one does not exist, or no other is found.
pub fn find(configured: Option<&Path>, dirs: &[&str]) -> Result<PathBuf, FindFontError> {
    if let Some(path) = configured {
        let path = path.to_owned();
        return if path.is_file() { Ok(path) } else { Err(FindFontError::NotThere { path }) };
    }
    dirs.iter()
        .find_map(|dir| best_in(Path::new(dir)))
        .ok_or_else(|| FindFontError::None { searched: dirs.join(", ") })
}

fn best_in(dir: &Path) -> Option<PathBuf> {
    let preferred = PREFERRED.iter().map(|name| dir.join(name)).find(|path| path.is_file());
    preferred.or_else(|| {
        let mut fonts: Vec<_> = fs::read_dir(dir)
            .ok()?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "sf2"))
            .collect();
        fonts.sort();
        fonts.into_iter().find(|path| path.is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir_with(names: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(dir.path().join(name), b"x").unwrap();
        }
        dir
    }

    #[test]
    fn the_configured_font_wins_and_must_exist() {
        let dir = dir_with(&["mine.sf2"]);
        let path = dir.path().join("mine.sf2");
        assert_eq!(find(Some(&path), &[]).unwrap(), path);
        let error = find(Some(&dir.path().join("other.sf2")), &SEARCHED_DIRS).unwrap_err();
        assert!(error.to_string().contains("studio.soundfont"));
    }

    #[test]
    fn the_distributions_choice_comes_before_the_alphabet() {
        let dir = dir_with(&["a.sf2", "default-GM.sf2", "readme.txt"]);
        let found = find(None, &[dir.path().to_str().unwrap()]).unwrap();
        assert_eq!(found.file_name().unwrap(), "default-GM.sf2");
        let dir = dir_with(&["readme.txt", "b.sf2", "a.sf2"]);
        let found = find(None, &[dir.path().to_str().unwrap()]).unwrap();
        assert_eq!(found.file_name().unwrap(), "a.sf2");
    }

    /// REQ: without a font, the error says which package provides one.
    #[test]
    fn without_any_font_the_error_names_a_package() {
        let dir = dir_with(&[]);
        let error = find(None, &[dir.path().to_str().unwrap()]).unwrap_err().to_string();
        assert!(error.contains("apt-get install timgm6mb-soundfont"), "{error}");
        assert!(error.contains("studio.soundfont"), "{error}");
    }
}
