//! Tools that callers offer a session. They run the tools themselves, or name a tool server: an MCP
//! server that the daemon starts, which only an administrator may do. The session's supervisor owns
//! its tool servers, and they end with it. A tool server that has ended is not restarted.

mod place;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use ringback_agents::mcp_client::{
    Era, ServerAnswer, ServerError, ServerMessage, ServerTool, ToolServer, refusal,
};
use ringback_core::lines::{PartyMessage, StreamMode};
use ringback_core::policy::{Visibility, sight};
use ringback_core::sessions::SessionPlace;
use ringback_proto::any::{Any, Format};
use ringback_proto::ids::SessionId;
use ringback_proto::principal::{Level, Principal};
use ringback_proto::raw::Raw;
use ringback_proto::request::{CallerServer, CallerTool};
use ringback_proto::{Error, ErrorKind, Result};
use tokio::time::Instant;

use self::place::{ServerResources, unusable};
use crate::confinement::Sandboxes;
use crate::containers::Images;
use crate::disk::DiskGuard;
use crate::identity::{Credential, Identity};
use crate::kernel::Kernel;
use crate::lines::{CallerStream, Callers, LineCall, ToolOffer};
use crate::rooms::{Rooms, SharedRooms};
use crate::sessions::Register;
use crate::sessions::conversation::message::{Offer, Offered};
use crate::sessions::lifecycle::keeper::Order;
use crate::sync::lock;
use crate::workspaces::Workspaces;

/// How long a tool server may take to list its tools.
const LIST_WAIT: Duration = Duration::from_secs(10);
/// Added to the error about a confined tool server that does not answer.
const CONFINED: &str = "; it runs in a sandbox with an empty home, without the session's workspace \
    and without a network, unless its `workspace` and `network` grant them";
/// Maximum number of arguments and environment variables together.
const WORDS_MAX: usize = 256;

/// A running tool server.
#[derive(Debug)]
pub(in crate::sessions) struct RunningServer {
    offers: Arc<Offers>,
    server: ToolServer,
    /// Its directories, sandbox and proxy. Removed after it has ended.
    resources: ServerResources,
    stream: CallerStream,
    principal: Arc<Principal>,
    credential: Credential,
    /// The session it offers tools to.
    root: SessionId,
    caller_id: String,
    /// Running calls, by request id.
    calls: HashMap<u64, Arc<LineCall>>,
    grace: Duration,
}

/// The tools that callers offer sessions: their own, or those of a tool server.
#[derive(Debug)]
pub(crate) struct Offers {
    kernel: Arc<Kernel>,
    identity: Arc<Identity>,
    register: Arc<Register>,
    callers: Callers,
    workspaces: Arc<Workspaces>,
    sandboxes: Arc<Sandboxes>,
    images: Arc<Images>,
    disk: Arc<DiskGuard>,
    rooms: Weak<Rooms>,
}

impl Offers {
    pub(crate) fn new(shared_rooms: &SharedRooms) -> Self {
        Self {
            kernel: shared_rooms.kernel.clone(),
            identity: shared_rooms.identity.clone(),
            register: shared_rooms.register.clone(),
            callers: shared_rooms.callers.clone(),
            workspaces: shared_rooms.workspaces.clone(),
            sandboxes: shared_rooms.sandboxes.clone(),
            images: shared_rooms.images.clone(),
            disk: shared_rooms.disk.clone(),
            rooms: shared_rooms.rooms.clone(),
        }
    }

    /// Adds a caller's tools or tool server to a session.
    pub(crate) async fn take_offer(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        session: SessionId,
        offer: Offer,
    ) -> Result<()> {
        let Offer { caller_id, what } = offer;
        match what {
            Offered::Tools(tools) => self.declare(principal, session, &caller_id, tools),
            Offered::Server(server) => {
                self.serve_caller(principal, session, caller_id, *server).await
            }
        }
    }

    /// Offers a caller's tools to the agent of a session.
    pub(crate) fn declare(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        session: SessionId,
        caller_id: &str,
        tools: Vec<CallerTool>,
    ) -> Result<()> {
        let place = lock(&self.register.table).find(session).map(|(place, _)| place);
        let place = place.ok_or_else(|| Error::not_found("session", session))?;
        if place.owner != principal.id {
            return Err(Error::forbidden(
                "offering tools to this session",
                "the token that started it",
            ));
        }
        let is_allowed = |tool: &&CallerTool| tool.allowed;
        let allowed = tools.iter().filter(is_allowed);
        let allowed: Vec<_> = allowed.map(|tool| format!("{caller_id}_{}", tool.name)).collect();
        let tools = tools.into_iter().map(|tool| ToolOffer {
            name: tool.name,
            description: tool.description.unwrap_or_default(),
            input_schema: tool.input_schema.map(Into::into),
            timeout_ms: tool.timeout_ms,
            ..ToolOffer::default()
        });
        let credential = self.identity.credential_of(principal)?;
        let tools = tools.collect();
        self.callers.declare(&credential, place.root, caller_id, tools)?;
        if let Some(live) = self.register.live(place.root) {
            live.permissions.allow(caller_id, &allowed);
        }
        Ok(())
    }

    /// Returns the input schema of a tool of the root of a session, by the name that its agent uses:
    /// agents put a prefix of their own before it.
    pub(in crate::sessions) fn schema_of(&self, root: SessionId, tool: &str) -> Option<Bytes> {
        let callers = self.callers.tools(root);
        callers.iter().find_map(|caller| {
            let rest = |name: &str| Some(tool.strip_suffix(name)?.strip_suffix('_')?.to_owned());
            let is_it = |name: &str| rest(name).is_some_and(|it| it.ends_with(&*caller.caller_id));
            let tool = caller.tools.iter().find(|tool| is_it(&tool.name))?;
            Some(tool.info.schema_json().clone())
        })
    }

    /// Ends the tools offered to a session. Children use the tools of their root.
    pub(in crate::sessions) fn end_callers(self: &Arc<Self>, session: SessionId) {
        self.callers.end(session);
    }

    /// Starts a tool server as a caller of a session. Naming the same one again changes nothing.
    pub(crate) async fn serve_caller(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        session: SessionId,
        caller_id: String,
        named: CallerServer,
    ) -> Result<()> {
        let place = lock(&self.register.table).find(session).map(|(place, _)| place);
        let place = place.ok_or_else(|| Error::not_found("session", session))?;
        let live = self.register.live(place.root);
        let live = live.ok_or_else(|| Error::not_found("session", place.root))?;
        if let Some(before) = lock(&live.servers).get(&caller_id) {
            let message =
                format!("`{caller_id}` is already a different tool server in this session");
            let is_same = *before == named;
            return is_same.then_some(()).ok_or_else(|| Error::new(ErrorKind::Conflict, message));
        }
        lock(&live.servers).insert(caller_id.clone(), named.clone());
        match self.start_server(principal, place, &caller_id, &named).await {
            Ok(served) => {
                let sent = live.orders.send(Order::Serve(Box::new(served))).await;
                sent.map_err(|_| Error::not_found("session", place.root))
            }
            Err(error) => {
                lock(&live.servers).remove(&caller_id);
                Err(error)
            }
        }
    }

    async fn start_server(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        place: SessionPlace,
        caller_id: &str,
        named: &CallerServer,
    ) -> Result<RunningServer> {
        let (launched, resources) = self.launch_server(place, named).await?;
        let useless = |error: ServerError| self.useless(named, &error);
        let mut server = ToolServer::over(launched, Era::Legacy).await.map_err(useless)?;
        let listed = server.tools(Instant::now() + LIST_WAIT).await.map_err(useless)?;
        self.declare(principal, place.root, caller_id, tools(listed))?;
        let credential = self.identity.credential_of(principal)?;
        let only = Some(vec![Arc::from(caller_id)]);
        let stream = self.callers.open(&credential, place.root, only, StreamMode::Lasting)?;
        Ok(RunningServer {
            offers: Arc::clone(self),
            server,
            resources,
            stream,
            principal: Arc::clone(principal),
            credential,
            root: place.root,
            caller_id: caller_id.to_owned(),
            calls: HashMap::new(),
            grace: self.kernel.config.sessions.end_grace,
        })
    }

    fn useless(&self, named: &CallerServer, error: &ServerError) -> Error {
        let confined = match error {
            ServerError::Ended | ServerError::Late if self.sandboxes.confiner.is_some() => CONFINED,
            ServerError::Ended
            | ServerError::Late
            | ServerError::Spawn { .. }
            | ServerError::Io(_)
            | ServerError::Full
            | ServerError::Garbage(_)
            | ServerError::Refused(_) => "",
        };
        unusable(named, &format!("{error}{confined}"))
    }
}

/// Checks a tool server's command. Only an administrator may name a program to run.
pub(in crate::sessions) fn check_server(principal: &Principal, named: &CallerServer) -> Result<()> {
    match sight(principal) {
        Visibility::All => {}
        Visibility::Own { .. } | Visibility::Tree { .. } => {
            let missing = "a token with scope `admin`";
            return Err(Error::forbidden("naming a tool server", missing).with_scope(Level::Admin));
        }
    }
    if named.command.contains('/') && !named.command.starts_with('/') {
        let message = "`command` must be a program name or an absolute path";
        return Err(Error::invalid_field("caller_server", message));
    }
    if named.command.is_empty() || named.args.len() + named.env.len() > WORDS_MAX {
        let message =
            format!("`command` must be set, with at most {WORDS_MAX} `args` and `env` in total");
        return Err(Error::invalid_field("caller_server", message));
    }
    Ok(())
}

fn tools(listed: Vec<ServerTool>) -> Vec<CallerTool> {
    let tool = |tool: ServerTool| CallerTool {
        name: tool.name,
        description: tool.description,
        input_schema: tool.input_schema.map(|schema| Raw(json(schema))),
        timeout_ms: None,
        allowed: false,
    };
    listed.into_iter().map(tool).collect()
}

fn json(text: String) -> Any {
    Any { format: Format::Json, bytes: text.into() }
}

impl RunningServer {
    /// Runs calls until the session or the tool server ends. Then the stream closes, so waiting
    /// calls fail immediately.
    pub(in crate::sessions) async fn run(mut self) {
        loop {
            let done = tokio::select! {
                biased;
                post = self.stream.next() => match post {
                    None => break,
                    Some(post) => self.on_post(post).map_err(|error| error.to_string()),
                },
                heard = self.server.next() => match heard {
                    Ok(heard) => self.on_heard(heard).await.map_err(|error| error.to_string()),
                    Err(error) => Err(error.to_string()),
                },
                why = self.resources.is_full() => Err(why),
            };
            if let Err(error) = done {
                let (session, caller_id) = (self.root, &self.caller_id);
                tracing::warn!(%session, caller_id, %error, "lost a tool server");
                let Self { server, stream, resources, .. } = self;
                drop((stream, server));
                return resources.gone().await;
            }
        }
        let Self { server, stream, grace, resources, .. } = self;
        drop(stream);
        server.stop(grace).await;
        resources.gone().await;
    }

    fn on_post(
        &mut self,
        post: PartyMessage<Arc<LineCall>>,
    ) -> std::result::Result<(), ServerError> {
        match post {
            PartyMessage::Call(call) => {
                let id = self.server.call(&call.tool.name, &call.arguments.bytes)?;
                self.calls.insert(id, call);
                Ok(())
            }
            PartyMessage::Cancel { call, .. } => {
                let is_it = |(_, own): &(&u64, &Arc<LineCall>)| own.id == call;
                let Some(id) = self.calls.iter().find(is_it).map(|(id, _)| *id) else {
                    return Ok(());
                };
                self.calls.remove(&id);
                self.server.cancel(id)
            }
        }
    }

    async fn on_heard(&mut self, heard: ServerMessage) -> std::result::Result<(), ServerError> {
        match heard {
            ServerMessage::Answer(id, answer) => {
                if let Some(call) = self.calls.remove(&id) {
                    self.answer(&call, answer);
                }
            }
            ServerMessage::Progress { id, percent, message } => {
                if let Some(call) = self.calls.get(&id) {
                    let callers = &self.offers.callers;
                    let (own, request) = (&self.credential, &call.request_id);
                    // The call may have ended already; then its progress does not matter.
                    drop(callers.progress(own, self.root, request, percent, message).await);
                }
            }
            ServerMessage::Changed => {
                let listed = self.server.tools(Instant::now() + LIST_WAIT).await?;
                let (principal, caller_id) = (&self.principal, &self.caller_id);
                let declared = self.offers.declare(principal, self.root, caller_id, tools(listed));
                if let Err(error) = declared {
                    let session = self.root;
                    tracing::warn!(%session, caller_id, %error, "rejecting a tool server's tools");
                }
            }
        }
        Ok(())
    }

    fn answer(&self, call: &LineCall, answer: ServerAnswer) {
        let outcome = match answer {
            Ok(result) => Ok(json(result.get().to_owned())),
            Err(error) => Err(Error::new(ErrorKind::ToolFailed, refusal(&error))),
        };
        let (own, request) = (&self.credential, &call.request_id);
        // A late answer changes nothing, and was logged.
        drop(self.offers.callers.answer(own, self.root, request, outcome));
    }
}
