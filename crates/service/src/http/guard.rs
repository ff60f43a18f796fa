//! Which requests may pass: `Host`, `Origin`, `Sec-Fetch-Site` and the announced size of the body.
//!
//! A browser sends these headers truthfully and a page cannot forge them, so checking them keeps
//! foreign pages out: the `Host` list stops names rebound to this machine, the `Origin` list stops
//! requests across sites, and `Sec-Fetch-Site` stops those without an `Origin`, such as those of an
//! `<img>`. Programs outside browsers need a token anyway and send neither of the two.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version, header};

use super::refusal::Refusal;
use super::{BodyLimit, HttpConfig};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The lists of one listener, in lower case.
#[derive(Debug)]
pub(super) struct Guard {
    /// What nearly every request has in its `Host`: recognized without being parsed.
    usual_hosts: [String; 3],
    hosts: Vec<String>,
    origins: Vec<String>,
    max_body_bytes: u64,
    larger_bodies: Vec<BodyLimit>,
    pages: Vec<&'static str>,
}

/// A name or address with its port, as in `Host` and `Origin`.
#[derive(Debug)]
struct Place {
    /// Lower case; an IPv6 address in its brackets.
    host: String,
    /// With the port, if it has one.
    whole: String,
}

impl Guard {
    pub(super) fn new(config: &HttpConfig, port: u16) -> Self {
        let lower = |list: &[String]| list.iter().map(|item| item.to_ascii_lowercase()).collect();
        let usual_hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        Self {
            usual_hosts,
            hosts: lower(&config.hosts),
            origins: lower(&config.origins),
            max_body_bytes: config.max_body_bytes as u64,
            larger_bodies: config.larger_bodies.clone(),
            pages: config.pages.clone(),
        }
    }

    /// Checks whether a request may come in: its `Host`, and the `Origin` of its page if it has
    /// one, which is returned.
    pub(super) fn admit<B>(&self, request: &Request<B>) -> Result<Option<HeaderValue>, Refusal> {
        let is_loopback = self.check_host(request)?;
        let origin = self.check_origin(request.headers())?;
        if origin.is_none() {
            self.check_site(request, is_loopback)?;
        }
        Ok(origin.cloned())
    }

    /// Checks a request without an `Origin` that a browser makes for a page of another site: an
    /// image, a frame, a link. Other sites may only open pages.
    fn check_site<B>(&self, request: &Request<B>, is_loopback: bool) -> Result<(), Refusal> {
        let headers = request.headers();
        let is = |name, value: &str| headers.get(name).is_some_and(|found| found == value);
        let Some(site) = only(headers, &SEC_FETCH_SITE).map_err(|()| Refusal::ForeignSite)? else {
            return Ok(());
        };
        let is_ours = site == "same-origin" || site == "none";
        // Another port of this machine, whose pages may send requests anyway. On other names it may
        // be another machine under the same name.
        let is_nearby = site == "same-site" && is_loopback;
        let is_opened = request.method() == Method::GET
            && self.pages.contains(&request.uri().path())
            && is(SEC_FETCH_MODE, "navigate")
            && is(SEC_FETCH_DEST, "document");
        if is_ours || is_nearby || is_opened { Ok(()) } else { Err(Refusal::ForeignSite) }
    }

    /// Returns how large its body may be, unless it announces a larger one.
    pub(super) fn admit_body<B>(&self, request: &Request<B>) -> Result<u64, Refusal> {
        let path = request.uri().path();
        let is_below = |larger: &&BodyLimit| {
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

    /// Checks the `Host`; returns whether it is a loopback name.
    fn check_host<B>(&self, request: &Request<B>) -> Result<bool, Refusal> {
        let place = |text: &str| Place::parse(text).ok_or(Refusal::BadHost);
        let value = only(request.headers(), &header::HOST).map_err(|()| Refusal::BadHost)?;
        let is_usual = |value: &HeaderValue| self.usual_hosts.iter().any(|host| value == host);
        if request.uri().authority().is_none() && value.is_some_and(is_usual) {
            return Ok(true);
        }
        let from_header = match value {
            Some(value) => Some(place(value.to_str().map_err(|_| Refusal::BadHost)?)?),
            None => None,
        };
        let from_target = request.uri().authority().map(|authority| place(authority.as_str()));
        let from_target = from_target.transpose()?;
        if from_header.is_none() && from_target.is_none() {
            // HTTP/1.0 has no Host, and no browser speaks it.
            return if request.version() == Version::HTTP_10 {
                Ok(false)
            } else {
                Err(Refusal::BadHost)
            };
        }
        let mut places = from_header.iter().chain(&from_target);
        if places.clone().all(|place| self.knows_host(place)) {
            return Ok(places.all(Place::is_loopback));
        }
        Err(Refusal::ForeignHost)
    }

    fn knows_host(&self, place: &Place) -> bool {
        place.is_loopback()
            || self.hosts.iter().any(|host| *host == place.host || *host == place.whole)
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

impl Place {
    /// A host, optionally with a port: `localhost@evil` is neither, nor is `[::1].evil`.
    fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        let host = authority.host();
        let port = authority.as_str().strip_prefix(host)?;
        let is_port = |port: &str| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
        };
        let is_whole = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        let is_host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']')?.parse::<Ipv6Addr>().is_ok(),
            None => !host.is_empty() && !host.contains(['[', ']', ':', '@']),
        };
        (is_host && is_whole).then(|| Self {
            host: host.to_ascii_lowercase(),
            whole: authority.as_str().to_ascii_lowercase(),
        })
    }

    fn is_loopback(&self) -> bool {
        let inner = self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match inner {
            Some(address) => address.parse().is_ok_and(|address: Ipv6Addr| address.is_loopback()),
            None => {
                let address = self.host.parse::<Ipv4Addr>();
                self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
            }
        }
    }
}

/// Exactly a scheme, a host and optionally a port, as browsers write an origin.
fn is_loopback_origin(origin: &str) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.and_then(Place::parse).is_some_and(|place| place.is_loopback())
}

#[cfg(test)]
mod tests {
    use axum::http::{Request, Version};

    use super::Guard;
    use crate::http::refusal::Refusal::{
        self, BadHost, ForeignHost, ForeignOrigin, ForeignSite, TooLarge,
    };
    use crate::http::{BodyLimit, HttpConfig};

    fn guard() -> Guard {
        Guard::new(
            &HttpConfig {
                hosts: vec!["Ring.example".to_owned(), "other.example:8443".to_owned()],
                origins: vec!["https://app.example".to_owned()],
                max_body_bytes: 10,
                larger_bodies: vec![BodyLimit { path: "/v1/blobs", max_bytes: 1000 }],
                pages: vec!["/", "/docs"],
                ..HttpConfig::default()
            },
            7180,
        )
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
        for host in [
            "",
            "a b",
            "localhost@evil.example",
            "evil.example@localhost",
            "localhost/x",
            "[::1].evil.example",
            "[::1]evil.example",
            "[127.0.0.1]",
            "[localhost]",
            "[::1",
            "::1",
            "localhost:",
            "localhost:x",
            "localhost:+1",
            "localhost:65536",
            ":7180",
        ] {
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
            "http://[::1].evil.example",
            "http://[::1]evil.example:80",
            "http://[::1].evil.example:80",
            "http://[::1]@evil.example",
            "http://user@localhost",
            "http://user:pass@127.0.0.1",
            "http://localhost:80@evil.example",
            "http://127.0.0.1.evil.example",
            "http://localhost/",
            "http://localhost/x",
            "http://localhost?x",
            "http://localhost#x",
            "http://localhost\\evil.example",
            "http://localhost:",
            "http://localhost:80:80",
            "http://localhost:x",
            "http://localhost:65536",
            "http://localhost.",
            "http://.localhost",
            "http://127.1",
            "http://0x7f000001",
            "http://2130706433",
            "http://[127.0.0.1]",
            "http://[localhost]",
            "http://[::1",
            "http://::1",
            "http://[::ffff:127.0.0.1]",
            "http://[fe80::1%25lo]",
            "http:localhost",
            "http:/localhost",
            "http:///localhost",
            "http://",
            "http://localhost http://localhost",
            "http://localhost, http://evil.example",
            "javascript://localhost",
            "file://localhost",
        ] {
            with(origin, Err(ForeignOrigin));
        }
    }

    fn fetch(
        line: (&str, &str),
        host: &str,
        headers: &[(&str, &str)],
        expected: Result<(), Refusal>,
    ) {
        let mut request = Request::builder().method(line.0).uri(line.1).header("host", host);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let admitted = guard().admit(&request.body(()).unwrap());
        assert_eq!(admitted.map(drop), expected, "{line:?} {host} {headers:?}");
    }

    /// Rule: a page of another site cannot reach anything but a page, not even without an `Origin`.
    #[test]
    fn a_request_for_a_page_of_another_site_is_refused_unless_it_opens_a_page() {
        let (site, mode, dest) = ("sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest");
        let image = [(site, "cross-site"), (mode, "no-cors"), (dest, "image")];
        let opened = [(site, "cross-site"), (mode, "navigate"), (dest, "document")];
        let framed = [(site, "cross-site"), (mode, "navigate"), (dest, "iframe")];
        for path in ["/client-tools/pending/notes", "/event?clientID=a", "/mcp", "/v1/tools"] {
            for headers in [&image[..], &opened, &framed, &image[..1], &[(site, "x")]] {
                fetch(("GET", path), "localhost", headers, Err(ForeignSite));
                fetch(("POST", path), "ring.example", headers, Err(ForeignSite));
            }
            fetch(("GET", path), "localhost", &[(site, "same-origin")], Ok(()));
            fetch(("GET", path), "ring.example", &[(site, "none")], Ok(()));
            fetch(("GET", path), "ring.example", &[], Ok(()));
            // Another port of this machine may; another machine under the same name may not.
            fetch(("GET", path), "localhost", &[(site, "same-site")], Ok(()));
            fetch(("GET", path), "ring.example", &[(site, "same-site")], Err(ForeignSite));
            // For a request with an origin, the list of origins decides.
            let listed = [(site, "cross-site"), ("origin", "https://app.example")];
            fetch(("GET", path), "localhost", &listed, Ok(()));
            let unlisted = [(site, "same-origin"), ("origin", "https://evil.example")];
            fetch(("GET", path), "localhost", &unlisted, Err(ForeignOrigin));
            let twice = [(site, "same-origin"), (site, "cross-site")];
            fetch(("GET", path), "localhost", &twice, Err(ForeignSite));
        }
        for page in ["/", "/docs", "/docs?x=1"] {
            fetch(("GET", page), "localhost", &opened, Ok(()));
            fetch(("GET", page), "localhost", &image, Err(ForeignSite));
            fetch(("GET", page), "localhost", &framed, Err(ForeignSite));
            fetch(("POST", page), "localhost", &opened, Err(ForeignSite));
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
