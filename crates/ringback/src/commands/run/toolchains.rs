//! The user's toolchains, for an agent's sandbox.

use std::ffi::OsStr;
use std::path::Path;

use ringback_proto::request::SessionToolchains;
use ringback_sandbox::{Toolchains, UserPath};

use crate::config::Environment;
use crate::screen::Screen;

/// Variables that name or choose toolchains, and the home they are in. No other leaves this process.
const VARIABLES: &[&str] = &[
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "UV_PYTHON",
    "UV_PYTHON_INSTALL_DIR",
];

/// Returns what the daemon needs to find this user's toolchains; the caches are those of `dir`.
pub(super) fn of(environment: &Environment, dir: &Path) -> SessionToolchains {
    let text = |value: &OsStr| value.to_str().map(str::to_owned);
    let variable = |name: &&str| Some(((*name).to_owned(), text(environment.get(name)?)?));
    SessionToolchains {
        path: environment.get("PATH").and_then(text).unwrap_or_default(),
        variables: VARIABLES.iter().filter_map(variable).collect(),
        directory: text(dir.as_os_str()),
    }
}

/// Shows which toolchains the agent has, and which directories of the `PATH` it has not.
pub(super) fn remark(screen: Screen, toolchains: &SessionToolchains, environment: &Environment) {
    let variables = toolchains.variables.iter();
    let user = UserPath {
        path: toolchains.path.clone().into(),
        variables: variables.map(|(name, value)| (name.clone(), value.into())).collect(),
    };
    let home = environment.absolute_dir("HOME");
    // The daemon decides what is shown; it may show less.
    let Toolchains { found, left_out, .. } = Toolchains::find(&user, home.as_deref(), &[]);
    if !found.is_empty() {
        let names: Vec<_> = found.iter().map(|found| found.name).collect();
        screen.remark(format_args!("toolchains: {}", names.join(", ")));
    }
    if !left_out.is_empty() {
        let dirs: Vec<_> = left_out.iter().map(|dir| dir.display().to_string()).collect();
        screen.remark(format_args!("left out of `PATH`: {}", dirs.join(", ")));
    }
}
