//! How a client reconnects after its daemon has gone.

use std::sync::Arc;
use std::time::Duration;

use ringback_client::{Client, Config, Credentials, LinkState};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{Daemon, plain, token};

/// The client's first pause.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The number of pauses to check: the last of them is 16 times the first.
const PAUSES: u32 = 5;

/// A gate between a client and its daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    /// Connections are counted and closed.
    Shut,
}

/// Lets connections through or counts them, as commanded.
async fn keep_gate(
    listener: TcpListener,
    daemon: String,
    gate: watch::Receiver<Gate>,
    knocks: mpsc::Sender<Instant>,
) {
    let mut passing = JoinSet::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        if *gate.borrow() == Gate::Shut {
            drop(stream);
            if knocks.send(Instant::now()).await.is_err() {
                return;
            }
            continue;
        }
        let (daemon, mut gate) = (daemon.clone(), gate.clone());
        passing.spawn(async move {
            let mut inner = TcpStream::connect(daemon).await.unwrap();
            tokio::select! {
                copied = tokio::io::copy_bidirectional(&mut stream, &mut inner) => drop(copied),
                shut = gate.wait_for(|gate| *gate == Gate::Shut) => drop(shut),
            }
        });
    }
}

/// Rule: reconnecting backs off, with a limit: each pause is longer than the one before up to a
/// limit, and the client reconnects automatically. Only pauses shorter than allowed fail this: a
/// slow machine makes them longer.
#[tokio::test]
async fn a_client_waits_longer_between_attempts_and_comes_back_by_itself() {
    let daemon = Arc::new(Daemon::start(plain()).await);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let (gate, gate_seen) = watch::channel(Gate::Open);
    let (knocks, mut knocked) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    let behind = daemon.endpoint.trim_start_matches("tcp://").to_owned();
    tasks.spawn(keep_gate(listener, behind, gate_seen, knocks));
    let answering = Arc::clone(&daemon);
    // Answers a client's automatic messages; there are no others.
    tasks.spawn(async move { drop(answering.recv().await) });

    let client =
        Client::connect(Config::new(&endpoint, Credentials::Token(token()))).await.unwrap();
    let mut link = client.link();
    gate.send_replace(Gate::Shut);
    link.wait_for(|state| *state == LinkState::Down).await.unwrap();
    let mut before = knocked.recv().await.unwrap();
    for pause_idx in 0..PAUSES {
        let at = knocked.recv().await.unwrap();
        // Half of it may be random, so that many clients do not reconnect in step.
        let least = FIRST_PAUSE * 2_u32.pow(pause_idx) / 2;
        assert!(at - before >= least, "pause {pause_idx} took {:?} of {least:?}", at - before);
        before = at;
    }
    gate.send_replace(Gate::Open);
    link.wait_for(|state| *state == LinkState::Up).await.unwrap();
    tasks.shutdown().await;
}
