//! Hosts on loopback addresses, a table of names, and an agent that uses a network proxy.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use camino::Utf8Path;
use ringback_broker::{NetworkConnection, NetworkOutcome};
use ringback_egress::{LookupFuture, NetworkConfig, NetworkDoors, NetworkRecorder, Resolver};
use ringback_proto::ids::SessionId;
use ringback_proto::network::{HostName, NetworkPolicy};
use ringback_testkit::within;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A host. It answers an HTTP request with its address, and echoes anything else.
pub(crate) struct Server {
    pub(crate) port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(address: &str) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let (port, heads) = (listener.local_addr().unwrap().port(), Arc::default());
        let (noted, name, mut task) = (Arc::clone(&heads), address.to_owned(), JoinSet::new());
        task.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, name.clone(), Arc::clone(&noted)));
            }
        });
        Self { port, heads, _task: task }
    }

    /// The heads of the requests it got.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, name: String, heads: Arc<Mutex<Vec<String>>>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        match stream.read_line(&mut head).await {
            Ok(0) | Err(_) => return,
            Ok(_) if head == "echo\n" => {
                let (mut reader, mut writer) = tokio::io::split(stream);
                drop(tokio::io::copy(&mut reader, &mut writer).await);
                return;
            }
            Ok(_) => {}
        }
    }
    let length = if head.contains("/hangs") { 1_000_000 } else { name.len() };
    let moved = head.split(' ').nth(1).and_then(|path| path.strip_prefix("/moved/"));
    let answer = match moved {
        Some(to) => {
            format!("HTTP/1.1 302 Found\r\nlocation: http://{to}/\r\ncontent-length: 0\r\n\r\n")
        }
        None => format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{name}"),
    };
    heads.lock().unwrap().push(head);
    drop(stream.write_all(answer.as_bytes()).await);
    // Until the other end leaves.
    drop(stream.read(&mut [0]).await);
}

/// Names, and the lookups that were made.
#[derive(Debug, Default)]
pub(crate) struct Names {
    table: Mutex<HashMap<String, Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    pub(crate) fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        self.table.lock().unwrap().insert(name.to_owned(), addresses);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolver for Names {
    fn resolve(&self, name: &HostName) -> LookupFuture {
        self.asked.lock().unwrap().push(name.to_string());
        let found = self.table.lock().unwrap().get(name.as_str()).cloned();
        Box::pin(async move { found.ok_or_else(|| io::Error::other("no such name")) })
    }
}

#[derive(Debug, Default)]
struct Records(Mutex<Vec<NetworkConnection>>);

impl NetworkRecorder for Records {
    fn record(&self, _session: SessionId, asked: &NetworkConnection) {
        self.0.lock().unwrap().push(asked.clone());
    }
}

/// The network proxy of one session.
pub(crate) struct World {
    pub(crate) names: Arc<Names>,
    pub(crate) guard: Option<Box<dyn std::any::Any + Send + Sync>>,
    pub(crate) dir: tempfile::TempDir,
    doors: NetworkDoors,
    records: Arc<Records>,
    policy: watch::Sender<Arc<NetworkPolicy>>,
}

impl World {
    pub(crate) fn start(policy: &str) -> Self {
        Self::start_with(policy, NetworkConfig::default())
    }

    pub(crate) fn start_with(policy: &str, config: NetworkConfig) -> Self {
        let (names, records) = (Arc::<Names>::default(), Arc::<Records>::default());
        let doors = NetworkDoors::new(config, Arc::<Names>::clone(&names));
        let dir = tempfile::tempdir().unwrap();
        let policy = watch::Sender::new(Arc::new(policy.parse().unwrap()));
        let path = Utf8Path::from_path(dir.path()).unwrap();
        let session = SessionId::from_random([1; 16]);
        let recorder = Arc::<Records>::clone(&records);
        let guard = doors.serve(recorder, session, path, policy.subscribe()).unwrap();
        Self { names, guard: Some(guard), dir, doors, records, policy }
    }

    pub(crate) fn change(&self, policy: &str) {
        self.policy.send_replace(Arc::new(policy.parse().unwrap()));
    }

    /// A connection of the agent.
    pub(crate) async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.dir.path().join("network.sock")).await.unwrap()
    }

    /// The status and the body of the answer to a request with this head.
    pub(crate) async fn ask(&self, head: &str) -> (u16, String) {
        let mut stream = self.connect().await;
        stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        within("an answer", stream.read_to_string(&mut answer)).await.unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// Requests a page by plain HTTP.
    pub(crate) async fn get(&self, place: &str) -> (u16, String) {
        self.ask(&format!("GET http://{place}/ HTTP/1.1\r\nhost: elsewhere")).await
    }

    /// Requests a tunnel; the stream is in it if the status is 200.
    pub(crate) async fn tunnel(&self, place: &str) -> (u16, BufReader<UnixStream>) {
        let mut stream = BufReader::new(self.connect().await);
        let head = format!("CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut status, mut line) = (None, String::new());
        while line != "\r\n" {
            line.clear();
            let n_read = within("an answer", stream.read_line(&mut line)).await.unwrap();
            assert_ne!(n_read, 0, "the proxy answers");
            status = status.or_else(|| line.split(' ').nth(1).unwrap().parse().ok());
        }
        (status.unwrap(), stream)
    }

    /// A tunnel to an echo server that has answered once.
    pub(crate) async fn echo(&self, place: &str) -> BufReader<UnixStream> {
        let (status, mut stream) = self.tunnel(place).await;
        assert_eq!(status, 200, "{place}");
        stream.write_all(b"echo\nhello\n").await.unwrap();
        assert_eq!(heard(&mut stream).await, "hello\n");
        stream
    }

    /// The records, once there are this many: places and their outcomes.
    pub(crate) async fn records(&self, n_records: usize) -> Vec<NetworkConnection> {
        within("records", async {
            loop {
                let records = self.records.0.lock().unwrap().clone();
                if records.len() >= n_records {
                    return records;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }

    pub(crate) async fn outcomes(&self, n_records: usize) -> Vec<NetworkOutcome> {
        self.records(n_records).await.iter().map(|record| record.outcome).collect()
    }

    pub(crate) async fn stop(mut self) {
        self.guard.take();
        within("the network proxies stop", self.doors.stop()).await;
    }
}

/// The next line; empty at the end.
pub(crate) async fn heard(stream: &mut BufReader<UnixStream>) -> String {
    let mut line = String::new();
    // A connection that is cut off has ended too.
    drop(within("a line", stream.read_line(&mut line)).await);
    line
}
