//! Events for subscribers. They carry ids and states, never arguments, results or secrets.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chunk::StreamChunk;
use crate::garden::{
    GardenPositionEvent, GardenRegionEvent, GardenTransportEvent, GardenTroubleEvent,
};
use crate::ids::{ArtifactId, BlobHash, JobId, ProjectId, SessionId, StreamId};
use crate::record::{JobState, SessionState};

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type")]
pub enum Event {
    /// A job was created or changed state.
    #[serde(rename = "job.state_changed")]
    JobStateChanged {
        /// The id of the job.
        job_id: JobId,
        /// The tool it runs.
        tool: String,
        /// Its new state.
        state: JobState,
    },
    /// A running job reported its progress.
    #[serde(rename = "job.progress")]
    JobProgress {
        /// The id of the job.
        job_id: JobId,
        /// The progress in percent, from 0 to 100.
        percent: f32,
        /// The current step.
        message: String,
    },
    /// A chunk of a stream that is only partly kept: progress and log lines.
    #[serde(rename = "stream.chunk")]
    StreamChunk {
        /// The id of the stream.
        stream_id: StreamId,
        /// The chunk.
        chunk: StreamChunk,
    },
    /// An artifact was created.
    #[serde(rename = "artifact.created")]
    ArtifactCreated {
        /// The id of the artifact.
        artifact_id: ArtifactId,
        /// The hash of its content.
        content_hash: BlobHash,
        /// The MIME type of its content.
        mime_type: String,
    },
    /// The tools of any line changed.
    #[serde(rename = "tools.changed")]
    ToolsChanged {
        /// `client`, `worker` or `caller`.
        line: String,
        /// The name of the line.
        name: String,
        /// The full names of new or replaced tools.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<String>,
        /// The full names of removed tools.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<String>,
    },
    /// A call waits for an HTTP client. Its input is left out.
    #[serde(rename = "client-tool.request")]
    ClientToolRequest(ClientToolCall),
    /// An HTTP client registered tools.
    #[serde(rename = "client-tool.registered")]
    ClientToolRegistered(ClientTools),
    /// Tools of an HTTP client were removed.
    #[serde(rename = "client-tool.unregistered")]
    ClientToolUnregistered(ClientTools),
    /// An HTTP client is about to run a call.
    #[serde(rename = "client-tool.executing")]
    ClientToolExecuting(ClientToolCall),
    /// An HTTP client answered a call.
    #[serde(rename = "client-tool.completed")]
    ClientToolCompleted {
        /// The call.
        #[serde(flatten)]
        call: ClientToolCall,
        /// Always true.
        success: bool,
    },
    /// A call to an HTTP client's tool failed.
    #[serde(rename = "client-tool.failed")]
    ClientToolFailed {
        /// The call.
        #[serde(flatten)]
        call: ClientToolCall,
        /// The error; shortened if the client reported it.
        error: String,
    },
    /// A session was created or changed state.
    #[serde(rename = "session.state_changed")]
    SessionStateChanged {
        /// The id of the session.
        session_id: SessionId,
        /// The id of its project.
        project_id: ProjectId,
        /// Its new state.
        status: SessionState,
    },
    /// The first chunk of a stream is about to come: on `stream.chunk`, or on `stream.data`.
    #[serde(rename = "stream.started")]
    StreamStarted {
        /// The id of the stream: that of its job or call, under another prefix.
        stream_id: StreamId,
        /// The tool that makes it.
        tool: String,
        /// The job that does the work, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job_id: Option<JobId>,
    },
    /// A stream has ended.
    #[serde(rename = "stream.ended")]
    StreamEnded {
        /// The id of the stream.
        stream_id: StreamId,
        /// The last `topic_seq` of its `stream.data`: a subscriber with as many has missed nothing.
        data: u64,
        /// The job that did the work, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job_id: Option<JobId>,
    },
    /// The garden plays, pauses or stops, or its tempo changed.
    #[serde(rename = "garden.transport")]
    GardenTransport(GardenTransportEvent),
    /// A region of the garden changed.
    #[serde(rename = "garden.region")]
    GardenRegion(GardenRegionEvent),
    /// The garden's playback was disturbed.
    #[serde(rename = "garden.trouble")]
    GardenTrouble(GardenTroubleEvent),
    /// Where the garden plays. Published live and not kept.
    #[serde(rename = "garden.position")]
    GardenPosition(GardenPositionEvent),
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

/// A call to an HTTP client's tool. Its texts are those of the call itself, which has three events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClientToolCall {
    /// The client.
    #[serde(rename = "clientID")]
    pub client_id: Arc<str>,
    /// The id under which the client knows the call.
    #[serde(rename = "requestID")]
    pub request_id: Arc<str>,
    /// The session id given by the caller.
    #[serde(rename = "sessionID")]
    pub session_id: Arc<str>,
    /// The message id given by the caller.
    #[serde(rename = "messageID")]
    pub message_id: Arc<str>,
    /// The call id given by the caller.
    #[serde(rename = "callID")]
    pub call_id: Arc<str>,
    /// The tool's full name.
    pub tool: Arc<str>,
}

impl Event {
    /// Every topic, in the order of the variants.
    pub const TOPICS: [&'static str; 18] = [
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
        "stream.started",
        "stream.ended",
        "garden.transport",
        "garden.region",
        "garden.trouble",
        "garden.position",
    ];

    /// Returns the type of the event, which is also its topic.
    #[must_use]
    pub const fn topic(&self) -> &'static str {
        Self::TOPICS[self.topic_index()]
    }

    /// The first topic that everyone may see; all after it are shared too.
    const FIRST_SHARED: usize = 14;
    /// The topic that is only published live.
    const LIVE: usize = 17;

    /// Returns whether everyone may see the events of a topic, by its index.
    #[must_use]
    pub const fn is_shared_topic(topic_index: usize) -> bool {
        topic_index >= Self::FIRST_SHARED
    }

    /// Returns whether the events of a topic are only published live, by its index.
    #[must_use]
    pub const fn is_live_topic(topic_index: usize) -> bool {
        topic_index == Self::LIVE
    }

    /// Returns whether everyone may see it: everyone hears the garden.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        Self::is_shared_topic(self.topic_index())
    }

    /// Returns whether it is only published live and not kept.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        Self::is_live_topic(self.topic_index())
    }

    /// Returns the job it is about, if any.
    #[must_use]
    pub const fn job_id(&self) -> Option<JobId> {
        match self {
            Self::JobStateChanged { job_id, .. } | Self::JobProgress { job_id, .. } => {
                Some(*job_id)
            }
            Self::StreamStarted { job_id, .. } | Self::StreamEnded { job_id, .. } => *job_id,
            Self::GardenTransport(event) => event.job_id,
            Self::StreamChunk { .. }
            | Self::ArtifactCreated { .. }
            | Self::ToolsChanged { .. }
            | Self::ClientToolRequest(_)
            | Self::ClientToolRegistered(_)
            | Self::ClientToolUnregistered(_)
            | Self::ClientToolExecuting(_)
            | Self::ClientToolCompleted { .. }
            | Self::ClientToolFailed { .. }
            | Self::SessionStateChanged { .. }
            | Self::GardenRegion(_)
            | Self::GardenTrouble(_)
            | Self::GardenPosition(_) => None,
        }
    }

    /// Returns the index of the event's topic in [`Self::TOPICS`].
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
            Self::StreamStarted { .. } => 12,
            Self::StreamEnded { .. } => 13,
            Self::GardenTransport(_) => 14,
            Self::GardenRegion(_) => 15,
            Self::GardenTrouble(_) => 16,
            Self::GardenPosition(_) => 17,
        }
    }
}

/// An event with its position in the sequence of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SequencedEvent {
    /// Changes with each start of the daemon.
    pub epoch: u64,
    /// Counts all events from 1, without gaps.
    pub seq: u64,
    /// Counts the events of this topic from 1, without gaps.
    pub topic_seq: u64,
    /// When it happened, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The event.
    pub event: Event,
}

/// A lossless chunk of a stream, or a piece of one, as it is published live. It is no event: it is
/// not kept, and no cursor finds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum StreamData {
    /// A chunk or piece.
    #[serde(rename = "stream.data")]
    Chunk {
        /// The id of the stream.
        stream_id: StreamId,
        /// Partial audio, MIDI or content.
        chunk: StreamChunk,
    },
}

impl StreamData {
    /// The beginning of the topics they are published on; the id of the stream follows.
    pub const TOPIC_PREFIX: &'static str = "stream.data.";
}

/// A chunk of a stream with its position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SequencedData {
    /// Changes with each start of the daemon.
    pub epoch: u64,
    /// The number of the last event before it.
    pub seq: u64,
    /// Counts what the stream published from 1, without gaps.
    pub topic_seq: u64,
    /// When it was made, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The chunk.
    pub event: StreamData,
}

/// The last number of each topic, published every few seconds on the topic `heads`, so that a
/// subscriber notices missed events, including the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heads {
    /// Changes with each start of the daemon.
    pub epoch: u64,
    /// The last number of all topics.
    pub seq: u64,
    /// When they were published, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The last number of each topic that has had events.
    pub topics: std::collections::BTreeMap<String, u64>,
}

impl Heads {
    /// The topic they are published on.
    pub const TOPIC: &'static str = "heads";
}
