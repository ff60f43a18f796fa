//! A TCP proxy that misbehaves on demand.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What the proxy does to the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Every piece is delayed by this long.
    Delay(Duration),
    /// One byte at a time.
    Dribble,
    /// Nothing passes, and nothing is closed.
    Freeze,
    /// Every connection is closed, and new ones immediately.
    Cut,
}

/// A proxy in front of an endpoint.
#[derive(Debug)]
pub struct Proxy {
    endpoint: String,
    fault: watch::Sender<Fault>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy in front of `target`, such as `tcp://127.0.0.1:5580`.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(target: &str) -> Self {
        let target = address(target);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let endpoint = format!("tcp://{}", listener.local_addr().expect("a bound listener"));
        let (fault, told) = watch::channel(Fault::None);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, target, told));
        Self { endpoint, fault, _accepting: accepting }
    }

    /// Returns the endpoint to connect to instead.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Sets the fault from now on.
    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }
}

/// Returns the address of an endpoint.
pub(crate) fn address(endpoint: &str) -> SocketAddr {
    let address = endpoint.strip_prefix("tcp://").expect("a TCP endpoint");
    address.parse().expect("an address and a port")
}

async fn accept(listener: TcpListener, target: SocketAddr, fault: watch::Receiver<Fault>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((inner, _)) = listener.accept() => {
                if *fault.borrow() != Fault::Cut {
                    connections.spawn(connection(inner, target, fault.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(client: TcpStream, target: SocketAddr, mut fault: watch::Receiver<Fault>) {
    let Ok(server) = TcpStream::connect(target).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (up, down) = (fault.clone(), fault.clone());
    tokio::select! {
        () = pass(from_client, to_server, up) => {}
        () = pass(from_server, to_client, down) => {}
        _ = fault.wait_for(|fault| *fault == Fault::Cut) => {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut fault: watch::Receiver<Fault>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let Ok(n_bytes) = from.read(&mut buffer).await else { return };
        if n_bytes == 0 || fault.wait_for(|fault| *fault != Fault::Freeze).await.is_err() {
            return;
        }
        let now = *fault.borrow();
        let piece = match now {
            Fault::Dribble => 1,
            Fault::None | Fault::Delay(_) | Fault::Freeze | Fault::Cut => n_bytes,
        };
        if let Fault::Delay(delay) = now {
            tokio::time::sleep(delay).await;
        }
        for bytes in buffer[..n_bytes].chunks(piece) {
            if to.write_all(bytes).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}
