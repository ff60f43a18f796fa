//! Client tools: an end-to-end call, with many clients, and among many tools.

use std::process::Command;
use std::time::Duration;

use crate::figure::{Figure, Line, Round};
use crate::load::Measurement;
use crate::party::{Connection, Party};
use crate::process::{self, Server};
use crate::settings::Settings;
use crate::streams;

/// About a second each.
const CALLS_ONE: usize = 4000;
const CALLS_MANY: usize = 8000;
const IN_FLIGHT: usize = 64;
/// Clients with an open stream.
const CLIENTS: usize = 10_000;
const CLIENTS_FEW: usize = 10;
/// Room for them, for callers and for answering clients.
const MAX_CONNECTIONS: &str = "12000";
/// By then, memory that is needed only for opening them is released.
const SETTLE: Duration = Duration::from_secs(2);
/// Tools in all, and of one client.
const TOOLS: usize = 100_000;
const TOOLS_FEW: usize = 100;
const TOOLS_PER_CLIENT: usize = 1000;
/// How many of the first and the last registrations are compared.
const TOOLS_COMPARED: usize = 10_000;
/// Measured requests of each kind.
const LISTS: usize = 1000;
const LOOKUPS: usize = 4000;

/// Measures a call against the bare relay.
pub(crate) async fn calls(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let dir = settings.temporary()?;
    let bare = Server::relay(settings)?;
    let daemon = Server::daemon(settings, dir.path(), dir.path())?;
    let mut to_bare = Party::serve(&bare, IN_FLIGHT).await?;
    let mut to_daemon = Party::serve(&daemon, IN_FLIGHT).await?;
    let (mut one, mut many) = (Vec::new(), Vec::new());
    for _ in 0..settings.n_rounds {
        for (rounds, in_flight, count) in
            [(&mut one, 1, CALLS_ONE), (&mut many, IN_FLIGHT, CALLS_MANY)]
        {
            let count = settings.size(count);
            let bare = to_bare.measure(&bare, in_flight, count).await?;
            let ours = to_daemon.measure(&daemon, in_flight, count).await?;
            rounds.push((bare, ours));
        }
    }
    let rate = |measured: &Measurement| 1e6 / measured.us;
    let cpu = |measured: &Measurement| measured.cpu_us;
    let figure =
        |name,
         unit,
         measured: &[(Measurement, Measurement)],
         value: &dyn Fn(&Measurement) -> f64,
         line| { Figure::ratio(name, unit, &rounds(measured, value), line) };
    Ok(vec![
        figure("client tool, 1 in flight", "calls/s", &one, &rate, Line::AtLeast(0.65)),
        figure("client tool, 1 in flight: CPU", "CPU µs", &one, &cpu, Line::AtMost(1.5)),
        figure("client tool, 64 in flight", "calls/s", &many, &rate, Line::AtLeast(0.65)),
        figure("client tool, 64 in flight: CPU", "CPU µs", &many, &cpu, Line::AtMost(1.5)),
    ])
}

/// Measures a call to one of many clients.
pub(crate) async fn clients(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let (few_dir, many_dir) = (settings.temporary()?, settings.temporary()?);
    let env = [("RINGBACK_HTTP__MAX_CONNECTIONS", MAX_CONNECTIONS)];
    let few = Server::daemon_with(settings, few_dir.path(), few_dir.path(), &env)?;
    let many = Server::daemon_with(settings, many_dir.path(), many_dir.path(), &env)?;
    // Allocates what a call needs before memory is compared.
    Party::serve(&many, 1).await?.measure(&many, 1, settings.size(CALLS_ONE)).await?;
    let n_clients = settings.size(CLIENTS);
    let before_mib = many.resident_mib()?;
    let _few_clients = open_streams(settings, &few, CLIENTS_FEW)?;
    let _many_clients = open_streams(settings, &many, n_clients)?;
    tokio::time::sleep(SETTLE).await;
    let kib_each = (many.resident_mib()? - before_mib) * 1024.0 / n_clients as f64;
    // Only now: the daemon closes connections that are idle for long.
    let mut to_few = Party::serve(&few, 1).await?;
    let mut to_many = Party::serve(&many, 1).await?;
    let mut measured = Vec::new();
    for _ in 0..settings.n_rounds {
        let count = settings.size(CALLS_ONE);
        let few = to_few.measure(&few, 1, count).await?;
        measured.push((few, to_many.measure(&many, 1, count).await?));
    }
    let cpu = rounds(&measured, &|measured| measured.cpu_us);
    Ok(vec![
        Figure::value("10,000 clients, each", "KiB", kib_each, Line::AtMost(16.0)),
        Figure::ratio("client tool, 10,000 clients", "CPU µs", &cpu, Line::AtMost(1.3)),
    ])
}

/// A process that keeps streams open while this exists.
fn open_streams(settings: &Settings, server: &Server, count: usize) -> anyhow::Result<Streams> {
    let mut command = Command::new(&settings.bench);
    command.arg(streams::ROLE).arg(&server.http).arg(&server.token).arg(count.to_string());
    let (child, _ready) = process::start(command)?;
    Ok(Streams(child))
}

struct Streams(std::process::Child);

impl Drop for Streams {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}

/// Measures a page, a lookup and a call among many tools, and the cost of registration.
pub(crate) async fn registered(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let (few_dir, many_dir) = (settings.temporary()?, settings.temporary()?);
    let few = Server::daemon(settings, few_dir.path(), few_dir.path())?;
    let many = Server::daemon(settings, many_dir.path(), many_dir.path())?;
    let (n_tools, n_compared) = (settings.size(TOOLS), settings.size(TOOLS_COMPARED));
    register(&few, 0..TOOLS_FEW).await?;
    let first_us = register(&many, 0..n_compared).await?;
    register(&many, n_compared..n_tools - n_compared).await?;
    let last_us = register(&many, n_tools - n_compared..n_tools).await?;
    let mut to_few = Party::serve(&few, 1).await?;
    let mut to_many = Party::serve(&many, 1).await?;
    let (mut page, mut lookup, mut call) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..settings.n_rounds {
        let (lists, lookups) = (settings.size(LISTS), settings.size(LOOKUPS));
        let path = "/v1/tools?prefix=client_c0000_";
        page.push(Round {
            bare: asked(&few, path, lists).await?,
            ours: asked(&many, path, lists).await?,
        });
        let path = "/v1/tools/client_c0000_t0050";
        lookup.push(Round {
            bare: asked(&few, path, lookups).await?,
            ours: asked(&many, path, lookups).await?,
        });
        let calls = settings.size(CALLS_ONE);
        call.push(Round {
            bare: to_few.measure(&few, 1, calls).await?.cpu_us,
            ours: to_many.measure(&many, 1, calls).await?.cpu_us,
        });
    }
    let figure = |name, rounds: &[Round]| Figure::ratio(name, "CPU µs", rounds, Line::AtMost(1.3));
    Ok(vec![
        figure("page of tools, 100,000 registered", &page),
        figure("one tool, 100,000 registered", &lookup),
        figure("client tool, 100,000 registered", &call),
        figure("the last 10,000 of 100,000", &[Round { bare: first_us, ours: last_us }]),
    ])
}

/// Registers tools one by one; returns the CPU per tool.
async fn register(server: &Server, tools: std::ops::Range<usize>) -> anyhow::Result<f64> {
    let mut connection = Connection::open(server).await?;
    let (n_tools, before_us) = (tools.len(), server.cpu_us()?);
    for number in tools {
        let client = format!("c{:04}", number / TOOLS_PER_CLIENT);
        let tool = format!("t{:04}", number % TOOLS_PER_CLIENT);
        connection.register(&client, &[&tool]).await?;
    }
    Ok((server.cpu_us()? - before_us) / n_tools as f64)
}

/// Repeats a request; returns the CPU per answer.
async fn asked(server: &Server, path: &str, count: usize) -> anyhow::Result<f64> {
    let mut connection = Connection::open(server).await?;
    let before_us = server.cpu_us()?;
    for _ in 0..count {
        connection.get(path).await?;
    }
    Ok((server.cpu_us()? - before_us) / count as f64)
}

fn rounds(
    measured: &[(Measurement, Measurement)],
    value: &dyn Fn(&Measurement) -> f64,
) -> Vec<Round> {
    measured.iter().map(|(bare, ours)| Round { bare: value(bare), ours: value(ours) }).collect()
}
