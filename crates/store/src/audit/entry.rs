//! What a line says.

use std::borrow::Cow;

use ringback_proto::Certainty;
use ringback_proto::ids::{CallId, SessionId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::UnixMs;
use serde::{Deserialize, Serialize};

/// One call, once it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When it ended.
    pub at_ms: UnixMs,
    /// Which call.
    pub call: CallId,
    /// Who called.
    #[serde(with = "as_text")]
    pub principal: PrincipalId,
    /// For which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Which tool.
    pub tool: String,
    /// Through which edge.
    pub edge: Cow<'static, str>,
    /// `success`, `job_started`, `ack`, or the code of the error.
    pub outcome: Cow<'static, str>,
    /// Whether it ran, for an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// How long it took.
    pub duration_us: u64,
    /// What passed through a door of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Passed>,
}

/// How much passed, without a word of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Bytes that left the sandbox.
    pub up: u64,
    /// Bytes that came back.
    pub down: u64,
}

/// A line of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A call.
    Call(Entry),
    /// Lines that are missing here, because the disk was too slow or failed.
    Dropped {
        /// The time of the line before.
        at_ms: UnixMs,
        /// How many.
        count: u64,
    },
}

mod as_text {
    use ringback_proto::principal::PrincipalId;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(id: &PrincipalId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PrincipalId, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}
