//! The table of toolchains: what identifies each, and what of it a sandbox may read.

/// A kind of toolchain.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// Paths that its directory has.
    pub(super) marks: &'static [&'static str],
    /// Paths that it does not have.
    pub(super) unless: &'static [&'static str],
    /// Where a `PATH` leads, below its directory.
    pub(super) programs: &'static [&'static str],
    /// What a sandbox may read, below its directory. Everything else stays hidden.
    pub(super) shown: &'static [&'static str],
    /// Variables of the sandbox.
    pub(super) env: &'static [(&'static str, Value)],
    /// Variables of the user that name its directory.
    pub(super) named_by: &'static [&'static str],
    /// Where it usually is.
    pub(super) below_home: Option<&'static str>,
    /// The program of the toolchain that needs it, whose link leads into it.
    pub(super) beside: Option<&'static str>,
    /// The kind that it needs.
    pub(super) companion: Option<&'static str>,
}

/// The value of a variable.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value {
    /// The directory of the toolchain.
    Root,
    /// Always the same.
    Text(&'static str),
}

const PLAIN: Kind = Kind {
    name: "",
    marks: &[],
    unless: &[],
    programs: &["bin"],
    shown: &[],
    env: &[],
    named_by: &[],
    below_home: None,
    beside: None,
    companion: None,
};

/// The kinds, the more special ones first.
pub(super) const KINDS: &[Kind] = &[
    // Only the programs: beside them are the registry, settings and credentials.
    Kind {
        name: "cargo",
        marks: &["bin/cargo", "bin/rustup"],
        shown: &["bin"],
        companion: Some("rustup"),
        ..PLAIN
    },
    Kind {
        name: "rustup",
        marks: &["settings.toml", "toolchains"],
        programs: &[],
        // It would make the second one where it is missing.
        shown: &[
            "settings.toml",
            "update-hashes",
            "toolchains/*/bin",
            "toolchains/*/lib",
            "toolchains/*/libexec",
        ],
        env: &[("RUSTUP_HOME", Value::Root)],
        named_by: &["RUSTUP_HOME"],
        below_home: Some(".rustup"),
        ..PLAIN
    },
    Kind {
        name: "rust",
        marks: &["bin/rustc", "lib/rustlib"],
        shown: &["bin", "lib", "libexec"],
        ..PLAIN
    },
    // Its settings in `etc` may contain tokens.
    Kind {
        name: "node",
        marks: &["bin/node", "lib/node_modules/npm"],
        shown: &["bin", "lib/node_modules", "include"],
        ..PLAIN
    },
    // The versions have settings of `pip` beside their libraries.
    Kind {
        name: "pyenv",
        marks: &["libexec/pyenv", "versions"],
        programs: &["shims", "bin"],
        shown: &[
            "bin",
            "libexec",
            "shims",
            "version",
            "pyenv.d",
            "versions/*/bin",
            "versions/*/lib",
            "versions/*/include",
        ],
        env: &[("PYENV_ROOT", Value::Root)],
        named_by: &["PYENV_ROOT"],
        ..PLAIN
    },
    Kind {
        name: "python environment",
        marks: &["pyvenv.cfg", "bin/python", "lib/python*"],
        shown: &["bin", "lib", "pyvenv.cfg"],
        env: &[("VIRTUAL_ENV", Value::Root)],
        companion: Some("python"),
        ..PLAIN
    },
    Kind {
        name: "python",
        marks: &["bin/python3", "lib/python3*"],
        unless: &["pyvenv.cfg"],
        shown: &["bin", "lib", "include"],
        beside: Some("bin/python"),
        ..PLAIN
    },
    Kind {
        name: "pythons of uv",
        marks: &["*/bin/python3"],
        unless: &["bin"],
        programs: &[],
        shown: &["*/bin", "*/lib", "*/include"],
        env: &[("UV_PYTHON_INSTALL_DIR", Value::Root)],
        named_by: &["UV_PYTHON_INSTALL_DIR"],
        below_home: Some(".local/share/uv/python"),
        ..PLAIN
    },
    // Its settings in `go.env` may name a proxy with a password: the usual ones are set instead.
    Kind {
        name: "go",
        marks: &["bin/go", "VERSION", "src/runtime"],
        shown: &["bin", "lib", "misc", "pkg", "src", "VERSION"],
        env: &[
            ("GOROOT", Value::Root),
            ("GOTOOLCHAIN", Value::Text("local")),
            ("GOPROXY", Value::Text("https://proxy.golang.org,direct")),
            ("GOSUMDB", Value::Text("sum.golang.org")),
        ],
        named_by: &["GOROOT"],
        ..PLAIN
    },
    Kind {
        name: "java",
        marks: &["bin/java", "lib", "release"],
        shown: &["bin", "lib", "conf", "include", "jmods", "release"],
        env: &[("JAVA_HOME", Value::Root)],
        named_by: &["JAVA_HOME"],
        ..PLAIN
    },
    // Its `conf/settings.xml` may contain passwords of repositories.
    Kind {
        name: "maven",
        marks: &["bin/mvn", "boot", "lib"],
        shown: &["bin", "boot", "lib", "conf/logging"],
        ..PLAIN
    },
    // Its `init.d` may contain passwords of repositories.
    Kind { name: "gradle", marks: &["bin/gradle", "lib/plugins"], shown: &["bin", "lib"], ..PLAIN },
];

/// Programs in one file, and the kind that they need. They are in directories that also have the
/// user's own programs, which are not shown.
pub(super) const LOOSE: &[(&str, Option<&str>)] = &[
    ("uv", Some("pythons of uv")),
    ("uvx", None),
    ("bun", None),
    ("deno", None),
    ("pnpm", None),
    ("just", None),
    ("ninja", None),
];

/// Variables that choose a version, passed on if they are one word.
pub(super) const PASSED: &[&str] = &["RUSTUP_TOOLCHAIN", "PYENV_VERSION", "UV_PYTHON"];
