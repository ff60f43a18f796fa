//! Finds out where cgroups can be made.

use std::fs;
use std::path::{Path, PathBuf};

use procfs::process::MountInfos;
use procfs::{FromRead as _, ProcessCGroups};
use rustix::fs::{Access, access};

use super::{CgroupRoot, CgroupRoots, Controller, Version};

impl CgroupRoots {
    /// Looks at the cgroups of this process. A machine without cgroups has none.
    pub(crate) fn find() -> Self {
        let groups = ProcessCGroups::from_file("/proc/self/cgroup");
        let mounts = MountInfos::from_file("/proc/self/mountinfo");
        match (groups, mounts) {
            (Ok(groups), Ok(mounts)) => Self::among(&groups, &mounts),
            (Err(_), _) | (_, Err(_)) => Self::default(),
        }
    }

    fn among(groups: &ProcessCGroups, mounts: &MountInfos) -> Self {
        let mut cgroup_roots = Self::default();
        for controller in Controller::ALL {
            if let Some(dir) = own_v1(controller, groups, mounts).filter(|dir| is_ours(dir)) {
                cgroup_roots.set(controller, CgroupRoot { version: Version::V1, dir });
            }
        }
        // A process is in a single cgroup of version 2: it needs all controllers.
        if let Some((dir, controllers)) = best_v2(groups, mounts) {
            for controller in controllers {
                cgroup_roots.set(controller, CgroupRoot { version: Version::V2, dir: dir.clone() });
            }
        }
        cgroup_roots
    }
}

/// Returns the version 1 cgroup of this process.
fn own_v1(controller: Controller, groups: &ProcessCGroups, mounts: &MountInfos) -> Option<PathBuf> {
    let name = controller.name();
    let mut of_it = mounts.0.iter().filter(|mount| mount.fs_type == "cgroup");
    let mount = of_it.find(|mount| mount.super_options.contains_key(name))?;
    let group = groups.0.iter().find(|group| group.controllers.iter().any(|own| own == name))?;
    Some(below(&mount.mount_point, &mount.root, &group.pathname))
}

/// Returns the nearest version 2 cgroup with the most controllers.
fn best_v2(groups: &ProcessCGroups, mounts: &MountInfos) -> Option<(PathBuf, Vec<Controller>)> {
    let mount = mounts.0.iter().find(|mount| mount.fs_type == "cgroup2")?;
    let group = groups.0.iter().find(|group| group.hierarchy == 0)?;
    let own = below(&mount.mount_point, &mount.root, &group.pathname);
    let mut best: Option<(PathBuf, Vec<Controller>)> = None;
    for dir in own.ancestors().take_while(|dir| dir.starts_with(&mount.mount_point)) {
        let given = if is_ours(dir) { given_v2(dir) } else { Vec::new() };
        if given.len() > best.as_ref().map_or(0, |(_, controllers)| controllers.len()) {
            best = Some((dir.to_owned(), given));
        }
    }
    best
}

/// Returns the controllers of the cgroups below this one, after enabling those that are available.
fn given_v2(dir: &Path) -> Vec<Controller> {
    let switch = dir.join("cgroup.subtree_control");
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let has = |list: &str, controller: Controller| {
        list.split_whitespace().any(|name| name == controller.name())
    };
    let (possible, before) = (read(&dir.join("cgroup.controllers")), read(&switch));
    for controller in Controller::ALL {
        if has(&possible, controller)
            && !has(&before, controller)
            && let Err(error) = fs::write(&switch, format!("+{}", controller.name()))
        {
            // Refused if the cgroup itself has processes; an ancestor may do.
            tracing::debug!(dir = %dir.display(), controller = controller.name(), %error, "the controller is not delegated");
        }
    }
    let after = read(&switch);
    Controller::ALL.into_iter().filter(|controller| has(&after, *controller)).collect()
}

/// A mount may show only a part of the hierarchy, as in a container.
fn below(mount_point: &Path, root: &str, group: &str) -> PathBuf {
    let relative = Path::new(group).strip_prefix(root).unwrap_or(Path::new(""));
    mount_point.join(relative).components().collect()
}

/// Returns whether cgroups can be made here and processes be moved into them.
fn is_ours(dir: &Path) -> bool {
    let writable = Access::WRITE_OK | Access::EXEC_OK;
    access(dir, writable).is_ok() && access(dir.join("cgroup.procs"), Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cgroup_roots(groups: &str, mounts: &str) -> CgroupRoots {
        let groups = ProcessCGroups::from_read(groups.as_bytes()).unwrap();
        let mounts = MountInfos::from_read(mounts.as_bytes()).unwrap();
        CgroupRoots::among(&groups, &mounts)
    }

    fn tree(root: &Path, dirs: &[(&str, &str, &str)]) {
        for (dir, controllers, subtree) in dirs {
            let dir = root.join(dir);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("cgroup.procs"), "").unwrap();
            fs::write(dir.join("cgroup.controllers"), controllers).unwrap();
            fs::write(dir.join("cgroup.subtree_control"), subtree).unwrap();
        }
    }

    fn mounted(root: &Path, inner: &str, kind: &str, options: &str) -> String {
        format!("30 24 0:26 {inner} {} rw,nosuid - {kind} none rw{options}\n", root.display())
    }

    /// Rule: cgroups are made below the nearest one that offers every controller to its children.
    #[test]
    fn version_2_is_found_at_the_nearest_group_that_gives_all() {
        let root = tempfile::tempdir().unwrap();
        let all = "cpu memory pids";
        tree(root.path(), &[("", all, all), ("app", all, all), ("app/me", all, "")]);
        // Writing to a plain file enables nothing, as in a cgroup with processes.
        let cgroup_roots = cgroup_roots("0::/app/me\n", &mounted(root.path(), "/", "cgroup2", ""));
        let expected = CgroupRoot { version: Version::V2, dir: root.path().join("app") };
        for controller in Controller::ALL {
            assert_eq!(cgroup_roots.get(controller), Some(&expected), "{controller:?}");
        }
    }

    /// Rule: a limit that no cgroup can enforce is reported as missing.
    #[test]
    fn a_version_2_without_controllers_gives_none() {
        let root = tempfile::tempdir().unwrap();
        tree(root.path(), &[("", "hugetlb", "")]);
        let cgroup_roots = cgroup_roots("0::/\n", &mounted(root.path(), "/", "cgroup2", ""));
        assert!(Controller::ALL.iter().all(|controller| cgroup_roots.get(*controller).is_none()));
    }

    /// Rule: limits on this process apply to its sandboxes: version 1 nests below its own cgroup.
    #[test]
    fn version_1_is_below_the_own_group_also_where_the_mount_shows_a_part() {
        let root = tempfile::tempdir().unwrap();
        tree(root.path(), &[("mine", "", "")]);
        let mounts = mounted(root.path(), "/docker/x", "cgroup", ",memory");
        let cgroup_roots = cgroup_roots("4:memory:/docker/x/mine\n2:pids:/\n", &mounts);
        let expected = CgroupRoot { version: Version::V1, dir: root.path().join("mine") };
        assert_eq!(cgroup_roots.get(Controller::Memory), Some(&expected));
        assert_eq!(cgroup_roots.get(Controller::Pids), None);
    }
}
