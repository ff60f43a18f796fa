//! `ringback secret`: keys of model providers, kept sealed for this user's daemon. It needs no
//! running daemon: a secret takes effect with the next request.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use ringback_egress::{SecretInfo, SecretName, SecretSource, Vault};
use serde::Serialize;

use crate::commands::local::LocalArgs;
use crate::config::{Config, Environment};
use crate::failure::Failure;
use crate::screen::{Screen, maybe_moment};

/// Longer than any key; more input than this is a mistake.
const VALUE_BYTES_MAX: u64 = 16 << 10;

/// The shell for `--shell`.
const SHELL: [&str; 2] = ["/bin/sh", "-c"];

/// `ringback secret`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback secret set anthropic\n  ringback secret set openai --command \"pass show \
                  openai\"\n  ringback secret set work --from-file ~/.keys/work\n  ringback secret check openai\n  \
                  ringback secret list\n\nA value is typed without echo or read from standard input, never passed \
                  on the command line.\nRun this as the daemon's user, on its machine."
)]
pub struct SecretArgs {
    /// What to do
    #[command(subcommand)]
    pub action: SecretAction,
    /// Where the configuration is
    #[command(flatten)]
    pub local: LocalArgs,
}

/// Actions on secrets.
#[derive(Debug, Subcommand)]
pub enum SecretAction {
    /// Store or replace a secret, typed or from standard input
    Set(SetArgs),
    /// List the names and kinds of secrets, never their values
    List,
    /// Remove a secret
    Remove {
        /// Its name
        name: SecretName,
    },
    /// Check that a secret is available, without showing it
    Check {
        /// Its name
        name: SecretName,
    },
}

/// A secret to store.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Name of the secret; one named after a provider, such as `anthropic`, is its key
    pub name: SecretName,
    /// Read the value from this file now
    #[arg(long, value_name = "FILE", group = "origin")]
    pub file: Option<PathBuf>,
    /// Store only the path, and read the file for each request; it must have mode 600
    #[arg(long, value_name = "FILE", group = "origin")]
    pub from_file: Option<PathBuf>,
    /// Store a command that prints the value, run by the daemon when needed; words are split as in
    /// a shell
    #[arg(long, value_name = "COMMAND", group = "origin")]
    pub command: Option<String>,
    /// Run the command with `/bin/sh`, which allows pipes and variables
    #[arg(long, requires = "command")]
    pub shell: bool,
}

/// A completed action.
#[derive(Debug, Serialize)]
struct ActionReport<'a> {
    name: &'a SecretName,
    done: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct SecretList {
    secrets: Vec<SecretInfo>,
}

pub(crate) async fn run(args: SecretArgs, environment: &Environment) -> Result<(), Failure> {
    let (screen, flags) = (args.local.screen(), args.local.flags());
    let config = Config::load(&flags, environment)?;
    let vault = config.vault();
    match args.action {
        SecretAction::Set(set) => keep(&set, &config, &vault, screen),
        SecretAction::List => {
            let secrets = vault.list().map_err(wrong)?;
            screen.answer(&SecretList { secrets }, |listed| table(screen, &listed.secrets))
        }
        SecretAction::Remove { name } => {
            vault.remove(&name).map_err(wrong)?;
            let done = ActionReport { name: &name, done: "removed", kind: None };
            screen.answer(&done, |_| format!("`{name}` removed"))
        }
        SecretAction::Check { name } => {
            vault.get(&name).await.map_err(wrong)?;
            let done = ActionReport { name: &name, done: "checked", kind: None };
            screen.answer(&done, |_| format!("`{name}` is available"))
        }
    }
}

fn keep(set: &SetArgs, config: &Config, vault: &Vault, screen: Screen) -> Result<(), Failure> {
    let source = source(set)?;
    let (name, kind) = (&set.name, source.kind());
    config.create_dirs().map_err(wrong)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    vault.set(name, source, now_ms).map_err(wrong)?;
    screen.answer(&ActionReport { name, done: "set", kind: Some(kind) }, |_| {
        format!("`{name}` stored; check it with `ringback secret check {name}`")
    })
}

/// Returns the source of the secret from the command line.
fn source(set: &SetArgs) -> Result<SecretSource, Failure> {
    if let Some(command) = &set.command {
        return Ok(SecretSource::Command { command: words(command, set.shell)? });
    }
    if let Some(path) = &set.from_file {
        // The daemon has another working directory.
        let path = std::path::absolute(path).map_err(|source| Failure::File {
            action: "find",
            path: path.clone(),
            source,
        })?;
        return Ok(SecretSource::File { path });
    }
    let text = match &set.file {
        Some(path) => bounded(path)?,
        None if io::stdin().is_terminal() => {
            let typed = rpassword::prompt_password(format!("{} (not shown): ", set.name));
            typed.map_err(|source| Failure::System { action: "read from the terminal", source })?
        }
        None => {
            let read = read(io::stdin().lock());
            read.map_err(|source| Failure::System { action: "read standard input", source })?
        }
    };
    SecretSource::value(&text).map_err(|error| Failure::Usage(error.to_string()))
}

fn words(command: &str, shell: bool) -> Result<Vec<String>, Failure> {
    let words = if shell {
        Some(SHELL.into_iter().chain([command]).map(str::to_owned).collect())
    } else {
        shlex::split(command)
    };
    words.filter(|words: &Vec<String>| !words.is_empty()).ok_or_else(|| {
        Failure::Usage(
            "`--command` needs a program and its arguments, with every quote closed".into(),
        )
    })
}

fn bounded(path: &Path) -> Result<String, Failure> {
    let text = std::fs::File::open(path).and_then(read);
    text.map_err(|source| Failure::File { action: "read", path: path.to_owned(), source })
}

fn read(from: impl io::Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(VALUE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn table(screen: Screen, secrets: &[SecretInfo]) -> String {
    let rows = secrets
        .iter()
        .map(|it| [it.name.to_string(), it.kind.to_owned(), maybe_moment(it.since_ms)]);
    screen.table(
        ["NAME", "KIND", "SINCE"],
        rows,
        "no secrets; store one with `ringback secret set`",
    )
}

fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::Wrong(error.to_string())
}
