//! The monitor: who hears the garden over HTTP, what they hear, and when it ends.

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use ringback_client::Client;
use ringback_proto::data::Data;
use ringback_proto::garden::TroubleKind;
use ringback_proto::garden::command::*;
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::Level;
use ringback_proto::request::*;
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::*;
use ringback_proto::{Error, ErrorKind, Event};
use ringback_testkit::{Setup, World, wait_for, within};
use serde_json::Value;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use crate::support::*;

const WAV: &str = "/v1/garden/monitor.wav";
const PCM: &str = "/v1/garden/monitor.pcm";
/// The bytes before the frames.
const WAV_HEAD_BYTES: usize = 46;
const PIECE_BYTES: usize = 64 << 10;
/// A receiver that the kernel does not let grow, so that not reading shows soon.
const RECEIVE_BYTES: u32 = 128 << 10;
/// The places of one principal.
const PLACES: usize = 32;

/// A response whose body may still be arriving.
pub(crate) struct Listener {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    buffer: BytesMut,
    _connection: JoinSet<()>,
}

impl Listener {
    pub(crate) async fn request(
        daemon: &World,
        method: &str,
        path: &str,
        token: Option<&Secret>,
    ) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(RECEIVE_BYTES).unwrap();
        let stream = socket.connect(daemon.address()).await.unwrap();
        let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let mut connection = JoinSet::new();
        connection.spawn(async move { drop(driver.await) });
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {}", token.expose()));
        }
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let answer = within("an answer", sender.send_request(request)).await.unwrap();
        let (parts, body) = answer.into_parts();
        let (status, headers) = (parts.status.as_u16(), parts.headers);
        Self { status, headers, body, buffer: BytesMut::new(), _connection: connection }
    }

    /// Starts to listen.
    async fn open(daemon: &World, path: &str, token: &Secret) -> Self {
        let listener = Self::request(daemon, "GET", path, Some(token)).await;
        assert_eq!(listener.status, 200);
        listener
    }

    async fn read(&mut self, n_bytes: usize) -> Bytes {
        while self.buffer.len() < n_bytes {
            let frame = within("sound", self.body.frame()).await.expect("the stream goes on");
            self.buffer.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        self.buffer.split_to(n_bytes).freeze()
    }

    /// Reads to the end, which must be a proper one.
    pub(crate) async fn rest(self) -> Bytes {
        let rest = within("the end of the stream", self.body.collect()).await.unwrap();
        [&self.buffer[..], &rest.to_bytes()].concat().into()
    }

    /// The status and the error of a refusal.
    pub(crate) async fn refusal(self) -> (u16, Value) {
        let status = self.status;
        (status, serde_json::from_slice(&self.rest().await).unwrap())
    }
}

pub(crate) async fn world() -> (World, ScriptedGarden) {
    let daemon = Setup::new().hoot().plain_http().start().await;
    let garden = ScriptedGarden::of(&daemon).await;
    (daemon, garden)
}

/// A piece that has its number in every sample.
fn piece(number: usize) -> Bytes {
    let number = u32::try_from(number).unwrap();
    number.to_le_bytes().repeat(PIECE_BYTES / size_of::<u32>()).into()
}

async fn try_send(client: &Client, frames: Bytes, missed: u64) -> Result<u32, Error> {
    let request = GardenMonitorRequest { frames: Data(frames), missed };
    within("an answer", client.call::<GardenMonitor>(request)).await.map(|sent| sent.listeners)
}

/// Sends a piece as the garden does, and returns the number of listeners.
async fn send(client: &Client, number: usize) -> u32 {
    try_send(client, piece(number), 0).await.unwrap()
}

async fn n_listeners(client: &Client, n_listeners: u32) {
    wait_for("listeners to leave", async || send(client, 0).await == n_listeners).await;
}

fn n_asked(garden: &ScriptedGarden) -> usize {
    garden.got().iter().filter(|got| got.tool == MONITOR).count()
}

/// The causes of the troubles of the monitor.
async fn troubles(client: &Client) -> Vec<String> {
    let poll = EventPollRequest { cursor: None, types: None, limit: Some(1000), wait_ms: None };
    let polled = within("events", client.call::<EventPoll>(poll)).await.unwrap();
    let mut causes = Vec::new();
    for sequenced in polled.events {
        if let Event::GardenTrouble(trouble) = sequenced.event
            && trouble.kind == TroubleKind::Monitor
        {
            causes.push(trouble.cause);
        }
    }
    causes
}

/// Rule: everyone who listens hears the same, and the garden learns when nobody does.
#[tokio::test(flavor = "multi_thread")]
async fn two_listeners_get_the_same_bytes_and_are_counted_until_they_leave() {
    let (daemon, garden) = world().await;
    let admin = daemon.admin().await;
    assert_eq!(send(&admin, 0).await, 0);
    let reader = token(&daemon, Level::Read).await;
    let mut wav = Listener::open(&daemon, WAV, daemon.admin_token()).await;
    let mut pcm = Listener::open(&daemon, PCM, &reader).await;
    assert_eq!(n_asked(&garden), 2);
    for (listener, kind) in [(&wav, "audio/wav"), (&pcm, "audio/x-float32le;rate=48000;channels=2")]
    {
        assert_eq!(listener.headers["content-type"], kind);
        assert_eq!(listener.headers["cache-control"], "no-store");
        assert_eq!(listener.headers["x-content-type-options"], "nosniff");
    }
    // The head does not wait for sound.
    let head = wav.read(WAV_HEAD_BYTES).await;
    assert_eq!((&head[..4], &head[8..16]), (&b"RIFF"[..], &b"WAVEfmt "[..]));
    assert_eq!((&head[20..24], &head[24..28]), (&[3, 0, 2, 0][..], &48_000_u32.to_le_bytes()[..]));
    assert_eq!((&head[38..42], &head[42..]), (&b"data"[..], &[0xff; 4][..]));
    for number in 1..20 {
        assert_eq!(send(&admin, number).await, 2);
        assert!(wav.read(PIECE_BYTES).await == piece(number), "{number}");
        assert!(pcm.read(PIECE_BYTES).await == piece(number), "{number}");
    }
    drop(wav);
    n_listeners(&admin, 1).await;
    drop(pcm);
    n_listeners(&admin, 0).await;
    assert_eq!(troubles(&admin).await, Vec::<String>::new());
    daemon.stop().await;
}

/// Rule: a listener that does not read misses sound, an event says so, and nobody else notices.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_listener_misses_sound_and_others_miss_nothing() {
    /// Several times what the kernel, the connection and the daemon keep for a listener.
    const PIECES_UNREAD: usize = 400;
    let (daemon, _garden) = world().await;
    let admin = daemon.admin().await;
    let mut slow = Listener::open(&daemon, PCM, daemon.admin_token()).await;
    let mut fast = Listener::open(&daemon, PCM, daemon.admin_token()).await;
    let mut next = 0;
    let mut send_next = async || {
        assert_eq!(send(&admin, next).await, 2);
        assert!(fast.read(PIECE_BYTES).await == piece(next), "{next}");
        next += 1;
    };
    for _ in 0..PIECES_UNREAD {
        send_next().await;
    }
    let mut heard = Vec::new();
    let reading = async {
        while heard.last().is_none_or(|last| *last < PIECES_UNREAD) {
            let frames = slow.read(PIECE_BYTES).await;
            let number = u32::from_le_bytes(frames[..4].try_into().unwrap()) as usize;
            assert!(frames == piece(number), "no piece is torn");
            heard.push(number);
        }
    };
    let sending = async {
        loop {
            send_next().await;
        }
    };
    tokio::select! {
        () = reading => {}
        () = sending => {}
    }
    assert!(heard[0] == 0 && heard.is_sorted() && heard.len() < PIECES_UNREAD, "{heard:?}");
    let troubles = troubles(&admin).await;
    assert!(matches!(&troubles[..], [cause, ..] if cause.contains("too slow")), "{troubles:?}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_that_the_garden_could_not_send_is_an_event() {
    let (daemon, _garden) = world().await;
    let admin = daemon.admin().await;
    assert_eq!(try_send(&admin, piece(0), 7).await.unwrap(), 0);
    assert_eq!(troubles(&admin).await, Vec::<String>::new(), "nobody missed it");
    let mut listener = Listener::open(&daemon, PCM, daemon.admin_token()).await;
    assert_eq!(try_send(&admin, piece(1), 480).await.unwrap(), 1);
    listener.read(PIECE_BYTES).await;
    let troubles = troubles(&admin).await;
    assert!(matches!(&troubles[..], [cause] if cause.contains("480 frames")), "{troubles:?}");
    daemon.stop().await;
}

/// Rule: one who may not call `garden_status` does not hear the garden.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_valid_token_or_a_new_ticket_hears_the_garden() {
    let (daemon, garden) = world().await;
    let admin = daemon.admin().await;
    let unknown = Secret::new("rbk_unknown".to_owned());
    for path in [WAV, PCM] {
        for token in [None, Some(&unknown)] {
            let refused = Listener::request(&daemon, "GET", path, token).await.refusal().await;
            assert_eq!((refused.0, &refused.1["error"]["code"]), (401, &"UNAUTHENTICATED".into()));
        }
    }
    assert_eq!(n_asked(&garden), 0);
    let reader = token(&daemon, Level::Read).await;
    let issued = Listener::request(&daemon, "POST", "/v1/tickets", Some(&reader)).await;
    let (status, issued) = issued.refusal().await;
    assert_eq!(status, 201);
    let path = format!("{PCM}?ticket={}", issued["ticket"].as_str().unwrap());
    let mut listener = Listener::request(&daemon, "GET", &path, None).await;
    assert_eq!(listener.status, 200);
    assert_eq!(send(&admin, 1).await, 1);
    assert!(listener.read(PIECE_BYTES).await == piece(1));
    let again = Listener::request(&daemon, "GET", &path, None).await;
    assert_eq!(again.status, 401, "a ticket is good once");
    daemon.stop().await;
}

/// Rule: a stream ends with its token.
#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_a_revoked_token_ends_and_others_go_on() {
    let (daemon, _garden) = world().await;
    let admin = daemon.admin().await;
    let reader = daemon.new_token(Level::Read, None).await;
    let revoked = Listener::open(&daemon, PCM, &reader.token).await;
    let mut other = Listener::open(&daemon, PCM, daemon.admin_token()).await;
    let revoke = TokenRevokeRequest { token_id: reader.token_id };
    within("it", admin.call::<TokenRevoke>(revoke)).await.unwrap();
    assert_eq!(revoked.rest().await, Bytes::new());
    n_listeners(&admin, 1).await;
    other.read(PIECE_BYTES).await;
    let refused = Listener::request(&daemon, "GET", PCM, Some(&reader.token)).await;
    assert_eq!(refused.status, 401);
    daemon.stop().await;
}

/// Rule: only the garden says what is heard, in whole frames and small pieces.
#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_cannot_send_sound_and_bad_frames_are_invalid() {
    let (daemon, _garden) = world().await;
    let admin = daemon.admin().await;
    let mut listener = Listener::open(&daemon, PCM, daemon.admin_token()).await;
    let narrow = TokenCreateRequest {
        name: "narrow".to_owned(),
        scope: Level::Admin,
        projects: Some(vec![ProjectId::from_random([1; 16])]),
        expires_in: None,
    };
    let narrow = admin.call::<TokenCreate>(narrow).await.unwrap().token;
    for stranger in [token(&daemon, Level::Write).await, narrow] {
        let stranger = daemon.client(&stranger).await;
        let refused = try_send(&stranger, piece(1), 0).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Forbidden, "{refused}");
    }
    for n_bytes in [1, 7, 12, (256 << 10) + 8] {
        let refused = try_send(&admin, vec![1; n_bytes].into(), 0).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{n_bytes}: {refused}");
        assert!(refused.message().contains("frames"), "{refused}");
    }
    assert_eq!(send(&admin, 2).await, 1);
    assert!(listener.read(PIECE_BYTES).await == piece(2), "nothing else was heard");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_garden_nothing_is_heard_and_with_its_end_the_stream_ends() {
    let daemon = Setup::new().hoot().plain_http().start().await;
    let token = daemon.admin_token();
    let refused = Listener::request(&daemon, "GET", WAV, Some(token)).await.refusal().await;
    assert_eq!((refused.0, &refused.1["error"]["code"]), (503, &"CLIENT_GONE".into()));
    let message = refused.1["error"]["message"].as_str().unwrap();
    assert!(message.contains("garden_play"), "{message}");
    let garden = ScriptedGarden::of(&daemon).await;
    let listener = Listener::open(&daemon, PCM, token).await;
    garden.leave().await;
    assert_eq!(listener.rest().await, Bytes::new());
    daemon.stop().await;
}

/// Rule: a garden that has stopped sending is asked again while somebody listens.
#[tokio::test(flavor = "multi_thread")]
async fn a_garden_that_sends_nothing_is_asked_again() {
    let (daemon, garden) = world().await;
    let admin = daemon.admin().await;
    let mut listener = Listener::open(&daemon, PCM, daemon.admin_token()).await;
    wait_for("another request", async || n_asked(&garden) > 1).await;
    assert_eq!(send(&admin, 3).await, 1);
    assert!(listener.read(PIECE_BYTES).await == piece(3));
    daemon.stop().await;
}

/// Rule: no principal takes all places.
#[tokio::test(flavor = "multi_thread")]
async fn a_principal_has_its_part_of_the_places_and_leaves_others_theirs() {
    let (daemon, _garden) = world().await;
    let admin = daemon.admin().await;
    let greedy = token(&daemon, Level::Read).await;
    let mut listeners = Vec::new();
    for _ in 0..PLACES {
        listeners.push(Listener::open(&daemon, PCM, &greedy).await);
    }
    let refused = Listener::request(&daemon, "GET", PCM, Some(&greedy)).await.refusal().await;
    assert_eq!((refused.0, &refused.1["error"]["code"]), (503, &"BUSY".into()));
    let _other = Listener::open(&daemon, PCM, daemon.admin_token()).await;
    listeners.clear();
    n_listeners(&admin, 1).await;
    Listener::open(&daemon, PCM, &greedy).await;
    daemon.stop().await;
}

/// Rule: open streams do not delay the end of the daemon.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_daemon() {
    let (mut daemon, _garden) = world().await;
    let listener = Listener::open(&daemon, PCM, daemon.admin_token()).await;
    daemon.stopping().cancel();
    assert_eq!(listener.rest().await, Bytes::new());
    daemon.edges_ended().await;
    daemon.stop().await;
}
