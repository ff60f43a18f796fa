//! The samples.

use ringback_proto::Event;
use ringback_proto::ToolTiming;
use ringback_proto::chunk::StreamChunk;
use ringback_proto::data::Data;
use ringback_proto::error::{Category, Certainty, ErrorContext, ToolError};
use ringback_proto::event::SequencedEvent;
use ringback_proto::ids::*;
use ringback_proto::principal::Level;
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::secret::Secret;
use ringback_proto::value::Value;

use super::Sample;

/// Above what a signed integer holds, and above what a double holds.
const TWO_TO_THE_63: u64 = 1 << 63;

macro_rules! sample {
    ($name:ident, $least:expr) => {
        impl Sample for $name {
            fn least() -> Self {
                $least
            }
        }
    };
    ($name:ident, $least:expr, $full:expr) => {
        impl Sample for $name {
            fn least() -> Self {
                $least
            }

            fn full() -> Self {
                $full
            }
        }
    };
}

/// Beyond ASCII, beyond the first plane, with characters that JSON escapes.
fn awkward() -> String {
    "zażółć 音楽 \u{1d11e} \"\\/\n\u{0}\u{7f}".to_owned()
}

fn all_bytes() -> Data {
    Data::from((0..=255).collect::<Vec<u8>>())
}

const fn hash() -> BlobHash {
    BlobHash::from_bytes([0xab; 32])
}

const fn job() -> JobId {
    JobId::from_random([0x0f; 16])
}

const fn artifact() -> ArtifactId {
    ArtifactId::from_random([0xf0; 16])
}

const fn annotation() -> AnnotationId {
    AnnotationId::from_random([0; 16])
}

const fn token() -> TokenId {
    TokenId::from_random([0xff; 16])
}

const fn project() -> ProjectId {
    ProjectId::from_random([0x11; 16])
}

const fn variations() -> VariationSetId {
    VariationSetId::from_random([0x22; 16])
}

/// Keys out of order, and numbers at every limit.
fn value() -> Value {
    Value::Map(vec![
        ("z".into(), Value::UInt(u64::MAX)),
        ("a".into(), Value::Int(i64::MIN)),
        ("ä".into(), Value::List(vec![Value::Null, Value::Bool(true), Value::Float(-0.5)])),
        (String::new(), Value::Map(vec![])),
        ("tool".into(), Value::Text(awkward())),
    ])
}

fn tool_error() -> ToolError {
    ToolError {
        category: Category::Timeout,
        code: "timeout".into(),
        message: awkward(),
        retryable: true,
        certainty: Certainty::MayHaveRun,
        context: ErrorContext {
            field: Some("field".into()),
            resource_type: Some("job".into()),
            resource_id: Some(job().to_string()),
            service: Some("garden".into()),
            operation: Some("job_sleep".into()),
            timeout_ms: Some(u64::MAX),
            missing: Some("scope `write`".into()),
            scope: None,
            reason: Some("the daemon stopped".into()),
            log_id: Some("log_1".into()),
        },
    }
}

sample!(PingRequest, Self {});
sample!(
    PongResponse,
    Self { uptime_ms: 0, version: String::new() },
    Self { uptime_ms: u64::MAX, version: awkward() }
);
sample!(
    ListToolsRequest,
    Self::default(),
    Self { cursor: Some(awkward()), prefix: Some("cas_".into()) }
);
sample!(
    ToolsListResponse,
    Self { tools: vec![], next_cursor: None },
    Self {
        tools: vec![ToolInfo {
            name: "ping".into(),
            description: awkward(),
            input_schema: value(),
            timing: ToolTiming::FireAndForget,
            scope: Level::Admin,
        }],
        next_cursor: Some(awkward()),
    }
);
sample!(
    ConfigGetRequest,
    Self::default(),
    Self { section: Some("http".into()), key: Some("listen".into()) }
);
sample!(
    ConfigValueResponse,
    Self { section: None, key: None, value: Value::Null },
    Self { section: Some("http".into()), key: Some("listen".into()), value: value() }
);
sample!(
    CasStoreRequest,
    Self {
        data: Data::default(),
        mime_type: String::new(),
        upload_id: None,
        offset: None,
        last: None
    },
    Self {
        data: all_bytes(),
        mime_type: "audio/midi".into(),
        upload_id: Some(awkward()),
        offset: Some(TWO_TO_THE_63),
        last: Some(false),
    }
);
sample!(
    CasStoredResponse,
    Self { hash: None, size: 0, mime_type: String::new() },
    Self { hash: Some(hash()), size: u64::MAX, mime_type: "audio/midi".into() }
);
sample!(
    CasGetRequest,
    Self { hash: hash(), offset: None, length: None },
    Self { hash: hash(), offset: Some(TWO_TO_THE_63), length: Some(u64::MAX) }
);
sample!(
    CasContentResponse,
    Self { hash: hash(), size: 0, mime_type: String::new(), data: Data::default() },
    Self { hash: hash(), size: TWO_TO_THE_63, mime_type: "audio/wav".into(), data: all_bytes() }
);
sample!(CasInspectRequest, Self { hash: hash() });
sample!(
    CasInspectedResponse,
    Self { hash: hash(), exists: false, size: None, mime_type: None, preview: None },
    Self {
        hash: hash(),
        exists: true,
        size: Some(u64::MAX),
        mime_type: Some("text/plain".into()),
        preview: Some(awkward()),
    }
);
sample!(
    CasUploadFileRequest,
    Self { file_path: String::new(), mime_type: String::new() },
    Self { file_path: awkward(), mime_type: "audio/midi".into() }
);
sample!(CasStatsRequest, Self {});
sample!(
    CasStatsResponse,
    Self { blobs: 0, bytes: 0 },
    Self { blobs: TWO_TO_THE_63, bytes: u64::MAX }
);
sample!(
    ArtifactUploadRequest,
    Self {
        file_path: String::new(),
        mime_type: String::new(),
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    },
    Self {
        file_path: awkward(),
        mime_type: "audio/midi".into(),
        tags: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
    }
);
sample!(
    ArtifactCreateRequest,
    Self {
        content_hash: hash(),
        metadata: None,
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    },
    Self {
        content_hash: hash(),
        metadata: Some(value()),
        tags: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
    }
);
sample!(
    ArtifactCreatedResponse,
    Self {
        artifact_id: artifact(),
        content_hash: hash(),
        tags: vec![],
        creator: String::new(),
        variation_index: None,
    },
    Self {
        artifact_id: artifact(),
        content_hash: hash(),
        tags: vec![String::new(), awkward()],
        creator: awkward(),
        variation_index: Some(u32::MAX),
    }
);
sample!(ArtifactGetRequest, Self { id: artifact() });
sample!(
    ArtifactInfoResponse,
    Self {
        id: artifact(),
        content_hash: hash(),
        mime_type: String::new(),
        size: 0,
        tags: vec![],
        creator: String::new(),
        created_at: 0,
        project_id: None,
        parent_id: None,
        variation_set_id: None,
        variation_index: None,
        metadata: None,
        annotations: vec![],
        tool: None,
        job_id: None,
        session_id: None,
        sources: vec![],
        derived_ids: vec![],
    },
    Self {
        id: artifact(),
        content_hash: hash(),
        mime_type: "audio/midi".into(),
        size: TWO_TO_THE_63,
        tags: vec![awkward()],
        creator: awkward(),
        created_at: u64::MAX,
        project_id: Some(project()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
        variation_index: Some(0),
        metadata: Some(value()),
        annotations: vec![AnnotationInfo {
            id: annotation(),
            message: awkward(),
            source: "agent".into(),
            vibe: Some(awkward()),
            created_at: TWO_TO_THE_63,
        }],
        tool: Some("midi_to_wav".into()),
        job_id: Some(job()),
        session_id: Some(SessionId::from_random([0x33; 16])),
        sources: vec![
            SourceInfo {
                role: SourceRole::Input,
                artifact_id: Some(artifact()),
                content_hash: Some(hash()),
            },
            SourceInfo { role: SourceRole::Region, artifact_id: None, content_hash: None },
        ],
        derived_ids: vec![artifact()],
    }
);
sample!(
    ArtifactListRequest,
    Self::default(),
    Self {
        tag: Some(awkward()),
        creator: Some(String::new()),
        limit: Some(u32::MAX),
        cursor: Some(awkward()),
    }
);
sample!(
    ArtifactListResponse,
    Self { artifacts: vec![], count: 0, next_cursor: None },
    Self {
        artifacts: vec![ArtifactInfoResponse::full()],
        count: u64::MAX,
        next_cursor: Some(awkward()),
    }
);
sample!(
    AddAnnotationRequest,
    Self { artifact_id: artifact(), message: String::new(), source: None, vibe: None },
    Self {
        artifact_id: artifact(),
        message: awkward(),
        source: Some("human".into()),
        vibe: Some(awkward()),
    }
);
sample!(
    GraphQueryRequest,
    Self { query: "SELECT 1".into(), variables: None, limit: None },
    Self {
        query: awkward(),
        variables: Some([("name".into(), Value::Text(awkward()))].into()),
        limit: Some(1000),
    }
);
sample!(
    GraphQueryResponse,
    Self { results: vec![], count: 0, truncated: false },
    Self {
        results: vec![Value::Map(vec![
            ("z".into(), Value::Int(-1)),
            ("a".into(), Value::Float(0.5)),
            ("m".into(), Value::Null),
        ])],
        count: 1,
        truncated: true,
    }
);
sample!(AnnotationAddedResponse, Self { artifact_id: artifact(), annotation_id: annotation() });
sample!(JobStatusRequest, Self { job_id: job() });
sample!(
    JobStatusResponse,
    Self {
        job_id: job(),
        status: JobState::Pending,
        source: String::new(),
        project_id: None,
        result: None,
        error: None,
        created_at: 0,
        started_at: None,
        completed_at: None,
    },
    Self {
        job_id: job(),
        status: JobState::Complete,
        source: "cas_get".into(),
        project_id: Some(project()),
        result: Some(Box::new(CasContentResponse::full().into())),
        error: Some(tool_error()),
        created_at: TWO_TO_THE_63,
        started_at: Some(TWO_TO_THE_63),
        completed_at: Some(u64::MAX),
    }
);
sample!(
    JobListRequest,
    Self::default(),
    Self { status: Some(JobState::Running), limit: Some(500), cursor: Some(awkward()) }
);
sample!(
    JobListResponse,
    Self { jobs: vec![], total: 0, by_status: JobCounts::default(), next_cursor: None },
    Self {
        jobs: vec![JobStatusResponse::full()],
        total: u64::MAX,
        by_status: JobCounts {
            pending: 1,
            running: 2,
            complete: TWO_TO_THE_63,
            failed: 4,
            cancelled: u64::MAX,
        },
        next_cursor: Some(awkward()),
    }
);
sample!(
    JobPollRequest,
    Self { job_ids: vec![], timeout_ms: 0, mode: None },
    Self { job_ids: vec![job(), job()], timeout_ms: u64::MAX, mode: Some(PollMode::All) }
);
sample!(
    JobPollResponse,
    Self { completed: vec![], failed: vec![], pending: vec![], timed_out: false },
    Self { completed: vec![job()], failed: vec![job()], pending: vec![job()], timed_out: true }
);
sample!(JobCancelRequest, Self { job_id: job() });
sample!(JobCancelledResponse, Self { job_id: job(), status: JobState::Cancelled });
sample!(JobSleepRequest, Self { milliseconds: 0 }, Self { milliseconds: TWO_TO_THE_63 });
sample!(SleptResponse, Self { milliseconds: 0 }, Self { milliseconds: u64::MAX });
sample!(
    EventPollRequest,
    Self::default(),
    Self {
        cursor: Some(awkward()),
        types: Some(vec!["job.state_changed".into()]),
        limit: Some(1000),
        wait_ms: Some(u64::MAX),
    }
);
sample!(
    EventsResponse,
    Self { events: vec![], cursor: String::new(), missed: None },
    Self {
        events: vec![SequencedEvent {
            epoch: u64::MAX,
            seq: TWO_TO_THE_63,
            topic_seq: 1,
            at_ms: 0,
            event: Event::StreamChunk {
                stream_id: StreamId::from_random([0x33; 16]),
                chunk: StreamChunk::Progress { percent: 33.3, message: awkward() },
            },
        }],
        cursor: awkward(),
        missed: Some(u64::MAX),
    }
);
sample!(CallWhyRequest, Self { id: String::new() }, Self { id: awkward() });
sample!(
    CallExplainedResponse,
    Self {
        call_id: CallId::from_random([0x44; 16]),
        request_id: None,
        job_id: None,
        job_status: None,
        tool: String::new(),
        edge: String::new(),
        caller: String::new(),
        admitted: String::new(),
        admitted_at: 0,
        deadline_ms: 0,
        deadline_from: String::new(),
        repeat: false,
        took_ms: None,
        outcome: None,
        certainty: None,
        line: None,
        delivered_at: None,
        late_answers: None,
    },
    Self {
        call_id: CallId::from_random([0x44; 16]),
        request_id: Some(awkward()),
        job_id: Some(job()),
        job_status: Some(JobState::Failed),
        tool: awkward(),
        edge: "hoot".into(),
        caller: "local".into(),
        admitted: awkward(),
        admitted_at: TWO_TO_THE_63,
        deadline_ms: u64::MAX,
        deadline_from: "caller".into(),
        repeat: true,
        took_ms: Some(u64::MAX),
        outcome: Some("timeout".into()),
        certainty: Some(Certainty::MayHaveRun),
        line: Some(awkward()),
        delivered_at: Some(vec![0, u64::MAX]),
        late_answers: Some(u32::MAX),
    }
);
sample!(
    TokenCreateRequest,
    Self { name: String::new(), scope: Level::Read, projects: None, expires_in: None },
    Self {
        name: awkward(),
        scope: Level::Write,
        projects: Some(vec![project()]),
        expires_in: Some(u64::MAX),
    }
);
sample!(
    TokenCreatedResponse,
    Self {
        token_id: token(),
        token: Secret::new(String::new()),
        name: String::new(),
        scope: Level::Read,
        projects: None,
        expires_at: None,
    },
    Self {
        token_id: token(),
        token: Secret::new(format!("oub_{}", "0".repeat(64))),
        name: awkward(),
        scope: Level::Write,
        projects: Some(vec![]),
        expires_at: Some(u64::MAX),
    }
);
sample!(TokenListRequest, Self {});
sample!(
    TokenListResponse,
    Self { tokens: vec![] },
    Self {
        tokens: vec![TokenInfo {
            token_id: token(),
            name: awkward(),
            scope: Level::Admin,
            projects: Some(vec![project()]),
            created_at: 0,
            expires_at: Some(u64::MAX),
            last_used_at: Some(TWO_TO_THE_63),
            revoked_at: Some(1),
        }],
    }
);
sample!(TokenRevokeRequest, Self { token_id: token() });
sample!(AckResponse, Self { message: String::new() }, Self { message: awkward() });

// After the macro, because they use it.
mod abc;
mod container;
pub(crate) mod garden;
mod graph;
mod model;
mod sessions;
mod sound;
mod workspaces;
