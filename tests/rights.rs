//! Tests that need root: a module of each of their programs.

/// Leaves out what needs root, in so many words.
const WITHOUT: &str = "RINGBACK_TEST_WITHOUT_ROOT";

/// Whether this is root. A test that needs it fails where it is not, unless it is told to do without.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
#[track_caller]
pub(crate) fn is_root() -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    assert!(
        std::env::var_os(WITHOUT).is_some(),
        "this test needs root; run it as root, or leave out what needs root with {WITHOUT}=1"
    );
    eprintln!("LEFT OUT: {WITHOUT} is set, and this test needs root");
    false
}
