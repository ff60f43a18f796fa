//! Tests that need root: a module of each test program.

/// Explicitly skips tests that need root.
const WITHOUT: &str = "RINGBACK_TEST_WITHOUT_ROOT";

/// Returns whether this is root. Without root, a test that needs it fails, unless such tests are
/// skipped.
#[expect(clippy::print_stderr, reason = "a skipped test is reported")]
#[track_caller]
pub(crate) fn is_root() -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    assert!(
        std::env::var_os(WITHOUT).is_some(),
        "this test needs root; run it as root, or skip such tests with {WITHOUT}=1"
    );
    eprintln!("LEFT OUT: {WITHOUT} is set, and this test needs root");
    false
}
