//! What the kernel counts per user, and a sandbox therefore shares with its daemon.

use std::fs;
use std::time::Duration;

use ringback_sandbox::ConfinedProgram;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::bench::{Bench, User};
use crate::concurrency::{sandbox, spec};

/// The limit of epoll watches per user.
const WATCHES: &str = "/proc/sys/fs/epoll/max_user_watches";
/// Low enough to be used up in a moment, and more than everything else on this machine has.
const FEW: u64 = 60_000;
/// Longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes all watches, and leaves the few that others release meanwhile.
const GREEDY: &str = r#"exec /usr/bin/python3 -c "
import os, select, signal
files = [os.eventfd(0) for _ in range(1000)]
polls = []
try:
    while True:
        polls.append(select.epoll())
        for file in files: polls[-1].register(file)
except OSError as error:
    for file in files[:90]: polls[0].unregister(file)
    print(error.strerror, flush=True)
signal.pause()""#;

/// Fewer watches for every user of this machine, while no other test changes them.
struct WatchLimit {
    before: String,
    _alone: fs::File,
}

impl WatchLimit {
    fn start() -> Self {
        let lock = std::env::temp_dir().join("ringback-epoll-watches.lock");
        let alone = fs::File::create(lock).unwrap();
        rustix::fs::flock(&alone, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let before = fs::read_to_string(WATCHES).unwrap();
        fs::write(WATCHES, FEW.to_string()).unwrap();
        Self { before, _alone: alone }
    }
}

impl Drop for WatchLimit {
    fn drop(&mut self) {
        fs::write(WATCHES, self.before.trim()).unwrap();
    }
}

/// Rule: the sandbox that uses up the watches of its user is ended with a reason; another one goes
/// on, and new connections are accepted.
#[tokio::test(flavor = "multi_thread")]
async fn who_uses_up_the_watches_is_ended_and_nobody_else() {
    if !ringback_testkit::is_root() {
        return;
    }
    for bench in [Some(Bench::new(User::Me)), Bench::docker(User::Me)].into_iter().flatten() {
        used_up(&bench).await;
    }
}

async fn used_up(bench: &Bench) {
    let sandbox = sandbox(bench);
    let honest = sandbox.start(spec(bench, "echo ready; head -n 1")).await.unwrap();
    let few = WatchLimit::start();
    let mut greedy = sandbox.start(spec(bench, GREEDY)).await.unwrap();
    let mut said = String::new();
    let reading = tokio::time::timeout(PATIENCE, greedy.pipes.stdout.read_to_string(&mut said));
    reading.await.expect("it is ended").unwrap();
    assert_eq!(said.trim(), "No space left on device");
    tokio::time::timeout(PATIENCE, greedy.process.wait()).await.unwrap().unwrap();
    let why = greedy.process.ended_because().unwrap();
    assert!(why.contains("fs.epoll.max_user_watches") && why.contains("60000"), "{why}");
    // New connections get watches again.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (connected, accepted) =
        tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
    assert!(connected.is_ok() && accepted.is_ok());
    drop(few);
    greedy.hold.gone().await;
    let ConfinedProgram { mut pipes, process, hold } = honest;
    pipes.stdin.write_all(b"still here\n").await.unwrap();
    let mut said = String::new();
    tokio::time::timeout(PATIENCE, pipes.stdout.read_to_string(&mut said)).await.unwrap().unwrap();
    assert_eq!((said.as_str(), process.ended_because()), ("ready\nstill here\n", None));
    hold.gone().await;
}
