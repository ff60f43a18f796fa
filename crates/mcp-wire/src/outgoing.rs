//! Results and notifications of a server, stamped as the era requires.

use std::collections::BTreeMap;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::elicitation::{self, Form};
use crate::fault::Fault;
use crate::id::Id;
use crate::meta::{LogLevel, keys};
use crate::request::ListenFilter;
use crate::version::{Era, Version};

/// The identity of a server.
#[derive(Debug, Clone, Serialize)]
pub struct Implementation {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Its version.
    pub version: String,
}

/// The fields that every result of an era carries.
#[derive(Debug, Clone, Copy)]
pub enum Stamp<'a> {
    /// Nothing: older clients refuse unknown fields.
    Legacy,
    /// That it is complete, and the server's identity.
    Modern(&'a Implementation),
}

/// The capabilities of a server of tools, in either era.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Capabilities {
    tools: ToolsCapability,
    logging: EmptyObject,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolsCapability {
    list_changed: bool,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
struct EmptyObject {}

/// The answer to `initialize`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult<'a> {
    /// The agreed version.
    pub protocol_version: Version,
    /// The capabilities of the server.
    pub capabilities: Capabilities,
    /// The identity of the server.
    pub server_info: &'a Implementation,
    /// How to use it.
    pub instructions: &'a str,
}

/// Whether a cached answer may be shared between callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// The same for all callers.
    Public,
    /// The caller's own.
    Private,
}

/// How long an answer stays valid.
#[derive(Debug, Clone, Copy)]
pub struct Cache {
    /// In milliseconds.
    pub ttl_ms: u64,
    /// The scope.
    pub scope: CacheScope,
}

/// The answer to `server/discover`.
#[derive(Debug)]
pub struct DiscoverResult<'a> {
    /// How to use the server.
    pub instructions: &'a str,
    /// How long this stays valid.
    pub cache: Cache,
}

/// A page of tools, each as its own JSON.
#[derive(Debug)]
pub struct ToolsPage<'a> {
    /// The tools.
    pub tools: Vec<&'a RawValue>,
    /// Where the next page starts.
    pub next_cursor: Option<String>,
    /// How long this stays valid; unknown to older eras.
    pub cache: Cache,
}

/// The result of a call.
#[derive(Debug)]
pub struct CallResult<'a> {
    /// The same information for readers of text.
    pub text: &'a str,
    /// The value itself.
    pub structured: Option<&'a RawValue>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Further data for programs.
    pub meta: Option<(&'static str, &'a RawValue)>,
}

/// A question in place of the result of a call: the call is to be repeated with the answer.
#[derive(Debug)]
pub struct InputRequired<'a> {
    /// The key of the answer.
    pub key: &'a str,
    /// The question.
    pub form: Form<'a>,
    /// The state that the next call returns.
    pub state: &'a str,
}

/// The end of a subscription.
#[derive(Debug)]
pub struct ListenEnd<'a> {
    /// The request that opened it.
    pub id: &'a Id,
}

/// A notification from the server.
#[derive(Debug)]
pub enum ServerNotification<'a> {
    /// The progress of a request.
    Progress {
        /// The client's token for it.
        token: &'a Id,
        /// 0 to 100.
        percent: f64,
        /// What is being done.
        message: &'a str,
    },
    /// A log message.
    Log {
        /// Its severity.
        level: LogLevel,
        /// Its source.
        logger: &'a str,
        /// Its content.
        data: &'a RawValue,
    },
    /// The tool list has changed.
    ToolsListChanged {
        /// The subscription it belongs to, in the modern era.
        subscription: Option<&'a Id>,
    },
    /// A request of ours no longer needs an answer.
    Cancelled {
        /// The request.
        id: &'a Id,
        /// Why.
        reason: &'a str,
    },
    /// A subscription is open.
    ListenAcknowledged {
        /// The request that opened it.
        id: &'a Id,
        /// The changes it will announce.
        filter: ListenFilter,
    },
}

impl Default for ToolsCapability {
    fn default() -> Self {
        Self { list_changed: true }
    }
}

impl Stamp<'_> {
    /// Its era.
    #[must_use]
    pub const fn era(&self) -> Era {
        match self {
            Self::Legacy => Era::Legacy,
            Self::Modern(_) => Era::Modern,
        }
    }
}

/// A result that is written with a stamp.
pub trait Answer {
    /// Writes the fields of the result.
    ///
    /// # Errors
    /// When the writer fails.
    fn write<M: serde::ser::SerializeMap>(&self, map: &mut M, era: Era) -> Result<(), M::Error>;

    /// The kind of result.
    fn kind(&self) -> &'static str {
        "complete"
    }

    /// The contents of `_meta` besides the stamp.
    fn meta(&self) -> Option<(&'static str, &RawValue)> {
        None
    }

    /// The subscription whose end it is.
    fn subscription(&self) -> Option<&Id> {
        None
    }
}

/// An answer to a request, as JSON on one line.
///
/// # Panics
/// Never: the input is JSON or plain data.
#[must_use]
pub fn answer(id: &Id, answer: &impl Answer, stamp: Stamp<'_>) -> String {
    result(id, &StampedAnswer { answer, stamp })
}

/// An answer to a request whose result is already JSON.
///
/// # Panics
/// Never: the input is JSON or plain data.
#[must_use]
pub fn result(id: &Id, result: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Response<'a, R> {
        jsonrpc: &'static str,
        id: &'a Id,
        result: &'a R,
    }
    json(&Response { jsonrpc: "2.0", id, result })
}

/// An error in answer to a request, or to something that could not be read.
///
/// # Panics
/// Never: the input is JSON or plain data.
#[must_use]
pub fn error(id: Option<&Id>, fault: &Fault) -> String {
    #[derive(Serialize)]
    struct Response<'a> {
        jsonrpc: &'static str,
        id: Option<&'a Id>,
        error: Body<'a>,
    }
    #[derive(Serialize)]
    struct Body<'a> {
        code: i32,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a RawValue>,
    }
    let Fault { code, message, data } = fault;
    let error = Body { code: code.number(), message, data: data.as_deref() };
    json(&Response { jsonrpc: "2.0", id, error })
}

/// A request of ours, as JSON on one line.
///
/// # Panics
/// Never: the input is JSON or plain data.
#[must_use]
pub fn request(id: &Id, method: &str, params: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Request<'a, P> {
        jsonrpc: &'static str,
        id: &'a Id,
        method: &'a str,
        params: &'a P,
    }
    json(&Request { jsonrpc: "2.0", id, method, params })
}

/// A notification, as JSON on one line.
///
/// # Panics
/// Never: the input is JSON or plain data.
#[must_use]
pub fn notification(told: &ServerNotification<'_>) -> String {
    #[derive(Serialize)]
    struct Notification<'a> {
        jsonrpc: &'static str,
        method: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a ServerNotification<'a>>,
    }
    let method = match told {
        ServerNotification::Progress { .. } => "notifications/progress",
        ServerNotification::Log { .. } => "notifications/message",
        ServerNotification::ToolsListChanged { .. } => "notifications/tools/list_changed",
        ServerNotification::Cancelled { .. } => "notifications/cancelled",
        ServerNotification::ListenAcknowledged { .. } => "notifications/subscriptions/acknowledged",
    };
    let params = match told {
        ServerNotification::ToolsListChanged { subscription: None } => None,
        ServerNotification::ToolsListChanged { subscription: Some(_) }
        | ServerNotification::Progress { .. }
        | ServerNotification::Log { .. }
        | ServerNotification::Cancelled { .. }
        | ServerNotification::ListenAcknowledged { .. } => Some(told),
    };
    json(&Notification { jsonrpc: "2.0", method, params })
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("JSON and plain data can be written")
}

struct StampedAnswer<'a, A> {
    answer: &'a A,
    stamp: Stamp<'a>,
}

impl<A: Answer> Serialize for StampedAnswer<'_, A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if matches!(self.stamp, Stamp::Modern(_)) {
            map.serialize_entry("resultType", self.answer.kind())?;
        }
        self.answer.write(&mut map, self.stamp.era())?;
        let meta = ResultMeta { stamp: self.stamp, answer: self.answer };
        if !meta.is_empty() {
            map.serialize_entry("_meta", &meta)?;
        }
        map.end()
    }
}

struct ResultMeta<'a, A> {
    stamp: Stamp<'a>,
    answer: &'a A,
}

impl<A: Answer> ResultMeta<'_, A> {
    fn is_empty(&self) -> bool {
        matches!(self.stamp, Stamp::Legacy) && self.answer.meta().is_none()
    }
}

impl<A: Answer> Serialize for ResultMeta<'_, A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some((name, value)) = self.answer.meta() {
            map.serialize_entry(name, value)?;
        }
        if let Some(id) = self.answer.subscription() {
            map.serialize_entry(keys::SUBSCRIPTION_ID, id)?;
        }
        if let Stamp::Modern(server) = self.stamp {
            map.serialize_entry(keys::SERVER_INFO, server)?;
        }
        map.end()
    }
}

impl Cache {
    fn write<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("ttlMs", &self.ttl_ms)?;
        map.serialize_entry("cacheScope", &self.scope)
    }
}

impl Answer for DiscoverResult<'_> {
    fn write<M: serde::ser::SerializeMap>(&self, map: &mut M, _: Era) -> Result<(), M::Error> {
        map.serialize_entry("supportedVersions", &Version::ALL)?;
        map.serialize_entry("capabilities", &Capabilities::default())?;
        map.serialize_entry("instructions", self.instructions)?;
        self.cache.write(map)
    }
}

impl Answer for ToolsPage<'_> {
    fn write<M: serde::ser::SerializeMap>(&self, map: &mut M, era: Era) -> Result<(), M::Error> {
        map.serialize_entry("tools", &self.tools)?;
        if let Some(cursor) = &self.next_cursor {
            map.serialize_entry("nextCursor", cursor)?;
        }
        match era {
            Era::Legacy => Ok(()),
            Era::Modern => self.cache.write(map),
        }
    }
}

impl Answer for CallResult<'_> {
    fn write<M: serde::ser::SerializeMap>(&self, map: &mut M, era: Era) -> Result<(), M::Error> {
        #[derive(Serialize)]
        struct TextContent<'a> {
            r#type: &'static str,
            text: &'a str,
        }
        map.serialize_entry("content", &[TextContent { r#type: "text", text: self.text }])?;
        // Before 2026-07-28 it is an object or absent.
        let fits = |raw: &&RawValue| era == Era::Modern || raw.get().starts_with('{');
        if let Some(structured) = self.structured.filter(fits) {
            map.serialize_entry("structuredContent", structured)?;
        }
        if self.is_error {
            map.serialize_entry("isError", &true)?;
        }
        Ok(())
    }

    fn meta(&self) -> Option<(&'static str, &RawValue)> {
        self.meta
    }
}

impl Answer for InputRequired<'_> {
    fn write<M: serde::ser::SerializeMap>(&self, map: &mut M, _: Era) -> Result<(), M::Error> {
        #[derive(Serialize)]
        struct InputRequest<'a> {
            method: &'static str,
            params: &'a Form<'a>,
        }
        let asked = InputRequest { method: elicitation::METHOD, params: &self.form };
        map.serialize_entry("inputRequests", &BTreeMap::from([(self.key, asked)]))?;
        map.serialize_entry("requestState", self.state)
    }

    fn kind(&self) -> &'static str {
        "input_required"
    }
}

impl Answer for ListenEnd<'_> {
    fn write<M: serde::ser::SerializeMap>(&self, _: &mut M, _: Era) -> Result<(), M::Error> {
        Ok(())
    }

    fn subscription(&self) -> Option<&Id> {
        Some(self.id)
    }
}

impl Serialize for ServerNotification<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Progress { token, percent, message } => {
                map.serialize_entry(keys::PROGRESS_TOKEN, token)?;
                map.serialize_entry("progress", percent)?;
                map.serialize_entry("total", &100)?;
                if !message.is_empty() {
                    map.serialize_entry("message", message)?;
                }
            }
            Self::Log { level, logger, data } => {
                map.serialize_entry("level", level)?;
                map.serialize_entry("logger", logger)?;
                map.serialize_entry("data", data)?;
            }
            Self::ToolsListChanged { subscription: None } => {}
            Self::ToolsListChanged { subscription: Some(id) } => {
                map.serialize_entry("_meta", &Subscription { id })?;
            }
            Self::Cancelled { id, reason } => {
                map.serialize_entry("requestId", id)?;
                map.serialize_entry("reason", reason)?;
            }
            Self::ListenAcknowledged { id, filter } => {
                map.serialize_entry("notifications", filter)?;
                map.serialize_entry("_meta", &Subscription { id })?;
            }
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Subscription<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    id: &'a Id,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Implementation {
        Implementation { name: "r".to_owned(), title: "R".to_owned(), version: "1".to_owned() }
    }

    #[test]
    fn a_modern_result_is_stamped_and_a_legacy_one_is_not() {
        let structured = RawValue::from_string("[12345678901234567890]".to_owned()).unwrap();
        let result =
            CallResult { text: "t", structured: Some(&structured), is_error: false, meta: None };
        let legacy = answer(&Id::from(7), &result, Stamp::Legacy);
        assert_eq!(
            legacy,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"t"}]}}"#
        );
        let modern = answer(&Id::from(7), &result, Stamp::Modern(&server()));
        assert_eq!(
            modern,
            concat!(
                r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","#,
                r#""content":[{"type":"text","text":"t"}],"structuredContent":[12345678901234567890],"#,
                r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"r","title":"R","version":"1"}}}}"#
            )
        );
    }

    #[test]
    fn notifications_name_what_they_belong_to() {
        let id = Id::Text("a".into());
        let changed =
            notification(&ServerNotification::ToolsListChanged { subscription: Some(&id) });
        assert_eq!(
            changed,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}}}"#
        );
        let told =
            ServerNotification::Progress { token: &Id::from(3), percent: 50.0, message: "half" };
        assert_eq!(
            notification(&told),
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":50.0,"total":100,"message":"half"}}"#
        );
    }
}
