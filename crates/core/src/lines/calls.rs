//! Calls on lines, from the time they are queued to their single end.

use std::collections::{HashMap, VecDeque};
use std::str::FromStr as _;
use std::sync::Arc;

use ringback_proto::ids::CallId;
use ringback_proto::principal::{Principal, PrincipalId};
use ringback_proto::{Certainty, Error, ErrorKind, Result};

use super::line::{Post, Turn};
use super::{
    CancelReason, Delivery, LineEffect, LineKind, LineName, LineTable, LineTool, Links,
    PartyMessage, StreamNo,
};

/// Ends that are remembered, so that a late answer gets an explanation.
const ENDS_MAX: usize = 1024;

/// A call to put on a line.
#[derive(Debug)]
pub struct NewCall<L: Links> {
    /// Its id.
    pub id: CallId,
    /// The id its caller chose, which its party will see.
    pub custom_id: Option<Arc<str>>,
    /// The tool, as it was found.
    pub tool: Arc<LineTool<L::Tool>>,
    /// The message to send.
    pub out: L::Out,
    /// The waiting caller.
    pub caller: L::Caller,
}

/// A call that has ended, with the caller to notify.
#[derive(Debug)]
pub struct EndedCall<L: Links> {
    /// Its id.
    pub id: CallId,
    /// The tool.
    pub tool: Arc<LineTool<L::Tool>>,
    /// The message that was sent, or would have been.
    pub out: L::Out,
    /// The waiting caller.
    pub caller: L::Caller,
    /// Whether a party received it.
    pub delivered: bool,
}

impl<L: Links> EndedCall<L> {
    /// Returns whether the tool may have run.
    #[must_use]
    pub const fn certainty(&self) -> Certainty {
        if self.delivered { Certainty::MayHaveRun } else { Certainty::NotStarted }
    }
}

/// A call that waits for its answer.
#[derive(Debug)]
pub struct AwaitedCall<'a, L: Links> {
    /// Its id.
    pub id: CallId,
    /// The tool.
    pub tool: &'a LineTool<L::Tool>,
    /// The message that was sent, or will be.
    pub out: &'a L::Out,
    /// The waiting caller.
    pub caller: &'a L::Caller,
}

/// Why a call is recalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recall {
    /// Its time is up.
    TimedOut,
    /// Its caller cancelled it, or left.
    Cancelled,
}

/// Why a call will not be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// The line or the tool was dropped.
    Dropped,
    /// The caller of the session cannot be reached.
    Absent,
    /// The session ended.
    SessionEnded,
}

impl Loss {
    /// Describes what happened to the call.
    const fn how(self) -> &'static str {
        match self {
            Self::Dropped => "was given up when the line dropped",
            Self::Absent => "was given up when its caller could no longer be reached",
            Self::SessionEnded => "was given up when its session ended",
        }
    }

    fn error<T>(self, tool: &LineTool<T>) -> Error {
        let (line, tool) = (&tool.line, &tool.name);
        let message = match self {
            Self::Dropped => format!("{line} dropped before it answered `{tool}`"),
            Self::Absent => format!(
                "{line} disconnected before it answered `{tool}`; repeat the call once it \
                 is connected again"
            ),
            Self::SessionEnded => format!("the session ended before {line} answered `{tool}`"),
        };
        Error::new(ErrorKind::Gone, message)
    }
}

#[derive(Debug)]
struct LiveCall<L: Links> {
    line: u64,
    turn: Turn,
    place: Place,
    delivered: bool,
    custom_id: Option<Arc<str>>,
    tool: Arc<LineTool<L::Tool>>,
    out: L::Out,
    caller: L::Caller,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// No open stream can take it.
    Waiting,
    /// In the outbox of a stream.
    Posted(StreamNo),
    /// Received by the party.
    Taken(StreamNo),
}

impl Place {
    const fn stream(self) -> Option<StreamNo> {
        match self {
            Self::Waiting => None,
            Self::Posted(stream) | Self::Taken(stream) => Some(stream),
        }
    }
}

/// The calls on all lines.
#[derive(Debug)]
pub(super) struct CallBook<L: Links> {
    live: HashMap<CallId, LiveCall<L>>,
    /// Ids that callers chose, by the owner of the line: other owners can neither see nor disturb
    /// them.
    custom: HashMap<(PrincipalId, Arc<str>), CallId>,
    ends: VecDeque<End>,
    next_turn: Turn,
}

#[derive(Debug)]
struct End {
    owner: PrincipalId,
    call: CallId,
    custom_id: Option<Arc<str>>,
    how: &'static str,
}

impl<L: Links> Default for CallBook<L> {
    fn default() -> Self {
        Self { live: HashMap::new(), custom: HashMap::new(), ends: VecDeque::new(), next_turn: 0 }
    }
}

impl<L: Links> CallBook<L> {
    pub(super) fn len(&self) -> usize {
        self.live.len().max(self.custom.len())
    }

    fn find(&self, owner: PrincipalId, id: &str) -> Option<CallId> {
        let own = CallId::from_str(id).ok();
        own.or_else(|| self.custom.get(&(owner, Arc::from(id))).copied())
    }

    fn end_of(&self, owner: PrincipalId, id: &str) -> Option<&End> {
        let is_it = |end: &&End| match &end.custom_id {
            Some(custom_id) => **custom_id == *id,
            None => CallId::from_str(id).is_ok_and(|id| id == end.call),
        };
        self.ends.iter().rev().filter(|end| end.owner == owner).find(is_it)
    }

    fn unknown(&self, owner: PrincipalId, id: &str) -> Error {
        let message = match self.end_of(owner, id) {
            Some(end) => format!("request {id} is no longer waiting for an answer: it {}", end.how),
            None => format!("no request with the id {id} is waiting for an answer from you"),
        };
        Error::new(ErrorKind::NotFound, message)
    }
}

impl<L: Links> LineTable<L> {
    /// Puts a call on the line of its tool.
    ///
    /// # Errors
    /// `not_found` when the tool is gone, `conflict` when the chosen id is in use, `invalid` when
    /// it looks like one of the daemon's own, `busy` when the line has too many calls, `gone` when
    /// its party is a session's caller that cannot be reached.
    pub fn call(&mut self, call: NewCall<L>, effects: &mut Vec<LineEffect<L>>) -> Result<()> {
        let NewCall { id, custom_id, tool, out, caller } = call;
        let number = self.by_name.get(&tool.line).copied();
        let calls_max = self.limits.calls_per_line_max;
        let Some((number, line)) = number
            .and_then(|number| Some((number, self.lines.get_mut(&number)?)))
            .filter(|(_, line)| line.owner == tool.owner && line.by_name.contains_key(&tool.name))
        else {
            return Err(Error::not_found("tool", &tool.full_name));
        };
        if line.name.kind() == LineKind::Caller && !line.is_attended() {
            return Err(unreachable_caller(&line.name));
        }
        if line.calls.len() >= calls_max {
            return Err(Error::busy("the number of calls waiting on this line"));
        }
        if let Some(custom_id) = &custom_id {
            if CallId::from_str(custom_id).is_ok() {
                let message = "ids of this form are reserved for the daemon; choose another";
                return Err(Error::invalid_field("requestID", message));
            }
            let key = (tool.owner, Arc::clone(custom_id));
            if self.book.custom.contains_key(&key) {
                let message = format!("the request id {custom_id} is in use; choose another");
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            self.book.custom.insert(key, id);
        }
        let turn = self.book.next_turn;
        self.book.next_turn += 1;
        line.calls.insert(turn, id);
        let place = Place::Waiting;
        let live =
            LiveCall { line: number, turn, place, delivered: false, custom_id, tool, out, caller };
        self.book.live.insert(id, live);
        self.post(id, effects);
        Ok(())
    }

    /// Puts a call into the outbox of the stream that should get it, if there is one.
    fn post(&mut self, id: CallId, effects: &mut Vec<LineEffect<L>>) {
        let Some(live) = self.book.live.get_mut(&id) else { return };
        let Some(line) = self.lines.get_mut(&live.line) else { return };
        live.place = Place::Waiting;
        let Some(number) = line.pick(&live.tool.name) else { return };
        let Some(stream) = line.streams.get_mut(&number) else { return };
        stream.outbox.push_back(Post::Call(id));
        stream.load += 1;
        live.place = Place::Posted(number);
        effects.push(LineEffect::Ring(stream.bell.clone()));
    }

    /// Posts the calls waiting on a line, in order, when a stream was opened or offers more.
    pub(super) fn post_waiting(&mut self, number: u64, effects: &mut Vec<LineEffect<L>>) {
        let Some(line) = self.lines.get(&number) else { return };
        let waiting: Vec<_> = line
            .calls
            .values()
            .filter(|id| self.book.live.get(id).is_some_and(|live| live.place == Place::Waiting))
            .copied()
            .collect();
        for id in waiting {
            self.post(id, effects);
        }
    }

    /// Returns the next message of a stream. A call it gets counts as delivered from here on.
    pub fn next(&mut self, stream: StreamNo) -> Option<PartyMessage<L::Out>> {
        self.deliver(stream).map(|delivery| delivery.post)
    }

    pub(super) fn deliver(&mut self, stream: StreamNo) -> Option<Delivery<L::Out>> {
        let line = self.streams.get(&stream).and_then(|number| self.lines.get_mut(number))?;
        match line.streams.get_mut(&stream)?.outbox.pop_front()? {
            Post::Cancel { call, custom_id, reason } => {
                let post = PartyMessage::Cancel { call, custom_id, reason };
                Some(Delivery { post, is_again: false })
            }
            Post::Call(id) => {
                let live = self.book.live.get_mut(&id)?;
                live.place = Place::Taken(stream);
                let is_again = std::mem::replace(&mut live.delivered, true);
                Some(Delivery { post: PartyMessage::Call(live.out.clone()), is_again })
            }
        }
    }

    /// Answers a call for the owner of its line; the first answer ends it.
    ///
    /// # Errors
    /// `not_found` when no such call is waiting for an answer from this principal.
    pub fn answer(&mut self, owner: PrincipalId, id: &str) -> Result<EndedCall<L>> {
        let call = self.answerable(owner, id)?;
        self.take(call, "was answered").ok_or_else(|| self.book.unknown(owner, id))
    }

    /// Returns the waiting caller of a call in progress, for what its party sends in the meantime.
    ///
    /// # Errors
    /// `not_found` when no such call is waiting for an answer from this principal.
    pub fn waiting(&self, owner: PrincipalId, id: &str) -> Result<AwaitedCall<'_, L>> {
        let id_of = self.answerable(owner, id)?;
        match self.book.live.get(&id_of) {
            Some(live) => {
                let LiveCall { tool, out, caller, .. } = live;
                Ok(AwaitedCall { id: id_of, tool, out, caller })
            }
            None => Err(self.book.unknown(owner, id)),
        }
    }

    /// Returns the ended call with an id, if it is remembered and belonged to this owner.
    #[must_use]
    pub fn ended(&self, owner: PrincipalId, id: &str) -> Option<CallId> {
        self.book.end_of(owner, id).map(|end| end.call)
    }

    /// Returns the call, if this principal owns the line it is on. Others learn nothing.
    fn answerable(&self, owner: PrincipalId, id: &str) -> Result<CallId> {
        self.book
            .find(owner, id)
            .filter(|call| self.book.live.get(call).is_some_and(|live| live.tool.owner == owner))
            .ok_or_else(|| self.book.unknown(owner, id))
    }

    /// Returns the message of a call in progress: for its owner, and for those who see everything.
    #[must_use]
    pub fn peek(&self, principal: &Principal, call: CallId) -> Option<&L::Out> {
        let live = self.book.live.get(&call)?;
        let sees_all = crate::policy::sees_all(principal);
        (sees_all || live.tool.owner == principal.id).then_some(&live.out)
    }

    /// Recalls a call whose answer is no longer wanted. Its party is notified if it has it.
    pub fn recall(
        &mut self,
        id: CallId,
        why: Recall,
        effects: &mut Vec<LineEffect<L>>,
    ) -> Option<EndedCall<L>> {
        let (how, reason) = match why {
            Recall::TimedOut => ("timed out", CancelReason::TimedOut),
            Recall::Cancelled => ("was cancelled", CancelReason::Cancelled),
        };
        let live = self.book.live.get(&id)?;
        if let Place::Taken(stream) = live.place {
            let custom_id = live.custom_id.clone();
            let post = Post::Cancel { call: id, custom_id, reason };
            self.post_to(stream, post, effects);
        }
        self.take(id, how)
    }

    fn post_to(&mut self, stream: StreamNo, post: Post, effects: &mut Vec<LineEffect<L>>) {
        let line = self.streams.get(&stream).and_then(|number| self.lines.get_mut(number));
        if let Some(stream) = line.and_then(|line| line.streams.get_mut(&stream)) {
            stream.outbox.push_back(post);
            effects.push(LineEffect::Ring(stream.bell.clone()));
        }
    }

    /// Removes a call from every table.
    fn take(&mut self, id: CallId, how: &'static str) -> Option<EndedCall<L>> {
        let live = self.book.live.remove(&id)?;
        let LiveCall { line: number, turn, place, delivered, custom_id, tool, out, caller } = live;
        if let Some(custom_id) = &custom_id {
            self.book.custom.remove(&(tool.owner, Arc::clone(custom_id)));
        }
        if let Some(line) = self.lines.get_mut(&number) {
            line.calls.remove(&turn);
            if let Some(stream) = place.stream() {
                line.unload(stream, id);
            }
        }
        if self.book.ends.len() == ENDS_MAX {
            self.book.ends.pop_front();
        }
        self.book.ends.push_back(End { owner: tool.owner, call: id, custom_id, how });
        self.drop_if_empty(number);
        Some(EndedCall { id, tool, out, caller, delivered })
    }

    /// Ends a call that will not be answered.
    fn lose(&mut self, id: CallId, why: Loss, effects: &mut Vec<LineEffect<L>>) {
        if let Some(ended) = self.take(id, why.how()) {
            let error = why.error(&ended.tool).with_certainty(ended.certainty());
            effects.push(LineEffect::Failed(ended, error));
        }
    }

    /// Handles a closed stream: calls it had not taken move or wait; those it had are lost, unless
    /// they may be delivered again.
    pub(super) fn leave_stream(
        &mut self,
        number: u64,
        closed: StreamNo,
        effects: &mut Vec<LineEffect<L>>,
    ) {
        let Some(line) = self.lines.get(&number) else { return };
        let mut moving = Vec::new();
        let mut lost = Vec::new();
        for id in line.calls.values() {
            let Some(live) = self.book.live.get(id) else { continue };
            match live.place {
                Place::Posted(stream) if stream == closed => moving.push(*id),
                Place::Taken(stream) if stream == closed => {
                    if line.redelivers(&live.tool) { &mut moving } else { &mut lost }.push(*id);
                }
                Place::Waiting | Place::Posted(_) | Place::Taken(_) => {}
            }
        }
        for id in moving {
            self.post(id, effects);
        }
        for id in lost {
            self.lose(id, Loss::Dropped, effects);
        }
    }

    /// Returns the calls of a line that have not ended, in order.
    pub(super) fn calls_on(&self, number: u64) -> impl Iterator<Item = (Turn, &L::Out)> {
        let calls = self.lines.get(&number).into_iter().flat_map(|line| &line.calls);
        calls.filter_map(|(turn, id)| Some((*turn, &self.book.live.get(id)?.out)))
    }

    /// Gives up every call of a line, or those that only a withdrawn tool could have answered and
    /// that no party has.
    pub(super) fn lose_calls(
        &mut self,
        number: u64,
        why: Loss,
        is_lost: impl Fn(&str, bool) -> bool,
        effects: &mut Vec<LineEffect<L>>,
    ) {
        let Some(line) = self.lines.get(&number) else { return };
        let lost: Vec<_> = line
            .calls
            .values()
            .filter(|id| {
                let live = self.book.live.get(id);
                live.is_some_and(|live| {
                    let is_taken = match line.name.kind() {
                        LineKind::Client | LineKind::Worker => {
                            matches!(live.place, Place::Taken(_))
                        }
                        // A polling caller has it even though its stream is closed.
                        LineKind::Caller => live.delivered,
                    };
                    is_lost(&live.tool.name, is_taken)
                })
            })
            .copied()
            .collect();
        for id in lost {
            self.lose(id, why, effects);
        }
    }
}

fn unreachable_caller(line: &LineName) -> Error {
    let message = format!(
        "{line} cannot be reached: it has no open stream and does not poll for calls; it must open \
         a stream or call `caller_tool_requests`"
    );
    Error::new(ErrorKind::Gone, message)
}
