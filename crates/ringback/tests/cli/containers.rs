//! Containers and images from the command line.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use ringback_testkit::{blocking, engine};

use crate::support::{Daemon, file};

/// An image that is removed with its test: all tests share an engine.
struct Image {
    name: String,
    dir: tempfile::TempDir,
}

impl Image {
    fn new(steps: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let dockerfile = format!("FROM {}\n{steps}\n", engine::IMAGE);
        file(dir.path(), "Dockerfile", dockerfile.as_bytes());
        Self { name: format!("cli{}", std::process::id()), dir }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let mut stream = UnixStream::connect(engine::socket().unwrap()).unwrap();
        let path = format!("/images/ringback-{}:latest", self.name);
        write!(stream, "DELETE {path} HTTP/1.0\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
}

/// Waits until a command prints a text.
fn until(daemon: &Daemon, arguments: &[&str], text: &str) {
    blocking::wait_for(text, || daemon.run(arguments).done().stdout.contains(text));
}

/// REQ: "container_start|stop|logs|exec": from the command line, with the program inside waiting in
/// a container without a command.
#[test]
fn a_container_is_started_used_and_stopped() {
    if !ringback_testkit::is_root() {
        return;
    }
    let daemon = Daemon::start();
    let project = daemon.run(&["project", "create", "app"]).line();
    let none = daemon.run(&["container", "list"]).done();
    assert!(none.stdout.contains("ringback container start PROJECT"), "{none:?}");

    let started = daemon.run(&["container", "start", &project, "--json"]).json();
    assert_eq!(
        (&started["status"], &started["backend"]),
        (&"running".into(), &"bubblewrap".into())
    );
    let exec = |words: &[&str]| {
        let arguments = [&["container", "exec", project.as_str(), "--"], words].concat();
        daemon.run(&arguments)
    };
    let done = exec(&["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (7, "out\n", "err\n"));
    let ended = Daemon::run(
        &daemon,
        &["container", "exec", &project, "--timeout", "500", "--", "sleep", "1000"],
    );
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("did not end within 500 ms"), "{ended:?}");
    exec(&["mkdir", "below"]).done();
    let below = ["container", "exec", &project, "--dir", "/workspace/below", "--json", "--", "pwd"];
    let below = daemon.run(&below).json();
    assert_eq!((&below["stdout"], &below["exit_code"]), (&"/workspace/below\n".into(), &0.into()));

    let listed = daemon.run(&["container", "list", "--json"]).json();
    let listed = &listed["containers"][0];
    assert_eq!((&listed["name"], &listed["status"]), (&"app".into(), &"running".into()));
    let shown = daemon.run(&["project", "show", &project]).done();
    assert!(shown.stdout.contains("running since "), "{shown:?}");
    let stopped = daemon.run(&["container", "stop", &project, "--json"]).json();
    assert_eq!((&stopped["status"], &stopped["exit_code"]), (&"stopped".into(), &0.into()));

    let script = "for n in 1 2 3; do echo line $n; done; sleep 1000";
    daemon.run(&["container", "start", &project, "--", "sh", "-c", script]).done();
    until(&daemon, &["container", "logs", &project], "line 3");
    let last = daemon.run(&["container", "logs", &project, "--lines", "1"]).done();
    assert_eq!(last.stdout, "line 3\n");
    assert!(last.stderr.contains("--lines"), "{last:?}");
    daemon.run(&["project", "delete", &project]).done();
    let gone = daemon.run(&["container", "logs", &project]);
    assert_eq!(gone.code, 1, "{gone:?}");
}

/// Rule: images come from the configuration; a backend without images refuses them and is named.
#[test]
fn images_are_listed_and_refused_without_an_engine() {
    if !ringback_testkit::is_root() {
        return;
    }
    let config =
        "[sandbox]\nbackend = \"bubblewrap\"\n[sandbox.images.rust]\ndir = \"/srv/rust\"\n";
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "config.toml", config.as_bytes());
    let daemon = Daemon::start_with(&["--config", path.to_str().unwrap()]);
    let listed = daemon.run(&["image", "list"]).done();
    assert!(listed.stdout.contains("rust   /srv/rust  none"), "{listed:?}");
    let listed = daemon.run(&["image", "list", "--json"]).json();
    assert_eq!(listed["rust"]["dir"], "/srv/rust");
    for arguments in
        [&["image", "rebuild", "rust"][..], &["project", "create", "app", "--image", "rust"]]
    {
        let refused = daemon.run(arguments);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains("bubblewrap has no images"), "{refused:?}");
    }
}

/// REQ: "image per project, `image_rebuild` as a job with streamed build log": from the command
/// line, with the program inside waiting in the project's container.
#[test]
fn an_image_is_built_and_a_container_waits_in_it() {
    let Some(socket) = engine::socket() else { return };
    let image = Image::new("RUN echo a step of the build; echo tools > /which");
    let (name, dir) = (&image.name, image.dir.path().display());
    let default = engine::IMAGE;
    let config = format!(
        "[sandbox]\nbackend = \"docker\"\ndocker = \"{socket}\"\nimage = \"{default}\"\n\
         [sandbox.images.{name}]\ndir = \"{dir}\"\n"
    );
    let home = tempfile::tempdir().unwrap();
    let path = file(home.path(), "config.toml", config.as_bytes());
    let daemon = Daemon::start_with(&["--config", path.to_str().unwrap()]);
    let project = daemon.run(&["project", "create", "app", "--image", name]).line();
    let early = daemon.run(&["container", "start", &project]);
    assert_eq!(early.code, 1, "{early:?}");
    assert!(early.stderr.contains("is not built yet"), "{early:?}");

    let built = daemon.run(&["image", "rebuild", "--project", &project]).done();
    for part in ["a step of the build", "sha256:"] {
        assert!(built.stdout.contains(part), "{part}: {built:?}");
    }
    let started = daemon.run(&["container", "start", &project, "--json"]).json();
    assert_eq!((&started["status"], &started["backend"]), (&"running".into(), &"docker".into()));
    assert_eq!(started["image"], format!("ringback-{name}:latest"));
    let said = daemon.run(&["container", "exec", &project, "--", "cat", "/which"]).done();
    assert_eq!(said.stdout, "tools\n");
    let failed = daemon.run(&["container", "exec", &project, "--", "sh", "-c", "exit 9"]);
    assert_eq!(failed.code, 9, "{failed:?}");
    let state = Path::new(daemon.told("token_file")).parent().unwrap().join("sandbox");
    assert_eq!(engine::containers(&state).len(), 1);
    let stopped = daemon.run(&["container", "stop", &project, "--json"]).json();
    assert_eq!((&stopped["status"], &stopped["exit_code"]), (&"stopped".into(), &0.into()));
    assert!(engine::containers(&state).is_empty(), "nothing is left");
}
