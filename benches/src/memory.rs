//! Memory: the program on the disk, the idle daemon, and the daemon with many idle peers.

use std::process::Command;
use std::time::Duration;

use crate::bare;
use crate::figure::{Figure, Line, Round};
use crate::process::{self, Server};
use crate::settings::Settings;

const PEERS: usize = 2000;
/// By then, memory that is needed only for a start is released.
const SETTLE: Duration = Duration::from_secs(2);

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let (mut idle, mut own, mut peers) = (0.0_f64, 0.0_f64, Vec::new());
    for _ in 0..settings.n_rounds {
        let bare = with_peers(settings, &Server::bare(settings)?)?;
        let dir = settings.temporary()?;
        let daemon = Server::daemon(settings, dir.path(), dir.path())?;
        tokio::time::sleep(SETTLE).await;
        idle = idle.max(daemon.resident_mib()?);
        own = own.max(daemon.own_mib()?);
        let ours = with_peers(settings, &daemon)?;
        peers.push(Round { bare, ours });
    }
    Ok(vec![
        Figure::value("program, stripped", "MB", stripped_mb(settings)?, Line::AtMost(45.0)),
        Figure::value("idle daemon: resident", "MiB", idle, Line::AtMost(24.0)),
        Figure::value("idle daemon: its own memory", "MiB", own, Line::AtMost(4.0)),
        Figure::ratio("2,000 idle peers", "MiB", &peers, Line::AtMost(1.2)),
    ])
}

/// The size of the program as it is packaged.
fn stripped_mb(settings: &Settings) -> anyhow::Result<f64> {
    let dir = settings.temporary()?;
    let stripped = dir.path().join("stripped");
    let status = Command::new("strip").arg("-o").arg(&stripped).arg(&settings.ringback).status();
    anyhow::ensure!(status?.success(), "cannot strip the program");
    Ok(std::fs::metadata(stripped)?.len() as f64 / 1e6)
}

fn with_peers(settings: &Settings, server: &Server) -> anyhow::Result<f64> {
    let mut command = Command::new(&settings.bench);
    command.arg(bare::PEERS_ROLE).arg(&server.endpoint).arg(&server.token);
    command.arg(settings.size(PEERS).to_string());
    let (mut peers, _ready) = process::start(command)?;
    let resident = server.resident_mib();
    drop(peers.stdin.take());
    peers.wait()?;
    resident
}
