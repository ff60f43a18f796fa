//! The error type at the broker's boundary. `message` and `context` may be shown to untrusted
//! peers; `source` is only for the log.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::principal::Level;

/// The kind of an error, as far as it affects what a client does. Append only: `code` is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The input is wrong; the same call fails again.
    Invalid,
    /// No valid token.
    Unauthenticated,
    /// A valid token that may not do this.
    Forbidden,
    /// It does not exist, or the caller may not see it.
    NotFound,
    /// The name or id is taken, or was used for something else.
    Conflict,
    /// Over a size limit.
    TooLarge,
    /// Too many calls in a period.
    RateLimited,
    /// A queue is full.
    Busy,
    /// The line that serves the tool dropped.
    Gone,
    /// The tool ran and failed.
    ToolFailed,
    /// The deadline passed.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// A fault of the daemon.
    Internal,
    /// The frame's content type is not one that this peer may send.
    UnsupportedContentType,
    /// The stored content is corrupt; storing the right bytes again repairs it.
    Damaged,
}

impl ErrorKind {
    /// Every kind, for tables and tests.
    pub const ALL: [Self; 15] = [
        Self::Invalid,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::Conflict,
        Self::TooLarge,
        Self::RateLimited,
        Self::Busy,
        Self::Gone,
        Self::ToolFailed,
        Self::Timeout,
        Self::Cancelled,
        Self::Internal,
        Self::UnsupportedContentType,
        Self::Damaged,
    ];

    /// Returns whether the same call may succeed later without being changed.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::RateLimited | Self::Busy | Self::Gone | Self::Timeout => true,
            Self::Invalid
            | Self::Unauthenticated
            | Self::Forbidden
            | Self::NotFound
            | Self::Conflict
            | Self::TooLarge
            | Self::ToolFailed
            | Self::Cancelled
            | Self::Internal
            | Self::UnsupportedContentType
            | Self::Damaged => false,
        }
    }

    /// Returns what is wrong with the token, if the error is about that. An edge has its own
    /// answers for these; the rest are errors of the call.
    #[must_use]
    pub const fn token_problem(self) -> Option<TokenProblem> {
        match self {
            Self::Unauthenticated => Some(TokenProblem::Invalid),
            Self::Forbidden => Some(TokenProblem::TooWeak),
            Self::Invalid
            | Self::NotFound
            | Self::Conflict
            | Self::TooLarge
            | Self::RateLimited
            | Self::Busy
            | Self::Gone
            | Self::ToolFailed
            | Self::Timeout
            | Self::Cancelled
            | Self::Internal
            | Self::UnsupportedContentType
            | Self::Damaged => None,
        }
    }

    /// Returns the HOOT01 category and code.
    #[must_use]
    pub const fn category_and_code(self) -> (Category, &'static str) {
        match self {
            Self::Invalid => (Category::Validation, "invalid_params"),
            Self::Unauthenticated => (Category::Permission, "unauthenticated"),
            Self::Forbidden => (Category::Permission, "permission_denied"),
            Self::NotFound => (Category::NotFound, "not_found"),
            Self::Conflict => (Category::Validation, "conflict"),
            Self::TooLarge => (Category::Validation, "too_large"),
            Self::RateLimited => (Category::Service, "rate_limited"),
            Self::Busy => (Category::Service, "busy"),
            Self::Gone => (Category::Service, "unavailable"),
            Self::ToolFailed => (Category::Service, "tool_failed"),
            Self::Timeout => (Category::Timeout, "timeout"),
            Self::Cancelled => (Category::Cancelled, "cancelled"),
            Self::Internal => (Category::Internal, "internal"),
            Self::UnsupportedContentType => (Category::Validation, "unsupported_content_type"),
            Self::Damaged => (Category::Internal, "damaged"),
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::TooLarge => "too_large",
            Self::RateLimited => "rate_limited",
            Self::Busy => "busy",
            Self::Gone => "gone",
            Self::ToolFailed => "tool_failed",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
            Self::UnsupportedContentType => "unsupported_content_type",
            Self::Damaged => "damaged",
        }
    }

    /// Returns the kind for a code, or `None` for a code of a newer peer.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.category_and_code().1 == code)
    }
}

/// What is wrong with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenProblem {
    /// There is no token, or it is not valid.
    Invalid,
    /// It may not do this.
    TooWeak,
}

/// The HOOT01 grouping of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// The request is wrong.
    Validation,
    /// The caller lacks permission.
    Permission,
    /// It does not exist.
    NotFound,
    /// The service cannot do it, or failed.
    Service,
    /// It took too long.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// A fault of the daemon.
    Internal,
}

/// Whether the tool ran, so that a caller knows if a retry is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// The tool did not run.
    NotStarted,
    /// The tool may or may not have run.
    MayHaveRun,
    /// The tool ran and failed.
    Ran,
}

/// Details of an error besides its message. All of them may be shown to untrusted peers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ErrorContext {
    /// The field that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The type of the missing resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
    /// The id of the missing resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    /// The service that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The operation that timed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The timeout that passed, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The scope or permission that the token lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The scope that would be enough, for an edge that names it in its own protocol. Not on the
    /// wire.
    #[serde(skip)]
    pub scope: Option<Level>,
    /// Why it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The id under which the daemon's log has the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_id: Option<String>,
}

/// The error of every operation of the broker.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    certainty: Certainty,
    message: String,
    context: Box<ErrorContext>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The result of every operation of the broker.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error for a call that has not started.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            certainty: Certainty::NotStarted,
            message: message.into(),
            context: Box::default(),
            source: None,
        }
    }

    /// Makes an error for invalid input.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Makes an error for an invalid field.
    #[must_use]
    pub fn invalid_field(field: &str, message: impl Into<String>) -> Self {
        let mut error = Self::invalid(message);
        error.context.field = Some(field.to_owned());
        error
    }

    /// Makes an error for a resource that does not exist or that the caller may not see.
    #[must_use]
    pub fn not_found(resource_type: &str, resource_id: impl fmt::Display) -> Self {
        let resource_id = resource_id.to_string();
        let mut error =
            Self::new(ErrorKind::NotFound, format!("no such {resource_type}: `{resource_id}`"));
        error.context.resource_type = Some(resource_type.to_owned());
        error.context.resource_id = Some(resource_id);
        error
    }

    /// Makes an error for a valid token that lacks permission.
    #[must_use]
    pub fn forbidden(action: &str, missing: impl Into<String>) -> Self {
        let missing = missing.into();
        let mut error = Self::new(ErrorKind::Forbidden, format!("{action} needs {missing}"));
        error.context.missing = Some(missing);
        error
    }

    /// Makes an error for a valid token whose scope is not enough.
    #[must_use]
    pub fn lacks_scope(action: &str, needed: Level, own: Level) -> Self {
        Self::forbidden(action, format!("a token with scope `{needed}`; yours has `{own}`"))
            .with_scope(needed)
    }

    /// Makes an error for a missed deadline.
    #[must_use]
    pub fn timeout(operation: &str, timeout_ms: u64) -> Self {
        let mut error = Self::new(
            ErrorKind::Timeout,
            format!("{operation} did not end within {timeout_ms} ms"),
        );
        error.context.operation = Some(operation.to_owned());
        error.context.timeout_ms = Some(timeout_ms);
        error
    }

    /// Makes an error for a cancelled call.
    #[must_use]
    pub fn cancelled(reason: &str) -> Self {
        let mut error = Self::new(ErrorKind::Cancelled, format!("cancelled: {reason}"));
        error.context.reason = Some(reason.to_owned());
        error
    }

    /// Makes an error for a full queue.
    #[must_use]
    pub fn busy(what: &str) -> Self {
        Self::new(ErrorKind::Busy, format!("{what} is at its limit; try again shortly"))
    }

    /// Makes an error for a fault of the daemon. The cause goes to the log under `log_id`; the
    /// caller only gets the id.
    #[must_use]
    pub fn internal(
        log_id: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let log_id = log_id.into();
        let mut error = Self::new(
            ErrorKind::Internal,
            format!("internal error in the daemon; see {log_id} in its log"),
        );
        error.context.log_id = Some(log_id);
        error.source = Some(Arc::from(source.into()));
        error
    }

    /// Sets whether the tool ran.
    #[must_use]
    pub const fn with_certainty(mut self, certainty: Certainty) -> Self {
        self.certainty = certainty;
        self
    }

    /// Sets the scope that would be enough.
    #[must_use]
    pub fn with_scope(mut self, scope: Level) -> Self {
        self.context.scope = Some(scope);
        self
    }

    /// Sets the cause, for the log.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Returns the kind of error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns whether the tool ran.
    #[must_use]
    pub const fn certainty(&self) -> Certainty {
        self.certainty
    }

    /// Returns whether the tool of this name does not exist, or the caller may not see it.
    #[must_use]
    pub fn is_unknown_tool(&self, tool: &str) -> bool {
        let ErrorContext { resource_type, resource_id, .. } = self.context();
        self.kind == ErrorKind::NotFound
            && resource_type.as_deref() == Some("tool")
            && resource_id.as_deref() == Some(tool)
    }

    /// Returns the message for the caller.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the message for a model, including whether it is safe to try again.
    #[must_use]
    pub fn told(&self) -> String {
        let ran = match self.certainty {
            Certainty::NotStarted => "nothing was done",
            Certainty::MayHaveRun => "it may have been done",
            Certainty::Ran => "it was done, and failed",
        };
        let again = if self.kind.is_retryable() { "; try again later" } else { "" };
        let (_, code) = self.kind.category_and_code();
        format!("{} ({code}: {ran}{again})", self.message)
    }

    /// Returns the details besides the message.
    #[must_use]
    pub const fn context(&self) -> &ErrorContext {
        &self.context
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

/// An error on the wire and in a stored job: the parts of [`Error`] that may be shown to untrusted
/// peers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    /// The category of the error.
    pub category: Category,
    /// The stable name of the kind of error.
    pub code: String,
    /// The message, for people.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Whether the tool ran.
    pub certainty: Certainty,
    /// Details besides the message.
    #[serde(flatten)]
    pub context: ErrorContext,
}

impl ToolError {
    /// Encodes it as MsgPack, for a job's record.
    ///
    /// # Panics
    /// Never: a struct of strings can always be encoded.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        rmp_serde::to_vec_named(self).expect("texts can be encoded").into()
    }

    /// Reads what [`Self::encode`] wrote; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        rmp_serde::from_slice(bytes).ok()
    }
}

impl From<&Error> for ToolError {
    fn from(error: &Error) -> Self {
        let (category, code) = error.kind.category_and_code();
        Self {
            category,
            code: code.to_owned(),
            message: error.message.clone(),
            retryable: error.kind.is_retryable(),
            certainty: error.certainty,
            context: (*error.context).clone(),
        }
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<ToolError> for Error {
    /// Keeps the message of a code that this build does not know, and treats it as a failure of the
    /// tool.
    fn from(wire: ToolError) -> Self {
        Self {
            kind: ErrorKind::from_code(&wire.code).unwrap_or(ErrorKind::ToolFailed),
            certainty: wire.certainty,
            message: wire.message,
            context: Box::new(wire.context),
            source: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_back_from_its_wire_form() {
        for kind in ErrorKind::ALL {
            let error = Error::new(kind, "text").with_certainty(Certainty::MayHaveRun);
            let bytes = rmp_serde::to_vec_named(&ToolError::from(&error)).unwrap();
            let back = Error::from(rmp_serde::from_slice::<ToolError>(&bytes).unwrap());
            assert_eq!(back.kind(), kind);
            assert_eq!(back.certainty(), Certainty::MayHaveRun);
            assert_eq!(back.message(), "text");
        }
    }

    /// Rule: the scope is for edges in this process; peers read it in `missing`.
    #[test]
    fn the_scope_of_an_error_is_not_on_the_wire() {
        let error = Error::lacks_scope("`x`", Level::Write, Level::Read);
        assert_eq!(error.message(), "`x` needs a token with scope `write`; yours has `read`");
        let wire = ToolError::from(&error);
        assert_eq!(wire.context.scope, Some(Level::Write), "it survives in this process");
        let read = ToolError::decode(&wire.encode()).unwrap();
        assert_eq!((read.context.scope, read.context.missing), (None, wire.context.missing));
    }

    #[test]
    fn the_cause_of_an_internal_error_stays_in_the_log() {
        let error = Error::internal("log_1", "disk /secret/path is full");
        let wire = rmp_serde::to_vec_named(&ToolError::from(&error)).unwrap();
        assert!(!String::from_utf8_lossy(&wire).contains("secret"));
        assert!(std::error::Error::source(&error).unwrap().to_string().contains("secret"));
    }
}
