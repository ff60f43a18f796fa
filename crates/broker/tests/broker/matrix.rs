//! Every tool that names something, by every kind of principal, against every kind of target.
//!
//! Whether a principal may call a tool at all is in core's table (`policy::needs`); this tests what
//! it may name.

use std::collections::HashMap;

use ringback_broker::{Credential, Edge};
use ringback_proto::ids::{ProjectId, SessionId, WorkspaceId};
use ringback_proto::principal::{KeyLevel, Level};
use ringback_proto::request::{ProjectResponse, SessionResponse, TokenCreatedResponse};
use ringback_proto::tool::{TOOLS, ToolKind, ToolRow};
use ringback_proto::{ToolRequest, ToolResponse};
use serde_json::{Value, json};

use crate::common::{World, result, start_with};
use crate::reach::{key_of, keyed, passed, spawn, user};
use crate::sessions::{call, named, with_echo};

/// The kind of thing that a tool names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Nothing that belongs to a project.
    Nothing,
    /// A project.
    Project,
    /// A workspace.
    Workspace,
    /// A session.
    Session,
    /// A session, for its callers: they are users.
    Callers,
}

/// Returns what a tool names, one row per tool. A new tool does not compile without one.
#[expect(clippy::too_many_lines, reason = "one line for each tool")]
const fn names(tool: ToolKind) -> Names {
    match tool {
        ToolKind::ProjectGet
        | ToolKind::ProjectDelete
        | ToolKind::ProjectUpdate
        | ToolKind::WorkspaceList
        | ToolKind::ContainerStart
        | ToolKind::ContainerStop
        | ToolKind::ContainerLogs
        | ToolKind::ImageRebuild
        | ToolKind::ConfigLimits => Names::Project,
        ToolKind::WorkspaceDelete
        | ToolKind::WorkspaceGet
        | ToolKind::WorkspacePut
        | ToolKind::WorkspaceDiff
        | ToolKind::ContainerExec
        | ToolKind::SessionSpawn => Names::Workspace,
        ToolKind::SessionMessage
        | ToolKind::SessionEvents
        | ToolKind::SessionGet
        | ToolKind::SessionEnd
        | ToolKind::SessionNetwork
        | ToolKind::SessionOpen => Names::Session,
        ToolKind::CallerToolResponse
        | ToolKind::CallerToolProgress
        | ToolKind::CallerToolRequests => Names::Callers,
        // A list shows what its reader sees, a cleanup takes no more than that; the rest belongs to
        // the owner.
        ToolKind::SessionList
        | ToolKind::SessionCleanup
        | ToolKind::ProjectList
        | ToolKind::ProjectCreate
        | ToolKind::TokenCreate
        | ToolKind::TokenList
        | ToolKind::TokenRevoke
        | ToolKind::Ping
        | ToolKind::ListTools
        | ToolKind::ConfigGet
        | ToolKind::CasStore
        | ToolKind::CasGet
        | ToolKind::CasInspect
        | ToolKind::CasUploadFile
        | ToolKind::CasStats
        | ToolKind::ArtifactUpload
        | ToolKind::ArtifactCreate
        | ToolKind::ArtifactGet
        | ToolKind::ArtifactList
        | ToolKind::AddAnnotation
        | ToolKind::GraphBind
        | ToolKind::GraphTag
        | ToolKind::GraphConnect
        | ToolKind::GraphFind
        | ToolKind::GraphContext
        | ToolKind::JobStatus
        | ToolKind::JobList
        | ToolKind::JobPoll
        | ToolKind::GraphQuery
        | ToolKind::JobCancel
        | ToolKind::JobSleep
        | ToolKind::EventPoll
        | ToolKind::CallWhy
        | ToolKind::AbcParse
        | ToolKind::AbcValidate
        | ToolKind::AbcTranspose
        | ToolKind::AbcToMidi
        | ToolKind::SoundfontInspect
        | ToolKind::SoundfontPresetInspect
        | ToolKind::MidiToWav
        | ToolKind::BeatthisAnalyze
        | ToolKind::ClapAnalyze
        | ToolKind::OrpheusGenerate
        | ToolKind::OrpheusGenerateSeeded
        | ToolKind::OrpheusContinue
        | ToolKind::OrpheusBridge
        | ToolKind::OrpheusLoops
        | ToolKind::OrpheusClassify
        | ToolKind::MusicgenGenerate
        | ToolKind::YueGenerate
        | ToolKind::GardenStatus
        | ToolKind::GardenPlay
        | ToolKind::GardenPause
        | ToolKind::GardenStop
        | ToolKind::GardenEmergencyPause
        | ToolKind::GardenSeek
        | ToolKind::GardenSetTempo
        | ToolKind::GardenGetRegions
        | ToolKind::GardenCreateRegion
        | ToolKind::GardenMoveRegion
        | ToolKind::GardenDeleteRegion
        | ToolKind::GardenTimeline
        | ToolKind::GardenSetLoop
        | ToolKind::GardenApprove
        | ToolKind::GardenReject
        | ToolKind::GardenExport
        | ToolKind::GardenSettle
        | ToolKind::GardenMonitor
        | ToolKind::GardenReport => Names::Nothing,
    }
}

/// Something that a call can name.
#[derive(Debug, Clone, Copy)]
struct Place {
    project: ProjectId,
    workspace: WorkspaceId,
    session: SessionId,
}

/// The location of a target, from the view of the agents of the own project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetLocation {
    /// The agent's own session, or one that it started.
    Tree,
    /// Another session of its project.
    Sibling,
    /// Another project of the same owner.
    OtherProject,
    /// A project of another owner.
    Stranger,
    /// A target that does not exist.
    Unknown,
}

/// The reach of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    All,
    Project,
    Tree,
    OwnProject,
}

impl Reach {
    fn includes(self, at: TargetLocation, names: Names) -> bool {
        match (self, at) {
            (_, TargetLocation::Unknown) => false,
            (Self::All, _) => true,
            (Self::Project, TargetLocation::Tree | TargetLocation::Sibling) => true,
            (Self::Tree, TargetLocation::Tree) => true,
            (Self::Tree, TargetLocation::Sibling) => names == Names::Project,
            (Self::OwnProject, TargetLocation::Stranger) => true,
            (Self::Project, TargetLocation::OtherProject | TargetLocation::Stranger)
            | (Self::Tree, TargetLocation::OtherProject | TargetLocation::Stranger)
            | (
                Self::OwnProject,
                TargetLocation::Tree | TargetLocation::Sibling | TargetLocation::OtherProject,
            ) => false,
        }
    }
}

/// Returns the input of a tool that names a place.
fn input(row: &ToolRow, place: Place) -> Value {
    let Place { project, workspace, session } = place;
    let mut input = match names(row.kind) {
        Names::Nothing => json!({}),
        Names::Project => json!({ "project_id": project }),
        Names::Workspace => json!({ "project_id": project, "workspace_id": workspace }),
        Names::Session | Names::Callers => json!({ "session_id": session }),
    };
    let more = match row.name {
        "container_exec" => json!({ "command": ["true"] }),
        "workspace_get" => json!({ "path": "" }),
        "workspace_put" => json!({ "path": "f", "data": "" }),
        "session_message" => json!({ "message": "x" }),
        "session_network" => json!({ "network": { "mode": "none" } }),
        "caller_tool_response" => json!({ "request_id": "1", "result": {} }),
        "caller_tool_progress" => json!({ "request_id": "1", "percent": 1.0 }),
        _ => json!({}),
    };
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    input
}

fn request(row: &ToolRow, place: Place) -> ToolRequest {
    let input = input(row, place);
    ToolRequest::deserialize_named(row.name, &input)
        .unwrap()
        .unwrap_or_else(|error| panic!("{}: {error}: {input}", row.name))
}

struct Matrix {
    fixture: World,
    places: Vec<(TargetLocation, Place)>,
    principals: Vec<(String, Reach, Credential)>,
    /// The own sessions of the agents with created keys, by their names.
    own: HashMap<String, Place>,
}

fn place(session: &SessionResponse) -> Place {
    Place {
        project: session.project_id,
        workspace: session.workspace_id,
        session: session.session_id,
    }
}

impl Matrix {
    async fn new() -> Self {
        let fixture = start_with(with_echo).await;
        let local = Credential::local();
        let own = keyed(&fixture, "own", KeyLevel::Write).await;
        let sibling = spawn(&fixture, &local, own).await;
        let other = keyed(&fixture, "other", KeyLevel::Write).await;
        let other = spawn(&fixture, &local, other).await;
        let stranger = user(&fixture, Level::Write, None).await;
        let stranger = fixture.broker.authenticate(stranger.token.expose()).unwrap();
        let theirs: ProjectResponse = call(&fixture, &stranger, named("theirs")).await;
        let theirs = spawn(&fixture, &stranger, theirs.project_id).await;
        let unknown = Place {
            project: ProjectId::from_random([9; 16]),
            workspace: WorkspaceId::from_random([9; 16]),
            session: SessionId::from_random([9; 16]),
        };
        let places = vec![
            (TargetLocation::Sibling, place(&sibling)),
            (TargetLocation::OtherProject, place(&other)),
            (TargetLocation::Stranger, place(&theirs)),
            (TargetLocation::Unknown, unknown),
        ];
        let mut principals = vec![
            ("full admin".to_owned(), Reach::All, local),
            ("the stranger".to_owned(), Reach::OwnProject, stranger),
        ];
        for level in [Level::Read, Level::Write, Level::Admin] {
            let token = user(&fixture, level, Some(vec![own])).await;
            let who = fixture.broker.authenticate(token.token.expose()).unwrap();
            principals.push((format!("{level} of the project"), Reach::Project, who));
            let (_, key) = passed(&fixture, own, &token).await;
            principals.push((format!("passed {level} of the project"), Reach::Project, key));
        }
        let mut own_places = HashMap::new();
        for level in [KeyLevel::Read, KeyLevel::Write] {
            let above = user(&fixture, level.level().unwrap(), Some(vec![own])).await;
            let place = below(&fixture, own, &above).await;
            let key = key_of(&fixture, place.session).await.unwrap();
            principals.push((format!("made {level}"), Reach::Tree, key));
            own_places.insert(format!("made {level}"), place);
        }
        Self { fixture, places, principals, own: own_places }
    }

    /// Returns the code of a refused call; `None` for success and for other errors.
    async fn refusal(&self, who: &Credential, request: ToolRequest) -> Option<String> {
        let outcome: Result<ToolResponse, _> = result(&self.fixture.broker, who, request).await;
        let error = outcome.err()?;
        let is_missing = error.code == "not_found" && error.message.starts_with("no such");
        let is_denied = error.code == "permission_denied";
        (is_missing || is_denied).then_some(error.code)
    }
}

/// A session whose own key was created below an agent that has no more than this token.
async fn below(fixture: &World, at: ProjectId, above: &TokenCreatedResponse) -> Place {
    let (session, _) = passed(fixture, at, above).await;
    let told = fixture.broker.session_message_from(session, "x".to_owned(), None).await.unwrap();
    Place { project: at, workspace: told.workspace_id, session: told.session_id }
}

/// Rule: a principal that may call a tool names its own things with it; everything else looks as if
/// it did not exist.
#[tokio::test]
async fn every_tool_names_what_its_principal_reaches_and_nothing_else() {
    let world = Matrix::new().await;
    let rows = TOOLS.iter().filter(|row| names(row.kind) != Names::Nothing);
    for row in rows {
        for (name, reach, who) in &world.principals {
            let may = world.fixture.broker.may_call(who, Edge::Relay, row.name);
            let own = world.own.get(name).map(|place| (TargetLocation::Tree, *place));
            for (at, place) in world.places.iter().copied().chain(own) {
                let (at, place) = (&at, &place);
                let is_reached = reach.includes(*at, names(row.kind));
                // It would delete the targets of the following rows.
                if row.kind == ToolKind::SessionEnd && is_reached {
                    continue;
                }
                let refusal = world.refusal(who, request(row, *place)).await;
                let expected = match (&may, is_reached) {
                    (Err(_), _) => Some("permission_denied"),
                    (Ok(()), false) => Some("not_found"),
                    (Ok(()), true) if is_starters(row, name, *reach) => Some("permission_denied"),
                    (Ok(()), true) => None,
                };
                let what = format!("{} by {name} at {at:?}", row.name);
                if !is_exempt(row, *at, *reach) {
                    assert_eq!(refusal.as_deref(), expected, "{what}");
                }
            }
        }
    }
}

/// The reach of a session is decided by the principal that started it, and by admins.
fn is_starters(row: &ToolRow, name: &str, reach: Reach) -> bool {
    row.kind == ToolKind::SessionNetwork && reach == Reach::Project && !name.contains("admin")
}

/// A token that opens a URL is for the principal that started the session, whatever else an admin
/// may do.
fn is_exempt(row: &ToolRow, at: TargetLocation, reach: Reach) -> bool {
    row.kind == ToolKind::SessionOpen && at != TargetLocation::Unknown && reach != Reach::Tree
}
