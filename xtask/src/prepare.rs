//! What the tests need beyond the Rust toolchain: a Python with `zmq` and `msgpack`, in `target/`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::steps::{Outcome, Steps};

/// A Debian package is installed only if its probe fails, and only by root.
const SYSTEM_PACKAGES: &[SystemPackage] = &[
    SystemPackage { package: "python3", probe: &["python3", "--version"] },
    SystemPackage { package: "python3-venv", probe: &["python3", "-c", "import ensurepip, venv"] },
];

/// What `tests/interop` imports.
const PYTHON_PROBE: &str = "import zmq, msgpack";

/// The packages that bring it, with their versions.
const PYTHON_REQUIREMENTS: &str = "tests/interop/requirements.txt";

struct SystemPackage {
    package: &'static str,
    probe: &'static [&'static str],
}

/// The interpreter of the virtual environment.
pub(crate) fn python(root: &Path) -> PathBuf {
    root.join("target/venv/bin/python")
}

/// Brings everything that is missing, and says so; does nothing on a machine that has it all.
pub(crate) fn run(steps: &mut Steps) -> Outcome {
    system_packages(steps)?;
    let python = python(steps.root());
    if succeeds(&python, &["-c", PYTHON_PROBE]) {
        return Ok(());
    }
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "target/venv"]);
    steps.command("python environment", create)?;
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    install.args(["--requirement", PYTHON_REQUIREMENTS]);
    steps.command("python packages", install)
}

fn system_packages(steps: &mut Steps) -> Outcome {
    let missing: Vec<_> = SYSTEM_PACKAGES
        .iter()
        .filter(|wanted| !succeeds(Path::new(wanted.probe[0]), &wanted.probe[1..]))
        .map(|wanted| wanted.package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !is_root() {
        let names = missing.join(" ");
        return steps.function("system packages", |_| {
            anyhow::bail!("the tests need `{names}`; install them, for example with `sudo apt-get install {names}`")
        });
    }
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "--no-install-recommends"]).args(missing);
    steps.command("system packages", install)
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn succeeds(program: &Path, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
