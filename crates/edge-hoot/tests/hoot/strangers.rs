//! Strangers who connect and send nothing.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};

use ringback_testkit::{World, wait_for};

use crate::support::*;

/// Several times more than a socket has places for.
const N_STRANGERS: usize = 600;
/// The number that a socket keeps.
const N_KEPT: usize = 64;

fn stranger(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nonblocking(true).unwrap();
    stream
}

/// Returns whether the other side has not hung up; its data is ignored.
fn is_open(mut stream: &TcpStream) -> bool {
    let mut said = [0; 256];
    loop {
        match stream.read(&mut said) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

/// Rule: half-open handshakes are bounded, and delay no one: a peer that shakes hands gets in
/// meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn half_open_handshakes_keep_nobody_out() {
    let daemon = World::with_hoot().await;
    let mut early = raw(&daemon).await;
    for endpoint in [daemon.calls(), daemon.events()] {
        let address = endpoint.strip_prefix("tcp://").unwrap().parse().unwrap();
        let strangers: Vec<_> = (0..N_STRANGERS).map(|_| stranger(address)).collect();
        let n_open = || strangers.iter().filter(|stream| is_open(stream)).count();
        wait_for("the oldest strangers are sent away", async || n_open() <= N_KEPT).await;
        assert_pings(&mut early).await;
        if endpoint == daemon.calls() {
            assert_pings(&mut raw(&daemon).await).await;
        } else {
            drop(daemon.subscriber(daemon.admin_token(), &["job."]).await);
        }
        assert!(n_open() > 0, "it had to wait until no stranger was left");
    }
    daemon.stop().await;
}
