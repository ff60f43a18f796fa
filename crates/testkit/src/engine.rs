//! The container engine of the tests, which all of them share.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// The name of its only image.
pub const IMAGE: &str = "ringback-test";
/// Explicitly skips tests that need an engine.
const WITHOUT: &str = "RINGBACK_TEST_WITHOUT_DOCKER";

/// Returns its socket, and starts it if necessary. `None` if such tests are skipped.
///
/// # Panics
/// If it does not start.
pub fn socket() -> Option<&'static str> {
    static SOCKET: OnceLock<Option<String>> = OnceLock::new();
    let socket = SOCKET.get_or_init(|| {
        if std::env::var_os(WITHOUT).is_some() {
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/docker/engine.py");
        let said = Command::new("python3").arg(script).arg("up").output();
        let said = said.expect("Python runs");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        Some(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    });
    if socket.is_none() {
        crate::skipped("it needs a container engine");
    }
    socket.as_deref()
}

/// Returns the containers of the daemon with this state directory.
///
/// # Panics
/// If the engine does not say.
#[must_use]
pub fn containers(state: &Path) -> Vec<String> {
    let Ok(instance) = std::fs::read_to_string(state.join("instance")) else { return Vec::new() };
    let filters = format!("%7B%22label%22:%5B%22ringback.instance={}%22%5D%7D", instance.trim());
    let listed = ask(&format!("/containers/json?all=1&filters={filters}"));
    let listed = listed.as_array().unwrap_or_else(|| panic!("{listed}"));
    listed.iter().map(|container| container["Id"].as_str().expect("an ID").to_owned()).collect()
}

/// Sends a request to the engine and returns its answer.
fn ask(path: &str) -> serde_json::Value {
    let socket = socket().expect("an engine");
    let mut stream = UnixStream::connect(socket).expect("the engine listens");
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("the engine reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the engine answers");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}
