//! A Unix socket that only this user's processes can reach: bound in its own directory, accepting
//! until it is stopped, removed from the disk with its guard.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

/// The pause when the machine has no room for another connection.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// A bound socket. Dropping the guard removes the file; dropping the listener closes the socket.
#[derive(Debug)]
pub(crate) struct PrivateSocket {
    /// The listener.
    pub(crate) listener: UnixListener,
    /// The socket on the disk.
    pub(crate) file: SocketFile,
}

/// The file of a socket, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.0.display(), %error, "cannot remove a socket");
        }
    }
}

impl PrivateSocket {
    /// Binds a socket of this name, mode 0600, in a directory that becomes private to this user, so
    /// that no other user reaches the socket before its mode is set. A socket left by a killed
    /// process is replaced; anything else of that name is not.
    ///
    /// # Errors
    /// When it cannot be bound; the error names the path.
    pub(crate) fn bind(dir: &Path, name: &str) -> io::Result<Self> {
        let path = dir.join(name);
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
        };
        let listener = bind(dir, &path).map_err(named)?;
        Ok(Self { listener, file: SocketFile(path) })
    }
}

/// Passes every connection to `admit` until `stop` fires. No peer can end it.
pub(crate) async fn accept_until(
    stop: &CancellationToken,
    listener: UnixListener,
    mut admit: impl FnMut(UnixStream),
) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => admit(stream),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection on a socket");
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
            }
        }
    }
}

fn bind(dir: &Path, path: &Path) -> io::Result<UnixListener> {
    std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    match std::fs::symlink_metadata(path) {
        // Left by a daemon that was killed.
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path)?,
        Ok(_) => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it exists and is not a socket",
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn a_socket_is_private_replaces_a_left_one_and_goes_with_its_guard() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        let left = PrivateSocket::bind(dir.path(), "a.sock").unwrap();
        assert_eq!((mode(dir.path()), mode(&path)), (0o700, 0o600));
        std::mem::forget(left.file);
        let again = PrivateSocket::bind(dir.path(), "a.sock").unwrap();
        drop(again);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.sock"), "mine").unwrap();
        let error = PrivateSocket::bind(dir.path(), "a.sock").unwrap_err();
        assert!(error.to_string().contains("a.sock") && error.to_string().contains("not a socket"));
        assert_eq!(std::fs::read_to_string(dir.path().join("a.sock")).unwrap(), "mine");
    }
}
