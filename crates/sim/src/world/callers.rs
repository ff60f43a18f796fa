//! Callers: two sessions with a caller of the same name each. They subscribe or poll, leave, come
//! back, withdraw their tools, and their sessions end during calls.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_broker::{
    Broker, CallerCall, CallerStream, Credential, Edge, LineCall, PartyMessage, StreamMode,
    ToolOffer,
};
use ringback_proto::any::Any;
use ringback_proto::envelope::CallOptions;
use ringback_proto::ids::SessionId;
use ringback_proto::principal::Principal;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::parties::{Answer, marker};
use super::recorder::Recorder;
use crate::history::{HistoryEvent, LineTool, Marker, Op};

/// The name of either session's caller.
const CALLER_ID: &str = "ant";
/// The number of sessions with callers.
const N_SESSIONS: u8 = 2;

/// Returns the session whose agent makes the call with this marker.
fn session_of(marker: Marker) -> SessionId {
    let number = u8::try_from(marker % Marker::from(N_SESSIONS)).expect("the number is small");
    SessionId::from_random([number; 16])
}

/// Returns the session of the agent, if this is an agent's call.
pub(super) fn asked(op: &Op) -> Option<SessionId> {
    if let Op::OnLine(LineTool::Ask, marker) = op { Some(session_of(*marker)) } else { None }
}

/// Makes an agent's call of a caller tool.
pub(super) fn ask(
    principal: Arc<Principal>,
    session: SessionId,
    arguments: Any,
    options: CallOptions,
    edge: Edge,
) -> CallerCall<'static> {
    CallerCall {
        principal,
        session,
        from: session,
        caller_id: Some(CALLER_ID),
        tool: LineTool::Ask.name().to_owned(),
        arguments,
        options,
        edge,
    }
}

/// Starts every caller. They end on request, and their sessions with them.
pub(super) fn start(
    parties: &mut JoinSet<()>,
    broker: &Broker,
    owner: &Credential,
    recorder: &Recorder,
    end: &CancellationToken,
    mut rng: impl FnMut() -> StdRng,
) {
    for number in 0..N_SESSIONS {
        let caller = Caller {
            broker: broker.clone(),
            owner: owner.clone(),
            session: session_of(Marker::from(number)),
            recorder: recorder.clone(),
            rng: rng(),
        };
        parties.spawn(caller.live(end.clone()));
    }
}

struct Caller {
    broker: Broker,
    owner: Credential,
    session: SessionId,
    recorder: Recorder,
    rng: StdRng,
}

impl Caller {
    async fn live(mut self, end: CancellationToken) {
        let (broker, session) = (self.broker.clone(), self.session);
        let work = async {
            loop {
                self.pause(4000).await;
                self.attend().await;
                match self.rng.random_range(0..6) {
                    0 => broker.callers().end(session),
                    1 => self.declare(Vec::new()),
                    _ => {}
                }
            }
        };
        tokio::select! {
            biased;
            () = end.cancelled() => {}
            () = work => {}
        }
        broker.callers().end(session);
    }

    async fn pause(&mut self, ms_max: u64) {
        tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..ms_max))).await;
    }

    fn declare(&self, tools: Vec<ToolOffer>) {
        let declared = self.broker.callers().declare(&self.owner, self.session, CALLER_ID, tools);
        // A stopping daemon accepts no declarations, and no calls either.
        drop(declared);
    }

    /// Declares its tool and takes calls for a while, with some answers still pending at the end.
    async fn attend(&mut self) {
        let tool = ToolOffer {
            name: LineTool::Ask.name().to_owned(),
            timeout_ms: Some(20_000),
            progress_extends: true,
            ..ToolOffer::default()
        };
        let listens_first = self.rng.random_bool(0.3);
        let early = listens_first.then(|| self.open()).flatten();
        self.declare(vec![tool]);
        let ms = self.rng.random_range(0..20_000);
        let until = tokio::time::Instant::now() + Duration::from_millis(ms);
        let mut answers = JoinSet::new();
        let polls = early.is_none() && self.rng.random_bool(0.5);
        let work = async {
            if polls {
                self.poll(&mut answers).await;
            } else if let Some(stream) = early.or_else(|| self.open()) {
                self.listen(stream, &mut answers).await;
            }
        };
        // Cuts off whatever it is doing.
        drop(tokio::time::timeout_at(until, work).await);
        if self.rng.random_bool(0.3) {
            while answers.join_next().await.is_some() {}
        }
    }

    fn open(&self) -> Option<CallerStream> {
        self.broker.callers().open(&self.owner, self.session, None, StreamMode::Lasting).ok()
    }

    async fn listen(&mut self, mut stream: CallerStream, answers: &mut JoinSet<()>) {
        while let Some(post) = stream.next().await {
            match post {
                PartyMessage::Cancel { .. } => {}
                PartyMessage::Call(call) => self.take(call, answers),
            }
        }
    }

    async fn poll(&mut self, answers: &mut JoinSet<()>) {
        loop {
            let wait = Duration::from_millis(self.rng.random_range(0..8000));
            let polled = self.broker.callers().poll(&self.owner, self.session, None, wait).await;
            let Ok(calls) = polled else { return };
            for call in calls {
                // Some answers get lost.
                if self.rng.random_bool(0.8) {
                    self.take(call, answers);
                }
            }
            self.pause(12_000).await;
        }
    }

    fn take(&mut self, call: Arc<LineCall>, answers: &mut JoinSet<()>) {
        assert_eq!(call.root_session(), Some(self.session), "a call for another session");
        self.recorder.note(HistoryEvent::Took(marker(&call.arguments)));
        let session = Some(self.session);
        let answer = Answer::draw(&self.broker, &self.owner, session, &mut self.rng);
        answers.spawn(async move { answer.run(&call).await });
    }
}
