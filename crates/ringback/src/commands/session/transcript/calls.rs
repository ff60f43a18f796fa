//! The calls of a session: which result belongs to which, and how long each took.

use std::collections::HashMap;

use ringback_proto::ids::SessionId;
use ringback_proto::request::SessionEventInfo;

/// Calls without a result that are remembered; an agent may never report one.
const CALLS_MAX: usize = 1024;

/// A call, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownCall {
    pub(super) tool: String,
    pub(super) arguments: String,
}

/// The result of a call, for display.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallResult {
    /// The call, if it was not shown before.
    pub(super) call: Option<ShownCall>,
    /// The tool, if something else was shown since the call.
    pub(super) named: Option<String>,
    pub(super) is_error: bool,
    pub(super) took_ms: Option<u64>,
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CallKey {
    Reported(SessionId, String),
    Served(String),
}

#[derive(Debug)]
struct OpenCall {
    call: ShownCall,
    at_ms: u64,
    is_shown: bool,
}

/// The open calls.
#[derive(Debug)]
pub(super) struct CallLog {
    open: HashMap<CallKey, OpenCall>,
    /// The call that was shown last.
    last: Option<CallKey>,
    /// The tools that are served here, as comparable names.
    own: Vec<String>,
    /// How often each was served and not yet reported by the agent.
    served: HashMap<String, usize>,
}

impl CallLog {
    pub(super) fn new(own: &[String]) -> Self {
        let own = own.iter().map(|name| comparable(name)).collect();
        Self { open: HashMap::new(), last: None, own, served: HashMap::new() }
    }

    /// Notes a call that an agent reports. Returns it, unless it is shown from this side.
    pub(super) fn called(&mut self, event: &SessionEventInfo) -> Option<ShownCall> {
        let call = ShownCall {
            tool: event.tool_name.clone().unwrap_or_default(),
            arguments: event.arguments.clone().unwrap_or_default(),
        };
        let is_own = self.own_name(&call.tool).is_some();
        let key = key(event)?;
        if self.open.len() >= CALLS_MAX {
            self.open.clear();
        }
        let open = OpenCall { call: call.clone(), at_ms: event.at_ms, is_shown: !is_own };
        self.open.insert(key.clone(), open);
        if is_own {
            return None;
        }
        self.last = Some(key);
        Some(call)
    }

    /// Notes a result that an agent reports. Returns it, unless it was shown from this side.
    pub(super) fn ended(&mut self, event: &SessionEventInfo) -> Option<CallResult> {
        let key = key(event)?;
        let open = self.open.remove(&key);
        let tool = event.tool_name.clone().unwrap_or_default();
        if let Some(own) = self.own_name(&tool)
            && let Some(left) = self.served.get_mut(&own).filter(|left| **left > 0)
        {
            *left -= 1;
            return None;
        }
        let hidden = open.as_ref().filter(|open| !open.is_shown).map(|open| open.call.clone());
        let is_next = hidden.is_some() || self.last.as_ref() == Some(&key);
        self.last = None;
        Some(CallResult {
            call: hidden,
            named: (!is_next).then_some(tool),
            is_error: event.text.as_deref() == Some("failed"),
            took_ms: open.map(|open| event.at_ms.saturating_sub(open.at_ms)),
            text: super::payload::gist(event.result.as_deref().unwrap_or_default()),
        })
    }

    /// Notes a call that is served here.
    pub(super) fn serves(&mut self, request_id: &str, tool: &str) {
        let tool = comparable(tool);
        if let Some(own) = self.own.iter().find(|own| own.ends_with(&tool)) {
            *self.served.entry(own.clone()).or_default() += 1;
        }
        self.last = Some(CallKey::Served(request_id.to_owned()));
    }

    /// Notes its end. Returns whether its result must name it.
    pub(super) fn has_served(&mut self, request_id: &str) -> bool {
        let last = self.last.take();
        last != Some(CallKey::Served(request_id.to_owned()))
    }

    /// Returns the tool of this terminal that an agent calls by this name: agents put their own words
    /// around it.
    fn own_name(&self, tool: &str) -> Option<String> {
        let tool = comparable(tool);
        self.own.iter().find(|own| tool.contains(own.as_str())).cloned()
    }
}

fn key(event: &SessionEventInfo) -> Option<CallKey> {
    Some(CallKey::Reported(event.session_id, event.request_id.clone()?))
}

fn comparable(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, id: &str, tool: &str, at_ms: u64) -> SessionEventInfo {
        SessionEventInfo {
            index: 0,
            session_id: SessionId::from_random([1; 16]),
            at_ms,
            kind: kind.to_owned(),
            text: Some("succeeded".to_owned()),
            tool_name: Some(tool.to_owned()),
            role: None,
            request_id: Some(id.to_owned()),
            arguments: None,
            result: Some("null".to_owned()),
            status: None,
            options: Vec::new(),
            usage: None,
        }
    }

    #[test]
    fn a_result_names_its_call_only_when_another_was_shown_since() {
        let mut log = CallLog::new(&[]);
        log.called(&event("tool_call", "1", "read", 5)).unwrap();
        let result = log.ended(&event("tool_result", "1", "read", 14)).unwrap();
        assert_eq!((result.named, result.took_ms), (None, Some(9)));
        log.called(&event("tool_call", "2", "read", 20)).unwrap();
        log.called(&event("tool_call", "3", "write", 20)).unwrap();
        let result = log.ended(&event("tool_result", "2", "read", 21)).unwrap();
        assert_eq!(result.named.as_deref(), Some("read"));
    }

    /// Rule: a call of a tool that is served here is shown once, from here; one that never arrived is
    /// shown with its result.
    #[test]
    fn a_call_of_an_own_tool_is_shown_once() {
        let mut log = CallLog::new(&["here_notify".to_owned()]);
        for name in ["here_notify", "ringback__here_notify", "Ringback: here notify"] {
            assert_eq!(log.called(&event("tool_call", "1", name, 1)), None);
            log.serves("r", "notify");
            assert!(!log.has_served("r"));
            assert_eq!(log.ended(&event("tool_result", "1", name, 2)), None);
        }
        assert_eq!(log.called(&event("tool_call", "2", "here_notify", 3)), None);
        let refused = log.ended(&event("tool_result", "2", "here_notify", 4)).unwrap();
        assert_eq!(refused.call.unwrap().tool, "here_notify");
    }
}
