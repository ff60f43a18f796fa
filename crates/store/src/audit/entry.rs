//! The content of audit lines.

use std::borrow::Cow;
use std::sync::Arc;

use ringback_proto::Certainty;
use ringback_proto::ids::{CallId, SessionId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::UnixMs;
use serde::{Deserialize, Serialize};

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When it ended.
    pub at_ms: UnixMs,
    /// The id of the call.
    pub call: CallId,
    /// The principal that called.
    #[serde(with = "as_text")]
    pub principal: PrincipalId,
    /// The session it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The tool.
    pub tool: Arc<str>,
    /// The edge it came in on.
    pub edge: Cow<'static, str>,
    /// `success`, `job_started`, `ack`, or the error code.
    pub outcome: Cow<'static, str>,
    /// Whether the tool ran, for an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// How long it took.
    pub duration_us: u64,
    /// The bytes that passed through a proxy of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Traffic>,
}

/// An amount of traffic, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Bytes that left the sandbox.
    pub up: u64,
    /// Bytes that came into the sandbox.
    pub down: u64,
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A call.
    Call(Entry),
    /// Lines that are missing here because the disk was too slow or failed.
    Dropped {
        /// The time of the previous line.
        at_ms: UnixMs,
        /// The number of missing lines.
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
