//! What every container of this daemon has in common.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid};

use super::engine::Engine;
use super::profile;
use crate::error::StartError;
use crate::probe::{Layer, SECCOMP_FIX};
use crate::spec::places;

/// What every container of this daemon has in common.
#[derive(Debug)]
pub(super) struct Home {
    /// The user that its programs run as: one that can write the workspace.
    pub(super) user: String,
    /// Files of `/etc`, and where they are in the container.
    pub(super) etc: Vec<(PathBuf, PathBuf)>,
    /// The filter for system calls, as the engine wants to be told it.
    pub(super) seccomp: String,
    pub(super) labels: HashMap<String, String>,
}

impl Home {
    /// Writes what is mounted into containers, unless it is there.
    pub(super) fn new(engine: &Engine, state_dir: &Path, name: &str) -> Result<Self, StartError> {
        let (uid, gid) = user(engine);
        let dir = state_dir.join("etc");
        let written = [
            ("passwd", format!("agent:x:{uid}:{gid}:agent:{}:/bin/sh\n", places::HOME)),
            ("group", format!("agent:x:{gid}:\n")),
        ];
        // Those of every box, whoever makes it.
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

/// To the kernel, root of an engine without rights is the user that it runs as.
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

/// Several boxes at once write the same, and what is mounted already is not touched.
fn write_if_other(path: &Path, content: &str) -> Result<(), StartError> {
    if fs::read(path).is_ok_and(|found| found == content.as_bytes()) {
        return Ok(());
    }
    let failed = |source| StartError::State { path: path.to_owned(), source };
    let new = path.with_extension(uuid::Uuid::new_v4().simple().to_string());
    fs::write(&new, content).map_err(failed)?;
    fs::rename(&new, path).map_err(failed)
}
