//! The key of a provider: in a private file, or among the secrets.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringback_proto::secret::Secret;
use rustix::fs::{Mode, OFlags};

use crate::secrets::{SecretError, SecretName, Vault};

/// No provider's key is nearly this long; a longer file is not a key.
pub(crate) const KEY_BYTES_MAX: u64 = 8 << 10;

/// The source of a provider's key. It is read at each request, so that a new key needs no restart.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// In a file.
    File(KeyFile),
    /// Among the secrets.
    Secret {
        /// The name of the secret.
        name: SecretName,
        /// The vault.
        vault: Arc<Vault>,
    },
}

/// A file with a key. It is read for each request, so that a new key needs no restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile(PathBuf);

/// Why a key cannot be used. Never contains the key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is a directory, a pipe or a device.
    #[error("`{}` is not a regular file; put the key into one, mode 600", path.display())]
    NotAFile {
        /// Its path.
        path: PathBuf,
    },
    /// Others can read it.
    #[error("`{}` has mode {mode:03o}, so others can access it; run `chmod 600` on it", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It does not contain a key.
    #[error("`{}` contains no key: expected one line of visible ASCII", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
}

impl KeySource {
    /// Checks whether there is a key, without running a command. Blocks.
    ///
    /// # Errors
    /// Why no key can be used.
    pub fn look(&self) -> Result<(), SecretError> {
        match self {
            Self::File(file) => Ok(file.read().map(drop)?),
            Self::Secret { name, vault } => vault.look(name),
        }
    }

    /// Returns where the key comes from, as it is configured.
    pub(crate) fn origin(&self) -> String {
        match self {
            Self::File(file) => format!("key_file {}", file.path().display()),
            Self::Secret { name, .. } => format!("secret {name}"),
        }
    }

    /// Returns the current key; `None` if the daemon is stopping.
    pub(crate) async fn get(&self) -> Result<Option<Secret>, SecretError> {
        match self {
            Self::File(file) => {
                let file = file.clone();
                let read = tokio::task::spawn_blocking(move || file.read()).await;
                Ok(read.ok().transpose()?)
            }
            Self::Secret { name, vault } => vault.get(name).await.map(Some),
        }
    }
}

impl KeyFile {
    /// The key in this file, whether or not it exists.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the key, without surrounding whitespace. Blocks.
    ///
    /// # Errors
    /// When the file cannot be read, is accessible to others, or contains no key.
    pub fn read(&self) -> Result<Secret, KeyError> {
        let path = self.0.clone();
        let text = match self.text()? {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(KeyError::NoKey { path });
            }
            Err(source) => return Err(KeyError::Read { path, source }),
        };
        one_key(&text).ok_or(KeyError::NoKey { path })
    }

    /// Checks the same file that it reads: the path may be replaced at any time.
    fn text(&self) -> Result<io::Result<String>, KeyError> {
        let path = || self.0.clone();
        // A pipe in place of the file would otherwise block until a writer comes.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(&self.0, flags, Mode::empty())
            .map(File::from)
            .map_err(|error| KeyError::Read { path: path(), source: error.into() })?;
        let metadata = file.metadata().map_err(|source| KeyError::Read { path: path(), source })?;
        if !metadata.is_file() {
            return Err(KeyError::NotAFile { path: path() });
        }
        let mode = metadata.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed { path: path(), mode });
        }
        let mut text = String::new();
        let read = file.take(KEY_BYTES_MAX + 1).read_to_string(&mut text);
        Ok(read.map(|_| text))
    }
}

/// The key in a text, without surrounding whitespace.
pub(crate) fn one_key(text: &str) -> Option<Secret> {
    let key = text.trim();
    let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    (is_key && text.len() as u64 <= KEY_BYTES_MAX).then(|| Secret::new(key.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn file(text: &[u8], mode: u32) -> (tempfile::TempDir, KeyFile) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (dir, KeyFile::new(path))
    }

    #[test]
    fn a_key_is_read_without_the_whitespace_around_it() {
        let (_dir, key) = file(b" sk-1234\n\n", 0o600);
        assert_eq!(key.read().unwrap().expose(), "sk-1234");
        assert!(!format!("{key:?} {:?}", key.read()).contains("sk-1234"));
    }

    /// Rule: a key that others can read is refused by name.
    #[test]
    fn a_file_that_others_can_read_is_refused_by_name() {
        for mode in [0o640, 0o604, 0o660, 0o602] {
            let (_dir, key) = file(b"sk-1234", mode);
            let error = key.read().unwrap_err().to_string();
            assert!(error.contains("chmod 600") && error.contains("/key`"), "{error}");
            assert!(!error.contains("sk-1234"));
        }
    }

    #[test]
    fn what_is_no_key_or_no_file_is_refused() {
        for text in [&b""[..], b" \n", b"two\nlines", b"sp ace", b"\xff\xfe", &[b'x'; 9000]] {
            let (_dir, key) = file(text, 0o600);
            let error = key.read().unwrap_err();
            assert!(matches!(error, KeyError::NoKey { .. }), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| KeyFile::new(dir.path().join(name)).read().unwrap_err();
        assert!(matches!(of("."), KeyError::NotAFile { .. }));
        assert!(matches!(of("none"), KeyError::Read { .. }));
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(matches!(of("pipe"), KeyError::NotAFile { .. }), "and nothing waits for a writer");
    }
}
