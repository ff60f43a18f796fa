//! `ping` over HOOT01 against a bare echo of the same seven parts.

use crate::figure::{Figure, Line, Round};
use crate::load::{self, Load, Measurement};
use crate::process::Server;
use crate::settings::Settings;

/// About a second each.
const CALLS_ONE: usize = 20_000;
const CALLS_MANY: usize = 60_000;
const IN_FLIGHT: usize = 64;

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let dir = settings.temporary()?;
    let bare = Server::bare(settings)?;
    let daemon = Server::daemon(settings, dir.path(), dir.path())?;
    let mut to_bare = Load::connect(&bare.endpoint, &bare.token).await?;
    let mut to_daemon = Load::connect(&daemon.endpoint, &daemon.token).await?;
    to_daemon.exchange(1, 1, |_| load::ping(), load::succeeded).await?;

    let (mut one, mut many) = (Vec::new(), Vec::new());
    for _ in 0..settings.n_rounds {
        for (rounds, in_flight, count) in
            [(&mut one, 1, CALLS_ONE), (&mut many, IN_FLIGHT, CALLS_MANY)]
        {
            let count = settings.size(count);
            let bare = measure(&mut to_bare, &bare, in_flight, count).await?;
            let ours = measure(&mut to_daemon, &daemon, in_flight, count).await?;
            rounds.push((bare, ours));
        }
    }
    let one_us = rounds(&one, |measured| measured.us);
    let many_rate = rounds(&many, |measured| 1e6 / measured.us);
    let cpu = |measured: &Measurement| measured.cpu_us;
    Ok(vec![
        Figure::ratio("ping, 1 in flight", "µs", &one_us, Line::AtMost(1.15))
            .with_cpu(&rounds(&one, cpu)),
        Figure::ratio("ping, 64 in flight", "calls/s", &many_rate, Line::AtLeast(0.75))
            .with_cpu(&rounds(&many, cpu)),
    ])
}

async fn measure(
    load: &mut Load,
    server: &Server,
    in_flight: usize,
    count: usize,
) -> anyhow::Result<Measurement> {
    let body = load::ping();
    load.measure(server, in_flight, count, |_| body.clone(), load::ignore).await
}

fn rounds(
    measured: &[(Measurement, Measurement)],
    value: impl Fn(&Measurement) -> f64,
) -> Vec<Round> {
    measured.iter().map(|(bare, ours)| Round { bare: value(bare), ours: value(ours) }).collect()
}
