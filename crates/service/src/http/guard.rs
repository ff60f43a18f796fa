//! Which requests may pass: `Host`, `Origin` and the announced size of the body.
//!
//! A browser sends both headers truthfully and a page cannot forge them, so checking them keeps
//! strangers' pages out: the `Host` list stops names rebound to this machine, the `Origin` list
//! stops requests across sites. Programs outside browsers need a token anyway and send no `Origin`.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, Version, header};

use super::refusal::Refusal;
use super::{HttpConfig, LargerBodies};

/// The lists of one listener, lower case.
#[derive(Debug)]
pub(super) struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
    max_body_bytes: u64,
    larger_bodies: Vec<LargerBodies>,
}

impl Guard {
    pub(super) fn new(config: &HttpConfig) -> Self {
        let lower = |list: &[String]| list.iter().map(|item| item.to_ascii_lowercase()).collect();
        Self {
            hosts: lower(&config.hosts),
            origins: lower(&config.origins),
            max_body_bytes: config.max_body_bytes as u64,
            larger_bodies: config.larger_bodies.clone(),
        }
    }

    /// Whether a request of this site may come in at all: its `Host`, and the `Origin` of its page
    /// if it has one, which is given back.
    pub(super) fn admit<B>(&self, request: &Request<B>) -> Result<Option<HeaderValue>, Refusal> {
        self.check_host(request)?;
        self.check_origin(request.headers()).map(Option::<&_>::cloned)
    }

    /// How large its body may be, unless it says itself that it is larger.
    pub(super) fn admit_body<B>(&self, request: &Request<B>) -> Result<u64, Refusal> {
        let path = request.uri().path();
        let is_below = |larger: &&LargerBodies| {
            path.strip_prefix(larger.path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let larger = self.larger_bodies.iter().find(is_below);
        let max_bytes = larger.map_or(self.max_body_bytes, |larger| larger.max_bytes);
        let length =
            request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let announced = length.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        if announced > max_bytes { Err(Refusal::TooLarge) } else { Ok(max_bytes) }
    }

    fn check_host<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        let from_header =
            match only(request.headers(), &header::HOST).map_err(|()| Refusal::BadHost)? {
                Some(value) => Some(parse_authority(value).ok_or(Refusal::BadHost)?),
                None => None,
            };
        let from_target = request.uri().authority().cloned();
        if from_header.is_none() && from_target.is_none() {
            // HTTP/1.0 knows no Host, and no browser speaks it.
            return if request.version() == Version::HTTP_10 {
                Ok(())
            } else {
                Err(Refusal::BadHost)
            };
        }
        let known = |authority: &Authority| self.knows_host(authority);
        if from_header.iter().chain(&from_target).all(known) {
            return Ok(());
        }
        Err(Refusal::ForeignHost)
    }

    fn knows_host(&self, authority: &Authority) -> bool {
        let name = authority.host().to_ascii_lowercase();
        let with_port = authority.as_str().to_ascii_lowercase();
        is_loopback_name(&name) || self.hosts.iter().any(|host| *host == name || *host == with_port)
    }

    fn check_origin<'h>(&self, headers: &'h HeaderMap) -> Result<Option<&'h HeaderValue>, Refusal> {
        let Some(value) = only(headers, &header::ORIGIN).map_err(|()| Refusal::ForeignOrigin)?
        else {
            return Ok(None);
        };
        let origin = value.to_str().unwrap_or_default().to_ascii_lowercase();
        if self.origins.contains(&origin) || is_loopback_origin(&origin) {
            return Ok(Some(value));
        }
        Err(Refusal::ForeignOrigin)
    }
}

/// The only value of a header, `None` if it is absent, an error if there are several.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() { Err(()) } else { Ok(first) }
}

fn parse_authority(value: &HeaderValue) -> Option<Authority> {
    let authority: Authority = value.to_str().ok()?.parse().ok()?;
    // A user name has no place in a Host; `localhost@evil` must not be read as either.
    (!authority.as_str().contains('@')).then_some(authority)
}

fn is_loopback_name(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn is_loopback_origin(origin: &str) -> bool {
    let Ok(uri) = origin.parse::<Uri>() else { return false };
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
    is_web && authority.is_some_and(|authority| is_loopback_name(authority.host()))
}

#[cfg(test)]
mod tests {
    use axum::http::{Request, Version};

    use super::Guard;
    use crate::http::refusal::Refusal::{self, BadHost, ForeignHost, ForeignOrigin, TooLarge};
    use crate::http::{HttpConfig, LargerBodies};

    fn guard() -> Guard {
        Guard::new(&HttpConfig {
            hosts: vec!["Ring.example".to_owned(), "other.example:8443".to_owned()],
            origins: vec!["https://app.example".to_owned()],
            max_body_bytes: 10,
            larger_bodies: vec![LargerBodies { path: "/v1/blobs", max_bytes: 1000 }],
            ..HttpConfig::default()
        })
    }

    fn check(headers: &[(&str, &str)], expected: Result<(), Refusal>) {
        let mut request = Request::builder().uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let admitted = guard().admit(&request.body(()).unwrap());
        assert_eq!(admitted.map(|_| ()), expected, "{headers:?}");
    }

    /// Rule: a name that was rebound to this machine is not served.
    #[test]
    fn only_loopback_names_and_configured_hosts_are_served() {
        for host in ["localhost", "LOCALHOST:7180", "127.0.0.1:1", "127.1.2.3", "[::1]:7180"] {
            check(&[("host", host)], Ok(()));
        }
        for host in ["ring.example", "RING.example:443", "other.example:8443"] {
            check(&[("host", host)], Ok(()));
        }
        for host in
            ["evil.example", "other.example", "localhost.evil.example", "10.0.0.1", "a.localhost"]
        {
            check(&[("host", host)], Err(ForeignHost));
        }
    }

    #[test]
    fn a_missing_doubled_or_strange_host_is_refused() {
        check(&[], Err(BadHost));
        check(&[("host", "localhost"), ("host", "evil.example")], Err(BadHost));
        for host in ["", "a b", "localhost@evil.example", "evil.example@localhost", "localhost/x"] {
            check(&[("host", host)], Err(BadHost));
        }
    }

    #[test]
    fn a_target_with_a_foreign_name_is_refused_even_beside_a_good_host() {
        let request = Request::builder().uri("http://evil.example/").header("host", "localhost");
        assert_eq!(guard().admit(&request.body(()).unwrap()), Err(ForeignHost));
    }

    #[test]
    fn http_1_0_may_come_without_a_host() {
        let request = Request::builder().version(Version::HTTP_10).uri("/").body(()).unwrap();
        assert_eq!(guard().admit(&request), Ok(None));
    }

    /// Rule: a page of another site cannot make a browser call this daemon.
    #[test]
    fn only_loopback_and_configured_origins_may_send() {
        let with = |origin, expected| check(&[("host", "localhost"), ("origin", origin)], expected);
        for origin in
            ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1", "https://APP.example"]
        {
            with(origin, Ok(()));
        }
        for origin in [
            "null",
            "",
            "https://evil.example",
            "http://app.example",
            "https://app.example:444",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "ftp://localhost",
            "localhost",
        ] {
            with(origin, Err(ForeignOrigin));
        }
    }

    #[test]
    fn two_origins_are_refused() {
        let headers =
            [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://x")];
        check(&headers, Err(ForeignOrigin));
    }

    #[test]
    fn a_body_that_announces_too_much_is_refused_unread() {
        let limit = |path: &str, length: &str| {
            let request = Request::builder().uri(path).header("content-length", length);
            guard().admit_body(&request.body(()).unwrap())
        };
        assert_eq!((limit("/", "10"), limit("/", "11")), (Ok(10), Err(TooLarge)));
        for path in ["/v1/blobs", "/v1/blobs/ab?x=1"] {
            assert_eq!((limit(path, "1000"), limit(path, "1001")), (Ok(1000), Err(TooLarge)));
        }
        assert_eq!(limit("/v1/blobsy", "11"), Err(TooLarge));
    }
}
