//! The lines of callers: a caller declares tools for its session, and the agents of that session
//! and its descendants call them.
//!
//! They differ from other lines in three ways. Their tools are in no registry: they are found by
//! session, caller and name, so other principals can neither find nor list them. They last as long
//! as the session, whether or not a stream is open. And because they last, a caller's reachability
//! is tracked separately: it is *attended* while a stream is open, and for a grace period after it
//! declared its tools or ended a poll. A caller that is not attended has no calls: waiting calls
//! are given up, and new ones are refused immediately.
//!
//! A caller *attends* a session rather than one line: it receives the calls of all its lines there,
//! including those that it declares later.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ringback_proto::ids::SessionId;
use ringback_proto::principal::{Principal, PrincipalId, Target};
use ringback_proto::{Error, Result};

use super::calls::Loss;
use super::line::Line;
use super::registry::{self, NewTool};
use super::{LineEffect, LineName, LineTable, LineTool, Links, PartyMessage, StreamNo, names};
use crate::time::Now;

/// All the tools that one caller of a session offers.
#[derive(Debug)]
pub struct Declaration<T> {
    /// The session; its descendants may call the tools too.
    pub session: SessionId,
    /// The id of the caller.
    pub caller_id: Arc<str>,
    /// How long the caller counts as reachable after this declaration, and after each poll.
    pub grace_ms: u64,
    /// The tools, replacing those declared before; an empty list removes the caller.
    pub tools: Vec<NewTool<T>>,
}

/// The tools that one caller of a session has declared.
#[derive(Debug)]
pub struct CallerTools<T> {
    /// The id of the caller.
    pub caller_id: Arc<str>,
    /// The owner, who alone may answer.
    pub owner: PrincipalId,
    /// The tools, in the order of declaration.
    pub tools: Vec<Arc<LineTool<T>>>,
}

/// How a caller holds its stream, which decides what its end means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamMode {
    /// It stays open; when it closes, the caller has left.
    Lasting,
    /// It ends with each answer; the next one is expected soon.
    Polling,
}

/// A caller that wants to receive its calls.
#[derive(Debug)]
pub struct Attendee<B> {
    /// The session.
    pub session: SessionId,
    /// Which of its lines; all if absent.
    pub caller_ids: Option<Vec<Arc<str>>>,
    /// How it holds its stream.
    pub holding: StreamMode,
    /// Wakes it.
    pub bell: B,
}

/// The number of one attendance of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttendanceNo(u64);

/// A message to a party.
#[derive(Debug)]
pub struct Delivery<O> {
    /// The message.
    pub post: PartyMessage<O>,
    /// Whether it is a call that was sent before.
    pub is_again: bool,
}

/// The state of callers besides their lines.
#[derive(Debug)]
pub(super) struct Callers<L: Links> {
    sessions: HashMap<SessionId, Session>,
    attendances: HashMap<AttendanceNo, Attendance<L>>,
    usage: HashMap<PrincipalId, Usage>,
}

#[derive(Debug, Default)]
struct Session {
    lines: BTreeMap<Arc<str>, u64>,
    attendances: BTreeSet<AttendanceNo>,
}

#[derive(Debug)]
struct Attendance<L: Links> {
    owner: PrincipalId,
    of: Attendee<L::Bell>,
    /// One for each line; the front one is polled first.
    streams: VecDeque<StreamNo>,
}

impl<L: Links> Attendance<L> {
    fn hears_of(&self, line: &Line<L>, caller_id: &str) -> bool {
        let is_wanted = |ids: &Vec<Arc<str>>| ids.iter().any(|id| **id == *caller_id);
        self.owner == line.owner && self.of.caller_ids.as_ref().is_none_or(is_wanted)
    }
}

/// The number and bytes of the tools that a principal has declared.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Usage {
    n_tools: usize,
    weight: usize,
}

impl<L: Links> Default for Callers<L> {
    fn default() -> Self {
        Self { sessions: HashMap::new(), attendances: HashMap::new(), usage: HashMap::new() }
    }
}

impl<L: Links> Callers<L> {
    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.attendances.is_empty() && self.usage.is_empty()
    }

    fn line(&self, session: SessionId, caller_id: &str) -> Option<u64> {
        self.sessions.get(&session)?.lines.get(caller_id).copied()
    }

    fn lines(&self, session: SessionId) -> impl Iterator<Item = (&Arc<str>, u64)> {
        let lines = self.sessions.get(&session).into_iter().flat_map(|session| &session.lines);
        lines.map(|(caller_id, number)| (caller_id, *number))
    }

    /// Returns the number of attendances of a principal in a session.
    fn n_open(&self, session: SessionId, owner: PrincipalId) -> usize {
        let open = self.sessions.get(&session).into_iter().flat_map(|of| &of.attendances);
        open.filter(|no| self.attendances.get(no).is_some_and(|of| of.owner == owner)).count()
    }

    fn add_tool(&mut self, tool: &LineTool<L::Tool>) {
        let usage = self.usage.entry(tool.owner).or_default();
        usage.n_tools += 1;
        usage.weight += tool.weight;
    }

    /// Forgets a tool that is no longer declared.
    pub(super) fn forget_tool(&mut self, tool: &LineTool<L::Tool>) {
        if let Some(usage) = self.usage.get_mut(&tool.owner) {
            usage.n_tools -= 1;
            usage.weight -= tool.weight;
            if usage.n_tools == 0 {
                self.usage.remove(&tool.owner);
            }
        }
    }

    /// Forgets a line that has ended, if it was a caller's.
    pub(super) fn forget_line(&mut self, name: &LineName) {
        if let (Some(id), Some(caller_id)) = (name.session(), name.caller_id()) {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.lines.remove(caller_id);
            }
            self.drop_if_empty(id);
        }
    }

    fn drop_if_empty(&mut self, id: SessionId) {
        let session = self.sessions.get(&id);
        if session.is_some_and(|of| of.lines.is_empty() && of.attendances.is_empty()) {
            self.sessions.remove(&id);
        }
    }
}

/// The lines of callers: a view of the table that can do what concerns them, and nothing else.
#[derive(Debug)]
pub struct CallerLines<'a, L: Links> {
    table: &'a mut LineTable<L>,
}

impl<L: Links> LineTable<L> {
    /// The lines of callers.
    pub const fn callers(&mut self) -> CallerLines<'_, L> {
        CallerLines { table: self }
    }
}

impl<L: Links> CallerLines<'_, L> {
    /// Declares all tools of a caller, replacing those it declared before; if one is invalid,
    /// declares none. Calls to tools that are no longer declared are given up unless the caller has
    /// them. Returns the full names, in the given order.
    ///
    /// # Errors
    /// `forbidden` without the right scope, `conflict` when the caller id belongs to another
    /// principal, `invalid` for bad names, `busy` past a limit.
    pub fn declare(
        &mut self,
        now: Now,
        principal: &Principal,
        declaration: Declaration<L::Tool>,
        effects: &mut Vec<LineEffect<L>>,
    ) -> Result<Vec<Arc<str>>> {
        registry::may_offer(principal)?;
        let Declaration { session, caller_id, grace_ms, tools } = declaration;
        names::check_caller(&caller_id)?;
        let name = LineName::caller(session, &caller_id);
        let full_names = self.check_declaration(principal, session, &name, &tools)?;
        let Some(number) = self.caller_line(now, principal, &name, tools.is_empty())? else {
            return Ok(full_names);
        };
        let of_session = self.table.callers.sessions.entry(session).or_default();
        of_session.lines.insert(Arc::clone(&caller_id), number);
        let removed = self.replace_declared(principal, number, &full_names, tools);
        if !full_names.is_empty() {
            self.attend_to(number, session, &caller_id, effects);
            self.renew_grace(now, number, grace_ms);
        }
        self.table.withdraw(number, &removed, effects);
        Ok(full_names)
    }

    fn check_declaration(
        &self,
        principal: &Principal,
        session: SessionId,
        name: &LineName,
        tools: &[NewTool<L::Tool>],
    ) -> Result<Vec<Arc<str>>> {
        let line = self.table.owned_line(principal.id, name)?;
        let mut seen = HashSet::new();
        let mut full_names = Vec::with_capacity(tools.len());
        for tool in tools {
            full_names.push(names::full_name(name, &tool.name)?);
            if !seen.insert(&tool.name) {
                let message = format!("the tool `{}` is declared twice", tool.name);
                return Err(Error::invalid_field("name", message));
            }
        }
        let limits = &self.table.limits;
        let n_callers = self.table.callers.lines(session).count();
        if line.is_none() && n_callers >= limits.callers_per_session_max {
            return Err(Error::busy("the number of callers of this session"));
        }
        let before = line.into_iter().flat_map(|line| line.tools.values());
        let (n_before, weight_before) =
            before.fold((0, 0), |(n, weight), tool| (n + 1, weight + tool.weight));
        let usage = self.table.callers.usage.get(&principal.id).copied().unwrap_or_default();
        let (n_offered, weight_offered) = self.table.registry.usage(principal.id);
        let n_own = n_offered + usage.n_tools - n_before + tools.len();
        let weight_new: usize = tools.iter().map(|tool| tool.weight).sum();
        let weight = weight_offered + usage.weight - weight_before + weight_new;
        if tools.len() > limits.tools_per_line_max
            || n_own > limits.tools_per_principal_max
            || weight > limits.tool_bytes_per_principal_max
        {
            return Err(Error::busy("the number or the size of your tools"));
        }
        Ok(full_names)
    }

    /// Returns the line of a caller, created if it is to have tools.
    fn caller_line(
        &mut self,
        now: Now,
        principal: &Principal,
        name: &LineName,
        is_removal: bool,
    ) -> Result<Option<u64>> {
        if is_removal {
            return Ok(self.table.by_name.get(name).copied());
        }
        self.table.hold(now, principal, name).map(Some)
    }

    /// Puts the tools on the line in order. Returns the names of those to be removed.
    fn replace_declared(
        &mut self,
        principal: &Principal,
        number: u64,
        full_names: &[Arc<str>],
        tools: Vec<NewTool<L::Tool>>,
    ) -> Vec<Arc<str>> {
        let mut removed: BTreeSet<_> = match self.table.lines.get(&number) {
            Some(line) => line.by_name.keys().cloned().collect(),
            None => BTreeSet::new(),
        };
        for (full_name, tool) in full_names.iter().zip(tools) {
            let seq = self.table.next_number();
            let Some(line) = self.table.lines.get_mut(&number) else { break };
            removed.remove(&tool.name);
            if let Some(before) = line.remove_tool(&tool.name) {
                self.table.callers.forget_tool(&before);
            }
            let tool = Arc::new(LineTool {
                full_name: Arc::clone(full_name),
                name: tool.name,
                line: line.name.clone(),
                owner: principal.id,
                owner_target: Target::Everything,
                audience: tool.audience,
                timeout_ms: tool.timeout_ms,
                progress_extends: tool.progress_extends,
                idempotent: tool.idempotent,
                seq,
                weight: tool.weight,
                info: tool.info,
            });
            self.table.callers.add_tool(&tool);
            line.add_tool(tool);
        }
        removed.into_iter().collect()
    }

    /// Adds this line to all matching attendances of the session.
    fn attend_to(
        &mut self,
        number: u64,
        session: SessionId,
        caller_id: &str,
        effects: &mut Vec<LineEffect<L>>,
    ) {
        let attendances: Vec<_> = self
            .table
            .callers
            .sessions
            .get(&session)
            .into_iter()
            .flat_map(|session| session.attendances.iter().copied())
            .collect();
        for attendance in attendances {
            self.listen(attendance, number, caller_id, effects);
        }
    }

    /// Opens a stream of a line for an attendance that wants it and does not have one yet.
    fn listen(
        &mut self,
        attendance: AttendanceNo,
        number: u64,
        caller_id: &str,
        effects: &mut Vec<LineEffect<L>>,
    ) {
        let Some(line) = self.table.lines.get(&number) else { return };
        let Some(of) = self.table.callers.attendances.get(&attendance) else { return };
        let listens = of.streams.iter().any(|stream| line.streams.contains_key(stream));
        if listens || !of.hears_of(line, caller_id) {
            return;
        }
        let stream = self.table.add_stream(number, of.of.bell.clone(), effects);
        if let Some(of) = self.table.callers.attendances.get_mut(&attendance) {
            of.streams.push_back(stream);
        }
    }

    /// Restarts the grace period of the caller, unless an open stream shows that it is reachable.
    fn renew_grace(&mut self, now: Now, number: u64, grace_ms: u64) {
        let Some(line) = self.table.lines.get_mut(&number) else { return };
        line.grace_ms = grace_ms.min(self.table.limits.grace_ms_max);
        if line.streams.is_empty() {
            let at = now.mono + line.grace_ms;
            self.table.set_lapse(number, Some(at));
        }
    }

    /// Starts an attendance of a session: the calls waiting on its lines are sent to it.
    ///
    /// # Errors
    /// `busy` when it has too many at the same time.
    pub fn attend(
        &mut self,
        owner: PrincipalId,
        attend: Attendee<L::Bell>,
        effects: &mut Vec<LineEffect<L>>,
    ) -> Result<AttendanceNo> {
        let session = attend.session;
        if self.table.callers.n_open(session, owner) >= self.table.limits.streams_per_line_max {
            return Err(Error::busy("the number of your streams in this session"));
        }
        let number = AttendanceNo(self.table.next_number());
        self.table.callers.sessions.entry(session).or_default().attendances.insert(number);
        let streams = VecDeque::new();
        self.table.callers.attendances.insert(number, Attendance { owner, of: attend, streams });
        let lines: Vec<_> =
            self.table.callers.lines(session).map(|(id, line)| (Arc::clone(id), line)).collect();
        for (caller_id, line) in lines {
            self.listen(number, line, &caller_id, effects);
        }
        Ok(number)
    }

    /// Returns whether an attendance is still active: until the caller leaves or the session ends.
    #[must_use]
    pub fn is_attending(&self, attendance: AttendanceNo) -> bool {
        self.table.callers.attendances.contains_key(&attendance)
    }

    /// Returns the next message for a caller, from each of its lines in turn. A call it gets counts
    /// as delivered from here on.
    pub fn next(&mut self, attendance: AttendanceNo) -> Option<Delivery<L::Out>> {
        let n_streams = self.table.callers.attendances.get(&attendance)?.streams.len();
        for _ in 0..n_streams {
            let of = self.table.callers.attendances.get_mut(&attendance)?;
            let stream = *of.streams.front()?;
            of.streams.rotate_left(1);
            if let Some(delivery) = self.table.deliver(stream) {
                return Some(delivery);
            }
        }
        None
    }

    /// Ends an attendance. Unanswered calls wait for the next one if the caller still attends or
    /// did a moment ago; otherwise they are given up.
    pub fn leave(&mut self, now: Now, attendance: AttendanceNo, effects: &mut Vec<LineEffect<L>>) {
        let Some(left) = self.table.callers.attendances.remove(&attendance) else { return };
        let session = left.of.session;
        if let Some(of_session) = self.table.callers.sessions.get_mut(&session) {
            of_session.attendances.remove(&attendance);
        }
        for stream in left.streams {
            let Some(number) = self.table.streams.remove(&stream) else { continue };
            let Some(line) = self.table.lines.get_mut(&number) else { continue };
            line.streams.remove(&stream);
            let grace_ms = line.grace_ms;
            match left.of.holding {
                StreamMode::Polling => self.table.set_lapse(number, Some(now.mono + grace_ms)),
                StreamMode::Lasting => {}
            }
            self.table.leave_stream(number, stream, effects);
            self.give_up_if_absent(number, effects);
        }
        self.table.callers.drop_if_empty(session);
    }

    /// Gives up the calls of a caller that cannot be reached.
    pub(super) fn give_up_if_absent(&mut self, number: u64, effects: &mut Vec<LineEffect<L>>) {
        if self.table.lines.get(&number).is_some_and(|line| !line.is_attended()) {
            self.table.lose_calls(number, Loss::Absent, |_, _| true, effects);
        }
        self.table.drop_if_empty(number);
    }

    /// Restarts the grace period of a polling caller that showed a sign of life on this line.
    pub fn touch(&mut self, now: Now, name: &LineName) {
        let Some(number) = self.table.by_name.get(name).copied() else { return };
        let Some(line) = self.table.lines.get(&number) else { return };
        let grace_ms = line.grace_ms;
        if line.streams.is_empty() && line.lapses_at.is_some() {
            self.renew_grace(now, number, grace_ms);
        }
    }

    /// Finds the tool that an agent of a session means. Without a caller id, the tool of the only
    /// caller that declares this name.
    ///
    /// # Errors
    /// `not_found` when it is not declared, `invalid` when several callers have declared it.
    pub fn find(
        &self,
        session: SessionId,
        caller_id: Option<&str>,
        tool: &str,
    ) -> Result<Arc<LineTool<L::Tool>>> {
        let on_line = |number: u64| {
            let line = self.table.lines.get(&number)?;
            line.tools.get(line.by_name.get(tool)?)
        };
        if let Some(caller_id) = caller_id {
            let found = self.table.callers.line(session, caller_id).and_then(on_line);
            let name = || format!("{caller_id}_{tool}");
            return found.cloned().ok_or_else(|| Error::not_found("caller tool", name()));
        }
        let mut found = self.table.callers.lines(session).filter_map(|(_, number)| on_line(number));
        let first = found.next().ok_or_else(|| Error::not_found("caller tool", tool))?;
        match found.next() {
            None => Ok(Arc::clone(first)),
            Some(second) => {
                let (first, second) = (&first.line, &second.line);
                let message =
                    format!("{first} and {second} both have a tool `{tool}`; give the caller id");
                Err(Error::invalid_field("caller_id", message))
            }
        }
    }

    /// Returns the declarations of the callers of a session, by id.
    #[must_use]
    pub fn of(&self, session: SessionId) -> Vec<CallerTools<L::Tool>> {
        let lines = self.table.callers.lines(session);
        lines
            .filter_map(|(caller_id, number)| Some((caller_id, self.table.lines.get(&number)?)))
            .filter(|(_, line)| !line.tools.is_empty())
            .map(|(caller_id, line)| CallerTools {
                caller_id: Arc::clone(caller_id),
                owner: line.owner,
                tools: line.tools.values().cloned().collect(),
            })
            .collect()
    }

    /// Returns the messages of a session's calls that wait for an answer from this principal, in
    /// order.
    #[must_use]
    pub fn pending(&self, owner: PrincipalId, session: SessionId) -> Vec<L::Out> {
        let own =
            self.table.callers.lines(session).map(|(_, number)| number).filter(|number| {
                self.table.lines.get(number).is_some_and(|line| line.owner == owner)
            });
        let mut calls: Vec<_> = own.flat_map(|number| self.table.calls_on(number)).collect();
        calls.sort_by_key(|(turn, _)| *turn);
        calls.into_iter().map(|(_, out)| out.clone()).collect()
    }

    /// Ends the lines of a session's callers with everything on them, and wakes the attendances so
    /// that they notice.
    pub fn end(&mut self, session: SessionId, effects: &mut Vec<LineEffect<L>>) {
        let numbers: Vec<_> = self.table.callers.lines(session).map(|(_, number)| number).collect();
        for number in numbers {
            let Some(line) = self.table.lines.get_mut(&number) else { continue };
            for (stream, _) in std::mem::take(&mut line.streams) {
                self.table.streams.remove(&stream);
            }
            let tools: Vec<_> = line.by_name.keys().cloned().collect();
            self.table.lose_calls(number, Loss::SessionEnded, |_, _| true, effects);
            self.table.withdraw(number, &tools, effects);
        }
        let attendances = match self.table.callers.sessions.get_mut(&session) {
            Some(of_session) => std::mem::take(&mut of_session.attendances),
            None => return,
        };
        for attendance in attendances {
            if let Some(left) = self.table.callers.attendances.remove(&attendance) {
                effects.push(LineEffect::Ring(left.of.bell));
            }
        }
        self.table.callers.drop_if_empty(session);
    }
}
