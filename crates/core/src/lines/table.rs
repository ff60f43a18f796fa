//! The table of lines: their owners, their tools, and when they end.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use ringback_proto::principal::{Principal, PrincipalId, Target};
use ringback_proto::{Error, ErrorKind, Result};

use super::callers::Callers;
use super::calls::{CallBook, Loss};
use super::line::{Line, Stream};
use super::registry::{self, NewTool, Registry};
use super::{
    Audience, LineEffect, LineKind, LineLimits, LineName, LineTool, Links, StreamNo, names,
};
use crate::time::{MonoMs, Now};

/// Every line, its streams, tools and calls.
#[derive(Debug)]
pub struct LineTable<L: Links> {
    pub(super) limits: LineLimits,
    pub(super) lines: BTreeMap<u64, Line<L>>,
    pub(super) by_name: HashMap<LineName, u64>,
    pub(super) streams: HashMap<StreamNo, u64>,
    pub(super) registry: Registry<L::Tool>,
    pub(super) book: CallBook<L>,
    pub(super) callers: Callers<L>,
    lapses: BTreeSet<(MonoMs, u64)>,
    lines_of: HashMap<PrincipalId, usize>,
    last_number: u64,
}

/// Tools that a party offers.
#[derive(Debug)]
pub struct Offer<T> {
    /// The line.
    pub line: LineName,
    /// How long its calls wait for a new stream after the last one closed; unchanged if absent.
    pub grace_ms: Option<u64>,
    /// The stream that answers for them, whose earlier offer this replaces. Without one, the tools
    /// are added to the line's.
    pub stream: Option<StreamNo>,
    /// The tools.
    pub tools: Vec<NewTool<T>>,
}

impl<L: Links> LineTable<L> {
    /// Makes an empty table.
    #[must_use]
    pub fn new(limits: LineLimits) -> Self {
        Self {
            limits,
            lines: BTreeMap::new(),
            by_name: HashMap::new(),
            streams: HashMap::new(),
            registry: Registry::default(),
            book: CallBook::default(),
            callers: Callers::default(),
            lapses: BTreeSet::new(),
            lines_of: HashMap::new(),
            last_number: 0,
        }
    }

    /// Offers tools; if one is invalid, offers none. Returns the full names, in the given order.
    ///
    /// # Errors
    /// `forbidden` without the right scope or when the name belongs to another principal, `invalid`
    /// for bad names, `conflict` when a tool's name is taken, `busy` past a limit.
    pub fn offer(
        &mut self,
        now: Now,
        principal: &Principal,
        offer: Offer<L::Tool>,
        effects: &mut Vec<LineEffect<L>>,
    ) -> Result<Vec<Arc<str>>> {
        let Offer { line: name, grace_ms, stream, tools } = offer;
        registry::may_offer(principal)?;
        let full_names = self.check_offer(principal, &name, &tools)?;
        let number = self.hold(now, principal, &name)?;
        let replaced = stream.map(|stream| self.replace_offers(number, stream, &tools));
        for (full_name, tool) in full_names.iter().zip(tools) {
            // A tool that is offered again keeps its place.
            let line = self.lines.get(&number);
            let place = line.and_then(|line| line.by_name.get(&tool.name).copied());
            let seq = place.unwrap_or_else(|| self.next_number());
            let tool = Arc::new(LineTool {
                full_name: Arc::clone(full_name),
                name: tool.name,
                line: name.clone(),
                owner: principal.id,
                owner_target: match tool.audience {
                    Audience::Project => principal.target.clone(),
                    Audience::Owner | Audience::Tokens(_) => Target::Everything,
                },
                audience: tool.audience,
                timeout_ms: tool.timeout_ms,
                progress_extends: tool.progress_extends,
                idempotent: tool.idempotent,
                seq,
                weight: tool.weight,
                info: tool.info,
            });
            if !names::works_for_rows(&name) {
                self.registry.insert(&tool);
            }
            if let Some(line) = self.lines.get_mut(&number) {
                line.add_tool(tool);
            }
        }
        if let (Some(grace_ms), Some(line)) = (grace_ms, self.lines.get_mut(&number)) {
            line.grace_ms = grace_ms.min(self.limits.grace_ms_max);
        }
        self.withdraw(number, &replaced.unwrap_or_default(), effects);
        self.post_waiting(number, effects);
        Ok(full_names)
    }

    /// Makes a worker's stream answer for these tools from now on. Returns those that no stream
    /// answers for any more.
    fn replace_offers(
        &mut self,
        number: u64,
        stream: StreamNo,
        tools: &[NewTool<L::Tool>],
    ) -> Vec<Arc<str>> {
        let Some(line) = self.lines.get_mut(&number) else { return Vec::new() };
        let Some(stream) = line.streams.get_mut(&stream) else { return Vec::new() };
        let offers = tools.iter().map(|tool| Arc::clone(&tool.name)).collect();
        let before = std::mem::replace(&mut stream.offers, offers);
        before.into_iter().filter(|tool| !line.is_offered(tool)).collect()
    }

    fn check_offer(
        &self,
        principal: &Principal,
        name: &LineName,
        tools: &[NewTool<L::Tool>],
    ) -> Result<Vec<Arc<str>>> {
        names::check_line(name)?;
        names::may_hold(principal, name)?;
        let line = self.owned_line(principal.id, name)?;
        let is_hidden = names::works_for_rows(name);
        let mut full_names = Vec::with_capacity(tools.len());
        let (mut n_new, mut new_weight) = (0, 0);
        for tool in tools {
            let full_name = names::full_name(name, &tool.name)?;
            let taken = self.registry.get(&full_name).filter(|_| !is_hidden);
            let is_native = ringback_proto::tool::find(&full_name).is_some();
            if (is_native && !is_hidden) || taken.is_some_and(|taken| taken.line != *name) {
                return Err(registry::taken(&full_name));
            }
            if tool.audience == Audience::Project && principal.target == Target::Everything {
                let message =
                    "your token covers all projects, so there is no single project to share with";
                return Err(Error::invalid_field("share", message));
            }
            n_new += usize::from(taken.is_none());
            new_weight += tool.weight;
            full_names.push(full_name);
        }
        let n_line = line.map_or(0, |line| line.tools.len());
        let (n_own, weight) = self.registry.usage(principal.id);
        let limits = &self.limits;
        if n_line + n_new > limits.tools_per_line_max
            || n_own + n_new > limits.tools_per_principal_max
            || weight + new_weight > limits.tool_bytes_per_principal_max
        {
            return Err(Error::busy("the number or the size of your tools"));
        }
        Ok(full_names)
    }

    /// Returns the line of this name, if any; it must belong to this principal.
    pub(super) fn owned_line(
        &self,
        owner: PrincipalId,
        name: &LineName,
    ) -> Result<Option<&Line<L>>> {
        let line = self.by_name.get(name).and_then(|number| self.lines.get(number));
        match line {
            Some(line) if line.owner != owner => Err(match name.kind() {
                LineKind::Client => Error::forbidden(
                    &format!("using the clientID `{}`", name.name()),
                    "the token that uses it now; choose another clientID",
                ),
                LineKind::Worker | LineKind::Caller => Error::new(
                    ErrorKind::Conflict,
                    format!("the name of {name} is in use by another token; choose another"),
                ),
            }),
            line => Ok(line),
        }
    }

    /// Returns the line of this name, created if needed.
    pub(super) fn hold(&mut self, now: Now, principal: &Principal, name: &LineName) -> Result<u64> {
        if let Some(number) = self.by_name.get(name) {
            return Ok(*number);
        }
        let n_lines = self.lines_of.entry(principal.id).or_default();
        if *n_lines >= self.limits.lines_per_principal_max {
            return Err(Error::busy("the number of your lines"));
        }
        *n_lines += 1;
        let number = self.next_number();
        self.lines.insert(number, Line::new(name.clone(), principal.id));
        self.by_name.insert(name.clone(), number);
        self.set_lapse(number, Some(now.mono + self.limits.unattended_ms));
        Ok(number)
    }

    pub(super) const fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Sets when a line without a stream ends, if it does.
    pub(super) fn set_lapse(&mut self, number: u64, at: Option<MonoMs>) {
        let Some(line) = self.lines.get_mut(&number) else { return };
        if let Some(before) = std::mem::replace(&mut line.lapses_at, at) {
            self.lapses.remove(&(before, number));
        }
        if let Some(at) = at {
            self.lapses.insert((at, number));
        }
    }

    /// Opens a stream of a line. The calls waiting on the line are sent on it.
    ///
    /// # Errors
    /// As [`Self::offer`], except for the tools.
    pub fn open(
        &mut self,
        now: Now,
        principal: &Principal,
        name: &LineName,
        bell: L::Bell,
        effects: &mut Vec<LineEffect<L>>,
    ) -> Result<StreamNo> {
        registry::may_offer(principal)?;
        names::check_line(name)?;
        names::may_hold(principal, name)?;
        let n_streams = self.owned_line(principal.id, name)?.map_or(0, |line| line.streams.len());
        if n_streams >= self.limits.streams_per_line_max {
            return Err(Error::busy("the number of streams of this line"));
        }
        let number = self.hold(now, principal, name)?;
        Ok(self.add_stream(number, bell, effects))
    }

    /// Adds a stream to a line, which then no longer times out.
    pub(super) fn add_stream(
        &mut self,
        number: u64,
        bell: L::Bell,
        effects: &mut Vec<LineEffect<L>>,
    ) -> StreamNo {
        let stream = StreamNo(self.next_number());
        self.streams.insert(stream, number);
        if let Some(line) = self.lines.get_mut(&number) {
            let offers = BTreeSet::new();
            line.streams.insert(stream, Stream { bell, outbox: VecDeque::new(), load: 0, offers });
        }
        self.set_lapse(number, None);
        self.post_waiting(number, effects);
        stream
    }

    /// Closes a stream. With the last one the line ends, immediately or after its grace period.
    pub fn close(&mut self, now: Now, stream: StreamNo, effects: &mut Vec<LineEffect<L>>) {
        let Some(number) = self.streams.remove(&stream) else { return };
        let Some(line) = self.lines.get_mut(&number) else { return };
        let offers = line.streams.remove(&stream).map(|stream| stream.offers).unwrap_or_default();
        let is_last = line.streams.is_empty();
        let grace_ms = line.grace_ms;
        if is_last && grace_ms == 0 {
            return self.end_line(number, effects);
        }
        if is_last {
            self.set_lapse(number, Some(now.mono + grace_ms));
        }
        self.leave_stream(number, stream, effects);
        let Some(line) = self.lines.get(&number) else { return };
        let orphans: Vec<_> = offers.into_iter().filter(|tool| !line.is_offered(tool)).collect();
        self.withdraw(number, &orphans, effects);
    }

    /// Removes the named tools, by either name, or all tools from a line. Returns their full names.
    ///
    /// # Errors
    /// `forbidden` when the line belongs to another principal.
    pub fn withdraw_named(
        &mut self,
        owner: PrincipalId,
        name: &LineName,
        tools: Option<&[String]>,
        effects: &mut Vec<LineEffect<L>>,
    ) -> Result<Vec<Arc<str>>> {
        let Some(line) = self.owned_line(owner, name)? else { return Ok(Vec::new()) };
        let named: Vec<Arc<str>> = match tools {
            None => line.tools.values().map(|tool| Arc::clone(&tool.name)).collect(),
            Some(tools) => tools
                .iter()
                .filter_map(|wanted| {
                    let by_name = line.by_name.get(wanted.as_str());
                    let seq = by_name.copied().or_else(|| {
                        let tool = self.registry.get(wanted)?;
                        (tool.line == *name).then_some(tool.seq)
                    })?;
                    line.tools.get(&seq).map(|tool| Arc::clone(&tool.name))
                })
                .collect(),
        };
        let Some(number) = self.by_name.get(name).copied() else { return Ok(Vec::new()) };
        Ok(self.withdraw(number, &named, effects))
    }

    /// Removes tools from a line. Calls to them that no party has are lost; the others may still be
    /// answered.
    pub(super) fn withdraw(
        &mut self,
        number: u64,
        tools: &[Arc<str>],
        effects: &mut Vec<LineEffect<L>>,
    ) -> Vec<Arc<str>> {
        let Some(line) = self.lines.get_mut(&number) else { return Vec::new() };
        let mut withdrawn = Vec::new();
        for tool in tools.iter().filter_map(|name| line.remove_tool(name)) {
            match tool.line.kind() {
                LineKind::Client | LineKind::Worker if names::works_for_rows(&tool.line) => {}
                LineKind::Client | LineKind::Worker => self.registry.remove(&tool.full_name),
                LineKind::Caller => self.callers.forget_tool(&tool),
            }
            withdrawn.push(Arc::clone(&tool.full_name));
        }
        if !withdrawn.is_empty() {
            let (line, owner) = (line.name.clone(), line.owner);
            effects.push(LineEffect::Withdrawn { line, owner, tools: withdrawn.clone() });
            let is_lost = |name: &str, taken: bool| !taken && tools.iter().any(|t| **t == *name);
            self.lose_calls(number, Loss::Dropped, is_lost, effects);
        }
        self.drop_if_empty(number);
        withdrawn
    }

    /// Ends a line with everything on it.
    fn end_line(&mut self, number: u64, effects: &mut Vec<LineEffect<L>>) {
        self.lose_calls(number, Loss::Dropped, |_, _| true, effects);
        let Some(line) = self.lines.get(&number) else { return };
        let tools: Vec<_> = line.tools.values().map(|tool| Arc::clone(&tool.name)).collect();
        self.withdraw(number, &tools, effects);
        self.drop_if_empty(number);
    }

    pub(super) fn drop_if_empty(&mut self, number: u64) {
        if !self.lines.get(&number).is_some_and(Line::is_empty) {
            return;
        }
        let Some(line) = self.lines.remove(&number) else { return };
        self.by_name.remove(&line.name);
        self.callers.forget_line(&line.name);
        if let Some(at) = line.lapses_at {
            self.lapses.remove(&(at, number));
        }
        if let Some(n_lines) = self.lines_of.get_mut(&line.owner) {
            *n_lines -= 1;
            if *n_lines == 0 {
                self.lines_of.remove(&line.owner);
            }
        }
    }

    /// Ends the lines that have been without a stream for too long; callers count as absent from
    /// then on.
    pub fn expire(&mut self, now: Now, effects: &mut Vec<LineEffect<L>>) {
        while let Some((at, number)) = self.lapses.first().copied() {
            if at > now.mono {
                break;
            }
            self.lapses.pop_first();
            self.set_lapse(number, None);
            match self.lines.get(&number).map(|line| line.name.kind()) {
                Some(LineKind::Client | LineKind::Worker) => self.end_line(number, effects),
                Some(LineKind::Caller) => self.callers().give_up_if_absent(number, effects),
                None => {}
            }
        }
    }

    /// Returns when to call [`Self::expire`] next.
    #[must_use]
    pub fn next_lapse(&self) -> Option<MonoMs> {
        self.lapses.first().map(|(at, _)| *at)
    }

    /// The tools on lines of clients and workers.
    #[must_use]
    pub const fn registry(&self) -> &Registry<L::Tool> {
        &self.registry
    }

    /// Returns the tools of one line that this principal may see, in order of registration.
    #[must_use]
    pub fn tools_of(&self, principal: &Principal, line: &LineName) -> Vec<Arc<LineTool<L::Tool>>> {
        let line = self.by_name.get(line).and_then(|number| self.lines.get(number));
        line.into_iter()
            .flat_map(|line| line.tools.values())
            .filter(|tool| tool.is_seen_by(principal))
            .cloned()
            .collect()
    }

    /// Returns a tool of a service that does the work of native tools, if a party offers it.
    #[must_use]
    pub fn tool_of_service(&self, service: &str, tool: &str) -> Option<Arc<LineTool<L::Tool>>> {
        let name = LineName::Worker(service.into());
        let line = self.by_name.get(&name).and_then(|number| self.lines.get(number))?;
        let seq = line.by_name.get(tool).filter(|_| names::works_for_rows(&name))?;
        line.tools.get(seq).cloned()
    }

    /// Returns the number of lines, streams and calls.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let n_lines = self.lines.len().max(self.by_name.len()).max(self.lines_of.len());
        (n_lines, self.streams.len(), self.book.len())
    }

    /// Returns whether every table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts() == (0, 0, 0)
            && self.registry.is_empty()
            && self.callers.is_empty()
            && self.lapses.is_empty()
    }
}
