//! The address of a model, and the address that a request maps to.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use hyper::Uri;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use percent_encoding::percent_decode_str;

/// The query parameter that carries a credential.
const KEY_PARAMETER: &[u8] = b"key";

/// The URL that request paths are appended to: `https://api.example` or `http://127.0.0.1:8000/v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    scheme: Scheme,
    authority: Authority,
    /// Without a trailing slash.
    path: String,
}

/// Text that is not such a URL. It is not repeated: people paste credentials into URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected `http://HOST` or `https://HOST`, optionally with a port and a path, but without a \
     user, a query or a fragment"
)]
pub struct UrlError;

/// A path that could leave the configured one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadPath;

impl FromStr for BaseUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if text.contains(['#', '?', '@']) {
            return Err(UrlError);
        }
        let parts = text.parse::<Uri>().map_err(|_| UrlError)?.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(UrlError);
        };
        if (scheme != Scheme::HTTP && scheme != Scheme::HTTPS) || authority.host().is_empty() {
            return Err(UrlError);
        }
        let path = parts.path_and_query.as_ref().map_or("", PathAndQuery::path);
        Ok(Self { scheme, authority, path: path.trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

impl BaseUrl {
    /// Whether traffic to it could be read on the way.
    #[must_use]
    pub fn is_in_the_clear(&self) -> bool {
        let host = self.authority.host();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let is_here = host.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.is_loopback());
        self.scheme == Scheme::HTTP && !is_here
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The provider's URL for a request: path and query appended, without a key.
    pub(crate) fn join(&self, asked: &Uri) -> Result<Uri, BadPath> {
        let path = asked.path();
        if !path.starts_with('/') || has_dot_segment(path) {
            return Err(BadPath);
        }
        let mut whole = format!("{}{path}", self.path);
        let query = asked.query().map(without_key).filter(|query| !query.is_empty());
        if let Some(query) = query {
            whole.push('?');
            whole.push_str(&query);
        }
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(whole)
            .build()
            .map_err(|_| BadPath)
    }
}

/// Servers resolve dot segments, encoded or not, before they use a path.
fn has_dot_segment(path: &str) -> bool {
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(|segment| {
        let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
        matches!(name, b"." | b"..")
    })
}

fn without_key(query: &str) -> String {
    let is_key = |pair: &str| {
        let name = pair.split('=').next().unwrap_or_default();
        let name: Vec<u8> = percent_decode_str(name).collect();
        name.eq_ignore_ascii_case(KEY_PARAMETER)
    };
    query.split('&').filter(|pair| !is_key(pair)).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(base: &str, asked: &str) -> Option<String> {
        let base: BaseUrl = base.parse().unwrap();
        base.join(&asked.parse().unwrap()).ok().map(|uri| uri.to_string())
    }

    #[test]
    fn path_and_query_are_appended_whatever_host_was_asked_for() {
        for (base, asked, expected) in [
            ("https://a.example", "/v1/messages", "https://a.example/v1/messages"),
            ("https://a.example/", "/v1/messages?b=1", "https://a.example/v1/messages?b=1"),
            ("http://a.example:81/x/v1/", "/chat", "http://a.example:81/x/v1/chat"),
            ("https://a.example/x", "http://evil.example/y", "https://a.example/x/y"),
            ("https://a.example", "//evil.example/y", "https://a.example//evil.example/y"),
            ("https://a.example", "/m/g:run?alt=sse", "https://a.example/m/g:run?alt=sse"),
        ] {
            assert_eq!(joined(base, asked).as_deref(), Some(expected), "{base} {asked}");
        }
    }

    /// Rule: no credential of the agent reaches the provider.
    #[test]
    fn a_key_in_the_query_is_taken_out_however_it_is_spelled() {
        for (asked, expected) in [
            ("/m?key=mine", "https://a.example/m"),
            ("/m?alt=sse&key=mine&x=1", "https://a.example/m?alt=sse&x=1"),
            ("/m?%6bey=mine&KEY=mine&key&keys=3", "https://a.example/m?keys=3"),
        ] {
            assert_eq!(joined("https://a.example", asked).as_deref(), Some(expected), "{asked}");
        }
    }

    /// Rule: a request goes to the provider of the proxy or nowhere.
    #[test]
    fn a_path_that_could_lead_out_of_the_configured_one_is_refused() {
        for asked in
            ["/../b", "/v1/..", "/%2e%2E/b", "/a/..%2fb", "/a/..%5cb", "/./b", "/..;x/b", "*"]
        {
            assert_eq!(joined("https://a.example/a", asked), None, "{asked}");
        }
        assert!(joined("https://a.example/a", "/b..c/...").is_some());
    }

    #[test]
    fn what_is_no_url_of_a_model_is_refused_without_repeating_it() {
        for wrong in [
            "",
            "a.example",
            "/v1",
            "ftp://a.example",
            "https://",
            "https://me:secret@a.example",
            "https://a.example?key=secret",
            "https://a.example/#x",
        ] {
            let error = wrong.parse::<BaseUrl>().unwrap_err();
            assert!(!error.to_string().contains("secret"), "{wrong}");
        }
    }

    #[test]
    fn only_plain_http_beyond_this_machine_is_in_the_clear() {
        for (url, expected) in [
            ("https://a.example", false),
            ("http://127.0.0.1:8000", false),
            ("http://[::1]:8000", false),
            ("http://localhost:8000", false),
            ("http://localhost.evil.example", true),
            ("http://10.0.0.1", true),
        ] {
            assert_eq!(url.parse::<BaseUrl>().unwrap().is_in_the_clear(), expected, "{url}");
        }
    }
}
