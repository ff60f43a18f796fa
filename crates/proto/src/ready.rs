//! What a peer says of itself when it presents itself.

use serde::{Deserialize, Serialize};

/// The body of a Ready frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// `HOOT01`.
    pub protocol: String,
    /// The names of the tools the peer offers; none for a mere caller.
    #[serde(default)]
    pub tools: Vec<OfferedTool>,
    /// Whether replies may be RawBinary.
    #[serde(default)]
    pub accepts_binary: bool,
}

/// A tool that a peer offers: its name alone, or with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    },
}
