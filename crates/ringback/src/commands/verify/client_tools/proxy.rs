//! The proxy between the daemon and a candidate: it records traffic, adds noise that a reader must
//! skip, and cuts connections.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use ringback_sync::lock;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Far more than a verification sends; past it nothing more is recorded.
const RECORD_BYTES_MAX: usize = 64 << 20;
/// The end of an HTTP head.
const HEAD_END: &[u8] = b"\r\n\r\n";
/// The request for a stream of calls.
const OPENS_STREAM: &[u8] = b"GET /client-tools/pending/";
/// Any post.
const POSTS: &[u8] = b"POST /client-tools/";
/// The post of a result.
const POSTS_RESULT: &[u8] = b"POST /client-tools/result";
/// Comments, unknown fields, unknown events and the cancel of an unknown call: a reader skips them.
const NOISE: &str = ": a comment\n\nid: 7\nretry: 1000\nevent: from-the-future\ndata: {\"type\":\"x\"}\n\n\
    event: tool-cancel\ndata: {\"type\":\"client-tool-cancel\",\"requestID\":\"verify-nobody\",\
    \"reason\":\"cancelled\"}\n\nfuture-field: 1\ndata: no event name\n\n";

/// The proxy.
#[derive(Debug)]
pub(super) struct Proxy {
    address: SocketAddr,
    heard: Arc<TrafficLog>,
    /// Counts the cuts.
    cuts: watch::Sender<u64>,
    _accepting: JoinSet<()>,
}

/// The traffic, by connection.
#[derive(Debug, Default)]
struct TrafficLog {
    connections: Mutex<Vec<Connection>>,
}

/// The traffic of one connection.
#[derive(Debug, Default)]
struct Connection {
    to_daemon: Vec<u8>,
    to_candidate: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToDaemon,
    ToCandidate,
}

impl Proxy {
    /// Listens at `listen` and forwards everything to `daemon`.
    pub(super) async fn start(listen: SocketAddr, daemon: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let (cuts, cut) = watch::channel(0);
        let heard = Arc::new(TrafficLog::default());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, daemon, Arc::clone(&heard), cut));
        Ok(Self { address, heard, cuts, _accepting: accepting })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts every open connection; new ones are accepted.
    pub(super) fn cut(&self) {
        self.cuts.send_modify(|n_cuts| *n_cuts += 1);
    }

    /// Counts how often a call was sent to the candidate.
    pub(super) fn n_delivered(&self, request_id: &str) -> usize {
        let connections = self.heard.lock();
        connections.iter().map(|connection| count(&connection.to_candidate, request_id)).sum()
    }

    /// Counts how often the candidate posted a result for a call.
    pub(super) fn n_results(&self, request_id: &str) -> usize {
        let connections = self.heard.lock();
        connections.iter().map(|connection| n_posted(&connection.to_daemon, request_id)).sum()
    }
}

impl TrafficLog {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        lock(&self.connections)
    }

    fn add(&self) -> usize {
        let mut connections = self.lock();
        connections.push(Connection::default());
        connections.len() - 1
    }

    fn record(&self, number: usize, way: Direction, bytes: &[u8]) {
        if let Some(connection) = self.lock().get_mut(number) {
            let record = match way {
                Direction::ToDaemon => &mut connection.to_daemon,
                Direction::ToCandidate => &mut connection.to_candidate,
            };
            if record.len() + bytes.len() <= RECORD_BYTES_MAX {
                record.extend_from_slice(bytes);
            }
        }
    }

    fn is_stream(&self, number: usize) -> bool {
        self.lock().get(number).is_some_and(|connection| {
            let sent = &connection.to_daemon;
            let last = sent.len().saturating_sub(HEAD_END.len());
            // The connection may have carried other requests before.
            positions(&sent[..last], OPENS_STREAM).next().is_some()
        })
    }
}

async fn accept(
    listener: TcpListener,
    daemon: SocketAddr,
    heard: Arc<TrafficLog>,
    cut: watch::Receiver<u64>,
) {
    let mut passing = JoinSet::new();
    loop {
        while passing.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((candidate, _)) => {
                passing.spawn(pass(candidate, daemon, Arc::clone(&heard), cut.clone()));
            }
            Err(error) => tracing::debug!(%error, "cannot accept a connection"),
        }
    }
}

/// Forwards one connection until either side closes it, or it is cut.
async fn pass(
    candidate: TcpStream,
    daemon: SocketAddr,
    heard: Arc<TrafficLog>,
    mut cut: watch::Receiver<u64>,
) {
    cut.mark_unchanged();
    let Ok(daemon) = TcpStream::connect(daemon).await else { return };
    let number = heard.add();
    let (from_candidate, to_candidate) = candidate.into_split();
    let (from_daemon, to_daemon) = daemon.into_split();
    let up = copy(from_candidate, to_daemon, &heard, number, Direction::ToDaemon);
    let down = copy(from_daemon, to_candidate, &heard, number, Direction::ToCandidate);
    let both = async {
        let (up, down) = tokio::join!(up, down);
        up.and(down)
    };
    tokio::select! {
        passed = both => {
            if let Err(error) = passed {
                tracing::debug!(%error, "a connection broke");
            }
        }
        _ = cut.changed() => {}
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    heard: &TrafficLog,
    number: usize,
    way: Direction,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    let mut head = Vec::new();
    let mut has_noise = way == Direction::ToDaemon;
    loop {
        let n_read = from.read(&mut buffer).await?;
        if n_read == 0 {
            return to.shutdown().await;
        }
        let bytes = &buffer[..n_read];
        // Recorded before it is forwarded: an answer must not arrive before its request is known.
        heard.record(number, way, bytes);
        if has_noise || !heard.is_stream(number) {
            to.write_all(bytes).await?;
            continue;
        }
        head.extend_from_slice(bytes);
        if let Some(end) = positions(&head, HEAD_END).next() {
            let (head, rest) = head.split_at(end + HEAD_END.len());
            to.write_all(head).await?;
            if is_chunked(head) {
                to.write_all(format!("{:x}\r\n{NOISE}\r\n", NOISE.len()).as_bytes()).await?;
            }
            to.write_all(rest).await?;
            has_noise = true;
        }
    }
}

fn is_chunked(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    head.contains("transfer-encoding: chunked") && head.contains("text/event-stream")
}

/// Counts the posted results for this call.
fn n_posted(sent: &[u8], request_id: &str) -> usize {
    let starts: Vec<_> = positions(sent, POSTS).chain([sent.len()]).collect();
    let posts = starts.windows(2).map(|ends| &sent[ends[0]..ends[1]]);
    posts.filter(|post| post.starts_with(POSTS_RESULT) && count(post, request_id) > 0).count()
}

fn count(bytes: &[u8], text: &str) -> usize {
    // Quoted, so that an id does not match inside a longer one.
    positions(bytes, format!("\"{text}\"").as_bytes()).count()
}

fn positions<'a>(bytes: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let windows = bytes.windows(wanted.len()).enumerate();
    windows.filter(move |(_, window)| *window == wanted).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::{count, n_posted};

    #[test]
    fn results_are_counted_by_request() {
        let sent = b"POST /client-tools/result HTTP/1.1\r\n\r\n{\"requestID\": \"a-1\"}POST /client-tools/result \
            HTTP/1.1\r\n\r\n{\"requestID\":\"a-1\",\"x\":\"a-1\"}POST /client-tools/progress\r\n\r\n{\"requestID\":\"a-2\"}";
        assert_eq!((n_posted(sent, "a-1"), n_posted(sent, "a-2")), (2, 0));
        assert_eq!(count(sent, "a"), 0);
    }
}
