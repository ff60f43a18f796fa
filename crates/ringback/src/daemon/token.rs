//! The first token: created once, written to a file only its owner can read, never shown.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ringback_broker::Broker;
use ringback_proto::secret::Secret;

use super::StartDaemonError;
use crate::config::Config;

/// Its file name in the data directory.
pub const TOKEN_FILE: &str = "token";

/// The token exists, but its file does not.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write the first token to `{}`; free some space there and start again with an empty data \
     directory, or create another token with `ringback token create` through the runtime directory",
    path.display()
)]
pub struct TokenFileError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Creates the first token unless one exists, and returns its path.
pub(super) async fn first(
    broker: &Broker,
    config: &Config,
) -> Result<Option<PathBuf>, StartDaemonError> {
    let path = config.root.data_dir.join(TOKEN_FILE);
    match broker.first_token().await.map_err(StartDaemonError::FirstToken)? {
        Some(token) => {
            write(&path, &token).map_err(|source| TokenFileError { path: path.clone(), source })?;
            Ok(Some(path))
        }
        // The user may have moved it to a safer place.
        None => Ok(path.exists().then_some(path)),
    }
}

/// Writes the file atomically: a temporary file, private to its owner from the start, is renamed.
fn write(path: &Path, token: &Secret) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    writeln!(file, "{}", token.expose())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    std::fs::File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use ringback_proto::secret::Secret;

    use super::write;

    /// Rule: only its owner can read the token, from its first byte on.
    #[test]
    fn the_file_is_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        write(&path, &Secret::new("oub_1".to_owned())).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "oub_1\n");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
