//! Chunks from a worker to a caller that reads slowly: none is lost, and the daemon holds few.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use futures_util::StreamExt as _;
use ringback_client::{Client, Config, Credentials, StreamItem, Worker, WorkerCall, WorkerTools};
use ringback_proto::any::{Any, Format};
use ringback_proto::data::Data;
use ringback_proto::ready::OfferedTool;
use ringback_proto::secret::Secret;
use ringback_proto::{CallOptions, Error, StreamChunk};
use tokio::time::{Instant, sleep_until};

use crate::figure::{Figure, Line};
use crate::process::Server;
use crate::settings::Settings;

const MIB: usize = 1024;
const CHUNK_BYTES: usize = 256 << 10;
/// How fast the caller reads.
const BYTES_PER_SECOND: f64 = 20.0 * 1024.0 * 1024.0;
/// The deadline of the call: twice the time it takes, and more.
const DEADLINE: Duration = Duration::from_secs(300);

type Numbers = HashMap<String, usize>;

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let dir = settings.temporary()?;
    let daemon = Server::daemon(settings, dir.path(), dir.path())?;
    let config = || {
        let token = Credentials::Token(Secret::new(daemon.token.clone()));
        Config::new(daemon.endpoint.clone(), token)
    };
    let tools = WorkerTools::new("bench").tool(OfferedTool::Name("pour".to_owned()), pour);
    let worker = Worker::serve(config(), tools).await?;
    let client = Client::connect(config()).await?;
    // The first call touches code and buffers that every call uses.
    read(&client, CHUNK_BYTES, f64::MAX).await?;
    let idle_mib = daemon.resident_mib()?;
    daemon.forget_peak()?;
    read(&client, settings.size(MIB) << 20, BYTES_PER_SECOND).await?;
    let more_mib = daemon.peak_mib()? - idle_mib;
    worker.close().await;
    let name = "resident above idle, 1 GiB of chunks read at 20 MiB/s";
    Ok(vec![Figure::value(name, "MiB", more_mib, Line::AtMost(8.0))])
}

/// Sends bytes that show where they belong.
async fn pour(input: Numbers, call: WorkerCall) -> Result<(), Error> {
    let n_chunks = input["bytes"].div_ceil(CHUNK_BYTES);
    for number in 0..n_chunks {
        let data = Data(chunk(number));
        call.send(StreamChunk::PartialContent { data, mime_type: "a/b".to_owned() }).await;
    }
    Ok(())
}

fn chunk(number: usize) -> Bytes {
    let mut bytes = vec![number as u8; CHUNK_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes.into()
}

/// Reads everything at a pace, and checks it.
async fn read(client: &Client, n_bytes: usize, bytes_per_second: f64) -> anyhow::Result<()> {
    let input = Numbers::from([("bytes".to_owned(), n_bytes)]);
    let bytes = rmp_serde::to_vec_named(&input)?.into();
    let arguments = Any { format: Format::MsgPack, bytes };
    let deadline_ms = u64::try_from(DEADLINE.as_millis()).ok().and_then(std::num::NonZero::new);
    let options = CallOptions { deadline_ms, ..CallOptions::default() };
    let mut stream = client.stream_named("bench_pour", arguments, options)?;
    let start = Instant::now();
    let mut n_chunks = 0;
    loop {
        match stream.next().await.context("the stream ended early")?? {
            StreamItem::Chunk(StreamChunk::PartialContent { data, .. }) => {
                anyhow::ensure!(data.0 == chunk(n_chunks), "chunk {n_chunks} is lost");
                n_chunks += 1;
                let due = (n_chunks * CHUNK_BYTES) as f64 / bytes_per_second;
                sleep_until(start + Duration::from_secs_f64(due)).await;
            }
            StreamItem::Started { .. } | StreamItem::Chunk(_) => {}
            StreamItem::End(_) => break,
        }
    }
    anyhow::ensure!(n_chunks * CHUNK_BYTES >= n_bytes, "only {n_chunks} chunks arrived");
    Ok(())
}
