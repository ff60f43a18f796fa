//! The calls of an offer: a few run at a time, and each is answered once.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use ringback_client::line::{LineCall, LineError, LineParty, LineResult};
use ringback_proto::chain;
use serde::Serialize;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::child::{Program, Progress, RunEnd};
use crate::screen::{Screen, span};

/// Calls that may wait for a slot; the next one is refused.
const WAITING_MAX: usize = 256;
/// How long the last progress may still be sent after a command has ended.
const PROGRESS_LINGER: Duration = Duration::from_secs(2);
/// How long beyond the grace an answer is still sent.
const ANSWER_SLACK: Duration = Duration::from_secs(30);
/// The pause between two attempts to send an answer.
const ANSWER_PAUSE: Duration = Duration::from_millis(500);
/// How long the offer waits for its children to end.
const END_LIMIT: Duration = Duration::from_secs(5);
/// The HTTP status for a body larger than the daemon accepts.
const TOO_LARGE: u16 = 413;

/// The running calls.
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

/// The outcome of sending an answer.
enum SendOutcome {
    Success,
    Error,
    /// The call had ended.
    Late,
}

/// An event in JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum AnswerEvent<'a> {
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

    /// Starts a call. A repeat under the same id is ignored.
    pub(super) async fn begin(&mut self, call: LineCall) {
        if self.running.contains_key(&call.request_id) {
            return;
        }
        if self.running.len() >= self.running_max {
            let error = "too many calls are waiting; offer the tool with a larger `--concurrency`"
                .to_owned();
            let refusal = LineResult::Error { error };
            // Sent before the next call is accepted, so that refusals do not pile up either.
            if let Err(error) = self.runner.party.answer(&call.request_id, &refusal).await {
                tracing::debug!(%error, "cannot send a refusal");
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

    /// Cancels a call.
    pub(super) fn cancel(&self, request_id: &str, reason: &str) {
        if let Some(stop) = self.running.get(request_id) {
            self.runner.screen.remark(format_args!("{request_id} cancelled: {reason}"));
            stop.cancel();
        }
    }

    /// Cancels every call.
    pub(super) fn cancel_all(&self) {
        self.running.values().for_each(CancellationToken::cancel);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits for the end of a call. Dropping the future loses nothing.
    pub(super) async fn done(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok(call_id)) => drop(self.running.remove(&call_id)),
            Some(Err(error)) => {
                tracing::error!(%error, "a call did not run; this is a bug")
            }
            None => {}
        }
    }

    /// Cancels every call and waits for the children.
    pub(super) async fn end(mut self) {
        self.cancel_all();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        // A child that remains is killed with its task.
        drop(tokio::time::timeout(END_LIMIT, all).await);
    }
}

impl Runner {
    /// Runs the command and sends its result.
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
            RunEnd::Cancelled => return,
            RunEnd::Done(output) => LineResult::Success { title: self.title.clone(), output },
            RunEnd::Failed(error) => LineResult::Error { error },
        };
        let sent = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            sent = self.answer(&call.request_id, result) => sent,
        };
        self.tell(&call.request_id, sent, started);
    }

    /// Runs the command and reports its progress.
    async fn run(&self, call: &LineCall, stop: &CancellationToken) -> RunEnd {
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

    /// Sends the newest progress; skips what came while the last was being sent.
    async fn tell_progress(&self, request_id: &str, mut told: watch::Receiver<Option<Progress>>) {
        while told.changed().await.is_ok() {
            let Some(Progress { percent, message }) = told.borrow_and_update().clone() else {
                continue;
            };
            if let Err(error) = self.party.progress(request_id, percent, &message).await {
                tracing::debug!(%error, "cannot report progress");
            }
        }
    }

    /// Sends an answer, with retries for as long as the caller may still wait for it.
    async fn answer(
        &self,
        request_id: &str,
        mut result: LineResult,
    ) -> Result<SendOutcome, LineError> {
        let until = Instant::now() + self.grace + ANSWER_SLACK;
        loop {
            let is_error = matches!(result, LineResult::Error { .. });
            match self.party.answer(request_id, &result).await {
                Ok(true) if is_error => return Ok(SendOutcome::Error),
                Ok(true) => return Ok(SendOutcome::Success),
                Ok(false) => return Ok(SendOutcome::Late),
                Err(error) if error.status() == Some(TOO_LARGE) && !is_error => {
                    let error = format!("the output is larger than the daemon accepts ({error})");
                    result = LineResult::Error { error };
                }
                Err(error) if error.is_final() || Instant::now() > until => return Err(error),
                Err(_) => tokio::time::sleep(ANSWER_PAUSE).await,
            }
        }
    }

    fn tell(&self, request_id: &str, sent: Result<SendOutcome, LineError>, started: Instant) {
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let status = match &sent {
            Ok(SendOutcome::Success) => "success",
            Ok(SendOutcome::Error) => "error",
            Ok(SendOutcome::Late) => "late",
            Err(_) => "unsent",
        };
        if self.screen.is_json() {
            let told = AnswerEvent::Answered { request_id, status, took_ms };
            // A closed output is reported by the offer's next event.
            drop(self.screen.item(&told, |_| String::new()));
            return;
        }
        let took = span(took_ms);
        match sent {
            Ok(SendOutcome::Success) => {
                self.screen.remark(format_args!("{request_id} done in {took}"))
            }
            Ok(SendOutcome::Error) => {
                self.screen.remark(format_args!("{request_id} failed after {took}"))
            }
            Ok(SendOutcome::Late) => {
                self.screen.remark(format_args!(
                    "{request_id} took {took}; the caller is no longer waiting"
                ));
            }
            Err(error) => {
                self.screen.remark(format_args!("cannot answer {request_id}: {}", chain(&error)));
            }
        }
    }
}
