//! The calls of an offer: carried out a few at a time, answered once each.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use ringback_client::line::{LineCall, LineError, LineParty, LineResult};
use ringback_service::chain;
use serde::Serialize;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::child::{Ended, Program, Progress};
use crate::screen::{Screen, span};

/// Calls that may wait for their turn; the next one is refused.
const WAITING_MAX: usize = 256;
/// What is known of progress when a command ends is still told, but nobody waits long for it.
const PROGRESS_LINGER: Duration = Duration::from_secs(2);
/// How much longer than the grace an answer is worth sending.
const ANSWER_SLACK: Duration = Duration::from_secs(30);
/// Between two tries to send an answer.
const ANSWER_PAUSE: Duration = Duration::from_millis(500);
/// Children have this long to end before the offer ends without them.
const END_LIMIT: Duration = Duration::from_secs(5);
/// The status of a body that is larger than the daemon takes.
const TOO_LARGE: u16 = 413;

/// The calls under way.
pub(super) struct Calls {
    runner: Arc<Runner>,
    running: HashMap<String, CancellationToken>,
    /// Each ends with its call's id.
    tasks: JoinSet<String>,
    running_max: usize,
}

struct Runner {
    program: Program,
    title: String,
    party: LineParty,
    turns: Semaphore,
    grace: Duration,
    screen: Screen,
}

/// What became of an answer.
enum Sent {
    Success,
    Error,
    /// The call had ended.
    Late,
}

/// A line for programs.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Told<'a> {
    Answered { request_id: &'a str, status: &'static str, took_ms: u64 },
}

impl Calls {
    pub(super) fn new(
        program: Program,
        title: String,
        party: LineParty,
        concurrency: NonZeroUsize,
        grace: Duration,
        screen: Screen,
    ) -> Self {
        let turns = Semaphore::new(concurrency.get().min(Semaphore::MAX_PERMITS));
        let running_max = concurrency.get().saturating_add(WAITING_MAX);
        let runner = Arc::new(Runner { program, title, party, turns, grace, screen });
        Self { runner, running: HashMap::new(), tasks: JoinSet::new(), running_max }
    }

    /// Begins a call. One that came before under the same id goes on as it is.
    pub(super) async fn begin(&mut self, call: LineCall) {
        if self.running.contains_key(&call.request_id) {
            return;
        }
        if self.running.len() >= self.running_max {
            let error = "too many calls wait; offer it with a larger `--concurrency`".to_owned();
            let refusal = LineResult::Error { error };
            // Sent before the next call is taken, so that refusals do not pile up either.
            if let Err(error) = self.runner.party.answer(&call.request_id, &refusal).await {
                tracing::debug!(%error, "a refusal was not sent");
            }
            return;
        }
        let stop = CancellationToken::new();
        self.running.insert(call.request_id.clone(), stop.clone());
        let runner = Arc::clone(&self.runner);
        self.tasks.spawn(async move {
            runner.carry_out(&call, &stop).await;
            call.request_id
        });
    }

    /// Ends a call that nobody waits for.
    pub(super) fn cancel(&self, request_id: &str, reason: &str) {
        if let Some(stop) = self.running.get(request_id) {
            self.runner.screen.remark(format_args!("{request_id} is ended: {reason}"));
            stop.cancel();
        }
    }

    /// Ends every call.
    pub(super) fn cancel_all(&self) {
        self.running.values().for_each(CancellationToken::cancel);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits for the end of a call. Dropping the wait loses nothing.
    pub(super) async fn done(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok(call_id)) => drop(self.running.remove(&call_id)),
            Some(Err(error)) => {
                tracing::error!(%error, "a call was not carried out; this is a bug")
            }
            None => {}
        }
    }

    /// Ends every call and waits for the children.
    pub(super) async fn end(mut self) {
        self.cancel_all();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        // Whoever is left is killed with its task.
        drop(tokio::time::timeout(END_LIMIT, all).await);
    }
}

impl Runner {
    /// Runs the command and sends what it came to.
    async fn carry_out(&self, call: &LineCall, stop: &CancellationToken) {
        let turn = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            turn = self.turns.acquire() => turn,
        };
        let started = Instant::now();
        let ended = self.run(call, stop).await;
        drop(turn);
        let result = match ended {
            Ended::Cancelled => return,
            Ended::Done(output) => LineResult::Success { title: self.title.clone(), output },
            Ended::Failed(error) => LineResult::Error { error },
        };
        let sent = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            sent = self.answer(&call.request_id, result) => sent,
        };
        self.tell(&call.request_id, sent, started);
    }

    /// Runs the command, and meanwhile tells how far it is.
    async fn run(&self, call: &LineCall, stop: &CancellationToken) -> Ended {
        let (progress, told) = watch::channel(None);
        let input = call.input.get().as_bytes();
        let running = self.program.run(input, progress, stop, self.screen);
        let telling = self.tell_progress(&call.request_id, told);
        tokio::pin!(running, telling);
        tokio::select! {
            ended = &mut running => {
                drop(tokio::time::timeout(PROGRESS_LINGER, telling).await);
                ended
            }
            () = &mut telling => running.await,
        }
    }

    /// The newest progress; what came while the last was being sent is skipped.
    async fn tell_progress(&self, request_id: &str, mut told: watch::Receiver<Option<Progress>>) {
        while told.changed().await.is_ok() {
            let Some(Progress { percent, message }) = told.borrow_and_update().clone() else {
                continue;
            };
            if let Err(error) = self.party.progress(request_id, percent, &message).await {
                tracing::debug!(%error, "progress was not told");
            }
        }
    }

    /// Sends an answer until it has arrived, as long as it may still be waited for.
    async fn answer(&self, request_id: &str, mut result: LineResult) -> Result<Sent, LineError> {
        let until = Instant::now() + self.grace + ANSWER_SLACK;
        loop {
            let is_error = matches!(result, LineResult::Error { .. });
            match self.party.answer(request_id, &result).await {
                Ok(true) if is_error => return Ok(Sent::Error),
                Ok(true) => return Ok(Sent::Success),
                Ok(false) => return Ok(Sent::Late),
                Err(error) if error.status() == Some(TOO_LARGE) && !is_error => {
                    let error = format!("the output is larger than the daemon takes ({error})");
                    result = LineResult::Error { error };
                }
                Err(error) if error.is_final() || Instant::now() > until => return Err(error),
                Err(_) => tokio::time::sleep(ANSWER_PAUSE).await,
            }
        }
    }

    fn tell(&self, request_id: &str, sent: Result<Sent, LineError>, started: Instant) {
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let status = match &sent {
            Ok(Sent::Success) => "success",
            Ok(Sent::Error) => "error",
            Ok(Sent::Late) => "late",
            Err(_) => "unsent",
        };
        if self.screen.is_json() {
            let told = Told::Answered { request_id, status, took_ms };
            // Whoever reads no more is told by the next line of the offer itself.
            drop(self.screen.item(&told, |_| String::new()));
            return;
        }
        let took = span(took_ms);
        match sent {
            Ok(Sent::Success) => self.screen.remark(format_args!("{request_id} done in {took}")),
            Ok(Sent::Error) => self.screen.remark(format_args!("{request_id} failed after {took}")),
            Ok(Sent::Late) => {
                self.screen.remark(format_args!("{request_id} took {took}; nobody waits for it"));
            }
            Err(error) => {
                self.screen
                    .remark(format_args!("{request_id} was not answered: {}", chain(&error)));
            }
        }
    }
}
