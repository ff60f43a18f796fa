//! The tools that a connection knows, and which changes to announce.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use ringback_broker::{Broker, CallerTools, Credential, LineKind, OfferedTool};
use ringback_mcp_wire::{RawValue, compact};
use serde::{Serialize, Serializer};

/// What a connection knows.
#[derive(Debug, Default)]
pub(crate) struct PeerView {
    /// Whether it started with the greeting of the clients that came before this daemon.
    pub(crate) has_greeted: bool,
    callers: Option<Vec<CallerTools>>,
    /// A fingerprint of the tools on lines that a key saw when it listed the daemon's tools.
    lines: Option<(Credential, u64)>,
}

/// The tools of one caller, replacing its earlier ones.
#[derive(Debug)]
pub(crate) struct CallerUpdate {
    pub(crate) caller_id: Option<Arc<str>>,
    pub(crate) tools: Vec<Arc<OfferedTool>>,
}

impl PeerView {
    /// Returns what the peer does not know yet; at first that includes an empty list.
    pub(crate) fn callers(&mut self, now: Vec<CallerTools>) -> Vec<CallerUpdate> {
        let is_first = self.callers.is_none();
        let before = self.callers.take().unwrap_or_default();
        let was = |caller: &CallerTools| {
            before.iter().find(|before| before.caller_id == caller.caller_id)
        };
        let is_news = |caller: &&CallerTools| {
            was(caller).is_none_or(|before| !are_same(&before.tools, &caller.tools))
        };
        let is_gone =
            |before: &&CallerTools| !now.iter().any(|caller| caller.caller_id == before.caller_id);
        let gone = before.iter().filter(is_gone).map(|caller| CallerUpdate {
            caller_id: Some(Arc::clone(&caller.caller_id)),
            tools: Vec::new(),
        });
        let new = now.iter().filter(is_news).map(|caller| CallerUpdate {
            caller_id: Some(Arc::clone(&caller.caller_id)),
            tools: caller.tools.clone(),
        });
        let mut news: Vec<_> = gone.chain(new).collect();
        if is_first && news.is_empty() {
            news.push(CallerUpdate { caller_id: None, tools: Vec::new() });
        }
        self.callers = Some(now);
        news
    }

    /// Records that the peer listed the daemon's tools with this key.
    pub(crate) fn listed(&mut self, broker: &Broker, credential: Credential) {
        let lines = fingerprint(broker, &credential);
        self.lines = Some((credential, lines));
    }

    /// Whether the daemon's tools have changed since the peer listed them.
    pub(crate) fn has_changed(&mut self, broker: &Broker) -> bool {
        let Some((credential, known)) = &mut self.lines else { return false };
        let now = fingerprint(broker, credential);
        std::mem::replace(known, now) != now
    }
}

/// A number that changes with the tools on lines that the key sees.
fn fingerprint(broker: &Broker, credential: &Credential) -> u64 {
    let mut hasher = DefaultHasher::new();
    for kind in [LineKind::Client, LineKind::Worker] {
        for tool in broker.lines().tools(credential, kind).unwrap_or_default() {
            (&tool.full_name, tool.seq).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Declaring the same tools again is not a change.
fn are_same(before: &[Arc<OfferedTool>], now: &[Arc<OfferedTool>]) -> bool {
    let is_same = |(before, now): (&Arc<OfferedTool>, &Arc<OfferedTool>)| {
        Arc::ptr_eq(before, now)
            || (before.name == now.name
                && before.info.description == now.info.description
                && before.info.schema_json() == now.info.schema_json())
    };
    before.len() == now.len() && before.iter().zip(now).all(is_same)
}

impl Serialize for CallerUpdate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const NAME: &str = "caller_tools_config";
        #[derive(Serialize)]
        struct Config<'a> {
            jsonrpc: &'static str,
            method: &'static str,
            /// Older peers read this field.
            r#type: &'static str,
            params: Params<'a>,
        }
        #[derive(Serialize)]
        struct Params<'a> {
            caller_id: Option<&'a str>,
            tools: Vec<ToolEntry<'a>>,
        }
        let tools = self.tools.iter().map(|tool| ToolEntry::new(tool)).collect();
        let params = Params { caller_id: self.caller_id.as_deref(), tools };
        Config { jsonrpc: "2.0", method: NAME, r#type: NAME, params }.serialize(serializer)
    }
}

#[derive(Serialize)]
struct ToolEntry<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(rename = "inputSchema", skip_serializing_if = "Option::is_none")]
    input_schema: Option<Box<RawValue>>,
}

impl<'a> ToolEntry<'a> {
    fn new(tool: &'a OfferedTool) -> Self {
        let schema = serde_json::from_slice::<&RawValue>(tool.info.schema_json()).ok();
        Self {
            name: &tool.name,
            description: &tool.info.description,
            input_schema: schema.map(compact),
        }
    }
}
