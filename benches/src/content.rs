//! Content store ingest against `cp` and `sync`.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;
use ringback_client::{Client, Config, Credentials};
use ringback_proto::ids::BlobHash;
use ringback_proto::request::CasUploadFileRequest;
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::CasUploadFile;

use crate::figure::{Figure, Line, Round};
use crate::process::Server;
use crate::settings::Settings;

const MIB: usize = 1024;
const MIME_TYPE: &str = "application/octet-stream";

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let dir = settings.temporary()?;
    let files = settings.temporary()?;
    let daemon = Server::daemon(settings, dir.path(), files.path())?;
    let token = Credentials::Token(Secret::new(daemon.token.clone()));
    let client = Client::connect(Config::new(daemon.endpoint.clone(), token)).await?;
    let source = Source::create(files.path(), settings.size(MIB))?;

    let idle_mib = daemon.resident_mib()?;
    daemon.forget_peak()?;
    let (mut from_file, mut by_upload) = (Vec::new(), Vec::new());
    for round in 0..settings.n_rounds {
        let bare = source.copy_and_sync()?;
        source.change(2 * round)?;
        let (hash, seconds) = ingest_file(&client, &source).await?;
        from_file.push(Round { bare: source.speed(bare), ours: source.speed(seconds) });
        forget(dir.path(), hash)?;

        let bare = source.copy_and_sync()?;
        source.change(2 * round + 1)?;
        let (hash, seconds) = upload(&client, &source).await?;
        by_upload.push(Round { bare: source.speed(bare), ours: source.speed(seconds) });
        forget(dir.path(), hash)?;
    }
    let more_mib = daemon.peak_mib()? - idle_mib;
    Ok(vec![
        Figure::ratio("content from a file, 1 GiB", "MiB/s", &from_file, Line::AtLeast(0.9)),
        Figure::ratio("content by upload, 1 GiB", "MiB/s", &by_upload, Line::AtLeast(0.6)),
        Figure::value("resident above idle meanwhile", "MiB", more_mib, Line::AtMost(64.0)),
    ])
}

async fn ingest_file(client: &Client, source: &Source) -> anyhow::Result<(BlobHash, f64)> {
    let file_path = source.path.to_str().context("the path is not valid UTF-8")?.to_owned();
    let request = CasUploadFileRequest { file_path, mime_type: MIME_TYPE.to_owned() };
    let start = Instant::now();
    let stored = client.call::<CasUploadFile>(request).await?;
    Ok((stored.hash.context("the daemon stored nothing")?, start.elapsed().as_secs_f64()))
}

async fn upload(client: &Client, source: &Source) -> anyhow::Result<(BlobHash, f64)> {
    let mut file = tokio::fs::File::open(&source.path).await?;
    // Fewer hops to the thread that reads: both ends of the upload share one core.
    file.set_max_buf_size(Config::PIECE_BYTES);
    let start = Instant::now();
    let stored = client.upload(file, MIME_TYPE).await?;
    Ok((stored.hash.context("the daemon stored nothing")?, start.elapsed().as_secs_f64()))
}

/// Makes room: the next round has different content.
fn forget(data_dir: &Path, hash: BlobHash) -> anyhow::Result<()> {
    let name = hash.to_string();
    let path = data_dir.join("blobs").join(&name[..2]).join(&name[2..4]).join(&name);
    fs::remove_file(&path).with_context(|| format!("`{}` does not exist", path.display()))
}

/// The file to store. It stays in the page cache, so that both sides only write.
struct Source {
    path: PathBuf,
    n_mib: usize,
}

impl Source {
    fn create(dir: &Path, n_mib: usize) -> anyhow::Result<Self> {
        let path = dir.join("source");
        let mut file = File::create(&path)?;
        let mut block: Vec<u8> =
            (0..1_u32 << 20).map(|n| (n.wrapping_mul(0x9e37) >> 8) as u8).collect();
        for block_idx in 0..n_mib {
            block[..8].copy_from_slice(&block_idx.to_le_bytes());
            file.write_all(&block)?;
        }
        file.rewind()?;
        file.sync_all()?;
        Ok(Self { path, n_mib })
    }

    /// Changes it to content that was never stored.
    fn change(&self, number: usize) -> anyhow::Result<()> {
        let file = File::options().write(true).open(&self.path)?;
        file.write_all_at(&(number as u64).to_le_bytes(), 8)?;
        Ok(file.sync_all()?)
    }

    fn copy_and_sync(&self) -> anyhow::Result<f64> {
        let copy = self.path.with_extension("copy");
        let start = Instant::now();
        let copied = Command::new("cp").arg(&self.path).arg(&copy).status()?;
        let synced = Command::new("sync").arg(&copy).status()?;
        let seconds = start.elapsed().as_secs_f64();
        anyhow::ensure!(copied.success() && synced.success(), "`cp` or `sync` failed");
        fs::remove_file(&copy)?;
        Ok(seconds)
    }

    fn speed(&self, seconds: f64) -> f64 {
        self.n_mib as f64 / seconds
    }
}
