//! What this machine provides, and how to get what is missing.

use std::fmt;
use std::fs;
use std::path::Path;

use tokio::io::AsyncReadExt as _;

use crate::cgroups::{Controller, Version};
use crate::confined_program::ConfinedProgram;
use crate::error::StartError;
use crate::sandbox::{BackendKind, Sandbox};
use crate::seccomp;
use crate::spec::{Limits, Network, ReadOnly, SandboxSpec, Workspace};

/// How much of bubblewrap's error output is read.
const SAID_BYTES_MAX: u64 = 4096;

pub(crate) const SECCOMP_FIX: &str =
    "run it on x86_64 or aarch64, with a kernel that has CONFIG_SECCOMP_FILTER";
pub(crate) const FILES_FIX: &str = "run the daemon as the user that owns its data directory";
pub(crate) const COUNTED_FIX: &str = "run the daemon where it may enter the user namespaces that it makes (setns), and /proc is mounted";
const INSTALL_FIX: &str =
    "install bubblewrap 0.8 or newer, for example with `apt install bubblewrap`";
const GROUP_FIX: &str = "start the daemon where cgroups are delegated to it, for example with \
    `systemd-run --user --scope -p Delegate=yes ringback serve` or as a service with \
    `Delegate=yes` and `DelegateSubgroup=daemon`, or set this limit to `none`";
const CONTAINER_FIX: &str = "this looks like a container that forbids sandboxes in it; start it \
    with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt \
    systempaths=unconfined`, or run the daemon outside of it";
const APPARMOR_FIX: &str = "AppArmor keeps user namespaces from programs without a profile (as in \
    Ubuntu 24.04); give bubblewrap one, as root: `printf 'abi <abi/4.0>,\\ninclude \
    <tunables/global>\\nprofile bwrap /usr/bin/bwrap flags=(unconfined) {\\n  userns,\\n}\\n' > \
    /etc/apparmor.d/bwrap && systemctl reload apparmor`, or switch it off: `sysctl -w \
    kernel.apparmor_restrict_unprivileged_userns=0`";

/// A layer of the isolation that a sandbox promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// The program `bwrap`.
    Bubblewrap,
    /// The container engine.
    Engine,
    /// The image for containers.
    Image,
    /// Its own users, processes, network and mounts.
    Namespaces,
    /// The system call filter.
    Seccomp,
    /// The limit on memory.
    Memory,
    /// The limit on processes.
    Processes,
    /// The limit on processor time.
    Cpu,
    /// The limits on the size of files and how many are open.
    Files,
}

/// Whether a layer is available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerState {
    /// It is.
    Given {
        /// What provides it.
        by: String,
    },
    /// It is not.
    Missing {
        /// The reason.
        why: String,
        /// How to get it.
        fix: String,
    },
}

/// One layer on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerReport {
    /// The layer.
    pub layer: Layer,
    /// Whether it is available.
    pub state: LayerState,
}

/// All layers that a sandbox with certain limits needs, on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// In the order in which they are needed.
    pub layers: Vec<LayerReport>,
    /// Those of a container engine, if either backend would do and the first one lacks a layer.
    pub instead: Vec<LayerReport>,
}

impl Probe {
    pub(crate) const fn of(layers: Vec<LayerReport>) -> Self {
        Self { layers, instead: Vec::new() }
    }

    /// Returns whether a sandbox can be made.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.first_missing().is_none()
    }

    /// Returns the first missing layer, as the error of a start.
    #[must_use]
    pub fn first_missing(&self) -> Option<StartError> {
        let first = first_missing(&self.layers)?;
        match first_missing(&self.instead) {
            None => Some(first),
            Some(other) => {
                let (bubblewrap, docker) = (Box::new(first), Box::new(other));
                Some(StartError::Neither { bubblewrap, docker })
            }
        }
    }
}

fn first_missing(layers: &[LayerReport]) -> Option<StartError> {
    layers.iter().find_map(|report| match &report.state {
        LayerState::Given { .. } => None,
        LayerState::Missing { why, fix } => {
            Some(StartError::Layer { layer: report.layer, why: why.clone(), fix: fix.clone() })
        }
    })
}

impl Layer {
    pub(crate) const fn given(self, by: String) -> LayerReport {
        LayerReport { layer: self, state: LayerState::Given { by } }
    }

    pub(crate) fn missing(self, why: impl Into<String>, fix: impl Into<String>) -> LayerReport {
        LayerReport { layer: self, state: LayerState::Missing { why: why.into(), fix: fix.into() } }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Engine => "a container engine",
            Self::Image => "an image for containers",
            Self::Namespaces => "namespaces",
            Self::Seccomp => "a filter for system calls",
            Self::Memory => "a limit on memory",
            Self::Processes => "a limit on processes",
            Self::Cpu => "a limit on processor time",
            Self::Files => "limits on files",
        })
    }
}

pub(crate) fn not_installed() -> StartError {
    let why = "there is no program `bwrap`".to_owned();
    StartError::Layer { layer: Layer::Bubblewrap, why, fix: INSTALL_FIX.to_owned() }
}

pub(crate) fn no_group(controller: Controller) -> StartError {
    let why = no_group_why(controller);
    StartError::Layer { layer: controller.layer(), why, fix: GROUP_FIX.to_owned() }
}

fn no_group_why(controller: Controller) -> String {
    format!("no control group with `{}` can be written here", controller.name())
}

/// Returns what bubblewrap provides.
pub(crate) async fn probe(sandbox: &Sandbox, limits: &Limits) -> Probe {
    let mut layers = vec![match sandbox.program() {
        Some(program) => Layer::Bubblewrap.given(program.display().to_string()),
        None => Layer::Bubblewrap.missing("there is no program `bwrap`", INSTALL_FIX),
    }];
    layers.push(match seccomp::programs() {
        Ok(_) => Layer::Seccomp.given("seccomp".to_owned()),
        Err(error) => Layer::Seccomp.missing(error.to_string(), SECCOMP_FIX),
    });
    for controller in Controller::ALL {
        if controller.limit(limits).is_some() {
            layers.push(group(sandbox, controller));
        }
    }
    let so_far = Probe::of(layers);
    if !so_far.is_complete() {
        // A sandbox with what is available, to report everything that is missing in one go.
        let limits = Limits { memory_bytes: None, processes: None, cpu_percent: None, ..*limits };
        let tried =
            if sandbox.program().is_some() { Some(trial(sandbox, limits).await) } else { None };
        let layers = so_far.layers.into_iter().chain(tried).collect();
        return Probe::of(layers);
    }
    let tried = trial(sandbox, *limits).await;
    Probe::of(so_far.layers.into_iter().chain([tried]).collect())
}

fn group(sandbox: &Sandbox, controller: Controller) -> LayerReport {
    match sandbox.cgroup_roots().get(controller) {
        Some(home) => {
            let version = match home.version {
                Version::V1 => "version 1",
                Version::V2 => "version 2",
            };
            let by = format!("cgroups {version} below {}", home.dir.display());
            controller.layer().given(by)
        }
        None => controller.layer().missing(no_group_why(controller), GROUP_FIX),
    }
}

/// Starts a sandbox in which bubblewrap prints its version.
async fn trial(sandbox: &Sandbox, limits: Limits) -> LayerReport {
    let program = sandbox.program().unwrap_or(Path::new("bwrap")).to_owned();
    let is_elsewhere = !program.starts_with("/usr") && !program.starts_with("/bin");
    let spec = SandboxSpec {
        read_only: if is_elsewhere { vec![ReadOnly::same(&program)] } else { Vec::new() },
        program,
        args: vec!["--version".into()],
        env: Vec::new(),
        workspace: Workspace::Write(sandbox.state_dir().join("etc")),
        working_dir: None,
        home: None,
        session_dir: None,
        inside: None,
        limits,
        masked: Vec::new(),
        cache: None,
        network: Network::None,
        image: None,
    };
    let refused = match sandbox.start_in(BackendKind::Bubblewrap, spec).await {
        Ok(confined) => ended(confined).await,
        Err(StartError::Layer { layer, why, fix }) => return layer.missing(why, fix),
        Err(StartError::Refused { said }) => Some(said),
        Err(error) => Some(told(&error)),
    };
    match refused {
        None => Layer::Namespaces.given("bubblewrap, verified with a test sandbox".to_owned()),
        Some(said) => {
            let fix = Facts::of_this_machine().fix(&said);
            Layer::Namespaces.missing(said, fix)
        }
    }
}

/// Returns `None` if it exited successfully, otherwise its error output.
pub(crate) async fn ended(mut confined: ConfinedProgram) -> Option<String> {
    let mut said = Vec::new();
    let stderr = confined.pipes.stderr;
    stderr.take(SAID_BYTES_MAX).read_to_end(&mut said).await.unwrap_or_default();
    let ended = confined.process.wait().await;
    confined.hold.gone().await;
    let is_well = ended.is_ok_and(|status| status.success());
    (!is_well).then(|| String::from_utf8_lossy(&said).trim().to_owned())
}

fn told(error: &StartError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

/// Known reasons why namespaces are refused.
#[derive(Debug, Clone, Copy, Default)]
struct Facts {
    is_container: bool,
    apparmor_restricts: bool,
    no_user_namespaces: bool,
    clone_is_switched_off: bool,
}

impl Facts {
    fn of_this_machine() -> Self {
        let says =
            |path: &str, what: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == what);
        Self {
            is_container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|path| Path::new(path).exists()),
            apparmor_restricts: says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
            no_user_namespaces: says("/proc/sys/user/max_user_namespaces", "0"),
            clone_is_switched_off: says("/proc/sys/kernel/unprivileged_userns_clone", "0"),
        }
    }

    fn fix(self, said: &str) -> String {
        let fix = if said.contains("nknown option") {
            INSTALL_FIX
        } else if self.no_user_namespaces {
            "run `sysctl -w user.max_user_namespaces=15000`"
        } else if self.clone_is_switched_off {
            "run `sysctl -w kernel.unprivileged_userns_clone=1`"
        } else if self.is_container {
            CONTAINER_FIX
        } else if self.apparmor_restricts {
            APPARMOR_FIX
        } else {
            "run `bwrap --unshare-all --ro-bind / / true` as the daemon's user to see what this \
             machine refuses"
        };
        fix.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: each missing capability is named with the exact fix.
    #[test]
    fn every_known_refusal_has_its_own_fix() {
        let none = Facts::default();
        let cases = [
            (
                Facts { apparmor_restricts: true, ..none },
                "",
                "apparmor_restrict_unprivileged_userns",
            ),
            (Facts { is_container: true, ..none }, "", "--security-opt"),
            (Facts { no_user_namespaces: true, ..none }, "", "user.max_user_namespaces"),
            (Facts { clone_is_switched_off: true, ..none }, "", "unprivileged_userns_clone"),
            (none, "bwrap: Unknown option --disable-userns", "apt install bubblewrap"),
            (none, "bwrap: no", "bwrap --unshare-all"),
        ];
        for (facts, said, expected) in cases {
            assert!(facts.fix(said).contains(expected), "{facts:?} {said}");
        }
    }
}
