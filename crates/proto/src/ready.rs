//! A peer's introduction.

use serde::{Deserialize, Serialize};

use crate::timing::ToolTiming;
use crate::value::Value;

/// The body of a Ready frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// `HOOT01`.
    pub protocol: String,
    /// The tools the peer offers; empty for a mere caller.
    #[serde(default)]
    pub tools: Vec<OfferedTool>,
    /// Whether replies may be RawBinary.
    #[serde(default)]
    pub accepts_binary: bool,
}

/// A tool that a peer offers: its name alone, or with a description.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OfferedTool {
    /// Its name.
    Name(String),
    /// Its name and a description.
    Described {
        /// Its name.
        name: String,
        /// What it does.
        #[serde(default)]
        description: String,
        /// The JSON Schema of its input; any object if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_schema: Option<Value>,
        /// Its timing class; short if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timing: Option<ToolTiming>,
        /// Whether running it twice is harmless: its calls may move to another worker.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        idempotent: bool,
        /// How long a call may take, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
}
