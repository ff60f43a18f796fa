//! A mock daemon for a candidate: it accepts its Ready, answers its heartbeats, sends it calls, and
//! records everything it sends.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use ringback_proto::frame::{Body, Command, Frame, Text};
use ringback_proto::ids::RequestId;
use ringback_proto::secret::Secret;
use ringback_proto::value::Value;
use ringback_proto::{Error, ResponseEnvelope};
use ringback_sync::lock;
use serde::Serialize;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::message::{CallMessage, WorkerMessage, read};
use super::zmtp::{self, PeerMessage};

/// The tools a candidate has to offer.
const TOOLS: [&str; 4] = ["echo", "slow", "fail", "pour"];
/// The deadline of calls; far longer than any check takes.
const DEADLINE_MS: u64 = 60_000;
/// Frames queued for the candidate: a few more than the checks send at once.
const OUTBOX: usize = 64;
/// The first few problems are enough to start with.
const MISFITS_MAX: usize = 10;

/// The mock daemon.
#[derive(Debug)]
pub(super) struct MockDaemon {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    token: Secret,
    heard: Mutex<Observations>,
    /// Counts the messages received.
    changed: watch::Sender<u64>,
}

/// The messages of the candidate so far.
#[derive(Debug, Default)]
struct Observations {
    link: Option<Link>,
    n_links: u64,
    of_calls: HashMap<RequestId, Vec<CallMessage>>,
    /// The job that the end of a call names.
    job_ids: HashMap<RequestId, Option<String>>,
    misfits: Vec<String>,
}

/// The newest connection.
#[derive(Debug)]
struct Link {
    number: u64,
    outbox: mpsc::Sender<Vec<u8>>,
    cut: CancellationToken,
    /// The service, once the tools are offered.
    service: Option<Text>,
}

/// The body of a Request to a worker.
#[derive(Serialize)]
struct RequestBody<'a> {
    tool: &'a str,
    arguments: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<&'a str>,
    deadline_ms: u64,
}

impl MockDaemon {
    /// Listens for a candidate with this token.
    pub(super) async fn start(listen: SocketAddr, token: Secret) -> std::io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let (changed, _) = watch::channel(0);
        let shared = Arc::new(Shared { token, heard: Mutex::default(), changed });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, _accepting: accepting })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the tools are offered on a connection after the one with this number. Returns
    /// its number.
    pub(super) async fn offered(&self, wait: Duration, after: u64) -> Result<u64, String> {
        let offered = self.until(wait, |heard| {
            let link = heard.link.as_ref()?;
            (link.number > after && link.service.is_some()).then_some(link.number)
        });
        offered.await.ok_or_else(|| {
            let misfits = self.misfits().join("; ");
            let why = if misfits.is_empty() { "it did not connect" } else { &misfits };
            format!("no candidate offered `echo`, `slow`, `fail` and `pour` within {wait:?}: {why}")
        })
    }

    /// Sends the candidate a call.
    pub(super) async fn call(&self, tool: &str, arguments: &Value) -> Result<RequestId, String> {
        self.call_of_job(tool, arguments, None).await
    }

    /// Sends the candidate a call that is the work of a job.
    pub(super) async fn call_of_job(
        &self,
        tool: &str,
        arguments: &Value,
        job_id: Option<&str>,
    ) -> Result<RequestId, String> {
        let given = RequestBody { tool, arguments, job_id, deadline_ms: DEADLINE_MS };
        let body = rmp_serde::to_vec_named(&given).map_err(|error| error.to_string())?;
        let request_id = RequestId::random();
        let frame = Frame::new(Command::Request, request_id, Body::MsgPack(body.into()));
        let service = self.shared.lock().link.as_ref().and_then(|link| link.service.clone());
        let service = service.ok_or("the candidate is not connected")?;
        self.send(parts(Frame { service, ..frame })).await.map(|()| request_id)
    }

    /// Grants credit for the lossless chunks of a call.
    pub(super) async fn grant(&self, call: RequestId, bytes: u64) -> Result<(), String> {
        self.send(parts(Frame::new(Command::Credit, call, Body::Credit(bytes)))).await
    }

    /// Waits until a call has sent this number of bytes in lossless chunks, or has ended.
    pub(super) async fn poured(&self, call: RequestId, bytes: u64, wait: Duration) -> bool {
        let is_enough = |said: &Vec<CallMessage>| {
            let has_ended = said.iter().any(|said| matches!(said, CallMessage::End(_)));
            has_ended || said.iter().map(CallMessage::lossless_weight).sum::<u64>() >= bytes
        };
        let poured = self
            .until(wait, |heard| heard.of_calls.get(&call).is_some_and(is_enough).then_some(()));
        poured.await.is_some()
    }

    /// Returns the job that the end of a call names.
    pub(super) fn job_of(&self, call: RequestId) -> Option<String> {
        self.shared.lock().job_ids.get(&call).cloned().flatten()
    }

    /// Cancels a call.
    pub(super) async fn cancel(&self, call: RequestId) -> Result<(), String> {
        self.send(parts(Frame::new(Command::Cancel, call, Body::Empty))).await
    }

    /// Sends a message of any parts.
    pub(super) async fn send(&self, parts: Vec<Bytes>) -> Result<(), String> {
        let outbox = self.shared.lock().link.as_ref().map(|link| link.outbox.clone());
        let sent = match outbox {
            None => false,
            Some(outbox) => outbox.send(zmtp::message(&parts)).await.is_ok(),
        };
        if sent { Ok(()) } else { Err("the candidate is not connected".to_owned()) }
    }

    /// Waits for the first message about a call.
    pub(super) async fn first(&self, call: RequestId, wait: Duration) -> Option<CallMessage> {
        self.until(wait, |heard| heard.of_calls.get(&call)?.first().cloned()).await
    }

    /// Waits for the end of a call.
    pub(super) async fn end(&self, call: RequestId, wait: Duration) -> Option<CallMessage> {
        let is_end = |said: &&CallMessage| matches!(said, CallMessage::End(_));
        self.until(wait, |heard| heard.of_calls.get(&call)?.iter().find(is_end).cloned()).await
    }

    /// Returns all messages about a call.
    pub(super) fn said_of(&self, call: RequestId) -> Vec<CallMessage> {
        self.shared.lock().of_calls.get(&call).cloned().unwrap_or_default()
    }

    /// Waits until the candidate sends anything.
    pub(super) async fn sign_of_life(&self, wait: Duration) -> bool {
        let mut changed = self.shared.changed.subscribe();
        tokio::time::timeout(wait, changed.changed()).await.is_ok()
    }

    /// Cuts the connection. Returns its number.
    pub(super) fn cut(&self) -> u64 {
        let mut heard = self.shared.lock();
        let n_links = heard.n_links;
        if let Some(link) = heard.link.take() {
            link.cut.cancel();
        }
        n_links
    }

    /// Returns the problems with its frames.
    pub(super) fn misfits(&self) -> Vec<String> {
        self.shared.lock().misfits.clone()
    }

    async fn until<T>(
        &self,
        wait: Duration,
        look: impl Fn(&Observations) -> Option<T>,
    ) -> Option<T> {
        let mut changed = self.shared.changed.subscribe();
        let looking = async {
            loop {
                changed.mark_unchanged();
                if let Some(found) = look(&self.shared.lock()) {
                    return Some(found);
                }
                changed.changed().await.ok()?;
            }
        };
        tokio::time::timeout(wait, looking).await.ok().flatten()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Observations> {
        lock(&self.heard)
    }

    fn hear(&self, change: impl FnOnce(&mut Observations)) {
        change(&mut self.lock());
        self.changed.send_modify(|count| *count += 1);
    }

    fn misfit(&self, what: String) {
        self.hear(|heard| {
            if heard.misfits.len() < MISFITS_MAX {
                heard.misfits.push(what);
            }
        });
    }

    /// Records a message and returns the answer.
    fn on_message(&self, number: u64, parts: &[Bytes]) -> Option<Frame> {
        let said = Frame::decode(parts)
            .map_err(|error| format!("a message is not a frame: {error}"))
            .and_then(|frame| read(&frame));
        match said {
            Ok(WorkerMessage::Ready(request_id, service, tools)) => {
                Some(self.on_ready(number, request_id, service, &tools))
            }
            Ok(WorkerMessage::Heartbeat(request_id)) => {
                self.hear(|_| ());
                Some(Frame::new(Command::Heartbeat, request_id, Body::Empty))
            }
            Ok(WorkerMessage::OfCall(call, of_call, job_id)) => {
                self.hear(|heard| {
                    if matches!(of_call, CallMessage::End(_)) {
                        heard.job_ids.insert(call, job_id);
                    }
                    heard.of_calls.entry(call).or_default().push(of_call);
                });
                None
            }
            Ok(WorkerMessage::Disconnect | WorkerMessage::Other) => {
                self.hear(|_| ());
                None
            }
            Err(what) => {
                self.misfit(what);
                None
            }
        }
    }

    fn on_ready(&self, number: u64, id: RequestId, service: Text, tools: &[String]) -> Frame {
        let missing: Vec<_> =
            TOOLS.into_iter().filter(|tool| !tools.iter().any(|t| t == tool)).collect();
        let envelope = if missing.is_empty() {
            let message = format!("serving as {}", service.as_str());
            self.hear(|heard| {
                if let Some(link) = heard.link.as_mut().filter(|link| link.number == number) {
                    link.service = Some(service);
                }
            });
            ResponseEnvelope::Ack { message, job_id: None }
        } else {
            let what = format!("its Ready does not offer {}", missing.join(", "));
            self.misfit(what.clone());
            Error::invalid(what).into()
        };
        Frame::new(Command::Reply, id, Body::MsgPack(envelope.encode().into()))
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut links = JoinSet::new();
    loop {
        while links.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                links.spawn(serve(stream, Arc::clone(&shared)));
            }
            Err(error) => tracing::debug!(%error, "cannot accept a connection"),
        }
    }
}

/// Serves one connection until either side closes it.
async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    if let Err(unwelcome) = zmtp::welcome(&mut stream, &shared.token).await {
        return shared.misfit(unwelcome.to_string());
    }
    let (outbox, mut posted) = mpsc::channel::<Vec<u8>>(OUTBOX);
    let cut = CancellationToken::new();
    let mut number = 0;
    shared.hear(|heard| {
        heard.n_links += 1;
        number = heard.n_links;
        let link = Link { number, outbox: outbox.clone(), cut: cut.clone(), service: None };
        heard.link = Some(link);
    });
    let (reader, mut writer) = stream.into_split();
    let reading = async {
        let mut reader = BufReader::new(reader);
        while let Ok(received) = zmtp::receive(&mut reader).await {
            let answer = match received {
                PeerMessage::Ping(context) => Some(zmtp::command("PONG", &context)),
                PeerMessage::Message(message) => {
                    shared.on_message(number, &message).map(|frame| zmtp::message(&parts(frame)))
                }
            };
            if let Some(answer) = answer
                && outbox.send(answer).await.is_err()
            {
                return;
            }
        }
    };
    let writing = async {
        while let Some(bytes) = posted.recv().await {
            if writer.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = cut.cancelled() => {}
        () = reading => {}
        () = writing => {}
    }
    shared.hear(|heard| {
        heard.link.take_if(|link| link.number == number);
    });
}

/// Encodes a frame into its parts.
pub(super) fn parts(frame: Frame) -> Vec<Bytes> {
    let mut parts = Vec::new();
    frame.encode(&mut parts);
    parts
}
