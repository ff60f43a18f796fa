//! What a sandbox refuses, and its explanations.

use std::path::{Path, PathBuf};

use ringback_sandbox::{
    BackendChoice, BackendKind, EngineError, Layer, LayerState, Limits, ReadOnly, Sandbox,
    StartError, Workspace,
};

use tokio::io::AsyncReadExt as _;

use crate::bench::{Bench, ScriptResult, User};
use crate::concurrency::{sandbox, settings, spec};

/// Rule: a limit that cannot be enforced is refused by name, and nothing runs.
#[test]
fn a_limit_that_cannot_be_kept_is_refused_by_name() {
    if !ringback_testkit::is_root() {
        return;
    }
    // Unprivileged, and in no cgroup that it could write.
    let bench = Bench::new(User::Nobody);
    for (option, value, name) in [
        ("--memory", "100000000", "a limit on memory"),
        ("--processes", "100", "a limit on processes"),
        ("--cpu", "100", "a limit on processor time"),
    ] {
        let ran: ScriptResult = bench.shell(&[option, value], "echo ran; touch ran");
        assert_eq!((ran.code, ran.out.as_str()), (Some(125), ""), "{ran:?}");
        assert!(ran.err.contains(name) && ran.err.contains("Delegate=yes"), "{ran:?}");
    }
    assert!(!bench.path("workspace/ran").exists());
}

/// Rule: without bubblewrap nothing runs, and the error says what to install.
#[tokio::test]
async fn without_bubblewrap_nothing_runs() {
    let bench = Bench::new(User::Me);
    let mut settings = settings(&bench);
    settings.program = Some(bench.path("nowhere/bwrap"));
    let sandbox = Sandbox::open(settings).unwrap();
    let error = sandbox.start(spec(&bench, "touch ran")).await.unwrap_err();
    assert!(matches!(error, StartError::Layer { layer: Layer::Bubblewrap, .. }), "{error:?}");
    assert!(error.to_string().contains("apt install bubblewrap"), "{error}");
    let probe = sandbox.probe(&Limits::none()).await;
    assert!(!probe.is_complete());
    assert!(!bench.path("workspace/ran").exists());
}

/// Rule: a bubblewrap that cannot make a sandbox is reported with its error output.
#[tokio::test]
async fn a_bubblewrap_that_fails_is_told_with_its_own_words() {
    let bench = Bench::new(User::Me);
    let fake = bench.path("bwrap");
    std::fs::write(
        &fake,
        "#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n",
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&fake, mode).unwrap();
    let mut settings = settings(&bench);
    settings.program = Some(fake);
    let sandbox = Sandbox::open(settings).unwrap();
    let probe = sandbox.probe(&Limits::none()).await;
    let report = probe.layers.last().unwrap();
    let LayerState::Missing { why, fix } = &report.state else { panic!("{report:?}") };
    assert!(report.layer == Layer::Namespaces && why.contains("No permissions"), "{why}");
    assert!(fix.contains('`'), "{fix}");
}

/// Rule: on a machine that provides all layers, the probe reports what provides each.
#[tokio::test]
async fn the_probe_tries_a_box_with_its_limits() {
    let bench = Bench::new(User::Me);
    let is_root = rustix::process::geteuid().is_root();
    let limits = if is_root { Limits::default() } else { Limits::none() };
    let probe = sandbox(&bench).probe(&limits).await;
    assert!(probe.is_complete(), "{probe:?}");
    let names: Vec<_> = probe.layers.iter().map(|report| report.layer).collect();
    assert_eq!(names.contains(&Layer::Memory), is_root, "{names:?}");
    assert!(names.contains(&Layer::Namespaces), "{names:?}");
}

/// Rule: whatever the configuration contains, the data directory is not exposed, and a sandbox's
/// own paths are not covered.
#[tokio::test]
async fn a_mount_that_would_show_or_cover_too_much_is_refused() {
    for bench in [Some(Bench::new(User::Me)), Bench::docker(User::Me)].into_iter().flatten() {
        bad_mounts_are_refused(&bench).await;
    }
}

async fn bad_mounts_are_refused(bench: &Bench) {
    let data = bench.path("data");
    let mut settings = settings(bench);
    settings.hidden = vec![data.clone()];
    let sandbox = Sandbox::open(settings).unwrap();
    std::os::unix::fs::symlink(&data, bench.path("innocent")).unwrap();
    let shown = [data.parent().unwrap(), &data, &data.join("token"), &bench.path("innocent")];
    for path in shown.map(ReadOnly::same) {
        let mut spec = spec(bench, "touch ran");
        spec.read_only = vec![path];
        let error = sandbox.start(spec).await.unwrap_err();
        assert!(matches!(error, StartError::Hidden { .. }), "{error:?}");
    }
    for inside in
        ["/", "/proc/x", "/workspace", "/mcp/bin", "/etc", "/usr", "/tmp", "relative", "/a/../b"]
    {
        let mut spec = spec(bench, "touch ran");
        spec.read_only = vec![ReadOnly { host: "/bin/sh".into(), inside: inside.into() }];
        let error = sandbox.start(spec).await.unwrap_err();
        assert!(matches!(error, StartError::Mount { .. }), "{inside}: {error:?}");
    }
    let mut spec = spec(bench, "touch ran");
    spec.env.push(("A".into(), "b\0--bind\0/\0/".into()));
    let error = sandbox.start(spec).await.unwrap_err();
    assert!(matches!(error, StartError::ZeroByte { .. }), "{error:?}");
    assert!(!Path::new(&bench.path("workspace/ran")).exists());
}

/// Rule: hidden paths are hidden through any link, as it leads when a sandbox starts.
#[tokio::test]
async fn what_is_hidden_is_hidden_behind_every_link() {
    for bench in [Some(Bench::new(User::Me)), Bench::docker(User::Me)].into_iter().flatten() {
        hidden_behind_links(&bench).await;
    }
}

async fn hidden_behind_links(bench: &Bench) {
    use std::os::unix::fs::symlink;
    let real = bench.path("real");
    std::fs::create_dir_all(real.join("parent/data")).unwrap();
    std::fs::create_dir(bench.path("keys")).unwrap();
    std::fs::write(real.join("parent/data/token"), "SECRET").unwrap();
    std::fs::write(real.join("key.pem"), "SECRET").unwrap();
    symlink(real.join("parent"), bench.path("link")).unwrap();
    symlink(real.join("key.pem"), bench.path("keys/provider")).unwrap();
    symlink(bench.path("elsewhere"), bench.path("moved")).unwrap();
    let refused = |hidden: PathBuf, shown: PathBuf| {
        let mut settings = settings(bench);
        settings.hidden = vec![hidden];
        let sandbox = Sandbox::open(settings).unwrap();
        let mut spec = spec(bench, "touch ran");
        spec.read_only.push(ReadOnly::same(shown));
        (sandbox, spec)
    };
    let cases = [
        // The data directory through a link, the mounted path without one.
        (bench.path("link/data"), real.clone()),
        (bench.path("link/data"), real.join("parent/data/token")),
        // The mounted path through a link.
        (real.join("parent/data"), bench.path("link")),
        // A file, below a directory or on its own.
        (bench.path("keys/provider"), real.clone()),
        (bench.path("keys/provider"), real.join("key.pem")),
        // A path that does not exist yet.
        (bench.path("link/later"), real.join("parent")),
    ];
    for (hidden, shown) in cases {
        let (sandbox, spec) = refused(hidden, shown.clone());
        let error = sandbox.start(spec).await.unwrap_err();
        assert!(matches!(error, StartError::Hidden { .. }), "{}: {error:?}", shown.display());
    }
    // A link that is changed after the sandbox was opened.
    let (sandbox, spec) = refused(bench.path("moved"), real.clone());
    sandbox.start(spec.clone()).await.unwrap().hold.gone().await;
    std::fs::remove_file(bench.path("workspace/ran")).unwrap_or_default();
    std::fs::remove_file(bench.path("moved")).unwrap();
    symlink(real.join("parent/data"), bench.path("moved")).unwrap();
    let error = sandbox.start(spec).await.unwrap_err();
    assert!(matches!(error, StartError::Hidden { .. }), "{error:?}");
    assert!(!bench.path("workspace/ran").exists());
}

/// Rule: the system paths in every sandbox expose nothing hidden, wherever links lead.
#[tokio::test]
async fn a_system_that_would_show_what_is_hidden_is_refused() {
    let bench = Bench::new(User::Me);
    let linked = bench.path("linked");
    std::os::unix::fs::symlink("/usr/share", &linked).unwrap();
    for hidden in [PathBuf::from("/usr/local/etc/key"), linked.join("key"), "/bin/key".into()] {
        let mut settings = settings(&bench);
        settings.hidden = vec![hidden.clone()];
        let error = Sandbox::open(settings).unwrap().start(spec(&bench, "touch ran")).await;
        let error = error.unwrap_err();
        assert!(matches!(error, StartError::Hidden { .. }), "{}: {error:?}", hidden.display());
    }
}

/// Rule: a workspace is writable, read-only, or absent, as its sandbox specifies.
#[tokio::test]
async fn a_workspace_can_be_to_read_or_not_there() {
    for bench in [Some(Bench::new(User::Me)), Bench::docker(User::Me)].into_iter().flatten() {
        let path = bench.path("workspace");
        std::fs::write(path.join("file"), "mine").unwrap();
        let script = "cat /workspace/file; (echo x > /workspace/x) && echo wrote; pwd";
        for (workspace, said) in [
            (Workspace::None, "/home/agent"),
            (Workspace::Read(path.clone()), "mine/home/agent"),
            (Workspace::Write(path), "minewrote\n/home/agent"),
        ] {
            let mut spec = spec(&bench, &format!("{{ {script}; }} 2>/dev/null"));
            (spec.workspace, spec.working_dir) = (workspace, Some("/home/agent".into()));
            let mut confined = sandbox(&bench).start(spec).await.unwrap();
            let mut heard = String::new();
            confined.pipes.stdout.read_to_string(&mut heard).await.unwrap();
            assert_eq!(heard.trim(), said, "{:?}", bench.backend);
            confined.hold.gone().await;
        }
    }
}

/// Rule: read-only paths in `/etc` are added to those of every sandbox, and are the same as on this
/// machine.
#[tokio::test]
async fn a_file_of_etc_can_be_shown_besides_those_of_every_box() {
    let bench = Bench::new(User::Me);
    let sandbox = Sandbox::open(settings(&bench)).unwrap();
    let shown = bench.path("workspace/shown");
    std::fs::write(&shown, "shown\n").unwrap();
    for besides in [None, Some("/etc/besides/shown")] {
        let mut spec = spec(&bench, "cat /etc/besides/shown; whoami; cmp /etc/ld.so.cache cache");
        let place = |inside| ReadOnly { host: shown.clone(), inside: PathBuf::from(inside) };
        spec.read_only.extend(besides.map(place));
        std::fs::copy("/etc/ld.so.cache", bench.path("workspace/cache")).unwrap();
        let mut confined = sandbox.start(spec).await.unwrap();
        let mut said = String::new();
        confined.pipes.stdout.read_to_string(&mut said).await.unwrap();
        assert!(confined.process.wait().await.unwrap().success());
        assert_eq!(said, if besides.is_some() { "shown\nagent\n" } else { "agent\n" });
        confined.hold.gone().await;
    }
}

/// Rule: without an engine no container is started, and the error says what to do.
#[tokio::test]
async fn without_an_engine_nothing_runs() {
    let bench = Bench::new(User::Me);
    let mut settings = settings(&bench);
    settings.backend = BackendChoice::Docker;
    for (socket, part) in [
        (bench.path("nowhere.sock").display().to_string(), "apt install docker.io"),
        (bench.path("data/token").display().to_string(), "apt install docker.io"),
        ("tcp://127.0.0.1:2375".to_owned(), "sandbox.docker"),
    ] {
        settings.docker.socket = socket;
        let sandbox = Sandbox::open(settings.clone()).unwrap();
        let error = sandbox.start(spec(&bench, "touch ran")).await.unwrap_err();
        assert!(matches!(error, StartError::Engine(_)), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
        let probe = sandbox.probe(&Limits::none()).await;
        let report = probe.layers.last().unwrap();
        let LayerState::Missing { fix, .. } = &report.state else { panic!("{report:?}") };
        assert!(report.layer == Layer::Engine && fix.contains(part), "{report:?}");
    }
    assert!(!bench.path("workspace/ran").exists());
}

/// Rule: a user who may not use the engine gets an error that says so, and how to get access.
#[test]
fn without_permission_nothing_runs() {
    let (Some(bench), true) = (Bench::docker(User::Me), ringback_testkit::is_root()) else {
        return;
    };
    let inner = bench.command(&[], &["/bin/true"]);
    // The user nobody, without further groups.
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65533", "--clear-groups", "--"]);
    let built = bench.path("ringback-box");
    std::fs::copy(inner.get_program(), &built).unwrap();
    for name in ["state", "workspace", "session"] {
        std::os::unix::fs::chown(bench.path(name), Some(65534), Some(65533)).unwrap();
    }
    let ran = ScriptResult::from(command.arg(built).args(inner.get_args()).output().unwrap());
    assert_eq!(ran.code, Some(125), "{ran:?}");
    assert!(ran.err.contains("usermod -aG docker"), "{ran:?}");
}

/// Rule: a missing or unnamed image is reported with its configuration key; nothing is fetched.
#[tokio::test]
async fn without_its_image_nothing_runs() {
    let Some(bench) = Bench::docker(User::Me) else { return };
    let mut settings = settings(&bench);
    for (image, part) in [
        (None, "sandbox.image"),
        (Some("ringback-absent:1"), "no image `ringback-absent:1`"),
        (Some("../containers"), "no image `../containers`"),
    ] {
        settings.docker.image = image.map(str::to_owned);
        let sandbox = Sandbox::open(settings.clone()).unwrap();
        let error = sandbox.start(spec(&bench, "touch ran")).await.unwrap_err();
        assert!(matches!(error, StartError::Layer { layer: Layer::Image, .. }), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
        let missing = sandbox.probe(&Limits::none()).await.first_missing().unwrap();
        assert!(missing.to_string().contains(part), "{missing}");
    }
    assert!(!bench.path("workspace/ran").exists());
}

/// Rule: an engine that provides all layers is reported with what provides each.
#[tokio::test]
async fn the_probe_tries_a_container_with_its_limits() {
    let Some(bench) = Bench::docker(User::Me) else { return };
    let probe = sandbox(&bench).probe(&Limits::default()).await;
    assert!(probe.is_complete(), "{probe:?}");
    let names: Vec<_> = probe.layers.iter().map(|report| report.layer).collect();
    for layer in [Layer::Engine, Layer::Image, Layer::Seccomp, Layer::Memory, Layer::Namespaces] {
        assert!(names.contains(&layer), "{names:?}");
    }
    assert_eq!(bench.left(), Vec::<String>::new());
}

/// Rule: with `auto`, the sandbox uses bubblewrap if that is complete, then an engine if that is,
/// and otherwise refuses and names both.
#[tokio::test]
async fn left_to_itself_it_takes_what_is_whole() {
    let Some(bench) = Bench::docker(User::Me) else { return };
    let (limits, nowhere) = (Limits::none(), Some(bench.path("nowhere/bwrap")));
    let mut settings = settings(&bench);
    settings.backend = BackendChoice::Auto;
    let both = Sandbox::open(settings.clone()).unwrap();
    assert!(both.probe(&limits).await.is_complete());
    assert_eq!(both.backend(), BackendKind::Bubblewrap);
    let error = both.image_exists("x").await.unwrap_err();
    assert!(matches!(error, EngineError::NotUsed), "{error}");
    drop(both);
    settings.program = nowhere;
    let docker = Sandbox::open(settings.clone()).unwrap();
    assert_eq!(docker.backend(), BackendKind::Bubblewrap, "until it is known");
    assert!(docker.probe(&limits).await.is_complete());
    assert_eq!(docker.backend(), BackendKind::Docker);
    drop(docker);
    settings.docker.socket = "/nowhere/docker.sock".to_owned();
    let neither = Sandbox::open(settings).unwrap();
    let missing = neither.probe(&limits).await.first_missing().unwrap().to_string();
    for part in ["apt install bubblewrap", "apt install docker.io"] {
        assert!(missing.contains(part), "{missing}");
    }
}
