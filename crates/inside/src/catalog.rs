//! The tools and their names.

use std::collections::{BTreeMap, HashMap};

use ringback_mcp_wire::names::{self, Claim};
use ringback_mcp_wire::{Object, RawValue, input_schema};
use serde::Serialize;

/// The prefix of the socket's methods.
const SESSION: &str = "session";
/// Callers of one session; each has a list that fits in a line.
const CALLERS_MAX: usize = 64;
/// Tools of one owner.
const TOOLS_MAX: usize = 4096;

/// The tools and their names.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    callers: BTreeMap<String, Vec<DeclaredTool>>,
    native: Vec<DeclaredTool>,
    /// The tools of a session at a URL, which has no others.
    remote: Vec<DeclaredTool>,
    session: Vec<DeclaredTool>,
    listed: Vec<ListedTool>,
    by_name: HashMap<String, usize>,
    is_stale: bool,
}

/// A tool as the agent sees it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListedTool {
    name: String,
    json: String,
    route: Route,
}

/// The target of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// A caller.
    Caller {
        /// The caller's id.
        caller_id: String,
        /// The caller's name for the tool.
        tool: String,
    },
    /// The daemon, with the key.
    Native {
        /// The daemon's name for the tool.
        tool: String,
    },
    /// A session at a URL.
    Remote,
    /// A method of the socket.
    Session {
        /// The method.
        method: &'static str,
    },
}

/// A tool as its owner declared it.
#[derive(Debug)]
struct DeclaredTool {
    name: String,
    /// Everything but its name.
    shown: ToolDescription<Box<RawValue>>,
}

/// What an agent sees of a tool, except its name.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolDescription<T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<T>,
    input_schema: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icons: Option<T>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<T>,
}

/// Why a tool is not offered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OfferError {
    /// It cannot be parsed.
    #[error("a tool has no name, or its schema is not of type `object`")]
    Unreadable,
    /// Too many.
    #[error(
        "one owner has more than {TOOLS_MAX} tools, or there are more than {CALLERS_MAX} callers"
    )]
    TooMany,
}

impl Catalog {
    /// Offers the methods of the socket as tools, for child sessions without a key.
    pub(crate) fn offer_session(&mut self) {
        let tool = |text: &str| serde_json::from_str(text).ok().and_then(DeclaredTool::of);
        self.session = [MESSAGE_TOOL, EVENTS_TOOL].into_iter().filter_map(tool).collect();
        self.is_stale = true;
    }

    /// Replaces a caller's tools; returns why some are left out.
    pub(crate) fn set_caller(
        &mut self,
        caller_id: &str,
        tools: &[&RawValue],
    ) -> Result<(), OfferError> {
        self.is_stale = true;
        if tools.is_empty() {
            self.callers.remove(caller_id);
            return Ok(());
        }
        if self.callers.len() >= CALLERS_MAX && !self.callers.contains_key(caller_id) {
            return Err(OfferError::TooMany);
        }
        let (declared, outcome) = declared(tools);
        self.callers.insert(caller_id.to_owned(), declared);
        outcome
    }

    /// Removes the tools of all callers.
    pub(crate) fn clear_callers(&mut self) {
        self.callers.clear();
        self.is_stale = true;
    }

    /// Replaces the daemon's own tools; returns why some are left out.
    pub(crate) fn set_native(&mut self, tools: &[&RawValue]) -> Result<(), OfferError> {
        let (declared, outcome) = declared(tools);
        self.native = declared;
        self.is_stale = true;
        outcome
    }

    /// Replaces the tools of a session at a URL; returns why some are left out.
    pub(crate) fn set_remote(&mut self, tools: &[&RawValue]) -> Result<(), OfferError> {
        let (declared, outcome) = declared(tools);
        self.remote = declared;
        self.is_stale = true;
        outcome
    }

    /// Rebuilds the list if tools were declared; returns whether it has changed.
    pub(crate) fn publish(&mut self) -> bool {
        if !std::mem::take(&mut self.is_stale) {
            return false;
        }
        let owned = self.owned();
        let claims: Vec<_> = owned.iter().map(|(claim, _, _)| *claim).collect();
        let names = names::assign(&claims);
        let mut listed: Vec<_> = owned
            .into_iter()
            .zip(names)
            .map(|((_, declared, route), name)| ListedTool::new(name, &declared.shown, route))
            .collect();
        // They already have unique names.
        let named =
            |tool: &DeclaredTool| ListedTool::new(tool.name.clone(), &tool.shown, Route::Remote);
        listed.extend(self.remote.iter().map(named));
        if listed == self.listed {
            return false;
        }
        let by_name = |(idx, tool): (usize, &ListedTool)| (tool.name.clone(), idx);
        self.by_name = listed.iter().enumerate().map(by_name).collect();
        self.listed = listed;
        true
    }

    /// Returns the target of a call to the tool of this name.
    pub(crate) fn route(&self, name: &str) -> Option<&Route> {
        self.by_name.get(name).map(|idx| &self.listed[*idx].route)
    }

    /// Returns the tools from an index on, as many as fit in a page, and where the next page
    /// starts.
    pub(crate) fn page(&self, from: usize, bytes_max: usize) -> (Vec<&RawValue>, Option<usize>) {
        let (mut tools, mut n_bytes) = (Vec::new(), 0);
        for (idx, tool) in self.listed.iter().enumerate().skip(from) {
            n_bytes += tool.json.len();
            if n_bytes > bytes_max && !tools.is_empty() {
                return (tools, Some(idx));
            }
            tools.extend(serde_json::from_str::<&RawValue>(&tool.json).ok());
        }
        (tools, None)
    }

    pub(crate) fn len(&self) -> usize {
        self.listed.len()
    }

    /// Every tool with its claim to a name: callers by name, each in its own order.
    fn owned(&self) -> Vec<(Claim<'_>, &DeclaredTool, Route)> {
        let mut owned = Vec::new();
        for (caller_id, tools) in &self.callers {
            for declared in tools {
                let claim = Claim::caller(caller_id, &declared.name);
                let (caller_id, tool) = (caller_id.clone(), declared.name.clone());
                owned.push((claim, declared, Route::Caller { caller_id, tool }));
            }
        }
        for declared in &self.native {
            let claim = Claim::native(&declared.name);
            owned.push((claim, declared, Route::Native { tool: declared.name.clone() }));
        }
        for (declared, method) in self.session.iter().zip(["session_message", "session_events"]) {
            let claim = Claim { owner: SESSION, tool: &declared.name, is_native: true };
            owned.push((claim, declared, Route::Session { method }));
        }
        owned
    }
}

impl ListedTool {
    fn new(name: String, shown: &ToolDescription<Box<RawValue>>, route: Route) -> Self {
        #[derive(Serialize)]
        struct Tool<'a> {
            name: &'a str,
            #[serde(flatten)]
            shown: &'a ToolDescription<Box<RawValue>>,
        }
        let tool = Tool { name: &name, shown };
        let json = serde_json::to_string(&tool).expect("JSON and plain data can be written");
        Self { name, json, route }
    }
}

impl DeclaredTool {
    fn of(raw: &RawValue) -> Option<Self> {
        let tool = Object::of(raw).ok()?;
        let name = tool.text("name").filter(|name| !name.is_empty())?.into_owned();
        let field = |name: &str| tool.get(name).filter(|raw| raw.get() != "null");
        let kept = |name: &str| field(name).map(ToOwned::to_owned);
        let shown = ToolDescription {
            title: kept("title"),
            description: kept("description"),
            input_schema: input_schema(field("inputSchema")).ok()?,
            output_schema: kept("outputSchema"),
            annotations: kept("annotations"),
            icons: kept("icons"),
            meta: kept("_meta"),
        };
        Some(Self { name, shown })
    }
}

fn declared(tools: &[&RawValue]) -> (Vec<DeclaredTool>, Result<(), OfferError>) {
    let taken = &tools[..tools.len().min(TOOLS_MAX)];
    let declared: Vec<_> = taken.iter().filter_map(|raw| DeclaredTool::of(raw)).collect();
    let outcome = match (declared.len() == taken.len(), taken.len() == tools.len()) {
        (true, true) => Ok(()),
        (false, _) => Err(OfferError::Unreadable),
        (true, false) => Err(OfferError::TooMany),
    };
    (declared, outcome)
}

const MESSAGE_TOOL: &str = r#"{"name":"message","description":"Start a child session with a message, or send a message to an existing one. The answer has its session_id.","inputSchema":{"type":"object","properties":{"message":{"type":"string"},"session_id":{"type":"string","description":"A child session to continue; absent to start one."}},"required":["message"]}}"#;
const EVENTS_TOOL: &str = r#"{"name":"events","description":"Read the events of this session or of a child session since an index.","inputSchema":{"type":"object","properties":{"session_id":{"type":"string","description":"Absent for this session."},"since_index":{"type":"integer"},"wait_ms":{"type":"integer","description":"How long to wait for an event."}}}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(texts: &[&str]) -> Vec<Box<RawValue>> {
        texts.iter().map(|text| RawValue::from_string((*text).to_owned()).unwrap()).collect()
    }

    fn set(catalog: &mut Catalog, caller_id: &str, texts: &[&str]) -> Result<(), OfferError> {
        let tools = raw(texts);
        catalog.set_caller(caller_id, &tools.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    }

    fn names(catalog: &Catalog) -> Vec<&str> {
        catalog.listed.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// REQ: seed 001 "REQ-CTR-002: Dynamic tool registration": the list replaces the caller's last.
    #[test]
    fn a_declaration_replaces_that_callers_tools_alone() {
        let mut catalog = Catalog::default();
        set(&mut catalog, "ant", &[r#"{"name":"a"}"#, r#"{"name":"b"}"#]).unwrap();
        set(&mut catalog, "bee", &[r#"{"name":"a"}"#]).unwrap();
        assert!(catalog.publish());
        assert_eq!(names(&catalog), ["ant_a", "ant_b", "bee_a"]);
        set(&mut catalog, "ant", &[r#"{"name":"b"}"#]).unwrap();
        assert!(catalog.publish());
        assert_eq!(names(&catalog), ["ant_b", "bee_a"]);
        assert!(catalog.route("ant_a").is_none());
        set(&mut catalog, "ant", &[r#"{"name":"b"}"#]).unwrap();
        assert!(!catalog.publish(), "the same list is not a change");
        set(&mut catalog, "bee", &[]).unwrap();
        assert!(catalog.publish());
        assert_eq!(names(&catalog), ["ant_b"]);
    }

    /// REQ: seed 001 "Tools include input schema".
    #[test]
    fn a_tool_is_shown_as_it_was_declared() {
        let mut catalog = Catalog::default();
        let tool = r#"{"inputSchema":{"type":"object","properties":{"n":{"maximum":98765432109876543210}}},"name":"a","timeoutMs":5,"description":"x \u00e9"}"#;
        set(&mut catalog, "ant", &[tool]).unwrap();
        catalog.publish();
        let (tools, next) = catalog.page(0, 1);
        assert_eq!(next, None);
        assert_eq!(
            tools[0].get(),
            r#"{"name":"ant_a","description":"x \u00e9","inputSchema":{"type":"object","properties":{"n":{"maximum":98765432109876543210}}}}"#
        );
    }

    #[test]
    fn what_cannot_be_offered_is_left_out_and_said() {
        let mut catalog = Catalog::default();
        let tools = [r#"{"name":"a","inputSchema":{"type":"string"}}"#, r#"{"name":"b"}"#, "5"];
        assert_eq!(set(&mut catalog, "ant", &tools), Err(OfferError::Unreadable));
        catalog.publish();
        assert_eq!(names(&catalog), ["ant_b"]);
        for n in 0..CALLERS_MAX - 1 {
            set(&mut catalog, &format!("c{n}"), &tools[1..2]).unwrap();
        }
        assert_eq!(set(&mut catalog, "late", &tools[1..2]), Err(OfferError::TooMany));
    }

    #[test]
    fn a_page_is_as_large_as_it_may_be_and_the_next_one_goes_on() {
        let mut catalog = Catalog::default();
        set(&mut catalog, "a", &[r#"{"name":"x"}"#, r#"{"name":"y"}"#, r#"{"name":"z"}"#]).unwrap();
        catalog.publish();
        let (first, next) = catalog.page(0, 100);
        let (second, end) = catalog.page(next.unwrap(), 1000);
        assert_eq!((first.len() + second.len(), end), (3, None));
    }

    #[test]
    fn the_methods_of_the_socket_are_tools_only_when_asked_for() {
        let mut catalog = Catalog::default();
        catalog.offer_session();
        set(&mut catalog, "session", &[r#"{"name":"message"}"#]).unwrap();
        catalog.publish();
        let route = catalog.route("session_message");
        assert_eq!(route, Some(&Route::Session { method: "session_message" }));
    }
}
