//! Secrets by name, sealed in their own directory: a value, or where to get one. A change takes
//! effect with the next request, in every process that reads the directory.

mod command;
mod name;
mod seal;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ringback_proto::secret::Secret;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

pub use self::name::{SecretName, SecretNameError};
use self::seal::SealedDir;
use crate::key::one_key;
use crate::sync::lock;
use crate::{KeyError, KeyFile};

/// Secrets, and the last output of their commands.
#[derive(Debug)]
pub struct Vault {
    sealed: SealedDir,
    rules: CommandRules,
    /// The output of commands; dropped when a secret is set again.
    said: Mutex<HashMap<SecretName, CommandOutput>>,
    /// One command at a time: a burst of requests asks for a passphrase once.
    running: Semaphore,
}

/// Limits of commands that print secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandRules {
    /// The timeout of one command.
    pub timeout: Duration,
    /// How long its output is used before it runs again.
    pub kept: Duration,
}

/// The source of a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SecretSource {
    /// A stored value.
    Value {
        /// The secret.
        value: Secret,
    },
    /// A file of its owner.
    File {
        /// The file.
        path: PathBuf,
    },
    /// A program that prints it.
    Command {
        /// The program and its arguments; no shell interprets them.
        command: Vec<String>,
    },
}

/// A secret in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretInfo {
    /// The name.
    pub name: SecretName,
    /// `value`, `file` or `command`; `damaged` if it cannot be opened.
    pub kind: &'static str,
    /// When it was set, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
}

/// Why a secret cannot be read or stored. Never contains the secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// No such secret.
    #[error("no such secret: `{name}`; set it with `ringback secret set {name}`")]
    Missing {
        /// Its name.
        name: SecretName,
    },
    /// A file of the vault cannot be used.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others can read what only the daemon's user should.
    #[error("`{}` has mode {mode:03o}, so others can access it; run `chmod go=` on it", path.display())]
    Exposed {
        /// The file or directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The sealing key file does not contain a key.
    #[error(
        "`{}` is not a sealing key; restore it from a backup, or remove the directory and set the \
         secrets again",
        path.display()
    )]
    SealingKey {
        /// The file.
        path: PathBuf,
    },
    /// It was sealed with another key or for another name, or has changed since.
    #[error(
        "cannot decrypt `{}` with the sealing key in the same directory; set the secret again with \
         `ringback secret set {name}`",
        path.display()
    )]
    NotOpened {
        /// Its name.
        name: SecretName,
        /// The file.
        path: PathBuf,
    },
    /// The system has no random bytes.
    #[error("cannot seal a secret: the system has no random bytes")]
    Random,
    /// The input is not a key.
    #[error("a secret must be one line of visible ASCII with at most 8192 characters")]
    NoKey,
    /// A key file cannot be used.
    #[error(transparent)]
    File(#[from] KeyError),
    /// A command did not print it.
    #[error(
        "the command of the secret `{name}` {reason}; run it yourself as the daemon's user, or set \
         the secret again with `ringback secret set {name}`"
    )]
    Command {
        /// Its name.
        name: SecretName,
        /// What happened.
        reason: String,
    },
    /// The daemon is stopping.
    #[error("cannot read the secret `{name}`: the daemon is stopping")]
    Stopped {
        /// Its name.
        name: SecretName,
    },
}

/// The output of a command.
#[derive(Debug)]
struct CommandOutput {
    entry: Entry,
    secret: Secret,
    at: Instant,
}

/// The sealed content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    since_ms: u64,
    #[serde(flatten)]
    source: SecretSource,
}

impl Default for CommandRules {
    fn default() -> Self {
        // A password manager asks its agent; a person who types a passphrase is quicker than this.
        Self { timeout: Duration::from_secs(20), kept: Duration::from_secs(60) }
    }
}

impl Entry {
    /// Reads the secret, unless a command must run for it. Blocks.
    fn read(self) -> Result<(Option<Secret>, Self), SecretError> {
        let secret = match &self.source {
            SecretSource::Value { value } => Some(value.clone()),
            SecretSource::File { path } => Some(KeyFile::new(path.clone()).read()?),
            SecretSource::Command { .. } => None,
        };
        Ok((secret, self))
    }
}

impl SecretSource {
    /// A value, without surrounding whitespace.
    ///
    /// # Errors
    /// When it cannot be a key.
    pub fn value(text: &str) -> Result<Self, SecretError> {
        let value = one_key(text).ok_or(SecretError::NoKey)?;
        Ok(Self::Value { value })
    }

    /// `value`, `file` or `command`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Value { .. } => "value",
            Self::File { .. } => "file",
            Self::Command { .. } => "command",
        }
    }
}

/// Prints only the kind: the arguments of a command may be as secret as its output.
impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

impl Vault {
    /// The secrets in this directory, which need not exist yet.
    #[must_use]
    pub fn new(dir: PathBuf, rules: CommandRules) -> Self {
        let sealed = SealedDir::new(dir);
        Self { sealed, rules, said: Mutex::default(), running: Semaphore::new(1) }
    }

    /// Stores a secret, replacing an earlier one of this name. Durable when it returns. Blocks.
    ///
    /// # Errors
    /// When it cannot be written; then the earlier one is unchanged.
    pub fn set(
        &self,
        name: &SecretName,
        source: SecretSource,
        now_ms: u64,
    ) -> Result<(), SecretError> {
        self.sealed.write(name, &Entry { since_ms: now_ms, source })
    }

    /// Removes a secret. Blocks.
    ///
    /// # Errors
    /// When it does not exist, or its file cannot be removed.
    pub fn remove(&self, name: &SecretName) -> Result<(), SecretError> {
        lock(&self.said).remove(name);
        self.sealed.remove(name)
    }

    /// Lists every secret by name, without its value. Blocks.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn list(&self) -> Result<Vec<SecretInfo>, SecretError> {
        let shown = |name: SecretName| match self.sealed.read(&name) {
            Ok(Entry { since_ms, source }) => {
                SecretInfo { name, kind: source.kind(), since_ms: Some(since_ms) }
            }
            Err(_) => SecretInfo { name, kind: "damaged", since_ms: None },
        };
        Ok(self.sealed.names()?.into_iter().map(shown).collect())
    }

    /// Checks whether a secret can be read, without running a command. Blocks.
    ///
    /// # Errors
    /// Why not.
    pub fn look(&self, name: &SecretName) -> Result<(), SecretError> {
        match self.sealed.read(name)?.source {
            SecretSource::Value { .. } | SecretSource::Command { .. } => Ok(()),
            SecretSource::File { path } => KeyFile::new(path).read().map(drop).map_err(Into::into),
        }
    }

    /// Returns the current secret; the output of a command is reused while it is kept.
    ///
    /// # Errors
    /// Why it cannot be read.
    ///
    /// # Cancel safety
    /// A running command is ended.
    pub async fn get(&self, name: &SecretName) -> Result<Secret, SecretError> {
        let (sealed, wanted) = (self.sealed.clone(), name.clone());
        let reading = tokio::task::spawn_blocking(move || sealed.read(&wanted)?.read());
        let read = reading.await.map_err(|_| SecretError::Stopped { name: name.clone() })?;
        match read? {
            (Some(secret), _) => Ok(secret),
            (None, entry) => self.ask(name, entry).await,
        }
    }

    /// Returns the output of a secret's command, new or recent.
    async fn ask(&self, name: &SecretName, entry: Entry) -> Result<Secret, SecretError> {
        let stopped = || SecretError::Stopped { name: name.clone() };
        if let Some(secret) = self.said(name, &entry) {
            return Ok(secret);
        }
        let running = self.running.acquire().await.map_err(|_| stopped())?;
        // The previous holder of the permit may have asked for the same.
        if let Some(secret) = self.said(name, &entry) {
            return Ok(secret);
        }
        let SecretSource::Command { command } = &entry.source else { return Err(stopped()) };
        let failed = |reason: String| SecretError::Command { name: name.clone(), reason };
        let text = command::output(command, self.rules.timeout).await.map_err(failed)?;
        let printed = "printed no key: expected one line of visible ASCII";
        let secret = one_key(&text).ok_or_else(|| failed(printed.to_owned()))?;
        let said = CommandOutput { entry, secret: secret.clone(), at: Instant::now() };
        lock(&self.said).insert(name.clone(), said);
        drop(running);
        Ok(secret)
    }

    fn said(&self, name: &SecretName, entry: &Entry) -> Option<Secret> {
        let said = lock(&self.said);
        let is_fresh =
            |said: &&CommandOutput| said.entry == *entry && said.at.elapsed() < self.rules.kept;
        said.get(name).filter(is_fresh).map(|said| said.secret.clone())
    }
}
