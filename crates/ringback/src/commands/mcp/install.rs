//! `ringback mcp install` and `uninstall`: edit another program's settings and show the change.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::agents::Agent;
use super::edit::{EditError, diff};
use crate::config::Environment;
use crate::failure::Failure;
use crate::screen::{Screen, remark};

/// The agent, and whether to write the change.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The agent
    pub agent: Agent,
    /// Write the change instead of only showing it
    #[arg(long)]
    pub yes: bool,
}

/// Adds the entry.
pub(super) fn install(args: &InstallArgs, environment: &Environment) -> Result<(), Failure> {
    let program = std::env::current_exe()
        .map_err(|source| Failure::System { action: "find this program", source })?;
    change(args, environment, |agent, text| agent.with_entry(text, &program))
}

/// Removes the entry.
pub(super) fn uninstall(args: &InstallArgs, environment: &Environment) -> Result<(), Failure> {
    change(args, environment, |agent, text| agent.without_entry(text))
}

fn change(
    args: &InstallArgs,
    environment: &Environment,
    edit: impl FnOnce(Agent, &str) -> Result<String, EditError>,
) -> Result<(), Failure> {
    let agent = args.agent;
    let path = agent.file(environment).ok_or_else(|| {
        Failure::Usage("cannot find the agent's settings: `HOME` is not set".to_owned())
    })?;
    let old = read(&path)?;
    let new = edit(agent, &old).map_err(|error| {
        let path = path.display();
        Failure::Wrong(format!("cannot change `{path}`: {error}; nothing was written"))
    })?;
    if new == old {
        remark(format_args!("`{}` is already up to date", path.display()));
        return Ok(());
    }
    Screen::new(false).text(format!("{}\n{}", path.display(), diff(&old, &new)))?;
    if !args.yes {
        remark("nothing was written; run again with `--yes` to write the change");
        return Ok(());
    }
    write(&path, &new)?;
    remark(format_args!("written; restart {} to use it", agent.name()));
    Ok(())
}

fn read(path: &Path) -> Result<String, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(Failure::File { action: "read", path: path.to_owned(), source }),
    }
}

/// Writes a file atomically. A symbolic link is followed, not replaced.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let failed = |source| Failure::File { action: "write", path: path.clone(), source };
    let dir = path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    fs::create_dir_all(&dir).map_err(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(&dir).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    if let Ok(old) = fs::metadata(&path) {
        file.as_file().set_permissions(old.permissions()).map_err(failed)?;
    }
    file.persist(&path).map(drop).map_err(|error| failed(error.error))
}
