//! The contents of a sandbox that a container engine makes.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    ImageInspect, Mount, MountBindOptions, MountBindOptionsPropagationEnum, MountType,
    ResourcesUlimits,
};

use super::shared_settings::SharedSettings;
use crate::error::StartError;
use crate::rlimits::CORE_BYTES;
use crate::spec::{Limits, Network, SandboxSpec, Workspace, places};

/// The period for shares of processor time; the kernel's own default.
const CPU_PERIOD_US: i64 = 100_000;
/// The engine's own first process counts as well.
const FIRST_PROCESSES: u32 = 1;
/// Kernel files that reveal facts about the kernel or this machine; hidden in every sandbox.
const MASKED: &[&str] = &[
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/pagetypeinfo",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/slabinfo",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/vmallocinfo",
    "/sys",
];
/// The kernel's settings, and devices.
const READ_ONLY: &[&str] =
    &["/dev", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Returns the request that creates the container.
pub(super) fn body(
    spec: &SandboxSpec,
    home: &SharedSettings,
    image: &ImageInspect,
) -> Result<ContainerCreateBody, StartError> {
    let env = spec.env.iter().map(|(name, value)| {
        let what = "the environment";
        Ok(format!("{}={}", text(what, name)?, text(what, value)?))
    });
    let working_dir = match &spec.working_dir {
        Some(dir) => text("the directory", dir.as_os_str())?,
        None => places::WORKSPACE.to_owned(),
    };
    let args = spec.args.iter().map(|arg| text("an argument", arg));
    let (user, hostname) = (home.user.clone(), "sandbox".to_owned());
    Ok(ContainerCreateBody {
        image: image.id.clone(),
        hostname: Some(hostname),
        user: Some(user),
        entrypoint: Some(vec![text("the program", spec.program.as_os_str())?]),
        cmd: Some(args.collect::<Result<_, _>>()?),
        env: Some(env.collect::<Result<_, StartError>>()?),
        working_dir: Some(working_dir),
        labels: Some(home.labels.clone()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        // Closing the connection's input closes the program's input.
        stdin_once: Some(true),
        tty: Some(false),
        // Overrides the image's own check.
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        host_config: Some(host_config(spec, home, image)?),
        ..ContainerCreateBody::default()
    })
}

fn host_config(
    spec: &SandboxSpec,
    home: &SharedSettings,
    image: &ImageInspect,
) -> Result<HostConfig, StartError> {
    let network = match spec.network {
        Network::None => "none",
    };
    let all = |paths: &[&str]| Some(paths.iter().map(|path| (*path).to_owned()).collect());
    let limits = host_limits(&spec.limits);
    Ok(HostConfig {
        mounts: Some(mounts(spec, home)?),
        tmpfs: Some(private(spec.limits.tmp_bytes, image)),
        readonly_rootfs: Some(true),
        masked_paths: all(MASKED),
        readonly_paths: all(READ_ONLY),
        network_mode: Some(network.to_owned()),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        cap_drop: all(&["ALL"]),
        privileged: Some(false),
        security_opt: Some(vec![
            "no-new-privileges".to_owned(),
            format!("seccomp={}", home.seccomp),
        ]),
        // Reaps orphans and forwards signals to the program.
        init: Some(true),
        // No output is stored.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ..limits
    })
}

fn host_limits(limits: &Limits) -> HostConfig {
    let number = |limit: u64| i64::try_from(limit).unwrap_or(i64::MAX);
    let memory = limits.memory_bytes.map(number);
    let processes = limits.processes.map(|n| i64::from(n.saturating_add(FIRST_PROCESSES)));
    // A handler of core dumps runs outside the sandbox.
    let ulimits =
        [("core", Some(CORE_BYTES)), ("fsize", limits.file_bytes), ("nofile", limits.open_files)];
    let ulimits = ulimits.into_iter().filter_map(|(name, limit)| {
        let limit = limit.map(number);
        limit.map(|_| ResourcesUlimits { name: Some(name.to_owned()), soft: limit, hard: limit })
    });
    HostConfig {
        memory,
        // Memory and swap together: no swap.
        memory_swap: memory,
        pids_limit: processes,
        cpu_period: limits.cpu_percent.map(|_| CPU_PERIOD_US),
        cpu_quota: limits.cpu_percent.map(|percent| i64::from(percent) * CPU_PERIOD_US / 100),
        ulimits: Some(ulimits.collect()),
        shm_size: Some(number(limits.tmp_bytes)),
        ..HostConfig::default()
    }
}

fn mounts(spec: &SandboxSpec, home: &SharedSettings) -> Result<Vec<Mount>, StartError> {
    let mut mounts = Vec::new();
    for (host, inside) in &home.etc {
        mounts.push(mount(host, inside, true)?);
    }
    for read_only in &spec.read_only {
        mounts.push(mount(&read_only.host, &read_only.inside, true)?);
    }
    if let Some(path) = spec.masked.first() {
        let source = io::Error::new(io::ErrorKind::Unsupported, "a container covers no paths");
        return Err(StartError::Mount { what: "a path to cover", path: path.clone(), source });
    }
    let workspace = Path::new(places::WORKSPACE);
    match &spec.workspace {
        Workspace::None => {}
        Workspace::Read(host) => mounts.push(mount(host, workspace, true)?),
        Workspace::Write(host) => mounts.push(mount(host, workspace, false)?),
    }
    if let Some(home) = &spec.home {
        mounts.push(mount(home, Path::new(places::HOME), false)?);
    }
    if let Some(cache) = &spec.cache {
        mounts.push(mount(cache, Path::new(places::CACHE), false)?);
    }
    if let Some(dir) = &spec.session_dir {
        mounts.push(mount(dir, Path::new(places::SESSION), true)?);
    }
    if let Some(inside) = &spec.inside {
        mounts.push(mount(inside, Path::new(places::INSIDE), true)?);
    }
    Ok(mounts)
}

/// Mounts below `host` are not visible: older engines would make them writable.
fn mount(host: &Path, inside: &Path, is_read_only: bool) -> Result<Mount, StartError> {
    let path = |path: &Path| text("a path", path.as_os_str());
    Ok(Mount {
        typ: Some(MountType::BIND),
        source: Some(path(host)?),
        target: Some(path(inside)?),
        read_only: Some(is_read_only),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::PRIVATE),
            non_recursive: Some(true),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    })
}

/// Returns the directories in memory: `/tmp`, and those that the image would have on the engine's
/// disk.
fn private(tmp_bytes: u64, image: &ImageInspect) -> HashMap<String, String> {
    let options = format!("rw,exec,nosuid,nodev,mode=1777,size={tmp_bytes}");
    let volumes = image.config.iter().flat_map(|config| config.volumes.iter().flatten());
    let own = [places::WORKSPACE, places::HOME, places::SESSION, places::CACHE];
    let volumes = volumes.filter(|path| !own.iter().any(|own| Path::new(path).starts_with(own)));
    [&"/tmp".to_owned()]
        .into_iter()
        .chain(volumes)
        .map(|path| (path.clone(), options.clone()))
        .collect()
}

fn text(what: &'static str, text: &OsStr) -> Result<String, StartError> {
    text.to_str().map(str::to_owned).ok_or(StartError::NotText { what })
}

#[cfg(test)]
mod tests {
    use bollard::models::ImageConfig;

    use super::*;

    /// Rule: a container stores nothing on the engine's disk, whatever its image declares.
    #[test]
    fn what_an_image_would_keep_on_disk_is_in_memory() {
        let volumes = Some(vec!["/data".to_owned(), "/workspace/x".to_owned()]);
        let config = Some(ImageConfig { volumes, ..ImageConfig::default() });
        let image = ImageInspect { config, ..ImageInspect::default() };
        let mut places: Vec<_> = private(7, &image).into_keys().collect();
        places.sort();
        assert_eq!(places, ["/data", "/tmp"]);
    }

    /// Rule: limits are passed in the engine's own units, and absent limits are not passed.
    #[test]
    fn limits_are_told_in_the_engines_units() {
        let some = Limits {
            memory_bytes: Some(1 << 20),
            processes: Some(20),
            cpu_percent: Some(150),
            file_bytes: Some(9),
            ..Limits::none()
        };
        let told = host_limits(&some);
        // Not zero, with which the kernel still starts a program that handles core dumps.
        assert_eq!(told.ulimits.as_ref().unwrap()[0].hard, Some(1));
        assert_eq!((told.memory, told.memory_swap), (Some(1 << 20), Some(1 << 20)));
        assert_eq!((told.pids_limit, told.cpu_quota), (Some(21), Some(150_000)));
        let names: Vec<_> = told.ulimits.iter().flatten().map(|limit| &limit.name).collect();
        assert_eq!(names, [&Some("core".to_owned()), &Some("fsize".to_owned())]);
        let told = host_limits(&Limits::none());
        assert_eq!((told.memory, told.pids_limit, told.cpu_quota), (None, None, None));
    }
}
