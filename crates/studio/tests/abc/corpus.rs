//! The tunes under `tests/tunes`, one by one.

use std::fs;
use std::path::Path;

/// A tune of the corpus.
pub(crate) struct CorpusTune {
    /// The file and its reference number, as in `keys.abc:12`.
    pub(crate) name: String,
    /// Its text alone.
    pub(crate) text: String,
}

/// Returns every tune of every file.
pub(crate) fn tunes() -> Vec<CorpusTune> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tunes");
    let mut paths: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| of_file(path)).collect()
}

fn of_file(path: &Path) -> Vec<CorpusTune> {
    let file = path.file_name().unwrap().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).unwrap();
    text.split("\n\n")
        .map(str::trim)
        .filter(|tune| tune.starts_with("X:"))
        .map(|tune| {
            let number = tune[2..].lines().next().unwrap().trim();
            CorpusTune { name: format!("{file}:{number}"), text: format!("{tune}\n") }
        })
        .collect()
}

/// REQ: at least 300 tunes exercise every construct.
#[test]
fn the_corpus_is_large_and_valid() {
    let tunes = tunes();
    assert!(tunes.len() >= 300, "{} tunes", tunes.len());
    for tune in &tunes {
        let parsed = ringback_studio::abc::validate(&tune.text).unwrap();
        assert!(parsed.is_valid(), "{}: {:#?}", tune.name, parsed.diagnostics);
    }
}
