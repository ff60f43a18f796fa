//! Uploads and downloads in pieces, with a progress bar.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use ringback_client::{Client, Config};
use ringback_proto::ids::BlobHash;
use ringback_proto::request::{CasContentResponse, CasGetRequest, CasStoredResponse};
use ringback_proto::tool::tools::CasGet;
use serde::Serialize;
use tokio_util::io::InspectReader;

use super::GetArgs;
use crate::failure::Failure;
use crate::progress;
use crate::screen::Screen;

/// Media types by file extension; everything else is plain bytes.
const TYPES: &[(&str, &str)] = &[
    ("abc", "text/vnd.abc"),
    ("csv", "text/csv"),
    ("flac", "audio/flac"),
    ("html", "text/html"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("md", "text/markdown"),
    ("mid", "audio/midi"),
    ("midi", "audio/midi"),
    ("mp3", "audio/mpeg"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("txt", "text/plain"),
    ("wav", "audio/wav"),
];

/// The result of `cas get -o`.
#[derive(Debug, Serialize)]
struct DownloadReport<'a> {
    hash: BlobHash,
    file: &'a Path,
    bytes: u64,
    size: u64,
    mime_type: &'a str,
}

/// The destination of content.
enum Sink {
    Stdout,
    /// A temporary file beside the final one, so that a partial file is never visible.
    File(tempfile::NamedTempFile, PathBuf),
}

pub(super) async fn put(
    client: &Client,
    screen: Screen,
    path: &Path,
    mime: Option<String>,
) -> Result<CasStoredResponse, Failure> {
    let mime = mime.unwrap_or_else(|| mime_type(path).to_owned());
    if path == Path::new("-") {
        let bar = progress::transfer(screen, "standard input", None);
        return upload(client, stdin()?, &mime, bar).await;
    }
    let failed = |source| Failure::File { action: "read", path: path.to_owned(), source };
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let metadata = file.metadata().await.map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let bar = progress::transfer(screen, &path.display().to_string(), Some(metadata.len()));
    upload(client, file, &mime, bar).await
}

/// Opens standard input as a file, which it usually is.
fn stdin() -> Result<tokio::fs::File, Failure> {
    let action = "read standard input";
    let owned = io::stdin().as_fd().try_clone_to_owned();
    let owned = owned.map_err(|source| Failure::System { action, source })?;
    Ok(tokio::fs::File::from_std(owned.into()))
}

async fn upload(
    client: &Client,
    content: impl tokio::io::AsyncRead + Unpin,
    mime: &str,
    bar: ProgressBar,
) -> Result<CasStoredResponse, Failure> {
    let counted = InspectReader::new(content, |piece: &[u8]| bar.inc(piece.len() as u64));
    let stored = client.upload(counted, mime).await;
    bar.finish_and_clear();
    Ok(stored?)
}

pub(super) async fn get(client: &Client, screen: Screen, args: &GetArgs) -> Result<(), Failure> {
    if screen.is_json() && args.output.is_none() {
        let text = "content on standard output is not JSON; write it to a file with `-o FILE`";
        return Err(Failure::Usage(text.to_owned()));
    }
    let mut offset = args.offset;
    let mut piece = read(client, args, offset).await?;
    let end = args.length.map_or(piece.size, |length| args.offset.saturating_add(length));
    let end = end.min(piece.size);
    if args.output.is_none() && screen.is_terminal() && !is_text(&piece.mime_type) {
        let text = format!("the content is {}; write it to a file with `-o FILE`", piece.mime_type);
        return Err(Failure::Usage(text));
    }
    let mut sink = Sink::open(args.output.as_deref())?;
    let bar = progress::transfer(screen, "content", Some(end.saturating_sub(args.offset)));
    loop {
        let n_bytes = piece.data.0.len() as u64;
        sink.write(screen, &piece.data.0)?;
        bar.inc(n_bytes);
        offset += n_bytes;
        if offset >= end {
            break;
        }
        if n_bytes == 0 {
            return Err(Failure::Wrong(format!(
                "the daemon sent no data at byte {offset} of {end}"
            )));
        }
        piece = read(client, args, offset).await?;
    }
    bar.finish_and_clear();
    let bytes = offset.saturating_sub(args.offset);
    let CasContentResponse { hash, size, mime_type, .. } = piece;
    match sink.finish()? {
        None => Ok(()),
        Some(file) if screen.is_json() => {
            let written = DownloadReport { hash, file: &file, bytes, size, mime_type: &mime_type };
            screen.json_document(&written)
        }
        Some(file) => {
            screen.remark(format_args!("wrote {bytes} bytes of {mime_type} to {}", file.display()));
            Ok(())
        }
    }
}

async fn read(client: &Client, args: &GetArgs, offset: u64) -> Result<CasContentResponse, Failure> {
    let piece = Config::PIECE_BYTES as u64;
    let left = args.length.map(|length| args.offset.saturating_add(length).saturating_sub(offset));
    let length = Some(left.map_or(piece, |left| left.min(piece)));
    let request = CasGetRequest { hash: args.hash, offset: Some(offset), length };
    Ok(client.call::<CasGet>(request).await?)
}

impl Sink {
    fn open(output: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = output.filter(|path| *path != Path::new("-")) else {
            return Ok(Self::Stdout);
        };
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        // Permissions as for the user's other files, not only for the owner.
        let made = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .tempfile_in(dir.unwrap_or(Path::new(".")));
        let file = made.map_err(|source| file_failed(path, source))?;
        Ok(Self::File(file, path.to_owned()))
    }

    fn write(&mut self, screen: Screen, piece: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout if screen.is_terminal() => {
                let text = screen.printable(&String::from_utf8_lossy(piece));
                io::stdout().lock().write_all(text.as_bytes()).map_err(Failure::Output)
            }
            Self::Stdout => io::stdout().lock().write_all(piece).map_err(Failure::Output),
            Self::File(file, path) => {
                file.write_all(piece).map_err(|source| file_failed(path, source))
            }
        }
    }

    /// Completes the output and returns the path of the file, if it is one.
    fn finish(self) -> Result<Option<PathBuf>, Failure> {
        match self {
            Self::Stdout => io::stdout().lock().flush().map(|()| None).map_err(Failure::Output),
            Self::File(file, path) => match file.persist(&path) {
                Ok(_) => Ok(Some(path)),
                Err(error) => Err(file_failed(&path, error.error)),
            },
        }
    }
}

fn file_failed(path: &Path, source: io::Error) -> Failure {
    Failure::File { action: "write", path: path.to_owned(), source }
}

fn mime_type(path: &Path) -> &'static str {
    let end = path.extension().and_then(|end| end.to_str()).map(str::to_lowercase);
    end.and_then(|end| TYPES.iter().find(|(known, _)| *known == end))
        .map_or("application/octet-stream", |(_, mime_type)| mime_type)
}

fn is_text(mime_type: &str) -> bool {
    mime_type.starts_with("text/") || matches!(mime_type, "application/json" | "application/toml")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::mime_type;

    #[test]
    fn a_file_s_name_tells_its_type() {
        assert_eq!(mime_type(Path::new("a/b.MID")), "audio/midi");
        assert_eq!(mime_type(Path::new("a/b")), "application/octet-stream");
        assert_eq!(mime_type(Path::new("-")), "application/octet-stream");
    }
}
