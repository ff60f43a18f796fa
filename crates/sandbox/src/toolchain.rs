//! Finds the toolchains on a user's `PATH`, and what of each a sandbox may read.
//!
//! A directory is shown only if its content identifies it as a toolchain of the table, and then
//! only the parts that the table lists: programs and libraries, never a home, a configuration or a
//! registry. Files in those parts whose names are those of credentials are covered in the sandbox.

mod private;
mod table;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use self::private::Privacy;
use self::table::{KINDS, Kind, LOOSE, PASSED, Value};
use crate::root::SYSTEM;
use crate::spec::ReadOnly;

/// Directories of a `PATH` that are looked at; more are left out.
const PATH_DIRS_MAX: usize = 100;
/// Paths that one pattern of the table may stand for, such as versions of a toolchain.
const MATCHES_MAX: usize = 32;
/// The longest value of a variable that is passed on.
const VALUE_BYTES_MAX: usize = 100;
/// The first bytes of a program that is not a script.
const ELF: &[u8] = b"\x7fELF";
/// The packages of Nix, which every user of a machine may read.
const NIX_STORE: &str = "/nix/store";
/// The variable of the user's home: nothing in it is shown but toolchains.
const HOME: &str = "HOME";
/// The versions that a manager of toolchains has installed, by program.
const INSTALLS: &str = "installs";
/// The directory of a manager's programs that start the right version.
const SHIMS: &str = "shims";

/// What a user has: the `PATH`, and variables that name toolchains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserPath {
    /// The `PATH`.
    pub path: OsString,
    /// Variables. Those that the table does not know are ignored.
    pub variables: Vec<(String, OsString)>,
}

/// A toolchain that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundToolchain {
    /// Its name.
    pub name: &'static str,
    /// Its directory, or the program itself.
    pub root: PathBuf,
}

/// The toolchains of a user, as a sandbox sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toolchains {
    /// The toolchains.
    pub found: Vec<FoundToolchain>,
    /// What a sandbox may read.
    pub read_only: Vec<ReadOnly>,
    /// Paths in the sandbox that are covered: files with the names of credentials.
    pub masked: Vec<PathBuf>,
    /// The variables of its environment.
    pub env: Vec<(String, OsString)>,
    /// The directories of its `PATH`, in the user's order.
    pub path: Vec<PathBuf>,
    /// Directories of the user's `PATH` that are not shown.
    pub left_out: Vec<PathBuf>,
}

impl Toolchains {
    /// Finds the toolchains on a user's `PATH`. Nothing below `hidden` is shown, nor anything of
    /// `home` but toolchains. Reads directories; runs nothing. May block.
    #[must_use]
    pub fn find(wanted: &UserPath, home: Option<&Path>, hidden: &[PathBuf]) -> Self {
        let mut finder =
            Finder { wanted, privacy: Privacy::new([], &[]), home: None, found: Self::default() };
        let named = finder.variable(HOME);
        let homes = [named.clone(), home.map(Path::to_owned)].into_iter().flatten();
        finder.privacy = Privacy::new(homes, hidden);
        finder.home = named.or_else(|| home.map(Path::to_owned));
        for dir in std::env::split_paths(&wanted.path).take(PATH_DIRS_MAX) {
            finder.look_at(&dir);
        }
        for kind in KINDS {
            for name in kind.named_by {
                if let Some(root) = finder.variable(name) {
                    finder.look_at_named(kind, name, &root);
                }
            }
        }
        finder.pass_variables();
        finder.found
    }

    /// Returns the `PATH` of the sandbox, with the system's directories at its end.
    #[must_use]
    pub fn path_with(&self, system: &str) -> OsString {
        let mut dirs = self.path.clone();
        for dir in std::env::split_paths(system) {
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        // A directory with a colon in its name is never found on a `PATH`.
        std::env::join_paths(dirs).unwrap_or_else(|_| system.into())
    }
}

struct Finder<'a> {
    wanted: &'a UserPath,
    privacy: Privacy,
    /// The user's home, where toolchains usually are.
    home: Option<PathBuf>,
    found: Toolchains,
}

impl Finder<'_> {
    fn variable(&self, name: &str) -> Option<PathBuf> {
        let found = self.wanted.variables.iter().find(|(known, _)| known == name)?;
        Some(PathBuf::from(&found.1)).filter(|path| is_plain(path))
    }

    /// Looks at a directory of the `PATH`.
    fn look_at(&mut self, named: &Path) {
        let real = fs::canonicalize(named).ok().filter(|real| real.is_dir() && is_plain(named));
        let Some(real) = real else { return };
        if is_system(&real) {
            let shown = if is_system(named) { named.to_owned() } else { real };
            return self.add_to_path(shown);
        }
        if real.starts_with(NIX_STORE) {
            self.show(ReadOnly::same(NIX_STORE));
            self.note("nix", Path::new(NIX_STORE));
            return self.add_to_path(real);
        }
        if let Some(dirs) = installs_beside(&real) {
            dirs.iter().for_each(|dir| self.look_at(dir));
            return;
        }
        let is_found = KINDS.iter().any(|kind| {
            let above = kind.programs.iter().find_map(|programs| above(&real, programs));
            above.is_some_and(|root| {
                self.take(kind, &root, above_named(named, &real, &root).as_deref())
            })
        });
        if is_found || self.take_loose(named) {
            let shown = if self.is_shown(named) { named.to_owned() } else { real };
            self.add_to_path(shown);
        } else {
            self.found.left_out.push(named.to_owned());
        }
    }

    /// Looks at a directory that a variable names.
    fn look_at_named(&mut self, kind: &'static Kind, variable: &str, named: &Path) {
        let Ok(real) = fs::canonicalize(named) else { return };
        if is_system(&real) {
            if kind.is_at(&real) {
                self.set(variable, named.as_os_str());
            }
        } else {
            self.take(kind, &real, (named != real).then_some(named));
        }
    }

    /// Shows what a toolchain of this kind has at `root`, if it is one. `named` is another path to
    /// it, which its scripts may contain.
    fn take(&mut self, kind: &'static Kind, root: &Path, named: Option<&Path>) -> bool {
        if self.found.found.iter().any(|found| found.name == kind.name && found.root == root) {
            return true;
        }
        if !kind.is_at(root) || self.privacy.is_private_root(root) {
            return false;
        }
        let mut is_shown = false;
        for pattern in kind.shown {
            for below in matches(root, pattern) {
                is_shown |= self.take_part(root, named, &below);
            }
        }
        if !is_shown {
            return false;
        }
        self.note(kind.name, root);
        for (name, value) in kind.env {
            match value {
                Value::Root => self.set(name, named.unwrap_or(root).as_os_str()),
                Value::Text(text) => self.set(name, OsStr::new(text)),
            }
        }
        if let Some(companion) = kind.companion {
            self.take_companion(companion, root);
        }
        true
    }

    /// Shows a part of a toolchain, unless it leads out of it or holds something private.
    fn take_part(&mut self, root: &Path, named: Option<&Path>, below: &Path) -> bool {
        let Ok(real) = fs::canonicalize(root.join(below)) else { return false };
        if !real.starts_with(root) || self.privacy.is_private(&real) {
            return false;
        }
        let inner = private::credentials_in(&real);
        for place in [Some(root), named].into_iter().flatten().map(|place| place.join(below)) {
            self.found.masked.extend(inner.iter().map(|inner| place.join(inner)));
            self.show(ReadOnly { host: real.clone(), inside: place });
        }
        true
    }

    /// Shows a toolchain that another one needs, such as the compilers behind `rustup`.
    fn take_companion(&mut self, name: &str, root: &Path) {
        let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else { return };
        let named = kind.named_by.iter().find_map(|name| self.variable(name));
        let usual = kind.below_home.and_then(|below| Some(self.home.as_ref()?.join(below)));
        let beside = kind.beside.and_then(|link| {
            let program = fs::canonicalize(root.join(link)).ok()?;
            Some(program.parent()?.parent()?.to_owned())
        });
        for root in named.into_iter().chain(usual).chain(beside) {
            if let Ok(real) = fs::canonicalize(&root)
                && !is_system(&real)
                && self.take(kind, &real, (root != real).then_some(&*root))
            {
                return;
            }
        }
    }

    /// Shows programs that are known by name and complete in one file. Returns whether there are
    /// any.
    fn take_loose(&mut self, dir: &Path) -> bool {
        let mut is_found = false;
        for (name, companion) in LOOSE {
            let named = dir.join(name);
            let Ok(real) = fs::canonicalize(&named) else { continue };
            if !is_binary(&real) || self.privacy.is_private_file(&real) {
                continue;
            }
            self.note(name, &named);
            self.show(ReadOnly { host: real.clone(), inside: named });
            if let Some(companion) = companion {
                self.take_companion(companion, &real);
            }
            is_found = true;
        }
        is_found
    }

    /// Passes on the variables that choose a version.
    fn pass_variables(&mut self) {
        for name in PASSED {
            let value = self.wanted.variables.iter().find(|(known, _)| known == name);
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._+-".contains(byte);
            if let Some((_, value)) = value
                && value.len() <= VALUE_BYTES_MAX
                && value.as_bytes().iter().all(plain)
            {
                self.set(name, &value.clone());
            }
        }
    }

    fn note(&mut self, name: &'static str, root: &Path) {
        let found = FoundToolchain { name, root: root.to_owned() };
        if !self.found.found.contains(&found) {
            self.found.found.push(found);
        }
    }

    fn show(&mut self, shown: ReadOnly) {
        if !self.found.read_only.contains(&shown) {
            self.found.read_only.push(shown);
        }
    }

    fn is_shown(&self, inside: &Path) -> bool {
        let shown = &self.found.read_only;
        shown.iter().any(|it| inside.starts_with(&it.inside) || it.inside.starts_with(inside))
    }

    /// The first one wins, as with a user's own settings.
    fn set(&mut self, name: &str, value: &OsStr) {
        if !self.found.env.iter().any(|(known, _)| known == name) {
            self.found.env.push((name.to_owned(), value.to_owned()));
        }
    }

    fn add_to_path(&mut self, dir: PathBuf) {
        if !self.found.path.contains(&dir) {
            self.found.path.push(dir);
        }
    }
}

impl Kind {
    /// Returns whether the content of a directory identifies it as a toolchain of this kind.
    fn is_at(&self, root: &Path) -> bool {
        self.marks.iter().all(|mark| matches(root, mark).next().is_some())
            && !self.unless.iter().any(|mark| root.join(mark).exists())
    }
}

/// Returns the existing paths below `root` that a pattern stands for. A `*` stands for any name,
/// and for the end of one.
fn matches(root: &Path, pattern: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.split('/') {
        let within = |below: PathBuf| -> Vec<PathBuf> {
            let Some(start) = part.strip_suffix('*') else { return vec![below.join(part)] };
            let Ok(entries) = fs::read_dir(root.join(&below)) else { return Vec::new() };
            let names = entries.flatten().map(|entry| entry.file_name());
            let fits = |name: &OsString| name.as_bytes().starts_with(start.as_bytes());
            let mut names: Vec<_> = names.filter(fits).collect();
            names.sort();
            names.into_iter().take(MATCHES_MAX).map(|name| below.join(name)).collect()
        };
        found = found.into_iter().flat_map(within).collect();
    }
    let root = root.to_owned();
    found.into_iter().filter(move |below| root.join(below).exists()).take(MATCHES_MAX)
}

/// Returns the newest installed versions of a manager, if `dir` has its programs that choose one.
fn installs_beside(dir: &Path) -> Option<Vec<PathBuf>> {
    let root = dir.parent().filter(|_| dir.file_name() == Some(OsStr::new(SHIMS)))?;
    let programs: Vec<_> = matches(&root.join(INSTALLS), "*").collect();
    let newest = programs.iter().filter_map(|program| {
        let versions = root.join(INSTALLS).join(program);
        let latest = versions.join("latest");
        let last = || matches(&versions, "*").last().map(|version| versions.join(version));
        let version = if latest.exists() { Some(latest) } else { last() };
        version.map(|version| version.join("bin"))
    });
    Some(newest.filter(|bin| bin.is_dir()).collect::<Vec<_>>()).filter(|dirs| !dirs.is_empty())
}

/// Returns the directory that has `dir` at `below`.
fn above(dir: &Path, below: &str) -> Option<PathBuf> {
    dir.ends_with(below).then(|| dir.ancestors().nth(below.split('/').count()))?.map(Path::to_owned)
}

/// Returns the other path to a root, if the `PATH` names its programs by links.
fn above_named(named: &Path, real: &Path, root: &Path) -> Option<PathBuf> {
    let below = real.strip_prefix(root).ok()?;
    let other = above(named, below.to_str()?)?;
    (other != root && fs::canonicalize(&other).is_ok_and(|real| real == root)).then_some(other)
}

/// Returns whether a path has neither links to interpret nor anything to resolve.
fn is_plain(path: &Path) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    path.is_absolute()
        && path.components().all(is_plain)
        && !path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, 0 | b':'))
}

/// Returns whether every sandbox has this path.
fn is_system(path: &Path) -> bool {
    path.starts_with("/usr") || SYSTEM.iter().any(|system| path.starts_with(system))
}

/// Returns whether a file is a program, and not a script: a script may contain a token.
fn is_binary(path: &Path) -> bool {
    let mut start = [0; ELF.len()];
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let read = is_file && File::open(path).and_then(|mut it| it.read_exact(&mut start)).is_ok();
    read && start == ELF
}

#[cfg(test)]
mod tests;
