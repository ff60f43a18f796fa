//! Uploads and downloads content, in pieces of bounded size.

use bytes::{Bytes, BytesMut};
use ringback_proto::data::Data;
use ringback_proto::ids::{BlobHash, RequestId};
use ringback_proto::request::{CasGetRequest, CasStoreRequest, CasStoredResponse};
use ringback_proto::tool::tools::{CasGet, CasStore};
use ringback_proto::{Certainty, Error, ErrorKind};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::client::Client;
use crate::error::unexpected;

impl Client {
    /// Stores everything that can be read, and returns its hash. One piece is being sent while the
    /// next is read, so memory stays at two pieces.
    ///
    /// # Errors
    /// The daemon's, those of [`Client::call_raw`], and `invalid` if reading fails.
    ///
    /// # Cancel safety
    /// An upload that is dropped stores nothing; the daemon forgets its pieces after a while.
    pub async fn upload(
        &self,
        mut content: impl AsyncRead + Unpin,
        mime_type: &str,
    ) -> Result<CasStoredResponse, Error> {
        let upload_id = RequestId::random().to_string();
        let mut offset = 0;
        let mut piece = self.read_piece(&mut content).await?;
        loop {
            // A full piece may be the last; only an empty read shows it.
            let n_bytes = piece.len();
            if n_bytes < self.config().piece_bytes {
                let request = store_request(piece, mime_type, &upload_id, offset, true);
                return self.call::<CasStore>(request).await;
            }
            let request = store_request(piece, mime_type, &upload_id, offset, false);
            let (stored, next) =
                tokio::join!(self.call::<CasStore>(request), self.read_piece(&mut content));
            stored?;
            piece = next?;
            offset += n_bytes as u64;
        }
    }

    /// Writes stored content to `sink` and returns the number of bytes.
    ///
    /// # Errors
    /// The daemon's, those of [`Client::call_raw`], and `invalid` if writing fails.
    ///
    /// # Cancel safety
    /// A download that is dropped leaves part of the content in `sink`.
    pub async fn download(
        &self,
        hash: BlobHash,
        mut sink: impl AsyncWrite + Unpin,
    ) -> Result<u64, Error> {
        let mut offset = 0;
        loop {
            let length = Some(self.config().piece_bytes as u64);
            let request = CasGetRequest { hash, offset: Some(offset), length };
            let content = self.call::<CasGet>(request).await?;
            let n_bytes = content.data.0.len() as u64;
            sink.write_all(&content.data.0).await.map_err(|error| io_failed("write", error))?;
            offset += n_bytes;
            if offset >= content.size {
                sink.flush().await.map_err(|error| io_failed("write", error))?;
                return Ok(offset);
            }
            if n_bytes == 0 {
                return Err(unexpected(format_args!("no bytes at {offset} of {}", content.size)));
            }
        }
    }

    async fn read_piece(&self, content: &mut (impl AsyncRead + Unpin)) -> Result<Bytes, Error> {
        let piece_bytes = self.config().piece_bytes;
        let mut piece = BytesMut::with_capacity(piece_bytes);
        let mut limited = content.take(piece_bytes as u64);
        while limited.read_buf(&mut piece).await.map_err(|error| io_failed("read", error))? > 0 {}
        Ok(piece.freeze())
    }
}

/// Makes the request for a piece; content that fits into one piece needs no upload id.
fn store_request(
    piece: Bytes,
    mime_type: &str,
    upload_id: &str,
    offset: u64,
    last: bool,
) -> CasStoreRequest {
    let whole = last && offset == 0;
    CasStoreRequest {
        data: Data(piece),
        mime_type: mime_type.to_owned(),
        upload_id: (!whole).then(|| upload_id.to_owned()),
        offset: (!whole).then_some(offset),
        last: (!whole).then_some(last),
    }
}

fn io_failed(what: &str, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Invalid, format!("cannot {what} the content: {error}"))
        .with_certainty(Certainty::MayHaveRun)
        .with_source(error)
}
