//! The root of a sandbox: a directory that is written once and mounted, read-only, in many
//! sandboxes. It has the files of `/etc`, and a mount point for everything else.
//!
//! Each of these could be a mount of its own, but every mount costs a sandbox a fraction of a
//! millisecond. So files of this machine are copied, and when an original changes, later sandboxes
//! get another root.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use ringback_sync::lock;

use crate::error::OpenError;
use crate::etc;
use crate::leftovers::private_dir;
use crate::spec::{SandboxSpec, places};

/// Programs and libraries outside `/usr`: links into it, or real directories.
pub(crate) const SYSTEM: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// The mount points of every sandbox.
const MOUNTED: &[&str] = &["/usr", "/proc", "/dev", "/tmp", places::WORKSPACE];
/// No mount points are made below these: mounts there have their own.
const WITH_PLACES: &[&str] = &["/usr", "/tmp"];

/// The roots written so far.
#[derive(Debug)]
pub(crate) struct Roots {
    dir: PathBuf,
    known: Mutex<Vec<Root>>,
}

#[derive(Debug)]
struct Root {
    dir: PathBuf,
    kind: Kind,
}

/// What distinguishes one root from another.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    places: Vec<Place>,
    /// The state of the files it was copied from.
    originals: Vec<Option<Stamp>>,
}

/// A mount point.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    path: PathBuf,
    is_dir: bool,
}

/// Changes whenever a file is replaced or written, or a directory gains or loses an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    n_bytes: u64,
    modified: (i64, i64),
}

impl Roots {
    /// Removes those of an earlier run.
    pub(crate) fn open(state_dir: &Path) -> Result<Self, OpenError> {
        let dir = state_dir.join("roots");
        let made = remove_dir_if_there(&dir).and_then(|()| private_dir(&dir));
        made.map_err(|source| OpenError::State { path: dir.clone(), source })?;
        Ok(Self { dir, known: Mutex::default() })
    }

    /// Returns the root for such a sandbox, and writes it if necessary.
    pub(crate) fn of(&self, spec: &SandboxSpec) -> io::Result<PathBuf> {
        let kind = Kind { places: places_of(spec), originals: originals() };
        // A root that was not fully written is not known.
        let mut known = lock(&self.known);
        if let Some(root) = known.iter().find(|root| root.kind == kind) {
            return Ok(root.dir.clone());
        }
        let dir = self.dir.join(uuid::Uuid::new_v4().simple().to_string());
        if let Err(error) = write(&dir, &kind.places) {
            remove_dir_if_there(&dir).unwrap_or_default();
            return Err(error);
        }
        known.push(Root { dir: dir.clone(), kind });
        Ok(dir)
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            n_bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

fn originals() -> Vec<Option<Stamp>> {
    let stamp = |path: PathBuf| path.metadata().ok().map(|metadata| Stamp::of(&metadata));
    etc::copied().map(stamp).collect()
}

/// Returns the mount points of this sandbox that not every sandbox has.
fn places_of(spec: &SandboxSpec) -> Vec<Place> {
    let dir = |path: &str| Place { path: path.into(), is_dir: true };
    let mut places: Vec<_> = spec.home.iter().map(|_| dir(places::HOME)).collect();
    places.extend(spec.cache.iter().map(|_| dir(places::CACHE)));
    match (&spec.session_dir, &spec.inside) {
        (Some(_), _) => places.push(dir(places::SESSION)),
        (None, Some(_)) => places.push(Place { path: places::INSIDE.into(), is_dir: false }),
        (None, None) => {}
    }
    let needs_place = |path: &Path| {
        let mut others = SYSTEM.iter().chain(WITH_PLACES);
        !others.any(|other| path.starts_with(other))
    };
    for shown in spec.read_only.iter().filter(|shown| needs_place(&shown.inside)) {
        places.push(Place { path: shown.inside.clone(), is_dir: shown.host.is_dir() });
    }
    places
}

fn write(dir: &Path, places: &[Place]) -> io::Result<()> {
    fs::create_dir(dir)?;
    for path in MOUNTED {
        fs::create_dir_all(below(dir, Path::new(path)))?;
    }
    for path in SYSTEM.iter().map(Path::new) {
        if path.is_symlink() {
            symlink(fs::read_link(path)?, below(dir, path))?;
        } else if path.is_dir() {
            fs::create_dir(below(dir, path))?;
        }
    }
    etc::write(&dir.join("etc"))?;
    for original in etc::copied() {
        copy(&original, &below(dir, &original))?;
    }
    for path in etc::mounted() {
        fs::create_dir_all(below(dir, &path))?;
    }
    places.iter().try_for_each(|place| place_in(dir, place))
}

fn place_in(dir: &Path, Place { path, is_dir }: &Place) -> io::Result<()> {
    let place = below(dir, path);
    // A link leads elsewhere in the sandbox, and must not be followed here.
    if place.ancestors().take_while(|part| *part != dir).any(Path::is_symlink) {
        return Ok(());
    }
    fs::create_dir_all(if *is_dir { &place } else { place.parent().unwrap_or(dir) })?;
    if !is_dir {
        fs::OpenOptions::new().create(true).append(true).open(place)?;
    }
    Ok(())
}

/// Maps an absolute path into a root. Other components of a path are ignored.
fn below(dir: &Path, path: &Path) -> PathBuf {
    let names = path.components().filter(|part| matches!(part, Component::Normal(_)));
    dir.join(names.collect::<PathBuf>())
}

/// Copies a file, or a directory with its files and links. Skips what does not exist or is not
/// readable for this user.
fn copy(original: &Path, to: &Path) -> io::Result<()> {
    match try_copy(original, to) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        copied => copied,
    }
}

fn try_copy(original: &Path, to: &Path) -> io::Result<()> {
    if !original.metadata()?.is_dir() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        return fs::copy(original, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(original)? {
        let entry = entry?;
        if Path::new(&entry.file_name()).extension().is_some_and(|kind| kind == etc::LEFT_OUT) {
            continue;
        }
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(from)?, to)?;
        } else if kind.is_dir() || kind.is_file() {
            copy(&from, &to)?;
        }
    }
    Ok(())
}

fn remove_dir_if_there(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Limits, Network, ReadOnly, Workspace};

    fn spec(read_only: Vec<ReadOnly>) -> SandboxSpec {
        SandboxSpec {
            program: "/bin/true".into(),
            args: Vec::new(),
            env: Vec::new(),
            workspace: Workspace::None,
            working_dir: None,
            home: None,
            session_dir: None,
            inside: None,
            read_only,
            limits: Limits::none(),
            masked: Vec::new(),
            cache: None,
            network: Network::None,
            image: None,
        }
    }

    /// Rule: sandboxes of one kind share a root; another kind, or a changed original, gets another,
    /// and roots that are mounted stay as they are.
    #[test]
    fn a_root_is_written_once_for_its_kind() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::open(dir.path()).unwrap();
        let plain = roots.of(&spec(Vec::new())).unwrap();
        assert_eq!(roots.of(&spec(Vec::new())).unwrap(), plain);
        let shown = ReadOnly { host: "/bin/sh".into(), inside: "/opt/agent/sh".into() };
        let other = roots.of(&spec(vec![shown])).unwrap();
        assert!(other.join("opt/agent/sh").is_file() && !plain.join("opt").exists());
        for root in [&plain, &other] {
            let copy = fs::read(root.join("etc/ld.so.cache")).ok();
            assert_eq!(copy, fs::read("/etc/ld.so.cache").ok());
            assert!(root.join("etc/passwd").is_file() && root.join("workspace").is_dir());
        }
        // As if an original had changed.
        let another = Some(Stamp { inode: 0, n_bytes: 0, modified: (0, 0) });
        roots.known.lock().unwrap()[0].kind.originals[0] = another;
        let again = roots.of(&spec(Vec::new())).unwrap();
        assert!(again != plain && plain.join("etc/passwd").is_file());
        drop(roots);
        Roots::open(dir.path()).unwrap();
        assert!(!plain.exists() && !again.exists());
    }

    /// Rule: no mount point is made outside a root, whatever links this machine has.
    #[test]
    fn a_place_is_below_its_root() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::open(dir.path()).unwrap();
        let inside =
            ["/bin/a-place", "/lib64/a-place/x", "/usr/a-place", "/tmp/a-place", "/etc/a-place"];
        let shown = |inside: &str| ReadOnly { host: "/bin/sh".into(), inside: inside.into() };
        let root = roots.of(&spec(inside.map(shown).into())).unwrap();
        for place in ["/bin", "/lib64", "/usr", "/tmp", "/etc"].map(Path::new) {
            assert!(!place.join("a-place").exists(), "{}", place.display());
        }
        assert!(root.join("etc/a-place").is_file());
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::create_dir_all(root.join("opt")).unwrap();
        symlink(&outside, root.join("opt/link")).unwrap();
        place_in(&root, &Place { path: "/opt/link/x".into(), is_dir: true }).unwrap();
        assert!(!outside.join("x").exists());
    }
}
