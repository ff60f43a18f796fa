//! Standard input that does not keep the process from ending.

use std::io::{self, Read as _};

use bytes::Bytes;
use futures_util::stream;
use tokio::io::AsyncBufRead;
use tokio::sync::mpsc;
use tokio_util::io::StreamReader;

use crate::failure::Failure;

/// The size of one read.
const PIECE_BYTES: usize = 64 * 1024;
/// Pieces read ahead; beyond that the agent has to wait.
const PIECES_MAX: usize = 4;

/// Reads standard input in a thread. The thread is detached on purpose: a read of a terminal or a
/// pipe cannot be interrupted, and must not keep the process from ending.
pub(super) fn stdin() -> Result<impl AsyncBufRead + Unpin + Send, Failure> {
    let (pieces, queue) = mpsc::channel(PIECES_MAX);
    let thread = std::thread::Builder::new().name("stdin".to_owned());
    thread
        .spawn(move || read(&pieces))
        .map_err(|source| Failure::System { action: "start a thread", source })?;
    let pieces = stream::unfold(queue, async |mut queue| Some((queue.recv().await?, queue)));
    Ok(StreamReader::new(Box::pin(pieces)))
}

fn read(pieces: &mpsc::Sender<io::Result<Bytes>>) {
    let mut buffer = vec![0; PIECE_BYTES];
    let mut stdin = io::stdin().lock();
    loop {
        let piece = match stdin.read(&mut buffer) {
            Ok(0) => return,
            Ok(n_bytes) => Ok(Bytes::copy_from_slice(&buffer[..n_bytes])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_over = piece.is_err();
        if pieces.blocking_send(piece).is_err() || is_over {
            return;
        }
    }
}
