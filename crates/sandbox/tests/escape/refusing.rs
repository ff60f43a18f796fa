//! What a sandbox refuses to do, and says why.

use std::path::Path;

use ringback_sandbox::{Layer, LayerState, Limits, ReadOnly, Sandbox, SandboxSettings, StartError};

use crate::bench::{Bench, Ran, User};
use crate::many::{sandbox, spec};

/// Rule: a limit that cannot be kept is refused by name, and nothing runs.
#[test]
fn a_limit_that_cannot_be_kept_is_refused_by_name() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // Without rights, and in no group that it could write.
    let bench = Bench::new(User::Nobody);
    for (option, value, name) in [
        ("--memory", "100000000", "a limit on memory"),
        ("--processes", "100", "a limit on processes"),
        ("--cpu", "100", "a limit on processor time"),
    ] {
        let ran: Ran = bench.shell(&[option, value], "echo ran; touch ran");
        assert_eq!((ran.code, ran.out.as_str()), (Some(125), ""), "{ran:?}");
        assert!(ran.err.contains(name) && ran.err.contains("Delegate=yes"), "{ran:?}");
    }
    assert!(!bench.path("workspace/ran").exists());
}

/// Rule: without bubblewrap nothing runs, and the error says what to install.
#[tokio::test]
async fn without_bubblewrap_nothing_runs() {
    let bench = Bench::new(User::Me);
    let mut settings = SandboxSettings::in_dir(bench.path("state"));
    settings.program = Some(bench.path("nowhere/bwrap"));
    let sandbox = Sandbox::open(settings).unwrap();
    let error = sandbox.start(spec(&bench, "touch ran")).await.unwrap_err();
    assert!(matches!(error, StartError::Layer { layer: Layer::Bubblewrap, .. }), "{error:?}");
    assert!(error.to_string().contains("apt install bubblewrap"), "{error}");
    let probe = sandbox.probe(&Limits::none()).await;
    assert!(!probe.is_complete());
    assert!(!bench.path("workspace/ran").exists());
}

/// Rule: a bubblewrap that cannot make a box is told with what it said.
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
    let mut settings = SandboxSettings::in_dir(bench.path("state"));
    settings.program = Some(fake);
    let sandbox = Sandbox::open(settings).unwrap();
    let probe = sandbox.probe(&Limits::none()).await;
    let report = probe.layers.last().unwrap();
    let LayerState::Missing { why, fix } = &report.state else { panic!("{report:?}") };
    assert!(report.layer == Layer::Namespaces && why.contains("No permissions"), "{why}");
    assert!(fix.contains('`'), "{fix}");
}

/// Rule: on a machine that gives all layers, the probe says what gives each.
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

/// Rule: whatever the configuration says, the data directory is not shown, and what a box has of its
/// own is not covered.
#[tokio::test]
async fn a_mount_that_would_show_or_cover_too_much_is_refused() {
    let bench = Bench::new(User::Me);
    let data = bench.path("data");
    let mut settings = SandboxSettings::in_dir(bench.path("state"));
    settings.hidden = vec![data.clone()];
    let sandbox = Sandbox::open(settings).unwrap();
    std::os::unix::fs::symlink(&data, bench.path("innocent")).unwrap();
    let shown = [data.parent().unwrap(), &data, &data.join("token"), &bench.path("innocent")];
    for path in shown.map(ReadOnly::same) {
        let mut spec = spec(&bench, "touch ran");
        spec.read_only = vec![path];
        let error = sandbox.start(spec).await.unwrap_err();
        assert!(matches!(error, StartError::Hidden { .. }), "{error:?}");
    }
    for inside in
        ["/", "/proc/x", "/workspace", "/mcp/bin", "/etc", "/usr", "/tmp", "relative", "/a/../b"]
    {
        let mut spec = spec(&bench, "touch ran");
        spec.read_only = vec![ReadOnly { host: "/bin/sh".into(), inside: inside.into() }];
        let error = sandbox.start(spec).await.unwrap_err();
        assert!(matches!(error, StartError::Mount { .. }), "{inside}: {error:?}");
    }
    let mut spec = spec(&bench, "touch ran");
    spec.env.push(("A".into(), "b\0--bind\0/\0/".into()));
    let error = sandbox.start(spec).await.unwrap_err();
    assert!(matches!(error, StartError::ZeroByte { .. }), "{error:?}");
    assert!(!Path::new(&bench.path("workspace/ran")).exists());
}
