//! Spending of sessions on their models. At a limit, the session's model requests wait and its
//! caller is asked; without an answer in time, the agent is stopped.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringback_core::spending::{END, Ledger, Limit, LimitAnswer, MORE, Question, Verdict};
use ringback_proto::ids::SessionId;
use ringback_proto::record::{Record, SpendingRecord};
use ringback_proto::request::{
    ModelUsage, PermissionAnswer, PermissionChoice, SessionEventInfo, SessionPause, SpendLimits,
};
use ringback_proto::{Error, Result};
use tokio::sync::Notify;
use tokio::time::Sleep;

use crate::Broker;
use crate::kernel::Kernel;
use crate::rooms::SharedRooms;
use crate::sessions::conversation::events::event;
use crate::sessions::lifecycle::choice::ChosenAgent;
use crate::sessions::lifecycle::keeper::Order;
use crate::sessions::lifecycle::start::StartSession;
use crate::sessions::{Conversations, LiveSession, Origin, Register};
use crate::sync::lock;

/// Prefix of the ids of limit questions. Drivers use other ids for permission requests.
const LIMIT_ID: &str = "limit-";
/// How often working time is checked.
const LOOK_MS: u64 = 1000;

/// A session has reached a limit, and more was not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session has reached its limit `{limit}`")]
pub struct LimitReached {
    /// Name of the limit.
    pub limit: &'static str,
}

/// The budget that a session shares with the sessions its agent starts.
#[derive(Debug)]
pub(super) struct Budget {
    /// The session that owns it, and asks at a limit.
    holder: SessionId,
    ledger: Mutex<Ledger>,
    /// Notified on an answer, or when there will be none.
    changed: Notify,
}

/// What one session has spent, and its budget.
#[derive(Debug)]
pub(super) struct Account {
    budget: Arc<Budget>,
    /// Its own share, if another session holds the budget.
    own: Mutex<SpendingRecord>,
    /// Start of the working time that is not counted yet.
    working_since: Mutex<Option<u64>>,
}

impl Budget {
    fn new(holder: SessionId, spent: SpendingRecord) -> Arc<Self> {
        let ledger = Mutex::new(Ledger::new(spent));
        Arc::new(Self { holder, ledger, changed: Notify::new() })
    }

    fn is_asked(&self, request_id: &str) -> bool {
        lock(&self.ledger).question().is_some_and(|question| question.request_id == request_id)
    }
}

impl Account {
    const fn new(budget: Arc<Budget>, own: SpendingRecord) -> Self {
        Self { budget, own: Mutex::new(own), working_since: Mutex::new(None) }
    }

    /// Returns a session's limits and spending, as shown and stored.
    pub(super) fn record(&self, id: SessionId) -> SpendingRecord {
        if self.budget.holder == id { lock(&self.budget.ledger).record() } else { *lock(&self.own) }
    }

    /// Returns the open question about its budget.
    pub(super) fn pause(&self) -> Option<SessionPause> {
        lock(&self.budget.ledger).question().map(|question| SessionPause {
            limit: question.limit.as_str().to_owned(),
            request_id: question.request_id.clone(),
            until_ms: question.until_unix,
        })
    }

    /// Returns the session that asks at a limit, if this is the id of its question.
    pub(super) fn asker(&self, request_id: &str) -> Option<SessionId> {
        self.budget.is_asked(request_id).then_some(self.budget.holder)
    }

    fn add(&self, id: SessionId, change: impl Fn(&mut Ledger)) {
        change(&mut lock(&self.budget.ledger));
        if self.budget.holder != id {
            let mut own = lock(&self.own);
            let mut ledger = Ledger::new(*own);
            change(&mut ledger);
            *own = ledger.record();
        }
    }

    /// Reopens the budget: the caller sent a new message.
    pub(super) fn reopen(&self) {
        lock(&self.budget.ledger).reopen();
    }

    /// Closes the budget if the ending session holds it.
    pub(super) fn end(&self, id: SessionId) {
        if self.budget.holder == id {
            lock(&self.budget.ledger).close();
            self.budget.changed.notify_waiters();
        }
    }
}

impl Broker {
    /// Waits until a session may send a model request.
    ///
    /// # Errors
    /// When it has reached a limit, and the answer was no or did not come in time.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn may_ask_model(&self, session: SessionId) -> std::result::Result<(), LimitReached> {
        let Some(live) = self.0.register.live(session) else { return Ok(()) };
        let budget = &live.account.budget;
        loop {
            let changed = budget.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.0.budgets.look_at(budget) {
                Verdict::Goes => return Ok(()),
                Verdict::Asks(_) | Verdict::Waits => changed.await,
                Verdict::Refused => {
                    let reached = lock(&budget.ledger).reached();
                    return Err(LimitReached { limit: reached.map_or("ended", Limit::as_str) });
                }
            }
        }
    }
}

/// The budgets of sessions.
#[derive(Debug)]
pub(crate) struct Budgets {
    kernel: Arc<Kernel>,
    register: Arc<Register>,
    conversations: Arc<Conversations>,
}

impl Budgets {
    pub(crate) fn new(shared_rooms: &SharedRooms) -> Self {
        Self {
            kernel: shared_rooms.kernel.clone(),
            register: shared_rooms.register.clone(),
            conversations: shared_rooms.conversations.clone(),
        }
    }

    /// Returns the account for a new session. A session started by an agent cannot have its own
    /// limits: it would have a second budget where one was granted.
    pub(super) fn account_of(
        &self,
        start: &StartSession,
        chosen: &ChosenAgent,
        id: SessionId,
    ) -> Result<Account> {
        let before = match &start.origin {
            Origin::Again(record) => Some(record.spending),
            Origin::New { .. } => None,
        };
        if let Some(limits) = &start.limits {
            self.check_limits(limits, chosen)?;
        }
        let parent = start.origin.parent();
        if let Some(parent) = parent.and_then(|parent| self.register.live(parent)) {
            if start.limits.is_some() {
                let message = "a session started by an agent spends from that agent's budget";
                return Err(Error::invalid_field("limits", message));
            }
            let budget = Arc::clone(&parent.account.budget);
            return Ok(Account::new(budget, before.unwrap_or_default()));
        }
        let spent = before.unwrap_or_else(|| {
            let usual = self.kernel.config.sessions.spending;
            let limits = start.limits.unwrap_or_default();
            let limits = limits.or(start.project.limits.spending()).or(usual);
            SpendingRecord { limits, ..SpendingRecord::default() }
        });
        Ok(Account::new(Budget::new(id, spent), SpendingRecord::default()))
    }

    /// Checks that limits can be enforced. What cannot be counted is refused.
    fn check_limits(&self, limits: &SpendLimits, chosen: &ChosenAgent) -> Result<()> {
        let refused = |field: &str, message: String| Err(Error::invalid_field(field, message));
        let SpendLimits { max_tokens, max_time_ms, max_micro_usd } = limits;
        let max_micro_usd = max_micro_usd.map(|max| max.0);
        for (field, max) in [
            ("limits.max_tokens", max_tokens),
            ("limits.max_time_ms", max_time_ms),
            ("limits.max_micro_usd", &max_micro_usd),
        ] {
            if *max == Some(0) {
                return refused(field, "a limit of 0 allows nothing; leave it out".to_owned());
            }
        }
        if max_tokens.is_none() && max_micro_usd.is_none() {
            return Ok(());
        }
        let field = if max_tokens.is_some() { "limits.max_tokens" } else { "limits.max_micro_usd" };
        let Some(provider) = chosen.provider() else {
            let agent = &chosen.name;
            let message = format!(
                "agent `{agent}` has no `provider`, so its model usage is not counted; configure a \
                 provider, or limit its time"
            );
            return refused(field, message);
        };
        let has_prices = self
            .kernel
            .config
            .sessions
            .doors
            .models
            .as_ref()
            .is_some_and(|it| it.has_prices(provider));
        if max_micro_usd.is_some() && !has_prices {
            let message = format!(
                "the models of `{provider}` have no prices; add them to the daemon's configuration \
                 as `[providers.{provider}.prices.\"MODEL*\"]` with `input` and `output`"
            );
            return refused("limits.max_micro_usd", message);
        }
        Ok(())
    }

    /// Counts a model request of a session.
    pub(super) fn spent(self: &Arc<Self>, id: SessionId, usage: ModelUsage) {
        let Some(live) = self.register.live(id) else { return };
        live.account.add(id, |ledger| ledger.spend(usage));
        self.store_spent(id, &live.account);
    }

    /// Starts counting the working time of a session's agent.
    pub(super) fn work_begins(&self, id: SessionId) {
        if let Some(live) = self.register.live(id) {
            lock(&live.account.working_since).get_or_insert(self.kernel.now().mono);
        }
    }

    /// Counts the working time of an agent that is idle now, or gone.
    pub(super) fn work_ends(self: &Arc<Self>, id: SessionId) {
        let Some(live) = self.register.live(id) else { return };
        let Some(since) = lock(&live.account.working_since).take() else { return };
        self.worked(id, &live.account, since);
        self.store_spent(id, &live.account);
    }

    fn worked(&self, id: SessionId, account: &Account, since: u64) {
        let ms = self.kernel.now().mono.saturating_sub(since);
        account.add(id, |ledger| ledger.work(ms));
    }

    /// Resolves when an agent's working time is due for a check; never if it has no limit.
    pub(super) async fn time_to_look(&self, id: SessionId) {
        let since = self.register.live(id).and_then(|live| {
            let limits = lock(&live.account.budget.ledger).record().limits;
            let since = *lock(&live.account.working_since);
            limits.max_time_ms.and(since)
        });
        let Some(since) = since else { return std::future::pending().await };
        let at = since.saturating_add(LOOK_MS);
        let left = Duration::from_millis(at.saturating_sub(self.kernel.now().mono));
        tokio::time::sleep(left).await;
    }

    /// Counts an agent's working time so far, and asks if it is over the limit.
    pub(super) fn look_at_work(self: &Arc<Self>, id: SessionId) {
        let Some(live) = self.register.live(id) else { return };
        let now = self.kernel.now().mono;
        let since = lock(&live.account.working_since).replace(now);
        if let Some(since) = since {
            self.worked(id, &live.account, since);
        }
        self.look_at(&live.account.budget);
    }

    /// Checks a budget, and asks at a limit.
    fn look_at(self: &Arc<Self>, budget: &Arc<Budget>) -> Verdict {
        let digits = blake3::Hash::from_bytes(self.kernel.entropy.bytes()).to_hex();
        let request_id = format!("{LIMIT_ID}{}", &digits[..16]);
        let wait = self.kernel.config.sessions.limit_wait;
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let (verdict, spent) = {
            let mut ledger = lock(&budget.ledger);
            (ledger.check(self.kernel.now(), wait_ms, request_id), ledger.record())
        };
        if let Verdict::Asks(question) = &verdict {
            self.conversations.say(budget.holder, asked(question, &spent));
            let (budgets, budget) = (Arc::clone(self), Arc::clone(budget));
            let id = question.request_id.clone();
            // The time counts from the question, not from when the task first runs.
            let late = tokio::time::sleep(wait);
            drop(
                self.kernel
                    .tasks
                    .spawn(async move { budgets.wait_for_answer(&budget, &id, late).await }),
            );
        }
        verdict
    }

    /// Stops the agents of a budget if no answer comes in time.
    async fn wait_for_answer(self: &Arc<Self>, budget: &Budget, request_id: &str, late: Sleep) {
        tokio::pin!(late);
        loop {
            let changed = budget.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !budget.is_asked(request_id) {
                return;
            }
            tokio::select! {
                biased;
                () = self.kernel.stopping.cancelled() => return,
                () = changed => {}
                () = &mut late => break,
            }
        }
        let now = self.kernel.now();
        let is_late = {
            let mut ledger = lock(&budget.ledger);
            // The two clocks may differ slightly; the wait is over.
            ledger.expire(ringback_core::Now { mono: u64::MAX, ..now })
        };
        if is_late {
            self.say_answered(budget.holder, request_id, None, "nobody");
            self.stop_spending(budget);
        }
    }

    /// Handles an answer to a limit question. Returns false if it answers something else.
    pub(super) fn answer_limit(
        self: &Arc<Self>,
        live: &LiveSession,
        answer: &PermissionAnswer,
    ) -> Result<bool> {
        let budget = &live.account.budget;
        let PermissionAnswer { request_id, option } = answer;
        if !budget.is_asked(request_id) {
            return Ok(false);
        }
        let (answered, spent) = {
            let mut ledger = lock(&budget.ledger);
            (ledger.answer(request_id, option.as_deref()), ledger.record())
        };
        match answered {
            // Another answer came first.
            None => return Ok(false),
            Some(LimitAnswer::Unknown) => {
                let message = format!("answer with `{MORE}` or `{END}`");
                return Err(Error::invalid_field("answer.option", message));
            }
            Some(LimitAnswer::More) => {
                self.say_answered(budget.holder, request_id, Some(MORE), "answer");
                self.store(budget.holder, spent);
            }
            Some(LimitAnswer::End) => {
                self.say_answered(budget.holder, request_id, Some(END), "answer");
                self.stop_spending(budget);
            }
        }
        budget.changed.notify_waiters();
        Ok(true)
    }

    /// Refuses waiting model requests and stops the agents of a budget.
    fn stop_spending(self: &Arc<Self>, budget: &Budget) {
        let (reached, spent) = {
            let ledger = lock(&budget.ledger);
            (ledger.reached(), ledger.record())
        };
        budget.changed.notify_waiters();
        let what = reached.map_or_else(|| "a limit".to_owned(), |limit| said(limit, &spent));
        let text = Some(format!("stopped at a limit: {what}"));
        self.conversations.say(budget.holder, SessionEventInfo { text, ..event("error") });
        let stopped: Vec<_> = {
            let live = lock(&self.register.live);
            let is_of =
                |live: &&Arc<LiveSession>| std::ptr::eq(Arc::as_ptr(&live.account.budget), budget);
            live.values().filter(is_of).cloned().collect()
        };
        for live in stopped {
            if live.orders.try_send(Order::Abort).is_err() {
                tracing::warn!(session = %budget.holder, "cannot stop an agent at its limit");
            }
        }
    }

    fn say_answered(&self, id: SessionId, request_id: &str, option: Option<&str>, by: &str) {
        let (request_id, role) = (Some(request_id.to_owned()), Some(by.to_owned()));
        let text = option.map(str::to_owned);
        self.conversations
            .say(id, SessionEventInfo { request_id, role, text, ..event("permission_answer") });
    }

    /// Stores what a session has spent. It only grows, so the order of writes does not matter.
    fn store_spent(self: &Arc<Self>, id: SessionId, account: &Account) {
        let holder = account.budget.holder;
        if holder != id {
            self.store(holder, lock(&account.budget.ledger).record());
        }
        self.store(id, account.record(id));
    }

    fn store(self: &Arc<Self>, id: SessionId, spending: SpendingRecord) {
        let kernel = Arc::clone(&self.kernel);
        drop(self.kernel.tasks.spawn(async move {
            let record = Record::SessionSpent { id, spending: Box::new(spending) };
            if let Err(error) = kernel.commit_for_sure(&[record]).await {
                tracing::error!(session = %id, %error, "cannot store a session's spending");
            }
        }));
    }
}

/// Returns the event that asks at a limit.
fn asked(question: &Question, spent: &SpendingRecord) -> SessionEventInfo {
    let more = match question.limit {
        Limit::Tokens | Limit::Time | Limit::Usd => "as much again",
        Limit::Prices => "continue, and do not count models without a price",
    };
    let choice = |id: &str, name: &str, kind: &str| PermissionChoice {
        id: id.to_owned(),
        name: name.to_owned(),
        kind: kind.to_owned(),
    };
    let options =
        vec![choice(MORE, more, "allow_once"), choice(END, "stop the agent", "reject_once")];
    let reached = said(question.limit, spent);
    let text = match question.limit {
        Limit::Tokens => format!("Token limit reached ({reached}). Allow as much again, or stop?"),
        Limit::Time => format!("Time limit reached ({reached}). Allow as much again, or stop?"),
        Limit::Usd => format!("Cost limit reached ({reached}). Allow as much again, or stop?"),
        Limit::Prices => format!("The agent used {reached}. Continue without counting them?"),
    };
    SessionEventInfo {
        request_id: Some(question.request_id.clone()),
        text: Some(text),
        options,
        ..event("permission_request")
    }
}

/// Describes the spending against a limit.
fn said(limit: Limit, spent: &SpendingRecord) -> String {
    let SpendingRecord { limits, usage, working_ms } = spent;
    let about = if usage.estimated { "about " } else { "" };
    match limit {
        Limit::Tokens => {
            let (tokens, max) = (usage.tokens(), limits.max_tokens.unwrap_or_default());
            format!("{about}{tokens} of {max} tokens")
        }
        Limit::Time => {
            let max = limits.max_time_ms.unwrap_or_default() / 1000;
            format!("{} of {max} seconds", working_ms / 1000)
        }
        Limit::Usd => {
            let cost = usage.cost_micro_usd.unwrap_or_default();
            format!("{about}{cost} of {} USD", limits.max_micro_usd.unwrap_or_default())
        }
        Limit::Prices => {
            format!("{} tokens of models without a price", usage.unpriced_tokens)
        }
    }
}
