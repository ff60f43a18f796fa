//! What to do when `accept` fails: nothing that a peer does may end the loop.

use std::io;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// Long enough for a descriptor to become free, short enough that nobody notices.
const EXHAUSTED_WAIT: Duration = Duration::from_millis(100);

/// Whose fault a failed `accept` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The peer went away between connecting and being accepted.
    Peer,
    /// The system ran out of something: descriptors, memory, buffers.
    Exhausted,
}

impl Fault {
    fn of(error: &io::Error) -> Self {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
            Self::Peer
        } else {
            Self::Exhausted
        }
    }
}

/// The next connection, however many accepts fail before it.
///
/// # Cancel safety
/// Nothing is lost when the future is dropped: a connection is either returned or still queued.
pub(super) async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => match Fault::of(&error) {
                Fault::Peer => tracing::debug!(%error, "a peer left before it was accepted"),
                Fault::Exhausted => {
                    tracing::error!(%error, "cannot accept a connection, waiting to try again");
                    sleep(EXHAUSTED_WAIT).await;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::Fault;

    #[test]
    fn a_peers_fault_is_told_from_exhaustion() {
        let (econnreset, econnaborted, emfile, enfile, enobufs) = (104, 103, 24, 23, 105);
        let of = |code| Fault::of(&io::Error::from_raw_os_error(code));
        assert_eq!([of(econnreset), of(econnaborted)], [Fault::Peer, Fault::Peer]);
        assert_eq!([of(emfile), of(enfile), of(enobufs)], [Fault::Exhausted; 3]);
    }
}
