//! Queries: the examples of `docs/graph-query.md` with many artifacts against few, and other calls
//! beside the worst query that is allowed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ringback_client::{Client, Config, Credentials};
use ringback_proto::ids::{ArtifactId, JobId};
use ringback_proto::principal::Level;
use ringback_proto::request::{
    GraphContextRequest, GraphFindRequest, GraphHint, GraphQueryRequest, JobStatusRequest,
    PingRequest, TokenCreateRequest,
};
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::{GraphQuery, JobStatus, Ping, TokenCreate};
use ringback_proto::value::Value;
use ringback_proto::{RequestEnvelope, ToolRequest};

use tokio::task::JoinSet;

use crate::figure::{Figure, Line, Round};
use crate::graph_records::{self, DEEP};
use crate::load::{self, Load};
use crate::process::Server;
use crate::settings::Settings;
use crate::stored_records::{fill, id};

/// Makes a request.
type Request = fn() -> ToolRequest;

const PAGE: &str = include_str!("../../docs/graph-query.md");
const FEW: usize = 1000;
const MANY: usize = 100_000;
const CALLS: usize = 500;
/// Calls beside the worst query, one after the other.
const PROBES: usize = 400;
/// A name for each example: the page has fewer.
const NAMES: [&str; 16] = [
    "query example 1, 100,000 stored",
    "query example 2, 100,000 stored",
    "query example 3, 100,000 stored",
    "query example 4, 100,000 stored",
    "query example 5, 100,000 stored",
    "query example 6, 100,000 stored",
    "query example 7, 100,000 stored",
    "query example 8, 100,000 stored",
    "query example 9, 100,000 stored",
    "query example 10, 100,000 stored",
    "query example 11, 100,000 stored",
    "query example 12, 100,000 stored",
    "query example 13, 100,000 stored",
    "query example 14, 100,000 stored",
    "query example 15, 100,000 stored",
    "query example 16, 100,000 stored",
];
/// Queries that hold as much as they may until their time is up: sorts of long rows that are all
/// different, and as many temporary tables as a query can have.
const WORST: [&str; 2] = [
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
    SELECT DISTINCT printf('%30000d', x) AS y, max(printf('%30000d', -x)) OVER () AS z FROM c ORDER BY y DESC",
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
    SELECT count(DISTINCT printf('%30000d', x)) AS a, count(DISTINCT printf('%30000d', -x)) AS b,
        count(DISTINCT printf('%30001d', x)) AS c, count(DISTINCT printf('%30001d', -x)) AS d,
        count(DISTINCT printf('%30002d', x)) AS e FROM c",
];
/// Calls of the graph that are no query.
const CALLS_OF_GRAPH: [(&str, Request); 3] = [
    ("graph_context, 100,000 stored", || ToolRequest::GraphContext(GraphContextRequest::default())),
    ("graph_context by vibe, 100,000 stored", || {
        let vibe_search = Some("slow warm".to_owned());
        ToolRequest::GraphContext(GraphContextRequest { vibe_search, ..Default::default() })
    }),
    ("graph_find by hint, 100,000 stored", || {
        let (kind, value) = graph_records::HINT;
        let hints = vec![GraphHint { kind, value: value.to_owned(), confidence: None }];
        ToolRequest::GraphFind(GraphFindRequest { hints, ..Default::default() })
    }),
];

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let mut figures = examples(settings).await?;
    figures.extend(beside(settings).await?);
    Ok(figures)
}

async fn examples(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let (few_dir, many_dir) = (settings.temporary()?, settings.temporary()?);
    graph_records::fill(few_dir.path(), settings.size(FEW)).await?;
    graph_records::fill(many_dir.path(), settings.size(MANY)).await?;
    let few = Server::daemon(settings, few_dir.path(), few_dir.path())?;
    let many = Server::daemon(settings, many_dir.path(), many_dir.path())?;
    let mut to_few = Load::connect(&few.endpoint, &few.token).await?;
    let mut to_many = Load::connect(&many.endpoint, &many.token).await?;
    let n_calls = settings.size(CALLS);
    let mut figures = Vec::new();
    let blocks = PAGE.split("```sql\n").skip(1);
    let examples = NAMES
        .iter()
        .zip(blocks)
        .map(|(name, block)| (*name, example(block.split("```").next().unwrap_or_default())));
    let calls = CALLS_OF_GRAPH
        .map(|(name, request)| (name, Bytes::from(RequestEnvelope::plain(request()).encode())));
    for (name, body) in examples.chain(calls) {
        let mut rounds = Vec::new();
        for _ in 0..settings.n_rounds {
            let same = |_| body.clone();
            let bare = to_few.measure(&few, 1, n_calls, same, load::succeeded).await?;
            let ours = to_many.measure(&many, 1, n_calls, same, load::succeeded).await?;
            rounds.push(Round { bare: bare.cpu_us, ours: ours.cpu_us });
        }
        let figure = Figure::ratio(name, "CPU µs", &rounds, Line::AtMost(1.3));
        figures.push(figure.with_cpu(&rounds));
    }
    Ok(figures)
}

/// Returns the call of an example; its artifact has a lineage of depth 10 upwards.
fn example(sql: &str) -> Bytes {
    let assigned = sql.lines().filter_map(|line| line.strip_prefix("-- :")?.split_once(" = "));
    let variables = assigned.map(|(name, value)| {
        let value = match (name, value.strip_prefix('"')) {
            ("id", _) => Value::Text(ArtifactId::from_random(id(DEEP)).to_string()),
            ("session", _) => Value::Text(graph_records::session(DEEP).to_string()),
            ("tag", _) => Value::Text("measured".to_owned()),
            (_, Some(text)) => Value::Text(text.trim_end_matches('"').to_owned()),
            (_, None) => Value::Int(value.parse().unwrap_or_default()),
        };
        (name.to_owned(), value)
    });
    let variables = Some(variables.collect::<BTreeMap<_, _>>());
    let request = GraphQueryRequest { query: sql.to_owned(), variables, limit: None };
    RequestEnvelope::plain(ToolRequest::GraphQuery(request)).encode().into()
}

/// Measures other calls while both connections are busy.
async fn beside(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let dir = settings.temporary()?;
    fill(dir.path(), settings.size(FEW)).await?;
    settings.use_all_cores()?;
    let daemon = Server::daemon(settings, dir.path(), dir.path())?;
    let client = connect(&daemon, &daemon.token).await?;
    let mut busy = Vec::new();
    for _ in 0..2 {
        let request = TokenCreateRequest {
            name: "bench".to_owned(),
            scope: Level::Read,
            projects: None,
            expires_in: None,
        };
        let created = client.call::<TokenCreate>(request).await?;
        busy.push(connect(&daemon, created.token.expose()).await?);
    }
    let (mut pings, mut states, mut growth) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..settings.n_rounds {
        let alone = (p50(settings, &client, ping).await?, p50(settings, &client, state).await?);
        let before = daemon.resident_mib()?;
        daemon.forget_peak()?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for busy in &busy {
            tasks.spawn(keep_busy(busy.clone(), Arc::clone(&stop)));
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        let beside = (p50(settings, &client, ping).await?, p50(settings, &client, state).await?);
        tokio::time::sleep(Duration::from_millis(1500)).await;
        stop.store(true, Ordering::Relaxed);
        tasks.join_all().await;
        growth.push(daemon.peak_mib()? - before);
        pings.push(Round { bare: alone.0, ours: beside.0 });
        states.push(Round { bare: alone.1, ours: beside.1 });
    }
    settings.use_one_core()?;
    Ok(vec![
        Figure::ratio("ping beside the worst queries, p50", "µs", &pings, Line::AtMost(1.3)),
        Figure::ratio("job_status beside the worst queries, p50", "µs", &states, Line::AtMost(1.5)),
        Figure::values("memory of the worst queries", "MiB", &growth, Line::AtMost(32.0)),
    ])
}

async fn connect(daemon: &Server, token: &str) -> anyhow::Result<Client> {
    let credentials = Credentials::Token(Secret::new(token.to_owned()));
    Ok(Client::connect(Config::new(daemon.endpoint.clone(), credentials)).await?)
}

async fn keep_busy(client: Client, stop: Arc<AtomicBool>) {
    for worst in WORST.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let request =
            GraphQueryRequest { query: (*worst).to_owned(), variables: None, limit: None };
        // It ends when its time is up.
        drop(client.call::<GraphQuery>(request).await);
    }
}

async fn ping(client: &Client) -> anyhow::Result<()> {
    client.call::<Ping>(PingRequest::default()).await?;
    Ok(())
}

async fn state(client: &Client) -> anyhow::Result<()> {
    let job_id = JobId::from_random(id(5));
    client.call::<JobStatus>(JobStatusRequest { job_id }).await?;
    Ok(())
}

/// Returns the median time of a call in microseconds.
async fn p50(
    settings: &Settings,
    client: &Client,
    call: impl AsyncFn(&Client) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..settings.size(PROBES).max(3) {
        let started = Instant::now();
        call(client).await?;
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
