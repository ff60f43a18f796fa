//! Container-only features: further commands, and image builds.

use std::time::Duration;

use ringback_sandbox::{
    BuildError, BuildNetwork, BuildSpec, ConfinedProgram, ExecEnd, ExecError, ExecSpec, Sandbox,
};
use ringback_testkit::engine;
use tokio::sync::mpsc;

use crate::bench::{Bench, User, marker, sleepers, wait_for};
use crate::concurrency::{sandbox, spec};

fn command(script: &str) -> ExecSpec {
    ExecSpec {
        command: ["/bin/sh", "-c", script].map(Into::into).to_vec(),
        env: vec![("KEY".into(), "swordfish".into())],
        working_dir: None,
        output_bytes_max: 64,
        limit: Duration::from_secs(20),
    }
}

async fn running(bench: &Bench) -> (Sandbox, ConfinedProgram) {
    let sandbox = sandbox(bench);
    let confined = sandbox.start(spec(bench, "sleep 1000")).await.unwrap();
    (sandbox, confined)
}

/// Rule: a further command runs with the same isolation, and its exit code and the start of its
/// output are returned.
#[tokio::test]
async fn a_further_command_runs_behind_the_same_walls() {
    let Some(bench) = Bench::docker(User::Me) else { return };
    let (_sandbox, confined) = running(&bench).await;
    let handle = confined.hold.handle();
    let script =
        "echo $KEY $PWD; grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status >&2; exit 7";
    let ran = handle.exec(command(script)).await.unwrap();
    assert_eq!(ran.end, ExecEnd::Exited(7), "{ran:?}");
    assert_eq!(ran.stdout.bytes, b"swordfish /workspace\n");
    let walls = String::from_utf8_lossy(&ran.stderr.bytes).replace('\t', "");
    assert_eq!(walls, "CapEff:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n");
    let script = "grep core /proc/self/limits | tr -s ' ' | cut -d' ' -f 5,6";
    let ran = handle.exec(command(script)).await.unwrap();
    assert_eq!(ran.stdout.bytes, b"1 1\n", "{ran:?}");
    let ran = handle.exec(command("yes | head -c 100000")).await.unwrap();
    assert!(ran.stdout.bytes.len() == 64 && ran.stdout.is_truncated, "{ran:?}");
    assert!(!ran.stderr.is_truncated);
    let absent = ExecSpec { command: vec!["/no/such/program".into()], ..command("") };
    let ran = handle.exec(absent).await;
    assert!(!matches!(&ran, Ok(ran) if ran.end == ExecEnd::Exited(0)), "{ran:?}");
    confined.hold.gone().await;
    let error = handle.exec(command("true")).await.unwrap_err();
    assert!(matches!(error, ExecError::Gone { .. }), "{error:?}");
}

/// Rule: a command that times out, or is dropped, is ended.
#[tokio::test]
async fn a_further_command_ends_with_its_time_and_with_who_waits() {
    let Some(bench) = Bench::docker(User::Me) else { return };
    let (part, sum) = marker();
    let (_sandbox, confined) = running(&bench).await;
    let handle = confined.hold.handle();
    let script = format!("echo before; sleep $(({part} + 12345)) & sleep $(({part} + 12345))");
    let short = ExecSpec { limit: Duration::from_secs(2), ..command(&script) };
    let ran = handle.exec(short).await.unwrap();
    assert_eq!((ran.end, ran.stdout.bytes.as_slice()), (ExecEnd::TimedOut, &b"before\n"[..]));
    wait_for("it is ended", || sleepers(sum).is_empty());
    {
        let mut running = Box::pin(handle.exec(command(&script)));
        while sleepers(sum).len() < 2 {
            let step = tokio::time::timeout(Duration::from_millis(20), &mut running).await;
            assert!(step.is_err(), "{step:?}");
        }
    }
    wait_for("it is ended", || sleepers(sum).is_empty());
    let ran = handle.exec(command("echo fine")).await.unwrap();
    assert_eq!(ran.stdout.bytes, b"fine\n", "the sandbox goes on");
}

/// Rule: a bubblewrap sandbox refuses further commands and images.
#[tokio::test]
async fn bubblewrap_says_what_it_cannot_do() {
    let bench = Bench::new(User::Me);
    let (sandbox, confined) = running(&bench).await;
    let error = confined.hold.handle().exec(command("true")).await.unwrap_err();
    assert!(matches!(error, ExecError::NotPossible), "{error:?}");
    let (log, _) = mpsc::channel(1);
    let error = sandbox.build_image(build(&bench, ""), log).await.unwrap_err();
    assert!(error.to_string().contains("sandbox.backend"), "{error}");
}

/// Returns a directory to build an image from.
fn build(bench: &Bench, steps: &str) -> BuildSpec {
    let dir = bench.path("image");
    std::fs::create_dir_all(&dir).unwrap();
    let text = format!("FROM {}\n{steps}\n", engine::IMAGE);
    std::fs::write(dir.join("Dockerfile"), text).unwrap();
    let tag = format!("ringback-test-built-{}:latest", std::process::id());
    BuildSpec { dir, tag, network: BuildNetwork::None }
}

/// Rule: an image is built from a directory, its log is streamed, and sandboxes can use it.
#[tokio::test]
async fn an_image_is_built_and_used() {
    let Some(bench) = Bench::docker(User::Me) else { return };
    let sandbox = sandbox(&bench);
    // Always different, so that every step runs.
    let step = format!("from step {}", marker().1);
    let spec_of = build(&bench, &format!("COPY hello /hello\nVOLUME /data\nRUN echo {step}"));
    std::fs::write(spec_of.dir.join("hello"), "hello from the image").unwrap();
    let tag = spec_of.tag.clone();
    assert!(!sandbox.image_exists(&tag).await.unwrap());
    let (log, mut lines) = mpsc::channel(64);
    let built = sandbox.build_image(spec_of, log).await.unwrap();
    let mut said = Vec::new();
    while let Some(line) = lines.recv().await {
        said.push(line);
    }
    assert!(said.contains(&step), "{said:?}");
    assert!(built.id.starts_with("sha256:"), "{built:?}");
    assert!(sandbox.image_exists(&tag).await.unwrap());
    // What the image would store on disk is in memory, with a size.
    let script = "cat /hello > seen; grep -c '/data tmpfs' /proc/self/mounts >> seen";
    let mut spec = spec(&bench, script);
    spec.image = Some(tag);
    let mut confined = sandbox.start(spec).await.unwrap();
    assert!(confined.process.wait().await.unwrap().success());
    let seen = std::fs::read_to_string(bench.path("workspace/seen")).unwrap();
    assert_eq!(seen, "hello from the image1\n");
}

/// Rule: a failed step is reported with the engine's message, and no image is built.
#[tokio::test]
async fn a_build_that_fails_says_why() {
    let Some(bench) = Bench::docker(User::Me) else { return };
    let sandbox = sandbox(&bench);
    let spec = build(&bench, "RUN echo trying && exit 3");
    let tag = spec.tag.clone();
    let (log, _lines) = mpsc::channel(64);
    let error = sandbox.build_image(spec, log).await.unwrap_err();
    assert!(matches!(error, BuildError::Step { .. }), "{error:?}");
    assert!(error.to_string().contains('3'), "{error}");
    assert!(!sandbox.image_exists(&tag).await.unwrap());
}

/// Rule: no image is built from what no sandbox may see, through any link.
#[tokio::test]
async fn no_image_is_built_of_what_is_hidden() {
    let Some(bench) = Bench::docker(User::Me) else { return };
    let spec = build(&bench, "COPY . /all");
    std::fs::write(spec.dir.join("key"), "SECRET").unwrap();
    std::os::unix::fs::symlink(spec.dir.join("key"), bench.path("linked")).unwrap();
    let mut settings = crate::concurrency::settings(&bench);
    settings.hidden = vec![bench.path("linked")];
    let sandbox = Sandbox::open(settings).unwrap();
    let (tag, (log, _lines)) = (spec.tag.clone(), mpsc::channel(64));
    let error = sandbox.build_image(spec, log).await.unwrap_err();
    assert!(matches!(error, BuildError::Hidden { .. }), "{error:?}");
    assert!(!sandbox.image_exists(&tag).await.unwrap());
}

/// Rule: a dropped build is ended, and a step reaches no network.
#[tokio::test]
async fn a_build_that_is_given_up_is_ended() {
    let Some(bench) = Bench::docker(User::Me) else { return };
    let (part, sum) = marker();
    let sandbox = sandbox(&bench);
    let steps = format!("RUN test $(ls /sys/class/net) = lo && sleep $(({part} + 12345))");
    let spec = build(&bench, &steps);
    let tag = spec.tag.clone();
    let (log, _lines) = mpsc::channel(64);
    {
        let mut building = Box::pin(sandbox.build_image(spec, log));
        while sleepers(sum).is_empty() {
            let step = tokio::time::timeout(Duration::from_millis(20), &mut building).await;
            assert!(step.is_err(), "{step:?}");
        }
    }
    wait_for("its step is ended", || sleepers(sum).is_empty());
    assert!(!sandbox.image_exists(&tag).await.unwrap());
}
