//! The root of a box: a directory that is written once and mounted, read-only, for many boxes. It has
//! the files of `/etc`, and a place for everything else that is mounted.
//!
//! Each of these could be a mount of its own, but every mount costs a box a part of a millisecond. So
//! what is this machine's own is a copy, and when the original changes there is another root for the
//! boxes after that.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::OpenError;
use crate::etc;
use crate::leftovers::private_dir;
use crate::spec::{SandboxSpec, places};

/// Where programs and libraries are besides `/usr`: links into it, or directories of their own.
pub(crate) const SYSTEM: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Where every box has something mounted.
const MOUNTED: &[&str] = &["/usr", "/proc", "/dev", "/tmp", places::WORKSPACE];
/// Below these there are no places: what is mounted there has its own.
const WITH_PLACES: &[&str] = &["/usr", "/tmp"];

/// The roots that were written.
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

/// What makes one root differ from another.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    places: Vec<Place>,
    /// What the originals of its copies were like.
    originals: Vec<Option<Stamp>>,
}

/// For something to be mounted on.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    path: PathBuf,
    is_dir: bool,
}

/// Differs whenever a file has been replaced or written, or a directory has got or lost an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    n_bytes: u64,
    modified: (i64, i64),
}

impl Roots {
    /// Forgets those of an earlier run.
    pub(crate) fn open(state_dir: &Path) -> Result<Self, OpenError> {
        let dir = state_dir.join("roots");
        let made = remove_dir_if_there(&dir).and_then(|()| private_dir(&dir));
        made.map_err(|source| OpenError::State { path: dir.clone(), source })?;
        Ok(Self { dir, known: Mutex::default() })
    }

    /// The root of such a box. It is written if there is none.
    pub(crate) fn of(&self, spec: &SandboxSpec) -> io::Result<PathBuf> {
        let kind = Kind { places: places_of(spec), originals: originals() };
        // One that was not written to its end is not known.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Where something is mounted in this box and not in every one.
fn places_of(spec: &SandboxSpec) -> Vec<Place> {
    let dir = |path: &str| Place { path: path.into(), is_dir: true };
    let mut places: Vec<_> = spec.home.iter().map(|_| dir(places::HOME)).collect();
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
    // A link leads to somewhere else in the box, and must lead to nowhere here.
    if place.ancestors().take_while(|part| *part != dir).any(Path::is_symlink) {
        return Ok(());
    }
    fs::create_dir_all(if *is_dir { &place } else { place.parent().unwrap_or(dir) })?;
    if !is_dir {
        fs::OpenOptions::new().create(true).append(true).open(place)?;
    }
    Ok(())
}

/// Where an absolute path is in a root. Whatever else a path may have in it leads nowhere.
fn below(dir: &Path, path: &Path) -> PathBuf {
    let names = path.components().filter(|part| matches!(part, Component::Normal(_)));
    dir.join(names.collect::<PathBuf>())
}

/// Copies a file, or a directory with its files and links. What is not there, or is not for this user to
/// read, is left out.
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
            network: Network::None,
            image: None,
        }
    }

    /// Rule: boxes of one kind share a root; another kind, or another original, has another, and
    /// what was mounted before stays as it is.
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
        // As if an original had been another one.
        let another = Some(Stamp { inode: 0, n_bytes: 0, modified: (0, 0) });
        roots.known.lock().unwrap()[0].kind.originals[0] = another;
        let again = roots.of(&spec(Vec::new())).unwrap();
        assert!(again != plain && plain.join("etc/passwd").is_file());
        drop(roots);
        Roots::open(dir.path()).unwrap();
        assert!(!plain.exists() && !again.exists());
    }

    /// Rule: no place is made outside of a root, whatever links of this machine are in it.
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
