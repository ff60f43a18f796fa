//! Parties with lines: tabs, a page that reconnects, and workers. They come and go during calls,
//! answer late, twice or never, and answer for each other.

use std::time::Duration;

use bytes::Bytes;
use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_broker::{
    Broker, Credential, LineCall, LineKind, LineName, LineOffer, LineStream, PartyMessage,
    ToolOffer,
};
use ringback_proto::any::{Any, Format};
use ringback_proto::ids::SessionId;
use ringback_proto::{Error, ErrorKind, Result};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use crate::history::{HistoryEvent, LineTool, Marker};

/// How long a reloaded page may stay away.
const GRACE_MS: u64 = 3000;

/// The MsgPack prefix of an object with the single field `m`.
const OBJECT_START: [u8; 3] = [0x81, 0xa1, b'm'];

/// The tools on lines, and their parties: two tabs of one client, a page that reconnects, and two
/// workers of one service.
const LINES: [(LineKind, &str, &[LineTool]); 5] = [
    (LineKind::Client, "tab", &[LineTool::Tab]),
    (LineKind::Client, "tab", &[LineTool::Tab]),
    (LineKind::Client, "page", &[LineTool::Page]),
    (LineKind::Worker, "gpu", &[LineTool::Render, LineTool::Idempotent]),
    (LineKind::Worker, "gpu", &[LineTool::Render]),
];

/// Returns the input or output of a tool on a line: its marker, in the encoding of an edge.
pub(super) fn payload(marker: Marker, format: Format) -> Any {
    let bytes = match format {
        Format::Json => marker.to_string().into_bytes(),
        Format::MsgPack => [&[0xcf], marker.to_be_bytes().as_slice()].concat(),
    };
    Any { format, bytes: Bytes::from(bytes) }
}

/// Returns the arguments of a call: an object around the marker.
pub(super) fn arguments(marker: Marker, format: Format) -> Any {
    let value = payload(marker, format).bytes;
    let bytes = match format {
        Format::Json => [b"{\"m\":", &*value, b"}"].concat(),
        Format::MsgPack => [&OBJECT_START, &*value].concat(),
    };
    Any { format, bytes: Bytes::from(bytes) }
}

/// Returns the marker in a payload, whatever its integer encoding.
pub(super) fn marker(payload: &Any) -> Marker {
    match payload.format {
        Format::Json => {
            let digits = payload.bytes.iter().filter(|byte| byte.is_ascii_digit());
            digits.fold(0, |number, digit| number * 10 + Marker::from(digit - b'0'))
        }
        Format::MsgPack => {
            // Compares all of it: the bytes of a number may look like the name.
            let value = payload.bytes.strip_prefix(&OBJECT_START).unwrap_or(&payload.bytes);
            match value {
                [0xcc..=0xcf, number @ ..] => {
                    number.iter().fold(0, |sum, byte| sum << 8 | Marker::from(*byte))
                }
                [small, ..] => Marker::from(*small),
                [] => unreachable!("every payload has its marker"),
            }
        }
    }
}

/// Starts every party. They end on request.
pub(super) fn start(
    parties: &mut JoinSet<()>,
    broker: &Broker,
    owner: &Credential,
    recorder: &Recorder,
    end: &CancellationToken,
    mut rng: impl FnMut() -> StdRng,
) {
    for (kind, name, tools) in LINES {
        let party = Party {
            broker: broker.clone(),
            owner: owner.clone(),
            line: match kind {
                LineKind::Worker => LineName::Worker(name.into()),
                LineKind::Client | LineKind::Caller => LineName::Client(name.into()),
            },
            tools,
            recorder: recorder.clone(),
            rng: rng(),
        };
        parties.spawn(party.live(end.clone()));
    }
}

struct Party {
    broker: Broker,
    owner: Credential,
    line: LineName,
    tools: &'static [LineTool],
    recorder: Recorder,
    rng: StdRng,
}

impl Party {
    async fn live(mut self, end: CancellationToken) {
        let work = async {
            loop {
                self.pause(4000).await;
                if let Some(stream) = self.appear() {
                    self.hold(stream).await;
                }
            }
        };
        tokio::select! {
            biased;
            () = end.cancelled() => {}
            () = work => {}
        }
    }

    async fn pause(&mut self, ms_max: u64) {
        tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..ms_max))).await;
    }

    /// Offers the tools and opens a stream, in either order. `None` while the broker refuses it.
    fn appear(&mut self) -> Option<LineStream> {
        let stream_first = self.line.kind() == LineKind::Worker || self.rng.random_bool(0.5);
        if !stream_first {
            self.offer(None)?;
        }
        let stream = self.broker.lines().open(&self.owner, &self.line).ok()?;
        if stream_first {
            self.offer(Some(&stream))?;
        }
        Some(stream)
    }

    fn offer(&self, stream: Option<&LineStream>) -> Option<()> {
        let tools = self
            .tools
            .iter()
            .map(|tool| ToolOffer {
                name: tool.name().to_owned(),
                idempotent: *tool == LineTool::Idempotent,
                timeout_ms: Some(20_000),
                progress_extends: true,
                ..ToolOffer::default()
            })
            .collect();
        let offered = match (self.line.kind(), stream) {
            (LineKind::Worker, Some(stream)) => stream.offer(tools),
            (LineKind::Client | LineKind::Worker | LineKind::Caller, _) => {
                let grace_ms = Some(if &**self.line.name() == "page" { GRACE_MS } else { 0 });
                let offer = LineOffer { line: self.line.clone(), grace_ms, tools };
                self.broker.lines().offer(&self.owner, offer)
            }
        };
        offered.ok().map(drop)
    }

    /// Takes calls for a while; then the stream vanishes with its pending calls.
    async fn hold(&mut self, mut stream: LineStream) {
        let ms = self.rng.random_range(0..20_000);
        let until = tokio::time::Instant::now() + Duration::from_millis(ms);
        let mut answers = JoinSet::new();
        loop {
            let post = tokio::select! {
                biased;
                () = tokio::time::sleep_until(until) => break,
                post = stream.next() => post,
            };
            match post {
                None => break,
                Some(PartyMessage::Cancel { .. }) => {}
                Some(PartyMessage::Call(call)) => {
                    self.recorder.note(HistoryEvent::Took(marker(&call.arguments)));
                    let answer = Answer::draw(&self.broker, &self.owner, None, &mut self.rng);
                    answers.spawn(async move { answer.run(&call).await });
                }
            }
        }
        if self.rng.random_bool(0.3) {
            // Its answers still count after its stream is gone, if a call is waiting.
            while answers.join_next().await.is_some() {}
        }
    }
}

/// A party's reaction to one call.
pub(super) struct Answer {
    broker: Broker,
    owner: Credential,
    /// The session, for a caller's answer.
    session: Option<SessionId>,
    after: Duration,
    progress: bool,
    how: u8,
}

impl Answer {
    pub(super) fn draw(
        broker: &Broker,
        owner: &Credential,
        session: Option<SessionId>,
        rng: &mut StdRng,
    ) -> Self {
        Self {
            broker: broker.clone(),
            owner: owner.clone(),
            session,
            after: Duration::from_millis(rng.random_range(0..6000)),
            progress: rng.random_bool(0.3),
            how: rng.random_range(0..10),
        }
    }

    async fn progress(&self, id: &str) -> Result<()> {
        let (owner, percent, message) = (&self.owner, 50.0, String::new());
        match self.session {
            None => self.broker.lines().progress(owner, id, percent, message).await,
            Some(session) => {
                self.broker.callers().progress(owner, session, id, percent, message).await
            }
        }
    }

    fn answer(&self, who: &Credential, id: &str, outcome: Result<Any>) -> Result<()> {
        match self.session {
            None => self.broker.lines().answer(who, id, outcome),
            Some(session) => self.broker.callers().answer(who, session, id, outcome),
        }
    }

    pub(super) async fn run(self, call: &LineCall) {
        let id = &call.request_id;
        if self.progress {
            drop(self.progress(id).await);
        }
        tokio::time::sleep(self.after).await;
        let marker = marker(&call.arguments);
        let right = || Ok(payload(marker, call.arguments.format));
        match self.how {
            0 => {}
            1 => {
                let stranger = Credential::local();
                let forged = Ok(payload(0, call.arguments.format));
                let refused = self.answer(&stranger, id, forged);
                assert!(refused.is_err(), "a stranger's answer was accepted");
                drop(self.answer(&self.owner, id, right()));
            }
            2 => {
                let first = self.answer(&self.owner, id, right());
                let wrong = Ok(payload(0, call.arguments.format));
                let second = self.answer(&self.owner, id, wrong);
                assert!(second.is_err(), "a second answer was accepted after {first:?}");
            }
            3 => {
                let failed = Err(Error::new(ErrorKind::ToolFailed, "as the dice want it"));
                drop(self.answer(&self.owner, id, failed));
            }
            _ => drop(self.answer(&self.owner, id, right())),
        }
    }
}
