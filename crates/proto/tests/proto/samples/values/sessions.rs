//! Samples of the tools for projects, sessions and callers.

use ringback_proto::any::{Any, Format};
use ringback_proto::money::MicroUsd;
use ringback_proto::network::{NetworkMode, NetworkPolicy};
use ringback_proto::permission::{PermissionMode, PermissionPolicy};
use ringback_proto::principal::KeyLevel;
use ringback_proto::raw::Raw;
use ringback_proto::record::SessionState;

use super::*;

const fn session() -> SessionId {
    SessionId::from_random([0x33; 16])
}

const fn root() -> SessionId {
    SessionId::from_random([0x44; 16])
}

const fn workspace() -> WorkspaceId {
    WorkspaceId::from_random([0x55; 16])
}

/// A text that both encodings can represent.
fn raw() -> Raw {
    let bytes = serde_json::to_vec(&value()).expect("values can be written as JSON").into();
    Raw(Any { format: Format::Json, bytes })
}

const fn limits() -> ProjectLimits {
    ProjectLimits {
        max_depth: Some(0),
        max_agents: Some(u32::MAX),
        max_sessions: Some(1),
        idle_ms: Some(TWO_TO_THE_63),
        max_tokens: Some(u64::MAX),
        max_time_ms: Some(0),
        max_micro_usd: Some(MicroUsd(1)),
    }
}

const fn spend_limits() -> SpendLimits {
    SpendLimits {
        max_tokens: Some(1),
        max_time_ms: Some(u64::MAX),
        max_micro_usd: Some(MicroUsd(TWO_TO_THE_63)),
    }
}

fn network() -> NetworkPolicy {
    "allow example.org:443 *.example.org:* 10.0.0.0/8:80 [fd00::1]:65535".parse().expect("a policy")
}

fn permissions() -> PermissionPolicy {
    "deny\nread *=allow\n*=ask".parse().expect("a policy")
}

fn caller_tools() -> Vec<CallerTool> {
    vec![
        CallerTool {
            name: "read_file".into(),
            description: Some(awkward()),
            input_schema: Some(raw()),
            timeout_ms: Some(u64::MAX),
            allowed: true,
        },
        CallerTool {
            name: awkward(),
            description: Some(String::new()),
            input_schema: Some(Raw(Any { format: Format::Json, bytes: "{}".into() })),
            timeout_ms: Some(0),
            allowed: false,
        },
    ]
}

fn secret() -> Secret {
    Secret::new(format!("oub_{}", "0".repeat(64)))
}

fn model_choice() -> ModelChoice {
    ModelChoice { provider: Some("ollama".into()), name: Some(awkward()), key_follows: true }
}

fn context() -> SessionContext {
    SessionContext {
        caller_id: Some("ant".into()),
        caller_tools: Some(caller_tools()),
        caller_server: Some(Box::new(CallerServer {
            command: awkward(),
            args: vec![awkward()],
            env: vec!["HOME".into()],
            workspace: ServerWorkspace::Write,
            network: Some(network()),
        })),
    }
}

sample!(
    ProjectCreateRequest,
    Self {
        name: String::new(),
        description: None,
        limits: None,
        agent: None,
        key_level: None,
        network: None,
        image: None,
        permissions: None,
    },
    Self {
        name: awkward(),
        description: Some(awkward()),
        limits: Some(limits()),
        agent: Some("script".into()),
        key_level: Some(KeyLevel::Write),
        network: Some(network()),
        image: Some("rust".into()),
        permissions: Some(permissions()),
    }
);
sample!(
    ProjectUpdateRequest,
    Self { project_id: project(), permissions: None },
    Self { project_id: project(), permissions: Some(permissions()) }
);
sample!(
    ProjectResponse,
    Self {
        project_id: project(),
        name: String::new(),
        description: None,
        limits: ProjectLimits::default(),
        agent: None,
        key_level: None,
        created_at: 0,
        network: None,
        image: None,
        container: None,
        permissions: None,
    },
    Self {
        project_id: project(),
        name: awkward(),
        description: Some(awkward()),
        limits: limits(),
        agent: Some("script".into()),
        key_level: Some(KeyLevel::Read),
        created_at: u64::MAX,
        network: Some(NetworkPolicy::default()),
        image: Some(awkward()),
        container: Some(ContainerInfo {
            status: ContainerStatus::Stopped,
            backend: "docker".into(),
            image: Some(awkward()),
            since: u64::MAX,
            exit_code: Some(i32::MIN),
        }),
        permissions: Some(PermissionPolicy::default()),
    }
);
sample!(
    ProjectListRequest,
    Self::default(),
    Self { name_contains: Some(awkward()), limit: Some(u32::MAX), cursor: Some(awkward()) }
);
sample!(
    ProjectListResponse,
    Self { projects: vec![], next_cursor: None },
    Self { projects: vec![ProjectResponse::full()], next_cursor: Some(awkward()) }
);
sample!(ProjectGetRequest, Self { project_id: project() });
sample!(ProjectDeleteRequest, Self { project_id: project() });
sample!(WorkspaceListRequest, Self { project_id: project() });
sample!(
    WorkspaceListResponse,
    Self { workspaces: vec![] },
    Self {
        workspaces: vec![WorkspaceInfo {
            workspace_id: workspace(),
            created_at: TWO_TO_THE_63,
            last_session_at: Some(u64::MAX),
        }],
    }
);
sample!(WorkspaceDeleteRequest, Self { project_id: project(), workspace_id: workspace() });
sample!(
    SessionSpawnRequest,
    Self {
        project_id: project(),
        workspace_id: None,
        create_workspace: false,
        agent: None,
        context: None,
        caller_id: None,
        caller_tools: None,
        network: None,
        limits: None,
        toolchains: None,
        model: None,
        permissions: None,
    },
    Self {
        project_id: project(),
        workspace_id: Some(workspace()),
        create_workspace: true,
        agent: Some("script".into()),
        context: Some(context()),
        caller_id: Some("bee".into()),
        caller_tools: Some(caller_tools()),
        network: Some(network()),
        limits: Some(SpendLimits::default()),
        toolchains: Some(SessionToolchains {
            path: awkward(),
            variables: [(awkward(), awkward())].into(),
            directory: Some(awkward()),
        }),
        model: Some(model_choice()),
        permissions: Some(PermissionMode::Deny),
    }
);
sample!(
    SessionResponse,
    Self {
        session_id: session(),
        root_session_id: session(),
        parent_id: None,
        project_id: project(),
        workspace_id: workspace(),
        agent: String::new(),
        status: SessionState::Starting,
        depth: 0,
        created_at: 0,
        updated_at: 0,
        ended_at: None,
        last_event_index: -1,
        confined: false,
        workspace_path: String::new(),
        notice: None,
        url: None,
        network: None,
        model_usage: None,
        limits: None,
        working_ms: 0,
        paused: None,
        model: None,
    },
    Self {
        session_id: session(),
        root_session_id: root(),
        parent_id: Some(root()),
        project_id: project(),
        workspace_id: workspace(),
        agent: awkward(),
        status: SessionState::Interrupted,
        depth: u32::MAX,
        created_at: 1,
        updated_at: TWO_TO_THE_63,
        ended_at: Some(u64::MAX),
        last_event_index: i64::MAX,
        confined: true,
        workspace_path: awkward(),
        notice: Some(awkward()),
        url: Some(awkward()),
        network: Some(network()),
        model_usage: Some(ModelUsage {
            requests: u64::MAX,
            refused: 0,
            bytes_up: TWO_TO_THE_63,
            bytes_down: 1,
            input_tokens: u64::MAX,
            output_tokens: 0,
            estimated: true,
            unpriced_tokens: TWO_TO_THE_63,
            cost_micro_usd: Some(MicroUsd(u64::MAX)),
        }),
        limits: Some(spend_limits()),
        working_ms: u64::MAX,
        paused: Some(SessionPause { limit: awkward(), request_id: awkward(), until_ms: u64::MAX }),
        model: Some(SessionModel {
            provider: awkward(),
            name: Some(awkward()),
            failure: Some(ModelFailure {
                status: Some(u16::MAX),
                cause: awkward(),
                key: Some("session".into()),
            }),
        }),
    }
);
sample!(
    SessionMessageRequest,
    Self {
        project_id: None,
        session_id: None,
        workspace_id: None,
        create_workspace: false,
        message: String::new(),
        attachments: vec![],
        agent: None,
        context: None,
        caller_id: None,
        caller_tools: None,
        api_key: None,
        follow: false,
        answer: None,
        abort: false,
        network: None,
        limits: None,
        model: None,
        model_key: None,
        permissions: None,
    },
    Self {
        project_id: Some(project()),
        session_id: Some(session()),
        workspace_id: Some(workspace()),
        create_workspace: true,
        message: awkward(),
        attachments: vec![Attachment {
            filename: awkward(),
            mime_type: Some("text/plain".into()),
            data: all_bytes(),
        }],
        agent: Some("script".into()),
        context: Some(context()),
        caller_id: Some(awkward()),
        caller_tools: Some(vec![]),
        api_key: Some(secret()),
        follow: true,
        answer: Some(Box::new(PermissionAnswer {
            request_id: awkward(),
            option: Some("once".into()),
        })),
        abort: true,
        network: Some(Box::new(NetworkPolicy::of(NetworkMode::Full))),
        limits: Some(spend_limits()),
        model: Some(Box::new(model_choice())),
        model_key: Some(secret()),
        permissions: Some(PermissionMode::Allow),
    }
);
sample!(
    SessionMessagedResponse,
    Self {
        session_id: session(),
        root_session_id: session(),
        workspace_id: workspace(),
        spawned: false,
        workspace_created: false,
        last_event_index: -1,
        confined: false,
        url: None,
        token: None,
    },
    Self {
        session_id: session(),
        root_session_id: root(),
        workspace_id: workspace(),
        spawned: true,
        workspace_created: true,
        last_event_index: i64::MAX,
        confined: true,
        url: Some(awkward()),
        token: Some(secret()),
    }
);
sample!(
    SessionOpenRequest,
    Self::default(),
    Self {
        project_id: Some(project()),
        session_id: Some(session()),
        context: Some(context()),
        caller_id: Some(awkward()),
        caller_tools: Some(caller_tools()),
        ttl_ms: Some(u64::MAX),
    }
);
sample!(
    SessionOpenedResponse,
    Self { session_id: session(), url: String::new(), token: Secret::new(String::new()) },
    Self { session_id: session(), url: awkward(), token: secret() }
);
sample!(
    SessionEventsRequest,
    Self {
        session_id: session(),
        since_index: None,
        max_events: None,
        wait_ms: None,
        include_children: false,
        follow: false,
    },
    Self {
        session_id: session(),
        since_index: Some(-1),
        max_events: Some(u32::MAX),
        wait_ms: Some(u64::MAX),
        include_children: true,
        follow: true,
    }
);
sample!(
    SessionEventsResponse,
    Self {
        session_id: session(),
        events: vec![],
        last_index: -1,
        status: SessionState::Running,
        dropped_events: 0,
        oldest_index: 0,
    },
    Self {
        session_id: session(),
        events: vec![SessionEventInfo {
            index: TWO_TO_THE_63,
            session_id: session(),
            at_ms: u64::MAX,
            kind: "caller_tool_request".into(),
            text: Some(awkward()),
            tool_name: Some("read_file".into()),
            role: Some("assistant".into()),
            request_id: Some(awkward()),
            arguments: Some(awkward()),
            result: Some(awkward()),
            status: Some(SessionState::Failed),
            options: vec![PermissionChoice {
                id: awkward(),
                name: awkward(),
                kind: "allow_once".into(),
            }],
            usage: Some(TokenUsage {
                input_tokens: 0,
                output_tokens: u64::MAX,
                total_tokens: TWO_TO_THE_63,
            }),
        }],
        last_index: i64::MAX,
        status: SessionState::Ended,
        dropped_events: u64::MAX,
        oldest_index: TWO_TO_THE_63,
    }
);
sample!(
    SessionListRequest,
    Self::default(),
    Self {
        project_id: Some(project()),
        status: Some(SessionState::Idle),
        limit: Some(u32::MAX),
        cursor: Some(awkward()),
    }
);
sample!(
    SessionListResponse,
    Self { sessions: vec![], next_cursor: None },
    Self { sessions: vec![SessionResponse::full()], next_cursor: Some(awkward()) }
);
sample!(SessionGetRequest, Self { session_id: session() });
sample!(
    SessionNetworkRequest,
    Self { session_id: session(), network: NetworkPolicy::default() },
    Self { session_id: session(), network: network() }
);
sample!(SessionEndRequest, Self { session_id: session() });
sample!(
    SessionCleanupRequest,
    Self::default(),
    Self { max_age_hours: Some(u64::MAX), project_id: Some(project()) }
);
sample!(CleanedResponse, Self { deleted: 0 }, Self { deleted: u64::MAX });
sample!(
    CallerToolResponseRequest,
    Self { session_id: session(), request_id: String::new(), result: None, error: None },
    Self {
        session_id: session(),
        request_id: awkward(),
        result: Some(raw()),
        error: Some(awkward()),
    }
);
sample!(
    CallerToolProgressRequest,
    Self { session_id: session(), request_id: String::new(), percent: 0.0, message: None },
    Self { session_id: session(), request_id: awkward(), percent: 12.5, message: Some(awkward()) }
);
sample!(
    CallerToolRequestsRequest,
    Self { session_id: session(), caller_id: None, wait_ms: None },
    Self { session_id: session(), caller_id: Some(awkward()), wait_ms: Some(u64::MAX) }
);
sample!(
    CallerToolRequestsResponse,
    Self { requests: vec![] },
    Self {
        requests: vec![CallerToolRequestInfo {
            kind: CallerMessageType::CallerToolRequest,
            session_id: session(),
            root_session_id: root(),
            request_id: awkward(),
            caller_id: awkward(),
            tool: awkward(),
            arguments: raw(),
            deadline_ms: u64::MAX,
        }],
    }
);
sample!(
    ConfigLimitsRequest,
    Self { project_id: project(), session_id: None },
    Self { project_id: project(), session_id: Some(session()) }
);
sample!(
    LimitsResponse,
    Self {
        max_depth: 0,
        max_agents: 0,
        max_sessions: 0,
        idle_ms: 0,
        remaining: RemainingLimits { depth: None, agents: None, sessions: 0 },
    },
    Self {
        max_depth: u32::MAX,
        max_agents: 1,
        max_sessions: 2,
        idle_ms: u64::MAX,
        remaining: RemainingLimits { depth: Some(u32::MAX), agents: Some(0), sessions: u32::MAX },
    }
);
