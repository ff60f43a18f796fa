//! Tests that cannot check everything here: each is counted, and a run that must not have any fails.

use std::io::Write as _;

/// Explicitly skips tests that need root.
const WITHOUT_ROOT: &str = "RINGBACK_TEST_WITHOUT_ROOT";
/// The file to which skipped tests are added; `cargo xtask` sets it and reads the file.
const RECORD: &str = "RINGBACK_TEST_SKIPPED";

/// Records that the test on this thread does not check all that it should, and why.
///
/// # Panics
/// If it cannot be recorded.
#[expect(clippy::print_stderr, reason = "a skipped test is reported")]
pub fn skipped(why: &str) {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = std::thread::current();
    let line = format!("{package} {}: {why}\n", thread.name().unwrap_or("?"));
    eprint!("SKIPPED: {line}");
    if let Some(path) = std::env::var_os(RECORD) {
        // One write for the whole line, because tests run at the same time.
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(written.is_ok(), "cannot add to {}: {written:?}", path.display());
    }
}

/// Returns whether this is root. Without root, a test that needs it fails, unless such tests are
/// skipped.
///
/// # Panics
/// Without root, unless such tests are skipped.
#[must_use]
#[track_caller]
pub fn is_root() -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    assert!(
        std::env::var_os(WITHOUT_ROOT).is_some(),
        "this test needs root; run it as root, or skip such tests with {WITHOUT_ROOT}=1"
    );
    skipped("it needs root");
    false
}
