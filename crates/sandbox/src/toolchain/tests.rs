//! What is found on a PATH, and what of it is shown.
use std::os::unix::fs::symlink;

use super::*;

/// A home with toolchains in it.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, path: &str) -> PathBuf {
        let home = fs::canonicalize(self.0.path()).unwrap().join("ada");
        // Joining an empty path would add a slash.
        if path.is_empty() { home } else { home.join(path) }
    }

    fn file(&self, path: &str, content: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn files(&self, paths: &[&str]) {
        paths.iter().for_each(|path| drop(self.file(path, "x")));
    }

    fn find_with(&self, dirs: &[&str], variables: &[(&str, &Path)]) -> Toolchains {
        let dirs = dirs.iter().map(|dir| self.at(dir));
        let path = std::env::join_paths(dirs.chain(["/usr/bin".into()])).unwrap();
        let variable = |(name, value): &(&str, &Path)| ((*name).to_owned(), (*value).into());
        let variables = variables.iter().map(variable).collect();
        Toolchains::find(&UserPath { path, variables }, Some(&self.at("")), &[self.at("data")])
    }

    fn find(&self, dirs: &[&str]) -> Toolchains {
        self.find_with(dirs, &[])
    }

    /// Returns what of this home a sandbox sees, relative to it.
    fn shown(&self, found: &Toolchains) -> Vec<String> {
        let below = |shown: &ReadOnly| {
            let below = shown.inside.strip_prefix(self.at("")).unwrap_or(&shown.inside);
            below.to_str().unwrap().to_owned()
        };
        let mut shown: Vec<_> = found.read_only.iter().map(below).collect();
        shown.sort_unstable();
        shown
    }
}

fn env<'a>(found: &'a Toolchains, name: &str) -> Option<&'a OsStr> {
    let of_name = |(known, _): &&(String, OsString)| known == name;
    found.env.iter().find(of_name).map(|(_, value)| value.as_os_str())
}

fn names(found: &Toolchains) -> Vec<&'static str> {
    found.found.iter().map(|found| found.name).collect()
}

/// Rule: of Cargo and rustup a sandbox sees programs and libraries, and neither credentials nor
/// settings nor the registry.
#[test]
fn of_rust_the_programs_are_shown_and_no_credentials() {
    let machine = Machine::new();
    machine.files(&[
        ".cargo/bin/cargo",
        ".cargo/bin/rustup",
        ".cargo/credentials.toml",
        ".cargo/config.toml",
        ".cargo/registry/index",
        ".rustup/settings.toml",
        ".rustup/toolchains/stable/bin/cargo",
        ".rustup/toolchains/stable/lib/rustlib/x",
        ".rustup/downloads/x",
        ".rustup/update-hashes/stable",
        ".ssh/id_rsa",
    ]);
    let found = machine.find(&[".cargo/bin"]);
    let toolchain = ".rustup/toolchains/stable";
    let shown = [
        ".cargo/bin".to_owned(),
        ".rustup/settings.toml".to_owned(),
        format!("{toolchain}/bin"),
        format!("{toolchain}/lib"),
        ".rustup/update-hashes".to_owned(),
    ];
    assert_eq!(machine.shown(&found), shown);
    assert_eq!(env(&found, "RUSTUP_HOME"), Some(machine.at(".rustup").as_os_str()));
    assert_eq!(found.path, [machine.at(".cargo/bin"), "/usr/bin".into()]);
}

/// Rule: a toolchain is known by its content, and settings that may hold tokens are not shown:
/// those of npm, pip, Go, Maven and Java.
#[test]
fn a_toolchain_is_known_by_its_content() {
    let machine = Machine::new();
    machine.files(&[
        "nvm/v24/bin/node",
        "nvm/v24/lib/node_modules/npm/index.js",
        "nvm/v24/etc/npmrc",
        "pyenv/bin/pyenv",
        "pyenv/libexec/pyenv",
        "pyenv/shims/python",
        "pyenv/versions/3.13/bin/python3",
        "pyenv/versions/3.13/lib/python3.13/os.py",
        "pyenv/versions/3.13/pip.conf",
        "pyenv/.git/config",
        "go/bin/go",
        "go/VERSION",
        "go/src/runtime/x.go",
        "go/go.env",
        "jdk/bin/java",
        "jdk/lib/modules",
        "jdk/release",
        "jdk/conf/management/jmxremote.password",
        "maven/bin/mvn",
        "maven/boot/x.jar",
        "maven/lib/x.jar",
        "maven/conf/settings.xml",
        "maven/conf/logging/x.properties",
    ]);
    let dirs = ["nvm/v24/bin", "pyenv/shims", "go/bin", "jdk/bin", "maven/bin"];
    let found = machine.find(&dirs);
    assert_eq!(names(&found), ["node", "pyenv", "go", "java", "maven"]);
    let shown = [
        "go/VERSION",
        "go/bin",
        "go/src",
        "jdk/bin",
        "jdk/conf",
        "jdk/lib",
        "jdk/release",
        "maven/bin",
        "maven/boot",
        "maven/conf/logging",
        "maven/lib",
        "nvm/v24/bin",
        "nvm/v24/lib/node_modules",
        "pyenv/bin",
        "pyenv/libexec",
        "pyenv/shims",
        "pyenv/versions/3.13/bin",
        "pyenv/versions/3.13/lib",
    ];
    assert_eq!(machine.shown(&found), shown);
    assert_eq!(found.masked, [machine.at("jdk/conf/management/jmxremote.password")]);
    for (name, root) in [("GOROOT", "go"), ("JAVA_HOME", "jdk"), ("PYENV_ROOT", "pyenv")] {
        assert_eq!(env(&found, name), Some(machine.at(root).as_os_str()), "{name}");
    }
    assert_eq!(found.path.len(), dirs.len() + 1);
}

/// Rule: credentials that someone left in a shown directory are covered, by their names.
#[test]
fn credentials_in_a_toolchain_are_covered() {
    let machine = Machine::new();
    machine.files(&[
        "node/bin/node",
        "node/bin/.npmrc",
        "node/lib/node_modules/npm/index.js",
        "node/lib/node_modules/mine/.env",
        "node/lib/node_modules/mine/.git/config",
    ]);
    let masked = machine.find(&["node/bin"]).masked;
    let expected = ["node/bin/.npmrc", "node/lib/node_modules/mine/.env"];
    for path in expected.iter().chain(&["node/lib/node_modules/mine/.git"]) {
        assert!(masked.contains(&machine.at(path)), "{path}: {masked:?}");
    }
}

/// Rule: a directory of the user's own programs is not shown, whatever it is called; of known
/// programs beside them, only those that are no scripts.
#[test]
fn the_users_own_programs_are_not_shown() {
    let machine = Machine::new();
    machine.files(&["bin/deploy", ".local/bin/deploy", ".config/mise/token"]);
    machine.file(".local/bin/uv", "\x7fELF");
    machine.file(".local/bin/deno", "#!/bin/sh\nTOKEN=secret deno\n");
    machine.files(&[".local/share/uv/python/cpython-3.13/bin/python3", ".local/share/uv/secret"]);
    machine.files(&[".local/share/uv/python/cpython-3.13/lib/python3.13/os.py"]);
    let found = machine.find(&["bin", ".local/bin", ".config/mise"]);
    let python = ".local/share/uv/python/cpython-3.13";
    let shown = [".local/bin/uv".to_owned(), format!("{python}/bin"), format!("{python}/lib")];
    assert_eq!(machine.shown(&found), shown);
    assert_eq!(found.left_out, [machine.at("bin"), machine.at(".config/mise")]);
}

/// Rule: neither a home nor what is private in it is shown, even if it looks like a toolchain, and
/// no link leads out of a toolchain.
#[test]
fn a_home_that_looks_like_a_toolchain_is_not_shown() {
    let machine = Machine::new();
    for root in ["", ".ssh/", ".config/node/", "data/node/"] {
        machine
            .files(&[&format!("{root}bin/node"), &format!("{root}lib/node_modules/npm/index.js")]);
    }
    let dirs = ["bin", ".ssh/bin", ".config/node/bin", "data/node/bin"];
    assert_eq!(machine.shown(&machine.find(&dirs)), [""; 0]);
    // The user may have named another home than that of this process.
    let named = UserPath {
        path: std::env::join_paths(dirs[..3].iter().map(|dir| machine.at(dir))).unwrap(),
        variables: vec![("HOME".to_owned(), machine.at("").into())],
    };
    let found = Toolchains::find(&named, Some(Path::new("/nowhere")), &[]);
    assert_eq!(machine.shown(&found), [""; 0]);

    machine.files(&["go/bin/go", "go/VERSION", "go/src/runtime/x.go", "secret/x"]);
    for name in ["go/lib", "go/misc"] {
        symlink(machine.at("secret"), machine.at(name)).unwrap();
    }
    let found = machine.find_with(&[], &[("GOROOT", &machine.at("go"))]);
    assert_eq!(machine.shown(&found), ["go/VERSION", "go/bin", "go/src"]);
    for root in ["", "secret", "nowhere", "go/../.ssh"] {
        let found = machine.find_with(&[], &[("GOROOT", &machine.at(root))]);
        assert_eq!(machine.shown(&found), [""; 0], "{root}");
    }
}

/// Rule: a toolchain behind a link has its programs where they are named, because scripts contain
/// those paths.
#[test]
fn a_toolchain_behind_a_link_is_where_it_is_named() {
    let machine = Machine::new();
    machine.files(&["v3/bin/python3", "v3/lib/python3.13/os.py", "env/pyvenv.cfg"]);
    machine.files(&["env/lib/python3.13/site.py"]);
    fs::create_dir(machine.at("env/bin")).unwrap();
    symlink(machine.at("v3/bin/python3"), machine.at("env/bin/python")).unwrap();
    symlink("env", machine.at("now")).unwrap();
    let found = machine.find(&["now/bin"]);
    assert_eq!(names(&found), ["python environment", "python"]);
    for path in ["env/bin", "now/bin", "now/pyvenv.cfg", "v3/lib"] {
        assert!(machine.shown(&found).contains(&path.to_owned()), "{path}: {found:?}");
    }
    assert_eq!(env(&found, "VIRTUAL_ENV"), Some(machine.at("now").as_os_str()));
    assert_eq!(found.path[0], machine.at("now/bin"));
}

/// Rule: a manager that chooses versions by its own programs stands for the newest ones.
#[test]
fn a_manager_of_versions_stands_for_the_newest_ones() {
    let machine = Machine::new();
    machine.files(&["mise/shims/go", "mise/installs/go/1.25/src/runtime/x.go"]);
    machine.files(&["mise/installs/go/1.25/bin/go", "mise/installs/go/1.25/VERSION"]);
    symlink("1.25", machine.at("mise/installs/go/latest")).unwrap();
    let found = machine.find(&["mise/shims"]);
    assert_eq!(names(&found), ["go"]);
    assert_eq!(found.path[0], machine.at("mise/installs/go/latest/bin"));
}

/// Rule: a variable that chooses a version is passed on as one word, and no other is.
#[test]
fn only_known_variables_are_passed_on() {
    let machine = Machine::new();
    let variables = [
        ("RUSTUP_TOOLCHAIN", "nightly-2026-01-01"),
        ("PYENV_VERSION", "/home/ada/secret"),
        ("AWS_SECRET", "x"),
    ];
    let variables = variables.map(|(name, value)| (name, Path::new(value)));
    let found = machine.find_with(&[], &variables);
    assert_eq!(found.env, [("RUSTUP_TOOLCHAIN".to_owned(), OsString::from("nightly-2026-01-01"))]);
    let path = found.path_with("/usr/local/bin:/usr/bin:/bin");
    assert_eq!(path, "/usr/bin:/usr/local/bin:/bin");
}
