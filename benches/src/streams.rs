//! A crowd of clients with an open stream each, in a process of its own.

use std::io::Read;
use std::time::Duration;

use anyhow::Context;

use crate::bare::say;
use crate::party::Connection;

/// Runs this program as the crowd.
pub(crate) const ROLE: &str = "--role-streams";

/// Registers a tool for each client, opens its stream, and idles until its input ends.
pub(crate) async fn run(http: &str, token: &str, count: usize) -> anyhow::Result<()> {
    let mut registering = Connection::to(http, token).await?;
    let mut streams = Vec::with_capacity(count);
    for number in 0..count {
        let client = format!("crowd{number:05}");
        registering.register(&client, &["echo"]).await?;
        let mut line = Connection::to(http, token).await?;
        let stream = line.pending(&client).await?;
        streams.push((line, stream));
    }
    // By then, temporary allocations are gone.
    tokio::time::sleep(Duration::from_secs(1)).await;
    say("ready")?;
    let waited = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
    waited.await?.context("cannot wait for the end of the input")?;
    drop(streams);
    Ok(())
}
