//! The container engine of the tests, which all of them share: a module of each test program.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// The name of its only image.
pub(crate) const IMAGE: &str = "ringback-test";
/// Explicitly skips tests that need an engine.
const WITHOUT: &str = "RINGBACK_TEST_WITHOUT_DOCKER";

/// Returns its socket, and starts it if necessary. `None` if such tests are skipped.
#[expect(clippy::print_stderr, reason = "a skipped test is reported")]
pub(crate) fn socket() -> Option<&'static str> {
    static SOCKET: OnceLock<Option<String>> = OnceLock::new();
    let socket = SOCKET.get_or_init(|| {
        if std::env::var_os(WITHOUT).is_some() {
            eprintln!("LEFT OUT: {WITHOUT} is set, and this test needs a container engine");
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/docker/engine.py");
        let said = Command::new("python3").arg(script).arg("up").output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        Some(String::from_utf8(said.stdout).unwrap().trim().to_owned())
    });
    socket.as_deref()
}

/// Returns the containers of the daemon with this state directory.
pub(crate) fn containers(state: &Path) -> Vec<String> {
    let Ok(instance) = std::fs::read_to_string(state.join("instance")) else { return Vec::new() };
    let filters = format!("%7B%22label%22:%5B%22ringback.instance={}%22%5D%7D", instance.trim());
    let listed = ask(&format!("/containers/json?all=1&filters={filters}"));
    let listed = listed.as_array().unwrap_or_else(|| panic!("{listed}"));
    listed.iter().map(|container| container["Id"].as_str().unwrap().to_owned()).collect()
}

/// Sends a request to the engine and returns its answer.
fn ask(path: &str) -> serde_json::Value {
    let mut stream = UnixStream::connect(socket().unwrap()).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}
