//! Projects in the shape of real ones run their own tests in the sandbox, without configuration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringback_testkit::skipped;

use crate::boxed::Boxed;
use crate::support::Run;

/// Where the projects are.
const PROJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/projects");

/// Makes a repository of a project, as a user has it.
fn repository(boxed: &Boxed, name: &str) -> PathBuf {
    let (from, to) = (Path::new(PROJECTS).join(name), boxed.at(name));
    let copied = Command::new("cp").arg("-r").args([&from, &to]).status().unwrap();
    assert!(copied.success());
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "all"]] {
        git(&to, words);
    }
    to
}

fn git(dir: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]);
    command.args(["-c", "protocol.file.allow=always"]).args(words).current_dir(dir);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
}

/// Runs a command in the sandbox, with the toolchains of the user that runs this test.
fn tested(boxed: &Boxed, dir: &Path, command: &str, more: &[&str]) -> Run {
    let words = ["run", command, "--dir", dir.to_str().unwrap()];
    let mut client = boxed.daemon.client(&[&words, more].concat());
    client.env("PATH", std::env::var_os("PATH").unwrap());
    let rustup = std::env::home_dir().unwrap().join(".rustup");
    client.env("RUSTUP_HOME", std::env::var_os("RUSTUP_HOME").unwrap_or(rustup.into()));
    Run::of(&mut client)
}

fn succeeds(boxed: &Boxed, name: &str) {
    let dir = repository(boxed, name);
    let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap_or_default();
    let mut more = Vec::new();
    let include = read("include");
    for path in include.lines() {
        fs::create_dir_all(dir.join(path)).unwrap();
        fs::write(dir.join(path).join("table.txt"), "a text of five words\n").unwrap();
        more.extend(["--include", path]);
    }
    let ran = tested(boxed, &dir, read("command").trim(), &more).done();
    assert!(ran.stdout.contains("code 0\n"), "{name}: {ran:?}");
}

/// REQ: "small real-world-shaped projects under `tests/projects/` run their own tests inside the box
/// without configuration".
#[test]
fn projects_run_their_own_tests_in_the_box() {
    let Some(boxed) = Boxed::start() else { return };
    let mut names: Vec<_> = fs::read_dir(PROJECTS)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("command").is_file())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 10, "{names:?}");
    for name in names {
        let missing = match name.as_str() {
            "java" => "javac",
            "tcl" => "tclsh",
            "npm" | "monorepo" => "node",
            _ => "make",
        };
        let path = std::env::var_os("PATH").unwrap();
        if std::env::split_paths(&path).any(|dir| dir.join(missing).is_file()) {
            succeeds(&boxed, &name);
        } else {
            skipped(&format!("there is no `{missing}` for the project `{name}`"));
        }
    }
}

/// REQ: the same with a submodule.
#[test]
fn a_project_with_a_submodule_runs_its_tests_in_the_box() {
    let Some(boxed) = Boxed::start() else { return };
    let (outer, inner) = (repository(&boxed, "perl"), repository(&boxed, "make"));
    git(&outer, &["submodule", "--quiet", "add", inner.to_str().unwrap(), "vendor/count"]);
    git(&outer, &["commit", "-qm", "with a submodule"]);
    let command = "prove -l && make -C vendor/count test && git -C vendor/count log -1 --format=%s";
    let ran = tested(&boxed, &outer, command, &[]).done();
    assert!(ran.stdout.contains("code 0\n"), "{ran:?}");
}
