//! What happens, told to whoever listens. Events carry ids and states; never arguments, results or
//! secrets.

use serde::{Deserialize, Serialize};

use crate::chunk::StreamChunk;
use crate::ids::{ArtifactId, BlobHash, JobId, ProjectId, SessionId, StreamId};
use crate::record::{JobState, SessionState};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type")]
pub enum Event {
    /// A job was created or changed its state.
    #[serde(rename = "job.state_changed")]
    JobStateChanged {
        /// Which.
        job_id: JobId,
        /// The tool it runs.
        tool: String,
        /// Where it stands now.
        state: JobState,
    },
    /// A running job told how far it is.
    #[serde(rename = "job.progress")]
    JobProgress {
        /// Which.
        job_id: JobId,
        /// 0 to 100.
        percent: f32,
        /// What is being done.
        message: String,
    },
    /// A chunk of a stream that is kept only in part: progress and log lines.
    #[serde(rename = "stream.chunk")]
    StreamChunk {
        /// Which stream.
        stream_id: StreamId,
        /// The chunk.
        chunk: StreamChunk,
    },
    /// An artifact exists.
    #[serde(rename = "artifact.created")]
    ArtifactCreated {
        /// Which.
        artifact_id: ArtifactId,
        /// Its content.
        content_hash: BlobHash,
        /// Its content's type.
        mime_type: String,
    },
    /// The tools on a line changed, whoever holds it.
    #[serde(rename = "tools.changed")]
    ToolsChanged {
        /// `client`, `worker` or `caller`.
        line: String,
        /// The line's name.
        name: String,
        /// The full names of tools that are new or were replaced.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<String>,
        /// The full names of tools that are gone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<String>,
    },
    /// A call waits for an HTTP client. Its input is not here.
    #[serde(rename = "client-tool.request")]
    ClientToolRequest(ClientToolCall),
    /// An HTTP client registered tools.
    #[serde(rename = "client-tool.registered")]
    ClientToolRegistered(ClientTools),
    /// Tools of an HTTP client are gone.
    #[serde(rename = "client-tool.unregistered")]
    ClientToolUnregistered(ClientTools),
    /// An HTTP client is to carry out a call.
    #[serde(rename = "client-tool.executing")]
    ClientToolExecuting(ClientToolCall),
    /// An HTTP client answered a call.
    #[serde(rename = "client-tool.completed")]
    ClientToolCompleted {
        /// Which.
        #[serde(flatten)]
        call: ClientToolCall,
        /// Always true.
        success: bool,
    },
    /// A call of an HTTP client's tool failed.
    #[serde(rename = "client-tool.failed")]
    ClientToolFailed {
        /// Which.
        #[serde(flatten)]
        call: ClientToolCall,
        /// What happened; if the client said so, its own words, shortened.
        error: String,
    },
    /// A session was created or changed its state.
    #[serde(rename = "session.state_changed")]
    SessionStateChanged {
        /// Which.
        session_id: SessionId,
        /// Its project.
        project_id: ProjectId,
        /// Where it stands now.
        status: SessionState,
    },
}

/// Tools of an HTTP client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClientTools {
    /// The client.
    #[serde(rename = "clientID")]
    pub client_id: String,
    /// Their full names.
    #[serde(rename = "toolIDs")]
    pub tool_ids: Vec<String>,
}

/// A call of an HTTP client's tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClientToolCall {
    /// The client.
    #[serde(rename = "clientID")]
    pub client_id: String,
    /// The id the client knows the call by.
    #[serde(rename = "requestID")]
    pub request_id: String,
    /// The session the caller named.
    #[serde(rename = "sessionID")]
    pub session_id: String,
    /// The message the caller named.
    #[serde(rename = "messageID")]
    pub message_id: String,
    /// The call id the caller named.
    #[serde(rename = "callID")]
    pub call_id: String,
    /// The tool's full name.
    pub tool: String,
}

impl Event {
    /// Every topic, in the order of the variants.
    pub const TOPICS: [&'static str; 12] = [
        "job.state_changed",
        "job.progress",
        "stream.chunk",
        "artifact.created",
        "tools.changed",
        "client-tool.request",
        "client-tool.registered",
        "client-tool.unregistered",
        "client-tool.executing",
        "client-tool.completed",
        "client-tool.failed",
        "session.state_changed",
    ];

    /// The event's type, which is also its topic.
    #[must_use]
    pub const fn topic(&self) -> &'static str {
        Self::TOPICS[self.topic_index()]
    }

    /// The job it is about, if it is about one.
    #[must_use]
    pub const fn job_id(&self) -> Option<JobId> {
        match self {
            Self::JobStateChanged { job_id, .. } | Self::JobProgress { job_id, .. } => {
                Some(*job_id)
            }
            Self::StreamChunk { .. }
            | Self::ArtifactCreated { .. }
            | Self::ToolsChanged { .. }
            | Self::ClientToolRequest(_)
            | Self::ClientToolRegistered(_)
            | Self::ClientToolUnregistered(_)
            | Self::ClientToolExecuting(_)
            | Self::ClientToolCompleted { .. }
            | Self::ClientToolFailed { .. }
            | Self::SessionStateChanged { .. } => None,
        }
    }

    /// The place of the event's topic in [`Self::TOPICS`].
    #[must_use]
    pub const fn topic_index(&self) -> usize {
        match self {
            Self::JobStateChanged { .. } => 0,
            Self::JobProgress { .. } => 1,
            Self::StreamChunk { .. } => 2,
            Self::ArtifactCreated { .. } => 3,
            Self::ToolsChanged { .. } => 4,
            Self::ClientToolRequest(_) => 5,
            Self::ClientToolRegistered(_) => 6,
            Self::ClientToolUnregistered(_) => 7,
            Self::ClientToolExecuting(_) => 8,
            Self::ClientToolCompleted { .. } => 9,
            Self::ClientToolFailed { .. } => 10,
            Self::SessionStateChanged { .. } => 11,
        }
    }
}

/// An event with its place in the order of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SequencedEvent {
    /// Changes with each start of the daemon.
    pub epoch: u64,
    /// Counts all events from 1, without gaps.
    pub seq: u64,
    /// Counts the events of this topic from 1, without gaps.
    pub topic_seq: u64,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// What.
    pub event: Event,
}

/// The last number of each topic, published every few seconds on the topic `heads`, so that a
/// subscriber learns of the events it missed, the last one included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heads {
    /// Changes with each start of the daemon.
    pub epoch: u64,
    /// The last of all.
    pub seq: u64,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The last of each topic that has had any.
    pub topics: std::collections::BTreeMap<String, u64>,
}

impl Heads {
    /// The topic they are published on.
    pub const TOPIC: &'static str = "heads";
}
