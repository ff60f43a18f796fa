//! `_meta`: the metadata of a request.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::id::Id;
use crate::object::Object;

/// Names in `_meta`.
pub mod keys {
    /// The protocol version of a modern request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The capabilities of the client of a modern request.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The log level that a modern request wants.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The server.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The subscription that a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The token for progress.
    pub const PROGRESS_TOKEN: &str = "progressToken";
}

/// The `_meta` of a request.
#[derive(Debug, Default)]
pub struct Meta<'a>(Object<'a>);

/// The severity of a log message, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For debugging.
    Debug,
    /// Worth knowing.
    Info,
    /// Normal, but significant.
    Notice,
    /// Something is wrong.
    Warning,
    /// Something failed.
    Error,
    /// A component fails.
    Critical,
    /// Immediate action is needed.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// Reads a level; `None` if it is unknown.
    #[must_use]
    pub fn from_raw(raw: &RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }
}

impl<'a> Meta<'a> {
    pub(crate) fn of(params: &Object<'a>) -> Result<Self, Fault> {
        match params.get("_meta") {
            None => Ok(Self::default()),
            Some(raw) => Object::of(raw).map(Self).map_err(|error| {
                Fault::invalid_params(format!("`_meta` must be an object: {error}"))
            }),
        }
    }

    /// The protocol version of a modern request.
    #[must_use]
    pub fn protocol_version(&self) -> Option<Cow<'a, str>> {
        self.0.text(keys::PROTOCOL_VERSION)
    }

    /// The capabilities of the client of a modern request.
    #[must_use]
    pub fn client_capabilities(&self) -> Option<Object<'a>> {
        self.0.get(keys::CLIENT_CAPABILITIES).and_then(|raw| Object::of(raw).ok())
    }

    /// The log level that a modern request wants.
    ///
    /// # Errors
    /// When the level is unknown.
    pub fn log_level(&self) -> Result<Option<LogLevel>, Fault> {
        let Some(raw) = self.0.get(keys::LOG_LEVEL) else { return Ok(None) };
        LogLevel::from_raw(raw).map(Some).ok_or_else(|| Fault::invalid_params("no such log level"))
    }

    /// The token for progress, if the client wants it reported.
    ///
    /// # Errors
    /// When it is neither a number nor a string.
    pub fn progress_token(&self) -> Result<Option<Id>, Fault> {
        let Some(raw) = self.0.get(keys::PROGRESS_TOKEN) else { return Ok(None) };
        Id::from_raw(raw)
            .map(Some)
            .ok_or_else(|| Fault::invalid_params("a progressToken must be a number or a string"))
    }
}
