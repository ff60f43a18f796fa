//! `ringback secret`: the keys of model providers, kept sealed for the daemon of this user. It needs no
//! daemon: what is set here is used by the next request.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use ringback_egress::{SecretInfo, SecretName, SecretSource, Vault};
use serde::Serialize;

use crate::config::{Config, Environment, ServeFlags};
use crate::failure::Failure;
use crate::screen::{Screen, maybe_moment};

/// More than any key has; whoever pipes more did not mean to.
const VALUE_BYTES_MAX: u64 = 16 << 10;

/// What runs a command that needs a shell.
const SHELL: [&str; 2] = ["/bin/sh", "-c"];

/// `ringback secret`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback secret set anthropic\n  ringback secret set openai --command \"pass show \
                  openai\"\n  ringback secret set work --from-file ~/.keys/work\n  ringback secret check openai\n  \
                  ringback secret list\n\nA value is typed without being shown, or read from standard input; it is never \
                  part of a command line. Run this as the daemon's user, on its machine."
)]
pub struct SecretArgs {
    /// What to do
    #[command(subcommand)]
    pub action: SecretAction,
    /// Configuration file to read
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Data directory, as `serve` was told
    #[arg(long, value_name = "DIR", global = true)]
    pub data_dir: Option<String>,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do with secrets.
#[derive(Debug, Subcommand)]
pub enum SecretAction {
    /// Keep a secret, typed or from standard input, in place of the one before
    Set(SetArgs),
    /// List the secrets: names and kinds, never what they are
    List,
    /// Forget a secret
    Remove {
        /// Its name
        name: SecretName,
    },
    /// Say whether a secret can be had now, without showing it
    Check {
        /// Its name
        name: SecretName,
    },
}

/// What to keep.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Its name; that of a provider is its key, such as `anthropic`
    pub name: SecretName,
    /// Read the value from this file, now
    #[arg(long, value_name = "FILE", group = "origin")]
    pub file: Option<PathBuf>,
    /// Keep where the file is, and read it for each request; it must have mode 600
    #[arg(long, value_name = "FILE", group = "origin")]
    pub from_file: Option<PathBuf>,
    /// Keep a command that prints it, run by the daemon when needed; its words are split as by a shell
    #[arg(long, value_name = "COMMAND", group = "origin")]
    pub command: Option<String>,
    /// Let `/bin/sh` run the command, with pipes and variables
    #[arg(long, requires = "command")]
    pub shell: bool,
}

/// What was done.
#[derive(Debug, Serialize)]
struct Done<'a> {
    name: &'a SecretName,
    done: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Listed {
    secrets: Vec<SecretInfo>,
}

pub(crate) async fn run(args: SecretArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let flags = ServeFlags {
        config: args.config.clone(),
        data_dir: args.data_dir.clone(),
        ..ServeFlags::default()
    };
    let config = Config::load(&flags, environment)?;
    let vault = config.vault();
    match args.action {
        SecretAction::Set(set) => keep(&set, &config, &vault, screen),
        SecretAction::List => {
            let secrets = vault.list().map_err(wrong)?;
            screen.answer(&Listed { secrets }, |listed| table(screen, &listed.secrets))
        }
        SecretAction::Remove { name } => {
            vault.remove(&name).map_err(wrong)?;
            let done = Done { name: &name, done: "removed", kind: None };
            screen.answer(&done, |_| format!("`{name}` is gone"))
        }
        SecretAction::Check { name } => {
            vault.get(&name).await.map_err(wrong)?;
            let done = Done { name: &name, done: "checked", kind: None };
            screen.answer(&done, |_| format!("`{name}` can be had"))
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
    screen.answer(&Done { name, done: "set", kind: Some(kind) }, |_| {
        format!("`{name}` is kept; see that it works with `ringback secret check {name}`")
    })
}

/// Where the secret comes from, as the command line says.
fn source(set: &SetArgs) -> Result<SecretSource, Failure> {
    if let Some(command) = &set.command {
        return Ok(SecretSource::Command { command: words(command, set.shell)? });
    }
    if let Some(path) = &set.from_file {
        // The daemon has another directory to start from.
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
        Failure::Usage("`--command` is a program and its arguments, with every quote closed".into())
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
    screen.table(["NAME", "KIND", "SINCE"], rows, "no secrets; keep one with `ringback secret set`")
}

fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::Wrong(error.to_string())
}
