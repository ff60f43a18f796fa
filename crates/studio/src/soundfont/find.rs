//! The SoundFont to use when a caller names none.

use std::fs;
use std::path::{Path, PathBuf};

/// Where distributions put SoundFonts, the most usual first.
pub const SEARCHED_DIRS: [&str; 3] =
    ["/usr/share/sounds/sf2", "/usr/share/soundfonts", "/usr/local/share/soundfonts"];

/// What a distribution calls the font it prefers, then fonts that are known to be whole sets of
/// General MIDI instruments.
const PREFERRED: [&str; 4] = ["default-GM.sf2", "default.sf2", "FluidR3_GM.sf2", "TimGM6mb.sf2"];

/// Why there is no SoundFont.
#[derive(Debug, thiserror::Error)]
pub enum FindFontError {
    /// The configured one is not there.
    #[error("there is no SoundFont at `{path}`, which `studio.soundfont` names")]
    NotThere {
        /// The configured path.
        path: PathBuf,
    },
    /// None is configured, and none was found.
    #[error(
        "no SoundFont: none is named by `studio.soundfont`, and there is no .sf2 file in {searched}; \
         install one, for example with `apt-get install timgm6mb-soundfont` (6 MB) or \
         `apt-get install fluid-soundfont-gm` (140 MB), or upload one and give its hash"
    )]
    None {
        /// Where it was looked for.
        searched: String,
    },
}

/// The configured font, or the best one in `dirs` (usually [`SEARCHED_DIRS`]).
///
/// # Errors
/// The configured one does not exist, or none is found.
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

    /// REQ: without a font, the error says which package brings one.
    #[test]
    fn without_any_font_the_error_names_a_package() {
        let dir = dir_with(&[]);
        let error = find(None, &[dir.path().to_str().unwrap()]).unwrap_err().to_string();
        assert!(error.contains("apt-get install timgm6mb-soundfont"), "{error}");
        assert!(error.contains("studio.soundfont"), "{error}");
    }
}
