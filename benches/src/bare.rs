//! Roles that run as processes of their own: the bare ROUTER, and idle peers.

use std::io::{Read, Write};
use std::time::Duration;

use anyhow::Context;
use omq_tokio::{Options, Socket, SocketType};

use crate::load::{self, Load};

/// Runs this program as the bare ROUTER.
pub(crate) const ROUTER_ROLE: &str = "--role-bare-router";
/// Runs this program as a crowd of idle peers.
pub(crate) const PEERS_ROLE: &str = "--role-idle-peers";

/// Sends everything back unchanged, with the identity the ROUTER put in front.
pub(crate) async fn router() -> anyhow::Result<()> {
    let options = Options::default()
        .router_mandatory(true)
        .plain_server(|peer| peer.password.as_deref().is_some_and(|secret| !secret.is_empty()));
    let router = Socket::try_new(SocketType::Router, options)?;
    let endpoint = router.bind("tcp://127.0.0.1:0").await?;
    say(&endpoint.to_string())?;
    loop {
        let message = router.recv().await?;
        router.send(message).await?;
    }
}

/// Connects, makes one call with each peer, and then idles until its input ends.
pub(crate) async fn idle_peers(endpoint: &str, token: &str, count: usize) -> anyhow::Result<()> {
    let body = load::ping();
    let mut peers = Vec::with_capacity(count);
    for _ in 0..count {
        let mut peer = Load::connect(endpoint, token).await?;
        peer.exchange(1, 1, |_| body.clone(), load::ignore).await?;
        peers.push(peer);
    }
    // By then, temporary allocations of the last calls are gone.
    tokio::time::sleep(Duration::from_secs(1)).await;
    say("ready")?;
    let waited = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
    waited.await?.context("cannot wait for the end of the input")?;
    drop(peers);
    Ok(())
}

pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    println!("{line}");
    std::io::stdout().flush().context("cannot write to standard output")
}
