//! The tools on lines, indexed by name and by owner, so that lookups and lists skip other owners'
//! tools.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use ringback_proto::principal::{Level, Principal, PrincipalId};
use ringback_proto::{Error, ErrorKind, Result};

use super::{Audience, LineKind, LineTool};

/// A tool to offer.
#[derive(Debug)]
pub struct NewTool<T> {
    /// The name given by its party.
    pub name: Arc<str>,
    /// Who else may use it.
    pub audience: Audience,
    /// The time limit of a call.
    pub timeout_ms: Option<u64>,
    /// Whether each progress report restarts the time limit of a call.
    pub progress_extends: bool,
    /// Whether running it twice is harmless.
    pub idempotent: bool,
    /// Its approximate size in memory, in bytes.
    pub weight: usize,
    /// The shell's own data about it.
    pub info: T,
}

type ToolsByName<T> = BTreeMap<Arc<str>, Arc<LineTool<T>>>;

/// Every tool on a line of a client or a worker.
#[derive(Debug)]
pub struct Registry<T> {
    all: ToolsByName<T>,
    own: HashMap<PrincipalId, OwnTools<T>>,
    shared: ToolsByName<T>,
}

#[derive(Debug)]
struct OwnTools<T> {
    tools: ToolsByName<T>,
    weight: usize,
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), own: HashMap::new(), shared: BTreeMap::new() }
    }
}

impl<T> Registry<T> {
    pub(super) fn get(&self, full_name: &str) -> Option<&Arc<LineTool<T>>> {
        self.all.get(full_name)
    }

    /// Returns the number of a principal's tools, and their bytes.
    pub(super) fn usage(&self, owner: PrincipalId) -> (usize, usize) {
        self.own.get(&owner).map_or((0, 0), |own| (own.tools.len(), own.weight))
    }

    pub(super) fn insert(&mut self, tool: &Arc<LineTool<T>>) {
        self.remove(&tool.full_name);
        self.all.insert(Arc::clone(&tool.full_name), Arc::clone(tool));
        let own = self
            .own
            .entry(tool.owner)
            .or_insert_with(|| OwnTools { tools: BTreeMap::new(), weight: 0 });
        own.weight += tool.weight;
        own.tools.insert(Arc::clone(&tool.full_name), Arc::clone(tool));
        if tool.audience != Audience::Owner {
            self.shared.insert(Arc::clone(&tool.full_name), Arc::clone(tool));
        }
    }

    pub(super) fn remove(&mut self, full_name: &str) {
        let Some(tool) = self.all.remove(full_name) else { return };
        self.shared.remove(full_name);
        if let Some(own) = self.own.get_mut(&tool.owner) {
            own.tools.remove(full_name);
            own.weight -= tool.weight;
            if own.tools.is_empty() {
                self.own.remove(&tool.owner);
            }
        }
    }

    /// Finds the tool of this name, if this principal may call it. A tool that it may not see does
    /// not exist for it.
    ///
    /// # Errors
    /// `not_found` also when it may not be seen, `forbidden` when it may be seen but not called.
    pub fn find(&self, principal: &Principal, name: &str) -> Result<Arc<LineTool<T>>> {
        let tool = self
            .get(name)
            .filter(|tool| tool.is_seen_by(principal))
            .ok_or_else(|| Error::not_found("tool", name))?;
        if principal.level < LEVEL {
            return Err(Error::lacks_scope(&format!("`{name}`"), LEVEL, principal.level));
        }
        Ok(Arc::clone(tool))
    }

    /// Returns up to `limit` tools with names after `after` that this principal may call, sorted by
    /// name.
    #[must_use]
    pub fn page(
        &self,
        principal: &Principal,
        after: &str,
        prefix: &str,
        limit: usize,
    ) -> Vec<Arc<LineTool<T>>> {
        if principal.level < LEVEL {
            return Vec::new();
        }
        self.seen_from(principal, after, prefix, limit)
    }

    /// Returns every tool on a line of this kind that this principal may see, sorted by name.
    #[must_use]
    pub fn seen_by(&self, principal: &Principal, kind: LineKind) -> Vec<Arc<LineTool<T>>> {
        let mut seen = self.seen_from(principal, "", "", usize::MAX);
        seen.retain(|tool| tool.line.kind() == kind);
        seen
    }

    fn seen_from(
        &self,
        principal: &Principal,
        after: &str,
        prefix: &str,
        limit: usize,
    ) -> Vec<Arc<LineTool<T>>> {
        if crate::policy::sees_all(principal) {
            return named(&self.all, after, prefix).take(limit).cloned().collect();
        }
        let own = self.own.get(&principal.id).map(|own| &own.tools);
        let mut own = own.into_iter().flat_map(|own| named(own, after, prefix)).peekable();
        let mut shared = named(&self.shared, after, prefix)
            .filter(|tool| tool.owner != principal.id && tool.is_seen_by(principal))
            .peekable();
        let mut page = Vec::new();
        while page.len() < limit {
            let next = match (own.peek(), shared.peek()) {
                (Some(a), Some(b)) if a.full_name <= b.full_name => own.next(),
                (_, Some(_)) => shared.next(),
                (Some(_), None) => own.next(),
                (None, None) => break,
            };
            page.extend(next.cloned());
        }
        page
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.own.is_empty() && self.shared.is_empty()
    }
}

/// The effect of an external tool is unknown here, so calling it counts as a write.
pub(super) const LEVEL: Level = Level::Write;

fn named<'a, T>(
    tools: &'a ToolsByName<T>,
    after: &str,
    prefix: &'a str,
) -> impl Iterator<Item = &'a Arc<LineTool<T>>> {
    let start = if after < prefix { Bound::Included(prefix) } else { Bound::Excluded(after) };
    tools
        .range::<str, _>((start, Bound::Unbounded))
        .map(|(_, tool)| tool)
        .take_while(move |tool| tool.full_name.starts_with(prefix))
}

/// Checks whether a principal may offer tools, or call those of others.
///
/// # Errors
/// `forbidden`, naming the missing scope.
pub fn may_offer(principal: &Principal) -> Result<()> {
    if principal.level >= LEVEL {
        return Ok(());
    }
    Err(Error::lacks_scope("offering tools", LEVEL, principal.level))
}

pub(super) fn taken(full_name: &str) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("a tool `{full_name}` already exists; choose another name"),
    )
}
