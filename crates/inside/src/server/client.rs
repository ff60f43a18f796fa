//! Messages from the agent.

use ringback_mcp_wire::outgoing::{
    self, Cache, CacheScope, Capabilities, DiscoverResult, InitializeResult, ServerNotification,
    Stamp, ToolsPage,
};
use ringback_mcp_wire::{
    CallTool, ClientRequest, Code, Era, Fault, Id, Limits, Line, ListenFilter, Message,
    Notification, RawValue, Request, Version,
};
use serde::Serialize;

use super::{LISTENS_MAX, Link, Server};
use crate::calls::{Call, Progress};
use crate::catalog::Route;
use crate::lines::LINE_BYTES_MAX;
use crate::relay::{self, DaemonRequest};
use crate::result::{self, Failure};

const INSTRUCTIONS: &str = "Tools of the program that started this session, and of the daemon it \
    runs in. The list can change; a change is announced. A failed call says whether it is safe to \
    try again.";
/// Short: a caller may change its tools at any time, and listing again costs little.
const LIST_TTL_MS: u64 = 5_000;
/// The answer to `server/discover` changes only with the build.
const DISCOVER_TTL_MS: u64 = 3_600_000;
/// Agents that read only one page see everything that fits in a line with room to spare.
const PAGE_BYTES_MAX: usize = LINE_BYTES_MAX / 2;
/// Requests waiting for the first list.
const HELD_MAX: usize = 256;
const HELD_BYTES_MAX: usize = 2 * LINE_BYTES_MAX;
/// Bytes waiting for a daemon that does not read.
const TO_DAEMON_BYTES_MAX: usize = 2 * LINE_BYTES_MAX;

/// Requests that are answered once the tools are known.
#[derive(Debug, Default)]
pub(super) struct HeldRequests {
    requests: Vec<(Id, Vec<u8>)>,
}

impl HeldRequests {
    pub(super) const fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn take(&mut self) -> impl Iterator<Item = Vec<u8>> + use<> {
        std::mem::take(&mut self.requests).into_iter().map(|(_, line)| line)
    }

    fn push(&mut self, id: &Id, line: &[u8]) -> bool {
        let n_bytes: usize = self.requests.iter().map(|(_, line)| line.len()).sum();
        let has_room = self.requests.len() < HELD_MAX && n_bytes + line.len() <= HELD_BYTES_MAX;
        if has_room {
            self.requests.push((id.clone(), line.to_owned()));
        }
        has_room
    }

    fn has(&self, id: &Id) -> bool {
        self.requests.iter().any(|(held, _)| held == id)
    }

    fn remove(&mut self, id: &Id) {
        self.requests.retain(|(held, _)| held != id);
    }
}

/// The answer to a request without a result.
#[derive(Serialize)]
struct EmptyResult {}

impl Server {
    /// Handles a message of the agent.
    pub(crate) fn on_client(&mut self, line: &Line<'_>) {
        match line {
            Line::Whole(line) => self.on_client_line(line),
            Line::TooLong(_) => {
                let message = format!("a message must have at most {LINE_BYTES_MAX} bytes");
                self.refuse(None, &Fault::new(Code::InvalidRequest, message));
            }
        }
    }

    pub(super) fn on_client_line(&mut self, line: &[u8]) {
        match Message::decode(line, Limits::default()) {
            Ok(Message::Request(request)) => {
                if let Err(fault) = self.on_request(&request, line) {
                    self.refuse(Some(&request.id), &fault);
                }
            }
            Ok(Message::Notification(told)) => self.on_notification(&told),
            // The agent gets no requests, so no reply is expected.
            Ok(Message::Reply(_)) => {}
            Err(malformed) => self.refuse(malformed.id.as_ref(), &malformed.fault),
        }
    }

    fn on_request(&mut self, request: &Request<'_>, line: &[u8]) -> Result<(), Fault> {
        let id = &request.id;
        if self.calls.has(id) || self.held.has(id) || self.listens.contains(id) {
            let message = "a request with this id is already running";
            return Err(Fault::new(Code::InvalidRequest, message));
        }
        let era = era(request)?;
        match ClientRequest::of(request, era)? {
            ClientRequest::Initialize(asked) => self.initialize(id, &asked.protocol_version),
            ClientRequest::Ping | ClientRequest::SetLevel(_) => {
                self.to_client.push(&outgoing::result(id, &EmptyResult {}));
            }
            ClientRequest::Discover => self.say_who(id),
            ClientRequest::Listen(filter) => return self.listen(id, filter),
            ClientRequest::ListTools { .. } if !self.is_settled => return self.hold(id, line),
            ClientRequest::ListTools { cursor } => return self.list(id, cursor.as_deref(), era),
            ClientRequest::CallTool(call) => {
                let progress = request.meta()?.progress_token()?;
                let progress = progress.map(|token| Progress { token, percent: None });
                return self.call(&call, Call { id: id.clone(), era, progress }, line);
            }
        }
        Ok(())
    }

    fn on_notification(&mut self, told: &Notification<'_>) {
        match told.method.as_ref() {
            "notifications/initialized" => self.is_initialized = true,
            "notifications/cancelled" => {
                // A call that was answered in the meantime is gone, which is not an error.
                if let Some(id) = told.params.get("requestId").and_then(Id::from_raw) {
                    self.cancel(&id);
                }
            }
            _ => {}
        }
    }

    fn cancel(&mut self, id: &Id) {
        self.held.remove(id);
        self.listens.retain(|listen| listen != id);
        if let Some(asked) = self.calls.cancel(id) {
            self.to_daemon.push(&relay::cancel(asked));
        }
    }

    fn initialize(&mut self, id: &Id, asked: &str) {
        let result = InitializeResult {
            protocol_version: Version::settle(asked),
            capabilities: Capabilities::default(),
            server_info: &self.info,
            instructions: INSTRUCTIONS,
        };
        self.to_client.push(&outgoing::result(id, &result));
    }

    fn say_who(&mut self, id: &Id) {
        let cache = Cache { ttl_ms: DISCOVER_TTL_MS, scope: CacheScope::Public };
        let result = DiscoverResult { instructions: INSTRUCTIONS, cache };
        self.to_client.push(&outgoing::answer(id, &result, Stamp::Modern(&self.info)));
    }

    fn listen(&mut self, id: &Id, filter: ListenFilter) -> Result<(), Fault> {
        if self.listens.len() >= LISTENS_MAX {
            return Err(Fault::new(Code::Internal, "too many subscriptions"));
        }
        let told = ServerNotification::ListenAcknowledged { id, filter };
        self.to_client.push(&outgoing::notification(&told));
        if filter.tools_list_changed {
            self.listens.push(id.clone());
        }
        Ok(())
    }

    fn hold(&mut self, id: &Id, line: &[u8]) -> Result<(), Fault> {
        if self.held.push(id, line) {
            return Ok(());
        }
        Err(Fault::new(Code::Internal, "too many requests are waiting for the first list of tools"))
    }

    fn list(&mut self, id: &Id, cursor: Option<&str>, era: Era) -> Result<(), Fault> {
        let from = match cursor {
            None => 0,
            Some(cursor) => {
                cursor.parse().ok().filter(|from| *from < self.catalog.len()).ok_or_else(|| {
                    Fault::invalid_params("no such page; list the tools from the start")
                })?
            }
        };
        let (tools, next) = self.catalog.page(from, PAGE_BYTES_MAX);
        let cache = Cache { ttl_ms: LIST_TTL_MS, scope: CacheScope::Private };
        let page = ToolsPage { tools, next_cursor: next.map(|next| next.to_string()), cache };
        let line = outgoing::answer(id, &page, self.stamp(era));
        self.to_client.push(&line);
        Ok(())
    }

    fn call(&mut self, asked: &CallTool<'_>, call: Call, line: &[u8]) -> Result<(), Fault> {
        let arguments = arguments(asked.arguments)?;
        let Some(route) = self.catalog.route(&asked.name) else {
            // Its owner may be about to declare it.
            if !self.is_settled {
                return self.hold(&call.id, line);
            }
            if !self.has_config && self.link == Link::Down {
                self.fail(&call, Failure::Away);
                return Ok(());
            }
            return Err(Fault::invalid_params("no such tool; list the tools"));
        };
        let key = self.key.as_ref().map_or("", |key| key.expose());
        let ask = match route {
            Route::Caller { caller_id, tool } => {
                DaemonRequest::CallerTool { tool, arguments, caller_id }
            }
            Route::Native { tool } => DaemonRequest::CallTool { api_key: key, tool, arguments },
            Route::Remote => DaemonRequest::Remote {
                tool: &asked.name,
                arguments,
                progress: call.progress.is_some(),
            },
            Route::Session { method } => DaemonRequest::Session { method, params: arguments },
        };
        if let Some(failure) = self.obstacle() {
            self.fail(&call, failure);
            return Ok(());
        }
        let line = ask.line(self.n_asked + 1);
        if line.len() > LINE_BYTES_MAX {
            self.fail(&call, Failure::RequestTooLarge);
            return Ok(());
        }
        self.n_asked += 1;
        self.to_daemon.push(&line);
        self.calls.insert(self.n_asked, call);
        Ok(())
    }

    /// Why no call is possible now.
    fn obstacle(&self) -> Option<Failure> {
        if self.link == Link::Down {
            return Some(Failure::Away);
        }
        let is_full = self.calls.is_full() || self.to_daemon.len() > TO_DAEMON_BYTES_MAX;
        is_full.then_some(Failure::Busy)
    }

    fn fail(&mut self, call: &Call, failure: Failure) {
        let line = result::failure(&call.id, failure, self.stamp(call.era));
        self.to_client.push(&line);
    }

    fn refuse(&mut self, id: Option<&Id>, fault: &Fault) {
        self.to_client.push(&outgoing::error(id, fault));
    }
}

/// The era of a request; each request carries it.
fn era(request: &Request<'_>) -> Result<Era, Fault> {
    let meta = request.meta()?;
    let version = match (meta.protocol_version(), request.method.as_ref()) {
        (None, method) if method != "server/discover" => return Ok(Era::Legacy),
        (None, _) => {
            return Err(Fault::invalid_params("`_meta` must have a protocolVersion"));
        }
        (Some(version), _) => version,
    };
    if meta.client_capabilities().is_none() {
        return Err(Fault::invalid_params("`_meta` must have clientCapabilities, an object"));
    }
    match Version::parse(&version).map(Version::era) {
        Some(Era::Modern) => Ok(Era::Modern),
        Some(Era::Legacy) | None => Err(Fault::unsupported_version(&version)),
    }
}

/// Arguments must be an object; absent ones are an empty object.
fn arguments(given: Option<&RawValue>) -> Result<&RawValue, Fault> {
    match given.filter(|raw| raw.get() != "null") {
        None => Ok(serde_json::from_str("{}").expect("an empty object")),
        Some(raw) if raw.get().starts_with('{') => Ok(raw),
        Some(_) => Err(Fault::invalid_params("`arguments` must be an object")),
    }
}
