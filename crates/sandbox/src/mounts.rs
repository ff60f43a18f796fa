//! Which paths of this machine may be in a sandbox, whatever its backend.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::error::StartError;
use crate::spec::{ReadOnly, SandboxSpec, places};
use crate::{etc, root};

/// Paths that no other mount may be on, in or around.
const TAKEN: &[&str] =
    &["/proc", "/dev", places::WORKSPACE, places::HOME, places::SESSION, places::CACHE];
/// Paths that no other mount may be on or around.
const TAKEN_WHOLE: &[&str] = &["/tmp", "/usr", "/etc"];

/// Returns the same spec if everything required exists and nothing hidden is exposed. Readable
/// paths are resolved: the path that was checked is the one that is mounted.
pub(crate) fn checked(spec: &SandboxSpec, hidden: &[PathBuf]) -> Result<SandboxSpec, StartError> {
    let text = spec.args.iter().map(|arg| ("an argument", arg.as_os_str()));
    let env = spec.env.iter().flat_map(|(name, value)| [name.as_os_str(), value.as_os_str()]);
    let working_dir = spec.working_dir.iter().map(|dir| ("the directory", dir.as_os_str()));
    let mut text = text
        .chain(env.map(|part| ("the environment", part)))
        .chain([("the program", spec.program.as_os_str())])
        .chain(working_dir);
    if let Some((what, _)) = text.find(|(_, text)| text.as_bytes().contains(&0)) {
        return Err(StartError::ZeroByte { what });
    }
    if let Some(workspace) = spec.workspace.host() {
        is_there("the workspace", workspace)?;
    }
    if let Some(home) = &spec.home {
        is_there("the home", home)?;
    }
    if let Some(inside) = &spec.inside {
        is_there("the MCP program", inside)?;
    }
    if let Some(cache) = &spec.cache {
        is_there("the cache", cache)?;
    }
    let hidden = resolved(hidden);
    let shown = spec.read_only.iter().map(|read_only| checked_read_only(read_only, &hidden));
    Ok(SandboxSpec { read_only: shown.collect::<Result<_, _>>()?, ..spec.clone() })
}

/// Checks that the system paths in every bubblewrap sandbox expose nothing hidden.
pub(crate) fn check_system(hidden: &[PathBuf]) -> Result<(), StartError> {
    let hidden = resolved(hidden);
    let system = ["/usr"].into_iter().chain(root::SYSTEM.iter().copied()).map(PathBuf::from);
    for path in system.chain(etc::mounted()).chain(etc::copied()) {
        // A missing path exposes nothing.
        let Ok(real) = fs::canonicalize(&path) else { continue };
        if let Some(hidden) = hidden.iter().find(|hidden| hidden.starts_with(&real)) {
            return Err(StartError::Hidden { path, hidden: hidden.clone() });
        }
    }
    Ok(())
}

/// Returns the hidden path that mounting `path` would expose, if any.
pub(crate) fn hidden_in(path: &Path, hidden: &[PathBuf]) -> Option<PathBuf> {
    seen(&real(path), &resolved(hidden)).cloned()
}

/// Returns the hidden path that a path without links exposes.
fn seen<'a>(shown: &Path, hidden: &'a [PathBuf]) -> Option<&'a PathBuf> {
    hidden.iter().find(|hidden| hidden.starts_with(shown) || shown.starts_with(hidden))
}

/// Resolves the links of each path now: they may change before the next sandbox starts.
fn resolved(hidden: &[PathBuf]) -> Vec<PathBuf> {
    hidden.iter().map(|path| real(path)).collect()
}

/// Resolves the links of the part of a path that exists.
fn real(path: &Path) -> PathBuf {
    for there in path.ancestors() {
        if let Ok(real) = fs::canonicalize(there) {
            let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
            // Joining an empty path would add a slash.
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}

fn checked_read_only(read_only: &ReadOnly, hidden: &[PathBuf]) -> Result<ReadOnly, StartError> {
    is_there("the read-only path", &read_only.host)?;
    let host = fs::canonicalize(&read_only.host)
        .map_err(|source| not_there("the read-only path", &read_only.host, source))?;
    if let Some(hidden) = seen(&host, hidden) {
        let (path, hidden) = (read_only.host.clone(), hidden.clone());
        return Err(StartError::Hidden { path, hidden });
    }
    let inside = &read_only.inside;
    let is_plain = inside.is_absolute()
        && inside
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_in_the_way = TAKEN.iter().any(|taken| inside.starts_with(taken))
        || TAKEN.iter().chain(TAKEN_WHOLE).any(|taken| Path::new(taken).starts_with(inside));
    if is_plain && !is_in_the_way {
        return Ok(ReadOnly { host, inside: inside.clone() });
    }
    let source =
        io::Error::new(io::ErrorKind::InvalidInput, "that path is reserved in the sandbox");
    Err(StartError::Mount { what: "the target of a read-only path", path: inside.clone(), source })
}

fn is_there(what: &'static str, path: &Path) -> Result<(), StartError> {
    if path.is_absolute() {
        return path.metadata().map(drop).map_err(|source| not_there(what, path, source));
    }
    let source = io::Error::new(io::ErrorKind::InvalidInput, "the path is not absolute");
    Err(not_there(what, path, source))
}

fn not_there(what: &'static str, path: &Path, source: io::Error) -> StartError {
    StartError::Mount { what, path: path.to_owned(), source }
}

/// Makes the mount point for the MCP program, which cannot be made inside the sandbox.
pub(crate) fn make_place_for_inside(spec: &SandboxSpec) -> io::Result<()> {
    let Some(place) = place_for_inside(spec)? else { return Ok(()) };
    fs::OpenOptions::new().create(true).append(true).open(place).map(drop)
}

/// Links the program inside into the session directory, which saves a mount. Returns false if it
/// has to be mounted, because there is no such directory or it is on another filesystem.
pub(crate) fn link_inside(spec: &SandboxSpec) -> io::Result<bool> {
    let (Some(place), Some(inside)) = (place_for_inside(spec)?, &spec.inside) else {
        return Ok(false);
    };
    // A link of an earlier start may lead to another program.
    match fs::remove_file(&place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    if fs::hard_link(inside, &place).is_ok() {
        return Ok(true);
    }
    make_place_for_inside(spec)?;
    Ok(false)
}

/// Returns the path of the program inside within the session directory, if the spec has both.
fn place_for_inside(spec: &SandboxSpec) -> io::Result<Option<PathBuf>> {
    let (Some(dir), Some(_)) = (&spec.session_dir, &spec.inside) else { return Ok(None) };
    let place = dir.join(places::INSIDE_BELOW);
    fs::create_dir_all(place.parent().unwrap_or(dir))?;
    Ok(Some(place))
}
