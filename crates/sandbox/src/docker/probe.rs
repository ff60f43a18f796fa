//! What a container engine provides, and how to get what is missing.

use super::Docker;
use super::engine::Facts;
use crate::error::{EngineError, StartError};
use crate::probe::{Layer, LayerReport, Probe};
use crate::sandbox::{BackendKind, Sandbox};
use crate::spec::{Limits, Network, SandboxSpec, Workspace};

/// The engine's own first process, which every container has.
const INIT: &str = "/sbin/docker-init";
/// Its path with Podman.
const INIT_OF_PODMAN: &str = "/run/podman-init";

const SECCOMP_FIX: &str = "use an engine that is built with seccomp, on a kernel that has \
    CONFIG_SECCOMP_FILTER";
const GROUP_FIX: &str = "enable the cgroup (on Debian with `cgroup_enable=memory` on the kernel's \
    command line; for a rootless engine, delegate it: `Delegate=yes` for `user@.service`), or set \
    this limit to `none`";
const USERS_FIX: &str = "use an engine without `userns-remap`";
const INIT_FIX: &str = "check that the engine has its first process for containers \
    (`docker-init`, on some systems in the package `tini`; for Podman `catatonit`), and the \
    output of `docker run --rm --init IMAGE`";

/// Returns what a container with these limits needs on this engine.
pub(crate) async fn probe(sandbox: &Sandbox, docker: &Docker, limits: &Limits) -> Probe {
    let engine = match docker.shared.engine().await {
        Ok(engine) => engine,
        Err(error) => return Probe::of(vec![unreachable(&error)]),
    };
    let by = format!("{} at {}", engine.facts.version, docker.shared.settings.socket);
    let mut layers = vec![Layer::Engine.given(by)];
    layers.push(match docker.shared.image(engine, None).await {
        Ok(image) => Layer::Image.given(image.id.unwrap_or_default()),
        Err(error) => from(error, Layer::Image),
    });
    layers.extend(of_facts(&engine.facts, limits));
    let mut so_far = Probe::of(layers);
    if so_far.is_complete() {
        let program = if engine.facts.is_podman { INIT_OF_PODMAN } else { INIT };
        so_far.layers.push(trial(sandbox, docker, program, *limits).await);
    }
    so_far
}

/// Refuses a container if the engine lacks a layer, before anything is created.
pub(super) fn refuse_missing(facts: &Facts, limits: &Limits) -> Result<(), StartError> {
    let layers = of_facts(facts, limits);
    Probe::of(layers).first_missing().map_or(Ok(()), Err)
}

pub(super) fn no_image_named() -> StartError {
    StartError::Layer {
        layer: Layer::Image,
        why: "no image is configured".to_owned(),
        fix: "set `sandbox.image` to the image that agents run in".to_owned(),
    }
}

pub(super) fn no_image(name: &str) -> StartError {
    StartError::Layer {
        layer: Layer::Image,
        why: format!("the engine has no image `{name}`"),
        fix: format!("build or pull it, for example with `docker pull {name}`"),
    }
}

fn of_facts(facts: &Facts, limits: &Limits) -> Vec<LayerReport> {
    let mut layers = vec![if facts.has_seccomp {
        Layer::Seccomp.given("seccomp, with Ringback's own profile".to_owned())
    } else {
        Layer::Seccomp.missing("the engine has no seccomp", SECCOMP_FIX)
    }];
    let groups = [
        (Layer::Memory, limits.memory_bytes.is_some(), facts.limits_memory),
        (Layer::Processes, limits.processes.is_some(), facts.limits_processes),
        (Layer::Cpu, limits.cpu_percent.is_some(), facts.limits_cpu),
    ];
    for (layer, _, is_given) in groups.into_iter().filter(|(_, is_wanted, _)| *is_wanted) {
        layers.push(if is_given {
            layer.given("the engine's cgroups".to_owned())
        } else {
            layer.missing("the engine has no control group for it", GROUP_FIX)
        });
    }
    if facts.maps_users {
        let why = "the engine maps users to other IDs, which cannot write a workspace of this user";
        layers.push(Layer::Namespaces.missing(why, USERS_FIX));
    }
    layers
}

/// Starts a container in which the engine's own first process prints its version.
async fn trial(sandbox: &Sandbox, docker: &Docker, program: &str, limits: Limits) -> LayerReport {
    let spec = SandboxSpec {
        program: program.into(),
        args: vec!["--version".into()],
        env: Vec::new(),
        workspace: Workspace::Write(docker.shared.state_dir.join("etc")),
        working_dir: None,
        home: None,
        session_dir: None,
        inside: None,
        read_only: Vec::new(),
        limits,
        masked: Vec::new(),
        cache: None,
        network: Network::None,
        image: None,
    };
    match sandbox.start_in(BackendKind::Docker, spec).await {
        Ok(confined) => match crate::probe::ended(confined).await {
            None => {
                let by = "the engine, verified with a test container".to_owned();
                Layer::Namespaces.given(by)
            }
            Some(said) => Layer::Namespaces.missing(said, INIT_FIX),
        },
        Err(error) => from(error, Layer::Namespaces),
    }
}

fn from(error: StartError, layer: Layer) -> LayerReport {
    if let StartError::Layer { layer, why, fix } = error {
        return layer.missing(why, fix);
    }
    layer.missing(error.to_string(), INIT_FIX)
}

/// The engine's errors end with the fix.
fn unreachable(error: &EngineError) -> LayerReport {
    let text = error.to_string();
    let (why, fix) = text.split_once("; ").unwrap_or((&text, "look at the engine's own log"));
    Layer::Engine.missing(why, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a layer that the engine lacks is refused by name, with a fix.
    #[test]
    fn an_engine_without_a_layer_is_refused_by_name() {
        let all = Facts {
            has_seccomp: true,
            limits_memory: true,
            limits_processes: true,
            limits_cpu: true,
            ..Facts::default()
        };
        let cases = [
            (Facts { has_seccomp: false, ..all.clone() }, "a filter for system calls"),
            (Facts { limits_memory: false, ..all.clone() }, "a limit on memory"),
            (Facts { limits_processes: false, ..all.clone() }, "a limit on processes"),
            (Facts { limits_cpu: false, ..all.clone() }, "a limit on processor time"),
            (Facts { maps_users: true, ..all.clone() }, "namespaces"),
        ];
        for (facts, name) in cases {
            let refused = refuse_missing(&facts, &Limits::default()).unwrap_err().to_string();
            assert!(refused.contains(name), "{refused}");
        }
        assert!(refuse_missing(&all, &Limits::default()).is_ok());
        let without = Facts { has_seccomp: true, ..Facts::default() };
        assert!(refuse_missing(&without, &Limits::none()).is_ok());
    }
}
