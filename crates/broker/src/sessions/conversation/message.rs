//! Messages to sessions: sending one, answering or aborting, and offering tools with it.

use std::path::Path;
use std::sync::Arc;

use ringback_agents::MessageAttachment;
use ringback_blobs::Tree;
use ringback_core::policy;
use ringback_core::sessions::SessionPlace;
use ringback_proto::ids::{ProjectId, SessionId, WorkspaceId};
use ringback_proto::principal::{AgentKey, KeyHolder, Principal};
use ringback_proto::record::{SessionRecord, SessionState};
use ringback_proto::request::{
    Attachment, CallerServer, CallerTool, SessionContext, SessionEventInfo, SessionMessageRequest,
    SessionMessagedResponse,
};
use ringback_proto::{Error, ErrorKind, Result};

use crate::failure;
use crate::sessions::conversation::events::event;
use crate::sessions::lifecycle::choice::StartChoice;
use crate::sessions::lifecycle::keeper::{Message, Order};
use crate::sessions::offers::check_server;
use crate::sessions::{LiveSession, ModelProgress, Origin, Sessions, StartSession};
use crate::sync::lock;

/// The longest message.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Files that one message may have.
const ATTACHMENTS_MAX: usize = 32;
/// Total content of a message's files that goes to the agent: its input line has no room for more.
const SHOWN_BYTES_MAX: usize = 1 << 20;

/// Returns what a caller offers with a message, whichever field holds it.
pub(crate) fn offered(
    principal: &Principal,
    context: Option<SessionContext>,
    caller_id: Option<String>,
    caller_tools: Option<Vec<CallerTool>>,
) -> Result<Option<Offer>> {
    let context = context.unwrap_or_default();
    let caller_id = caller_id.or(context.caller_id);
    let what = match (caller_tools.or(context.caller_tools), context.caller_server) {
        (None, None) => return Ok(None),
        (Some(tools), None) if tools.is_empty() && caller_id.is_none() => return Ok(None),
        (Some(tools), None) => Offered::Tools(tools),
        (None, Some(server)) => {
            check_server(principal, &server)?;
            Offered::Server(server)
        }
        (Some(_), Some(_)) => {
            let message = "set either `caller_tools` or `caller_server`, not both";
            return Err(Error::invalid_field("caller_server", message));
        }
    };
    // The caller is the program that started the tree of sessions, not an agent in it.
    policy::no_agent(principal, "offering tools to a session")?;
    let caller_id = caller_id.ok_or_else(|| {
        let message = "set `caller_id`: the names of the tools start with it";
        Error::invalid_field("caller_id", message)
    })?;
    Ok(Some(Offer { caller_id, what }))
}

/// A caller's offer to a session.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) caller_id: String,
    pub(crate) what: Offered,
}

/// Tools that the caller runs itself, or a tool server that does.
#[derive(Debug)]
pub(crate) enum Offered {
    Tools(Vec<CallerTool>),
    Server(Box<CallerServer>),
}

impl Sessions {
    /// Delivers a caller's message: to the session it names, to the live one in the workspace, or
    /// to a new one.
    pub(crate) async fn session_message(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        request: SessionMessageRequest,
    ) -> Result<SessionMessagedResponse> {
        if request.answer.is_some() || request.abort {
            return self.steer(principal, request).await;
        }
        let SessionMessageRequest {
            message, attachments, context, caller_id, caller_tools, ..
        } = &request;
        let offer = offered(principal, context.clone(), caller_id.clone(), caller_tools.clone())?;
        let offer = match (offer, request.session_id) {
            (Some(offer), Some(session)) if message.is_empty() && attachments.is_empty() => {
                check_no_network(&request)?;
                check_no_limits(&request)?;
                check_no_key(&request)?;
                check_no_model(&request)?;
                check_no_permissions(&request)?;
                return self.offer_only(principal, session, offer).await;
            }
            (offer, _) => offer,
        };
        check_message(message, attachments)?;
        let found = match (request.session_id, request.project_id) {
            (Some(session), _) => {
                check_no_network(&request)?;
                check_no_limits(&request)?;
                check_no_permissions(&request)?;
                self.named_session(principal, session, &request).await?
            }
            (None, Some(project)) => self.session_in(principal, project, &request).await?,
            (None, None) => {
                let message = "set `session_id`, or `project_id` to start a session";
                return Err(Error::invalid_field("project_id", message));
            }
        };
        if let Some(offer) = offer {
            self.offers.take_offer(principal, found.place.id, offer).await?;
        }
        self.check_ready(&found).await?;
        self.put_files(found.place.workspace, &request.attachments).await?;
        if let Some(live) = self.register.live(found.place.id)
            && principal.held_by.is_none()
        {
            live.account.reopen();
        }
        let mut told = self.deliver(found, request.message, request.attachments)?;
        if let Some((url, token)) = self.url_tokens.first_pass(principal, found.place) {
            (told.url, told.token) = (Some(url), token);
        }
        Ok(told)
    }

    /// Offers tools to a live session without a message: its caller is back, or another takes its
    /// place.
    async fn offer_only(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        session: SessionId,
        offer: Offer,
    ) -> Result<SessionMessagedResponse> {
        let record = self.register.visible_session(principal, session).await?;
        let live = self.register.live(session).ok_or_else(|| {
            let message =
                format!("session {session} is not live; send it a message to continue it");
            Error::new(ErrorKind::Conflict, message)
        })?;
        self.offers.take_offer(principal, session, offer).await?;
        Ok(self.unchanged(&record, &live))
    }

    /// Answers an agent's permission request, or aborts its turn.
    async fn steer(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        request: SessionMessageRequest,
    ) -> Result<SessionMessagedResponse> {
        let SessionMessageRequest { session_id, message, answer, abort, .. } = request;
        let Some(session) = session_id else {
            let message = "`answer` and `abort` need a `session_id`";
            return Err(Error::invalid_field("session_id", message));
        };
        if !message.is_empty() || (abort && answer.is_some()) {
            let message = "send only one of `message`, `answer` and `abort`";
            return Err(Error::invalid_field("message", message));
        }
        let record = self.register.visible_session(principal, session).await?;
        match answer {
            Some(_) => policy::may_answer(principal, record.owner)?,
            None => policy::may_hold_back(principal, record.owner)?,
        }
        let live = self.register.live(session).ok_or_else(|| {
            let message = format!("session {session} has no running agent");
            Error::new(ErrorKind::Conflict, message)
        })?;
        let unchanged = self.unchanged(&record, &live);
        let pass = |order| match live.orders.try_send(order) {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::busy("the message queue of this session")),
        };
        match answer {
            Some(answer) => {
                // The question at a limit may be from another session of the same budget.
                let asker = live.account.asker(&answer.request_id).unwrap_or(session);
                self.conversations.answer_question(asker, &answer, || {
                    let is_limit = self.budgets.answer_limit(&live, &answer)?;
                    if is_limit { Ok(()) } else { pass(Order::Answer(answer.clone())) }
                })?;
            }
            None => pass(Order::Abort)?,
        }
        Ok(unchanged)
    }

    /// Returns the answer about a session that got no message.
    fn unchanged(&self, record: &SessionRecord, live: &LiveSession) -> SessionMessagedResponse {
        let last = lock(&self.register.table).last_index(record.id);
        SessionMessagedResponse {
            session_id: record.id,
            root_session_id: record.root,
            workspace_id: record.workspace,
            spawned: false,
            workspace_created: false,
            last_event_index: last.map_or(-1, |last| i64::try_from(last).unwrap_or(i64::MAX)),
            confined: self.sandboxes.confines(&live.chosen.name),
            url: None,
            token: None,
        }
    }

    /// Delivers an agent's message to a descendant of its session, or to a new session.
    pub(in crate::sessions) async fn message_from(
        self: &Arc<Self>,
        session: SessionId,
        message: String,
        to: Option<SessionId>,
    ) -> Result<SessionMessagedResponse> {
        check_message(&message, &[])?;
        let place = {
            let table = lock(&self.register.table);
            if let Some(to) = to
                && !table.comes_from(to, session)
            {
                return Err(Error::not_found("session", to));
            }
            table.find(to.unwrap_or(session)).map(|(place, _)| place)
        };
        let place = place.ok_or_else(|| Error::not_found("session", session))?;
        if to.is_some() {
            let found = Recipient { place, spawned: false, made_workspace: false };
            return self.deliver(found, message, Vec::new());
        }
        let owner = self.identity.tokens.principal(place.owner, self.kernel.now())?;
        let project = self.workspaces.visible_project(&owner, place.project).await?;
        let id = place.workspace;
        let workspace = self.kernel.read(move |store| store.workspace(id)).await?;
        let held_by = Some(KeyHolder { session, key: AgentKey::Made });
        let principal = Principal { held_by, ..Principal::clone(&owner) };
        let origin = Origin::of(&principal);
        let start = StartSession {
            principal: Arc::new(principal),
            project,
            workspace,
            agent: None,
            key: None,
            origin,
            network: None,
            limits: None,
            toolchains: None,
            choice: StartChoice::default(),
        };
        let found = self.spawn(start).await?;
        self.check_ready(&found).await?;
        self.deliver(found, message, Vec::new())
    }

    async fn named_session(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        session: SessionId,
        request: &SessionMessageRequest,
    ) -> Result<Recipient> {
        let record = self.register.visible_session(principal, session).await?;
        let live = lock(&self.register.table).find(session).filter(|(_, state)| state.is_live());
        if let Some((place, _)) = live {
            check_no_key(request)?;
            self.take_model_key(principal, session, request)?;
            return Ok(Recipient { place, spawned: false, made_workspace: false });
        }
        if record.state == SessionState::Ended || record.parent.is_some() {
            let message = format!("session {session} has ended; start another in its project");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        if record.owner != principal.id {
            return Err(Error::forbidden("continuing this session", "the token that started it"));
        }
        // The session would be outside the agent's tree and its limits.
        policy::no_agent(principal, "continuing this session")?;
        let project = self.workspaces.visible_project(principal, record.project).await?;
        let id = record.workspace;
        let workspace = self.kernel.read(move |store| store.workspace(id)).await?;
        let workspace = workspace.ok_or_else(|| Error::not_found("workspace", id))?;
        let start = StartSession {
            principal: Arc::clone(principal),
            project,
            workspace: Some(workspace),
            agent: None,
            key: request.api_key.clone(),
            origin: Origin::Again(Box::new(record)),
            network: None,
            limits: None,
            toolchains: None,
            choice: StartChoice {
                model: request.model.as_deref().cloned(),
                key: request.model_key.clone(),
                permissions: None,
            },
        };
        let found = self.spawn(start).await?;
        Ok(Recipient { spawned: false, ..found })
    }

    /// Checks that a session's agent can ask its model; a session that was started for the message
    /// and cannot is ended.
    async fn check_ready(self: &Arc<Self>, found: &Recipient) -> Result<()> {
        let Some(live) = self.register.live(found.place.id) else { return Ok(()) };
        let ready = self.choices.check_key(&live).await;
        if ready.is_err() && found.spawned {
            let (id, why) = (found.place.id, "its provider has no key");
            self.end_session(id, SessionState::Failed, why).await?;
        }
        ready
    }

    /// Takes the key of a live session's provider from its owner.
    fn take_model_key(
        &self,
        principal: &Principal,
        session: SessionId,
        request: &SessionMessageRequest,
    ) -> Result<()> {
        let Some(live) = self.register.live(session) else { return Ok(()) };
        let model = request.model.as_deref();
        if model.is_some() || request.model_key.is_some() {
            policy::no_agent(principal, "choosing the model of a session")?;
        }
        live.chosen.check_kept(model)?;
        let key = request.model_key.as_ref();
        key.map_or(Ok(()), |key| live.chosen.take_key(principal, model, key))
    }

    async fn session_in(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        project: ProjectId,
        request: &SessionMessageRequest,
    ) -> Result<Recipient> {
        let project = self.workspaces.visible_project(principal, project).await?;
        let workspace = self
            .workspaces
            .workspace_for(principal, &project, request.workspace_id, request.create_workspace)
            .await?;
        if let Some(workspace) = &workspace {
            let table = lock(&self.register.table);
            let live = match principal.held_by {
                None => table.live_in(principal.id, workspace.id),
                Some(KeyHolder { session, .. }) => table.live_below(session, workspace.id),
            };
            let found = live.and_then(|live| table.find(live));
            drop(table);
            // A message to any agent of the workspace is not for one that runs elsewhere.
            if let Some((place, _)) = found
                && !self.register.is_elsewhere(place.id)
            {
                check_no_network(request)?;
                check_no_limits(request)?;
                check_no_key(request)?;
                check_no_model(request)?;
                check_no_permissions(request)?;
                return Ok(Recipient { place, spawned: false, made_workspace: false });
            }
        }
        let (principal, agent) = (Arc::clone(principal), request.agent.clone());
        let (key, origin) = (request.api_key.clone(), Origin::of(&principal));
        let (network, limits) = (request.network.as_deref().cloned(), request.limits);
        let (model, permissions) = (request.model.as_deref().cloned(), request.permissions);
        let start = StartSession {
            principal,
            project,
            workspace,
            agent,
            key,
            origin,
            network,
            limits,
            toolchains: None,
            choice: StartChoice { model, key: request.model_key.clone(), permissions },
        };
        self.spawn(start).await
    }

    /// Starts a session, in a new workspace if none is given.
    pub(crate) async fn spawn(self: &Arc<Self>, start: StartSession) -> Result<Recipient> {
        let made_workspace = start.workspace.is_none();
        let record = self.start_session(start).await?;
        let place = lock(&self.register.table).find(record.id).map(|(place, _)| place);
        let place = place.ok_or_else(|| Error::not_found("session", record.id))?;
        Ok(Recipient { place, spawned: true, made_workspace })
    }

    /// Writes the files of a message to the workspace. Existing files are not overwritten.
    async fn put_files(&self, workspace: WorkspaceId, files: &[Attachment]) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let (path, files) = (self.workspaces.workspace_path(workspace), files.to_vec());
        self.kernel
            .blocking(move || {
                let tree = Tree::open(path.as_std_path()).map_err(failure::tree)?;
                for Attachment { filename, data, .. } in files {
                    let written = tree.write_new(Path::new(&filename), &mut &*data.0);
                    written.map_err(failure::tree)?;
                }
                Ok(())
            })
            .await
    }

    /// Hands a message to the supervisor of a session.
    fn deliver(
        &self,
        found: Recipient,
        message: String,
        files: Vec<Attachment>,
    ) -> Result<SessionMessagedResponse> {
        let place = found.place;
        let live =
            self.register.live(place.id).ok_or_else(|| Error::not_found("session", place.id))?;
        let last = {
            let mut table = lock(&self.register.table);
            table.begin_turn(place.id)?;
            table.last_index(place.id)
        };
        *lock(&live.model) = ModelProgress::default();
        let attached = attached(files);
        let role = Some("user".to_owned());
        let text = Some(crate::sessions::conversation::events::bounded(message.clone()));
        self.conversations.say(place.id, SessionEventInfo { role, text, ..event("message") });
        if live
            .orders
            .try_send(Order::Message(Box::new(Message { text: message, attached })))
            .is_err()
        {
            lock(&self.register.table).end_turn(self.kernel.now(), place.id);
            return Err(Error::busy("the message queue of this session"));
        }
        Ok(SessionMessagedResponse {
            session_id: place.id,
            root_session_id: place.root,
            workspace_id: place.workspace,
            spawned: found.spawned,
            workspace_created: found.made_workspace,
            last_event_index: last.map_or(-1, |last| i64::try_from(last).unwrap_or(i64::MAX)),
            confined: self.sandboxes.confines(&live.chosen.name),
            url: None,
            token: None,
        })
    }
}

/// The session that receives a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recipient {
    pub(crate) place: SessionPlace,
    pub(crate) spawned: bool,
    pub(crate) made_workspace: bool,
}

/// Rejects a network for a session that exists: `session_network` changes it.
fn check_no_network(request: &SessionMessageRequest) -> Result<()> {
    if request.network.is_none() {
        return Ok(());
    }
    let message =
        "the session already exists and keeps its network; change it with `session_network`";
    Err(Error::invalid_field("network", message))
}

/// Rejects limits for a session that exists: they are raised by an answer at the limit.
fn check_no_limits(request: &SessionMessageRequest) -> Result<()> {
    if request.limits.is_none() {
        return Ok(());
    }
    let message =
        "the session already exists and keeps its limits; raise one when the session asks at it";
    Err(Error::invalid_field("limits", message))
}

/// Rejects a key for a running agent: it keeps the one it was started with.
fn check_no_key(request: &SessionMessageRequest) -> Result<()> {
    if request.api_key.is_none() {
        return Ok(());
    }
    let message = "this session runs with the key it was started with; start another with \
                   `create_workspace`, or end this one first";
    Err(Error::invalid_field("api_key", message))
}

/// Rejects a model for a session that was found by its workspace.
fn check_no_model(request: &SessionMessageRequest) -> Result<()> {
    if request.model.is_none() && request.model_key.is_none() {
        return Ok(());
    }
    let message = "this session runs with the model it was started with; start another with \
                   `create_workspace`";
    Err(Error::invalid_field("model", message))
}

/// Rejects permissions for a session that exists: its project's may be changed.
fn check_no_permissions(request: &SessionMessageRequest) -> Result<()> {
    if request.permissions.is_none() {
        return Ok(());
    }
    let message = "the session already exists and keeps its permissions; change those of its \
                   project with `project_update`";
    Err(Error::invalid_field("permissions", message))
}

/// Returns the files for the agent. Content that does not fit in its input line is left out, so
/// that it takes no memory while the message waits.
fn attached(files: Vec<Attachment>) -> Vec<MessageAttachment> {
    let mut room = SHOWN_BYTES_MAX;
    let shown = |file: Attachment| {
        let size = file.data.0.len();
        let fits = size <= room;
        room -= if fits { size } else { 0 };
        let data = fits.then_some(file.data.0);
        MessageAttachment { name: file.filename, mime_type: file.mime_type, size, data }
    };
    files.into_iter().map(shown).collect()
}

fn check_message(message: &str, attachments: &[Attachment]) -> Result<()> {
    if message.is_empty() || message.len() > MESSAGE_BYTES_MAX {
        let limit = MESSAGE_BYTES_MAX >> 20;
        return Err(Error::invalid_field(
            "message",
            format!("`message` must have 1 byte to {limit} MiB"),
        ));
    }
    if attachments.len() > ATTACHMENTS_MAX {
        let message = format!("a message can have at most {ATTACHMENTS_MAX} files");
        return Err(Error::invalid_field("attachments", message));
    }
    for file in attachments {
        let name = &file.filename;
        let is_plain = !name.is_empty()
            && name.len() <= 200
            && !name.starts_with('.')
            && !name.chars().any(|c| c == '/' || c == '\\' || c.is_control());
        if !is_plain {
            let message = "`filename` must be a plain name: no directories, no leading dot";
            return Err(Error::invalid_field("attachments", message));
        }
    }
    Ok(())
}
