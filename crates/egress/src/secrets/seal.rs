//! The files: one for each secret, sealed with ChaCha20-Poly1305 under a key in a file in the same
//! directory. The name of a secret is authenticated, so that one cannot be put in another's place.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustix::fs::{Mode, OFlags};

use super::{Entry, SecretError, SecretName};

/// The suffix of sealed files.
const SUFFIX: &str = ".sealed";
/// The file with the sealing key; no secret can have this name.
const KEY_FILE: &str = "sealing.key";
const KEY_BYTES: usize = 32;
/// The header of every sealed file, also authenticated: the format, and that it is ours.
const MAGIC: &[u8] = b"ringback secret 1\n";
/// A key, a path or a command, with its surroundings.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// A directory of sealed files.
#[derive(Debug, Clone)]
pub(super) struct SealedDir {
    dir: PathBuf,
}

impl SealedDir {
    pub(super) const fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    fn path(&self, name: &SecretName) -> PathBuf {
        self.dir.join(format!("{name}{SUFFIX}"))
    }

    /// Writes an entry, whole or not at all.
    pub(super) fn write(&self, name: &SecretName, entry: &Entry) -> Result<(), SecretError> {
        self.make_dir()?;
        let key = match self.key()? {
            Some(key) => key,
            None => self.make_key()?,
        };
        let path = self.path(name);
        let failed = |source: io::Error| failed("write", &path, source);
        let mut text = serde_json::to_vec(entry).map_err(|error| failed(error.into()))?;
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| SecretError::Random)?;
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(sealed_with(name)),
            &mut text,
        )
        .map_err(|_| SecretError::NoKey)?;
        let whole = [MAGIC, &nonce, &text].concat();
        let mut file = tempfile::NamedTempFile::new_in(&self.dir).map_err(failed)?;
        file.write_all(&whole).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        self.sync()
    }

    pub(super) fn read(&self, name: &SecretName) -> Result<Entry, SecretError> {
        let path = self.path(name);
        let missing = || SecretError::Missing { name: name.clone() };
        let whole = read_private(&path)?.ok_or_else(missing)?;
        let not_opened = || SecretError::NotOpened { name: name.clone(), path: path.clone() };
        let key = self.key()?.ok_or_else(not_opened)?;
        let sealed = whole.strip_prefix(MAGIC).ok_or_else(not_opened)?;
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>().ok_or_else(not_opened)?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = key
            .open_in_place(nonce, Aad::from(sealed_with(name)), &mut text)
            .map_err(|_| not_opened())?;
        serde_json::from_slice(opened).map_err(|_| not_opened())
    }

    pub(super) fn remove(&self, name: &SecretName) -> Result<(), SecretError> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Ok(()) => self.sync(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(SecretError::Missing { name: name.clone() })
            }
            Err(source) => Err(failed("remove", &path, source)),
        }
    }

    /// The names, sorted.
    pub(super) fn names(&self) -> Result<Vec<SecretName>, SecretError> {
        let failed = |source| failed("read", &self.dir, source);
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed(source)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let file_name = entry.map_err(failed)?.file_name();
            let name = file_name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
            names.extend(name.and_then(|name| name.parse().ok()));
        }
        names.sort_unstable();
        Ok(names)
    }

    fn make_dir(&self) -> Result<(), SecretError> {
        let failed = |source| failed("make", &self.dir, source);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(failed)?;
        let mode = fs::metadata(&self.dir).map_err(failed)?.mode();
        private(&self.dir, mode)
    }

    /// Reads the sealing key, if there is one.
    fn key(&self) -> Result<Option<LessSafeKey>, SecretError> {
        let path = self.dir.join(KEY_FILE);
        let Some(bytes) = read_private(&path)? else { return Ok(None) };
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes);
        let key = key.map_err(|_| SecretError::SealingKey { path })?;
        Ok(Some(LessSafeKey::new(key)))
    }

    /// Creates the sealing key. The second of two processes uses the first one's.
    fn make_key(&self) -> Result<LessSafeKey, SecretError> {
        let path = self.dir.join(KEY_FILE);
        let failed = |source: io::Error| failed("write", &path, source);
        let mut bytes = [0; KEY_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| SecretError::Random)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.dir).map_err(failed)?;
        file.write_all(&bytes).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        match file.persist_noclobber(&path) {
            Ok(_) => {}
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error.error)),
        }
        self.sync()?;
        self.key()?.ok_or(SecretError::SealingKey { path })
    }

    /// Makes the last change durable.
    fn sync(&self) -> Result<(), SecretError> {
        let synced = File::open(&self.dir).and_then(|dir| dir.sync_all());
        synced.map_err(|source| failed("write", &self.dir, source))
    }
}

/// The authenticated data besides the text.
fn sealed_with(name: &SecretName) -> Vec<u8> {
    [MAGIC, name.as_str().as_bytes()].concat()
}

/// Reads one of our files that no other user may read; `None` if it does not exist.
fn read_private(path: &Path) -> Result<Option<Vec<u8>>, SecretError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(failed("read", path, error.into())),
    };
    let metadata = file.metadata().map_err(|source| failed("read", path, source))?;
    private(path, metadata.mode())?;
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|source| failed("read", path, source))?;
    Ok(Some(bytes))
}

fn private(path: &Path, mode: u32) -> Result<(), SecretError> {
    let mode = mode & 0o777;
    if mode & 0o077 == 0 {
        Ok(())
    } else {
        Err(SecretError::Exposed { path: path.to_owned(), mode })
    }
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> SecretError {
    SecretError::Io { action, path: path.to_owned(), source }
}
