//! JSON-RPC errors, and the HTTP status of each.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::version::{Era, Version};

/// The code of a JSON-RPC error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Not JSON.
    Parse,
    /// JSON, but not a message.
    InvalidRequest,
    /// Unknown method.
    MethodNotFound,
    /// Invalid parameters.
    InvalidParams,
    /// An internal error.
    Internal,
    /// The headers of a request do not match its body.
    HeaderMismatch,
    /// The client did not declare a capability that the request needs.
    MissingCapability,
    /// An unsupported version.
    UnsupportedVersion,
}

/// A JSON-RPC error.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Its code.
    pub code: Code,
    /// What happened, and what to do.
    pub message: String,
    /// More fields, for programs.
    pub data: Option<Box<RawValue>>,
}

impl Code {
    /// The code on the wire.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::HeaderMismatch => -32020,
            Self::MissingCapability => -32021,
            Self::UnsupportedVersion => -32022,
        }
    }

    /// The HTTP status of an answer with it. In the legacy era every answer has a success status,
    /// whatever it says.
    #[must_use]
    pub const fn http_status(self, era: Era) -> u16 {
        match (self, era) {
            (Self::Parse | Self::InvalidRequest, _)
            | (
                Self::InvalidParams
                | Self::HeaderMismatch
                | Self::MissingCapability
                | Self::UnsupportedVersion,
                Era::Modern,
            ) => 400,
            (Self::MethodNotFound, Era::Modern) => 404,
            (Self::Internal, Era::Modern) => 500,
            (
                Self::MethodNotFound
                | Self::InvalidParams
                | Self::Internal
                | Self::HeaderMismatch
                | Self::MissingCapability
                | Self::UnsupportedVersion,
                Era::Legacy,
            ) => 200,
        }
    }
}

impl Fault {
    /// Creates an error without data.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds data to an error.
    ///
    /// # Panics
    /// If the data cannot be serialized as JSON, which no plain struct does.
    #[must_use]
    pub fn with_data(mut self, data: &impl Serialize) -> Self {
        let raw = serde_json::value::to_raw_value(data).expect("plain data can be written");
        self.data = Some(raw);
        self
    }

    /// Invalid parameters.
    #[must_use]
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidParams, message)
    }

    /// Unknown method.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        let method: String = method.chars().take(100).collect();
        Self::new(Code::MethodNotFound, format!("unknown method `{method}`"))
    }

    /// A version that is not supported per request.
    #[must_use]
    pub fn unsupported_version(requested: &str) -> Self {
        #[derive(Serialize)]
        struct Data<'a> {
            supported: [Version; 1],
            requested: &'a str,
        }
        let message =
            "this protocol version is not supported; `data.supported` lists those that are";
        Self::new(Code::UnsupportedVersion, message)
            .with_data(&Data { supported: [Version::V2026_07_28], requested })
    }
}
