//! What to do when `accept` fails: no peer may end the loop.

use std::io;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::refusal::Refusal;
use crate::open_files::SpareDescriptor;

/// Long enough for a descriptor to become free, short enough to go unnoticed.
const EXHAUSTED_WAIT: Duration = Duration::from_millis(100);

/// The cause of a failed `accept`.
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

/// Returns the next connection, however many accepts fail before it.
///
/// # Cancel safety
/// Dropping the future loses nothing: a connection is either returned or still queued.
pub(super) async fn accept(
    listener: &TcpListener,
    spare: &mut SpareDescriptor,
    is_tls: bool,
) -> TcpStream {
    let mut is_told = false;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => match Fault::of(&error) {
                Fault::Peer => tracing::debug!(%error, "a peer left before it was accepted"),
                Fault::Exhausted => {
                    if !std::mem::replace(&mut is_told, true) {
                        tracing::error!(%error, "cannot accept connections; answering 503");
                    }
                    if !refuse_next(listener, spare, is_tls) {
                        sleep(EXHAUSTED_WAIT).await;
                    }
                }
            },
        }
    }
}

/// Answers the next connection that the daemon is full, with the spare descriptor. `false` if there
/// was none.
fn refuse_next(listener: &TcpListener, spare: &mut SpareDescriptor, is_tls: bool) -> bool {
    let is_given = spare.give_up();
    let accepted = listener.accept().now_or_never();
    let is_accepted = match accepted {
        Some(Ok((stream, _))) => {
            turn_away(&stream, is_tls);
            true
        }
        Some(Err(_)) | None => false,
    };
    spare.take();
    is_given && is_accepted
}

/// Sends 503 to a connection without waiting for its request.
pub(super) fn turn_away(stream: &TcpStream, is_tls: bool) {
    // Read what it has already sent: closing with unread data would discard the answer.
    let mut request = [0; 4096];
    let n_read = stream.try_read(&mut request);
    if is_tls {
        return tracing::debug!("closed a connection: too many are open");
    }
    let n_written = stream.try_write(Refusal::Busy.message().as_bytes());
    let shut = rustix::net::shutdown(stream, rustix::net::Shutdown::Write);
    tracing::debug!(
        ?n_read,
        ?n_written,
        ?shut,
        "answered a connection with 503: too many are open"
    );
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
