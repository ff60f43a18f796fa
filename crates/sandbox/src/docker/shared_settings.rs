//! What all containers of this daemon share.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid};

use super::engine::Engine;
use super::profile;
use crate::error::StartError;
use crate::probe::{Layer, SECCOMP_FIX};
use crate::spec::places;

/// What all containers of this daemon share.
#[derive(Debug)]
pub(super) struct SharedSettings {
    /// The user that runs its programs, with write access to the workspace.
    pub(super) user: String,
    /// Files of `/etc`, and where they are in the container.
    pub(super) etc: Vec<(PathBuf, PathBuf)>,
    /// The system call filter, in the engine's format.
    pub(super) seccomp: String,
    pub(super) labels: HashMap<String, String>,
}

impl SharedSettings {
    /// Writes the files that are mounted into containers, unless they exist.
    pub(super) fn new(engine: &Engine, state_dir: &Path, name: &str) -> Result<Self, StartError> {
        let (uid, gid) = user(engine);
        let dir = state_dir.join("etc");
        let written = [
            ("passwd", format!("agent:x:{uid}:{gid}:agent:{}:/bin/sh\n", places::HOME)),
            ("group", format!("agent:x:{gid}:\n")),
        ];
        // The same in every kind of sandbox.
        let shared = ["hosts", "resolv.conf"];
        let mut etc: Vec<_> =
            shared.iter().map(|name| (dir.join(name), Path::new("/etc").join(name))).collect();
        for (name, content) in written {
            let path = dir.join(format!("{name}-of-containers"));
            write_if_other(&path, &content)?;
            etc.push((path, Path::new("/etc").join(name)));
        }
        let seccomp = seccomp(engine, &dir)?;
        Ok(Self { user: format!("{uid}:{gid}"), etc, seccomp, labels: engine.labels(name) })
    }
}

/// Returns the user for containers. To the kernel, root of a rootless engine is the user that runs
/// it.
fn user(engine: &Engine) -> (u32, u32) {
    if engine.facts.is_rootless { (0, 0) } else { (geteuid().as_raw(), getegid().as_raw()) }
}

fn seccomp(engine: &Engine, dir: &Path) -> Result<String, StartError> {
    let text = profile::text().map_err(|error| StartError::Layer {
        layer: Layer::Seccomp,
        why: error.to_string(),
        fix: SECCOMP_FIX.to_owned(),
    })?;
    if !engine.facts.is_podman {
        return Ok(text);
    }
    // Podman reads it from a file.
    let path = dir.join("seccomp.json");
    write_if_other(&path, &text)?;
    Ok(path.display().to_string())
}

/// Sandboxes that start concurrently write the same content, and a mounted file is not touched.
fn write_if_other(path: &Path, content: &str) -> Result<(), StartError> {
    if fs::read(path).is_ok_and(|found| found == content.as_bytes()) {
        return Ok(());
    }
    let failed = |source| StartError::State { path: path.to_owned(), source };
    let new = path.with_extension(uuid::Uuid::new_v4().simple().to_string());
    fs::write(&new, content).map_err(failed)?;
    fs::rename(&new, path).map_err(failed)
}
