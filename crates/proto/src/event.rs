//! What happens, told to whoever listens. Events carry ids and states; never arguments, results or
//! secrets.

use serde::{Deserialize, Serialize};

use crate::chunk::StreamChunk;
use crate::ids::{ArtifactId, BlobHash, JobId, StreamId};
use crate::record::JobState;

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
}

impl Event {
    /// Every topic, in the order of the variants.
    pub const TOPICS: [&'static str; 4] =
        ["job.state_changed", "job.progress", "stream.chunk", "artifact.created"];

    /// The event's type, which is also its topic.
    #[must_use]
    pub const fn topic(&self) -> &'static str {
        Self::TOPICS[self.topic_index()]
    }

    /// The place of the event's topic in [`Self::TOPICS`].
    #[must_use]
    pub const fn topic_index(&self) -> usize {
        match self {
            Self::JobStateChanged { .. } => 0,
            Self::JobProgress { .. } => 1,
            Self::StreamChunk { .. } => 2,
            Self::ArtifactCreated { .. } => 3,
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
