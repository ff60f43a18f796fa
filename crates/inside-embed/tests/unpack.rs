//! The program as a file.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use ringback_inside_embed::{BYTES, Unpacked};

/// REQ: design "ringback-inside": static, at most 4 MiB.
#[test]
fn the_program_is_small_and_needs_no_library() {
    assert!(BYTES.len() <= 4 * 1024 * 1024, "{} bytes", BYTES.len());
    assert_eq!(&BYTES[..4], b"\x7fELF");
    // A program that needs a loader names it.
    assert!(!BYTES.windows(7).any(|part| part == b"/ld-lin"), "it is dynamic");
}

/// REQ: design "embedded in the daemon's binary and unpacked by hash".
#[test]
fn it_is_unpacked_once_and_runs() {
    let directory = tempfile::tempdir().unwrap();
    let unpacked = Unpacked::new(directory.path().join("bin"));
    let path = unpacked.path().unwrap();
    let written_at = path.metadata().unwrap().modified().unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    let output = Command::new(&path).arg("--version").env_clear().output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("ringback-inside "));
    for again in [unpacked, Unpacked::new(directory.path().join("bin"))] {
        assert_eq!(again.path().unwrap(), path);
    }
    assert_eq!(path.metadata().unwrap().modified().unwrap(), written_at, "it was there");
}

/// Rule: an incomplete file is replaced.
#[test]
fn a_torn_file_is_replaced_and_nothing_else_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let unpacked = Unpacked::new(directory.path().to_owned());
    let path = unpacked.path().unwrap();
    // Whether it was verified before, or is seen for the first time.
    for looked in [unpacked, Unpacked::new(directory.path().to_owned())] {
        std::fs::write(&path, &BYTES[..100]).unwrap();
        assert_eq!(looked.path().unwrap(), path);
        assert_eq!(std::fs::read(&path).unwrap(), BYTES);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(looked.path().unwrap(), path);
        assert_eq!(std::fs::read(&path).unwrap(), BYTES);
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

/// REQ: design "inside": at most 4 MiB resident, with its tools listed.
#[test]
fn the_program_needs_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = Unpacked::new(directory.path().to_owned()).path().unwrap();
    let socket = directory.path().join("relay.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut child = Command::new(path)
        .arg(&socket)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut daemon, _) = listener.accept().unwrap();
    let config =
        r#"{"type":"caller_tools_config","params":{"caller_id":"ant","tools":[{"name":"send"}]}}"#;
    writeln!(daemon, "{config}").unwrap();
    let mut agent = child.stdin.take().unwrap();
    writeln!(agent, r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list"}}"#).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("ant_send"), "{line}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let resident = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kib: u64 = resident.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib <= 4 * 1024, "{kib} KiB");
    drop(agent);
    assert!(child.wait().unwrap().success());
}
