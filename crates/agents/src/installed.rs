//! What of this machine an agent's program needs, however it was installed.
//!
//! Many agents are one file. One for Node is a script among the packages it was installed with, and one for
//! Python has an environment of its own; the interpreter of either may be anywhere. A box has the system
//! and nothing else, so the rest is found here and shown to it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::preset::find_program;

/// Where every box has its programs: what is there need not be shown to it.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64"];
/// As much of a script as the kernel looks at to find its interpreter.
const FIRST_LINE_BYTES_MAX: u64 = 256;
/// Directories whose packages find each other.
const PACKAGES: &[&str] = &["node_modules", ".pnpm"];
/// What an environment for Python has at its top.
const PYTHON_ENVIRONMENT: &str = "pyvenv.cfg";
/// Links from the interpreter of such an environment to the one it was made with.
const LINKS_MAX: usize = 8;

/// Where the programs of agents are.
#[derive(Debug)]
pub enum Programs {
    /// On this machine; a name without a path is in one of these directories.
    Here(OsString),
    /// In an image, but for what is named by a path of this machine.
    Image,
}

/// A program, and what it needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// What is started.
    pub program: PathBuf,
    /// What it reads besides the system, wherever that is on this machine.
    pub shown: Vec<PathBuf>,
    /// Where its interpreter is found by name, if that is not part of the system.
    pub interpreter_dir: Option<PathBuf>,
}

impl Programs {
    /// The program of this name or path; `None` if there is no such program here.
    pub fn find(&self, name: &str) -> Option<Installed> {
        let named = Path::new(name);
        match self {
            Self::Here(path) if named.is_absolute() => Installed::of(named, path),
            Self::Here(path) if !name.contains('/') => {
                Installed::of(&find_program(name, path)?, path)
            }
            Self::Here(_) | Self::Image => {
                let shown = named.is_absolute() && is_elsewhere(named) && named.exists();
                let shown = shown.then(|| named.to_owned()).into_iter().collect();
                Some(Installed { program: named.to_owned(), shown, interpreter_dir: None })
            }
        }
    }
}

impl Installed {
    fn of(named: &Path, path: &OsStr) -> Option<Self> {
        let real = fs::canonicalize(named).ok()?;
        let Some(interpreter) = interpreter(&real, named, path) else {
            // Programs of one file may care what they are called. Only a link that leads out of the
            // system leads nowhere in a box.
            let is_led_out = !is_elsewhere(named) && is_elsewhere(&real);
            let program = if is_led_out { real } else { named.to_owned() };
            let shown = [program.clone()].into_iter().filter(|path| is_elsewhere(path)).collect();
            return Some(Self { program, shown, interpreter_dir: None });
        };
        let mut shown = vec![packages(&real).unwrap_or(&real).to_owned()];
        shown.extend(needs(&interpreter));
        shown.retain(|path| is_elsewhere(path));
        shown.sort();
        // What is shown with a directory around it need not be shown again.
        shown.dedup_by(|path, before| path.starts_with(before));
        let dir = interpreter.parent().filter(|dir| is_elsewhere(dir)).map(Path::to_owned);
        // Not by a link: scripts look for the rest of themselves beside them.
        Some(Self { program: real, shown, interpreter_dir: dir })
    }
}

fn is_elsewhere(path: &Path) -> bool {
    !SYSTEM.iter().any(|system| path.starts_with(system))
}

/// What the first line of a script names.
fn interpreter(script: &Path, named: &Path, path: &OsStr) -> Option<PathBuf> {
    let mut start = Vec::new();
    File::open(script).ok()?.take(FIRST_LINE_BYTES_MAX).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = Path::new(OsStr::from_bytes(words.next()?));
    if first.file_name() != Some(OsStr::new("env")) {
        return Some(first.to_owned());
    }
    let name = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
    let name = str::from_utf8(name).ok()?;
    // What was installed together belongs together.
    let beside = named.parent().map(Path::as_os_str).and_then(|dir| find_program(name, dir));
    beside.or_else(|| find_program(name, path))
}

/// The directory of all packages that a file may need, if it belongs to one.
fn packages(file: &Path) -> Option<&Path> {
    let is_of_packages = |dir: &&Path| {
        dir.file_name().is_some_and(|name| PACKAGES.iter().any(|packages| name == *packages))
    };
    file.ancestors().filter(is_of_packages).last()
}

/// An interpreter, with its libraries where they are known to be beside it.
fn needs(interpreter: &Path) -> Vec<PathBuf> {
    let environment = prefix(interpreter).filter(|dir| dir.join(PYTHON_ENVIRONMENT).is_file());
    let base = environment.and_then(|dir| base_of(interpreter, dir));
    let python = base.as_deref().unwrap_or(interpreter);
    let libraries = prefix(python).map(|dir| dir.join("lib")).filter(|dir| is_pythons(dir));
    let own = environment.unwrap_or(interpreter).to_owned();
    [own].into_iter().chain(base.clone()).chain(libraries).collect()
}

/// The directory that has `bin` with this program in it.
fn prefix(program: &Path) -> Option<&Path> {
    program.parent()?.parent()
}

fn is_pythons(libraries: &Path) -> bool {
    let is_its = |name: OsString| name.as_bytes().starts_with(b"python3");
    is_elsewhere(libraries)
        && fs::read_dir(libraries)
            .is_ok_and(|mut entries| entries.any(|it| it.is_ok_and(|it| is_its(it.file_name()))))
}

/// Where the links of an environment's interpreter lead, if they lead out of it.
fn base_of(interpreter: &Path, environment: &Path) -> Option<PathBuf> {
    let mut at = interpreter.to_owned();
    for _ in 0..LINKS_MAX {
        if !at.starts_with(environment) {
            return Some(at);
        }
        let target = at.parent()?.join(fs::read_link(&at).ok()?);
        let is_plain = !target.components().any(|part| part == Component::ParentDir);
        at = if is_plain { target } else { fs::canonicalize(target).ok()? };
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A directory with programs in it.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn at(&self, path: &str) -> PathBuf {
            fs::canonicalize(self.0.path()).unwrap().join(path)
        }

        fn file(&self, path: &str, content: &str) -> PathBuf {
            let path = self.at(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        }

        fn link(&self, path: &str, to: impl AsRef<Path>) -> PathBuf {
            let path = self.at(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(to, &path).unwrap();
            path
        }

        /// The program `agent`, with `bin` as the only place to look in.
        fn found(&self) -> Installed {
            Programs::Here(self.at("bin").into()).find("agent").unwrap()
        }
    }

    fn installed(program: PathBuf, shown: &[PathBuf], dir: Option<PathBuf>) -> Installed {
        Installed { program, shown: shown.to_vec(), interpreter_dir: dir }
    }

    /// Rule: a program of one file is shown where it is named, also by a link.
    #[test]
    fn a_program_of_one_file_is_shown_by_itself() {
        let machine = Machine::new();
        let real = machine.file("share/agent/1.0", "\x7fELF");
        let named = machine.link("bin/agent", &real);
        assert_eq!(machine.found(), installed(named.clone(), &[named], None));
        let here = Programs::Here(machine.at("bin").into());
        assert_eq!(here.find("other"), None);
        assert_eq!(here.find("/nowhere/agent"), None);
        // Where it is a link to another name of the same program, the name counts.
        assert_eq!(here.find("/bin/sh"), Some(installed("/bin/sh".into(), &[], None)));
    }

    /// Rule: a script for Node has its packages, and the Node that it was installed with.
    #[test]
    fn a_script_for_node_has_its_packages_and_its_node() {
        let machine = Machine::new();
        let script = machine.file("lib/node_modules/@a/agent/cli.js", "#!/usr/bin/env node\n1");
        machine.file("lib/node_modules/@a/agent/node_modules/b/index.js", "");
        machine.link("bin/agent", "../lib/node_modules/@a/agent/cli.js");
        let node = machine.file("bin/node", "\x7fELF");
        let shown = [node, machine.at("lib/node_modules")];
        assert_eq!(machine.found(), installed(script, &shown, Some(machine.at("bin"))));
    }

    /// Rule: packages that are links into a store are shown with it.
    #[test]
    fn packages_in_a_store_are_shown_with_it() {
        let machine = Machine::new();
        let place = "global/.pnpm/agent@1/node_modules/agent/cli.js";
        let script = machine.file(place, "#!/bin/sh\n");
        machine.link("bin/agent", &script);
        assert_eq!(machine.found(), installed(script, &[machine.at("global/.pnpm")], None));
    }

    /// Rule: a script for Python has its environment, and the Python that was made of.
    #[test]
    fn a_script_for_python_has_its_environment_and_what_that_was_made_of() {
        let machine = Machine::new();
        let python = machine.file("python/bin/python3.12", "\x7fELF");
        machine.file("python/lib/python3.12/os.py", "");
        machine.file("python/share/secret", "");
        machine.file("tools/agent/pyvenv.cfg", "");
        machine.link("tools/agent/bin/python", &python);
        let interpreter = machine.link("tools/agent/bin/python3", "python");
        let first_line = format!("#!{}\n", interpreter.display());
        let script = machine.file("tools/agent/bin/agent", &first_line);
        machine.link("bin/agent", &script);
        let shown = [python, machine.at("python/lib"), machine.at("tools/agent")];
        let dir = Some(machine.at("tools/agent/bin"));
        assert_eq!(machine.found(), installed(script, &shown, dir));
    }

    /// Rule: any other script is shown by itself, and what the system has is not shown at all.
    #[test]
    fn any_other_script_is_shown_by_itself() {
        let machine = Machine::new();
        for first_line in ["#!/bin/sh\n", "#! /usr/bin/env -S sh -e\n", "#!/usr/bin/env A=b sh\n"] {
            let script = machine.file("bin/agent", first_line);
            assert_eq!(machine.found(), installed(script.clone(), &[script], None));
        }
    }

    /// Rule: where programs are in an image, a name is left to it.
    #[test]
    fn a_name_in_an_image_is_left_as_it_is() {
        let machine = Machine::new();
        let here = machine.file("bin/agent", "#!/usr/bin/env node\n");
        let find = |name: &str| Programs::Image.find(name).unwrap();
        assert_eq!(find("sh"), installed("sh".into(), &[], None));
        assert_eq!(find("/opt/agent"), installed("/opt/agent".into(), &[], None));
        assert_eq!(find(here.to_str().unwrap()), installed(here.clone(), &[here], None));
    }
}
