//! An MCP server at a URL.

use std::error::Error as _;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use ringback_mcp_wire::header;

use crate::Answer;

/// The largest message of a daemon to a client that is not confined.
pub(crate) const DAEMON_BYTES_MAX: usize = 64 * 1024 * 1024;

const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// A peer that vanished silently is noticed after about half a minute.
const KEEPALIVE: Duration = Duration::from_secs(15);

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// A server at a URL, and the headers of every request to it.
#[derive(Debug)]
pub struct Endpoint {
    http: Client<HttpConnector, Full<Bytes>>,
    uri: Uri,
    headers: HeaderMap,
    message_bytes_max: usize,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection: the server has not seen the request.
    #[error("{reason}")]
    Away {
        /// What failed.
        reason: String,
    },
    /// The connection ended: the server may have seen the request.
    #[error("{reason}")]
    Lost {
        /// What failed.
        reason: String,
    },
}

/// The headers of a request of the modern era, which repeat parts of its body.
#[derive(Debug, Clone, Copy)]
pub struct ModernHeaders<'a> {
    /// The protocol version, if the request has one.
    pub version: Option<&'a str>,
    /// The method.
    pub method: &'a str,
    /// The target of the request, if its method has one.
    pub name: Option<&'a str>,
}

impl Endpoint {
    /// A server whose messages have at most `message_bytes_max` bytes.
    #[must_use]
    pub fn new(uri: Uri, message_bytes_max: usize) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_WAIT));
        connector.set_keepalive(Some(KEEPALIVE));
        let both = HeaderValue::from_static("application/json, text/event-stream");
        let json = HeaderValue::from_static("application/json");
        Self {
            http: Client::builder(TokioExecutor::new()).build(connector),
            uri,
            headers: HeaderMap::from_iter([(ACCEPT, both), (CONTENT_TYPE, json)]),
            message_bytes_max,
        }
    }

    /// The tools of a daemon at the address of its HTTP listener.
    ///
    /// # Panics
    /// Never: an address with its port is the authority of a URL.
    #[must_use]
    pub fn of_daemon(address: SocketAddr) -> Self {
        let uri = format!("http://{address}/mcp").parse();
        Self::new(uri.expect("an address with its port is an authority"), DAEMON_BYTES_MAX)
    }

    /// With a token. A text that no header can carry is left out: the server refuses the requests.
    #[must_use]
    pub fn with_bearer(self, token: &str) -> Self {
        self.with_secret(AUTHORIZATION, &format!("Bearer {token}"))
    }

    /// With a secret in this header, as [`Self::with_bearer`].
    #[must_use]
    pub fn with_secret(mut self, name: HeaderName, secret: &str) -> Self {
        if let Ok(mut value) = HeaderValue::from_str(secret) {
            value.set_sensitive(true);
            self.headers.insert(name, value);
        }
        self
    }

    /// Sends a message of the modern era.
    ///
    /// # Errors
    /// Why there is no answer.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn post(
        &self,
        headers: &ModernHeaders<'_>,
        message: impl Into<Bytes>,
    ) -> Result<Answer, SendError> {
        self.send(Method::POST, headers.map(), message.into()).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, SendError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().extend(headers);
        match self.http.request(request).await {
            Ok(response) => Ok(Answer::new(response, self.message_bytes_max)),
            Err(error) => {
                let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                let is_away = error.is_connect();
                Err(if is_away { SendError::Away { reason } } else { SendError::Lost { reason } })
            }
        }
    }

    /// The host and port.
    pub(crate) fn address(&self) -> &str {
        self.uri.authority().map_or("", |authority| authority.as_str())
    }
}

impl ModernHeaders<'_> {
    fn map(&self) -> HeaderMap {
        let version = self.version.map(|version| (PROTOCOL_VERSION, value(version)));
        let name = self.name.map(|name| (NAME, value(name)));
        HeaderMap::from_iter([(METHOD, value(self.method))].into_iter().chain(version).chain(name))
    }
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(&header::encode(text)).expect("encoded text is visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a secret never appears in a log.
    #[test]
    fn credentials_are_not_shown() {
        let endpoint = Endpoint::of_daemon("[::1]:7180".parse().unwrap())
            .with_bearer("oub_secret")
            .with_secret(HeaderName::from_static("oubliette-api-key"), "oub_secret");
        assert_eq!(endpoint.headers.len(), 4);
        assert_eq!(endpoint.address(), "[::1]:7180");
        assert!(!format!("{endpoint:?}").contains("secret"));
        assert_eq!(endpoint.with_bearer("a\nb").headers.len(), 4);
    }

    #[test]
    fn names_that_no_header_can_carry_are_encoded() {
        let headers = ModernHeaders { version: None, method: "tools/call", name: Some("é") };
        let headers = headers.map();
        assert_eq!(headers.len(), 2);
        assert_eq!(headers[METHOD], "tools/call");
        assert_eq!(headers[NAME], "=?base64?w6k=?=");
    }
}
