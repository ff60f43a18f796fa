//! Which headers pass, and where the key goes.

use hyper::HeaderMap;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST,
    HeaderName, HeaderValue, IF_RANGE, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, RANGE, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use memchr::memmem;
use ringback_proto::secret::Secret;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const X_GOOG_API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
const API_KEY: HeaderName = HeaderName::from_static("api-key");

/// Headers that may carry an agent's credential.
const CREDENTIALS: [HeaderName; 5] =
    [AUTHORIZATION, X_API_KEY, X_GOOG_API_KEY, API_KEY, PROXY_AUTHORIZATION];

/// Headers between two neighbours that must not be forwarded.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Headers that the proxy sets itself: the name of the provider, the length of the body as it was
/// read, that the body can follow, and that the answer must not be compressed, because the key is
/// searched in it.
const SAID_BY_DOOR: [HeaderName; 4] = [HOST, CONTENT_LENGTH, EXPECT, ACCEPT_ENCODING];

/// Headers that request a part of an answer: a key cut in two is found in neither part.
const PARTS: [HeaderName; 2] = [RANGE, IF_RANGE];

/// The header in which a provider expects its key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeyHeader {
    /// `authorization: Bearer KEY`
    #[default]
    Authorization,
    /// `x-api-key: KEY`
    XApiKey,
    /// `x-goog-api-key: KEY`
    XGoogApiKey,
    /// `api-key: KEY`
    ApiKey,
}

impl KeyHeader {
    /// All there are.
    pub const ALL: [Self; 4] =
        [Self::Authorization, Self::XApiKey, Self::XGoogApiKey, Self::ApiKey];

    /// Its name in the configuration and on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Authorization => "authorization",
            Self::XApiKey => "x-api-key",
            Self::XGoogApiKey => "x-goog-api-key",
            Self::ApiKey => "api-key",
        }
    }

    fn header(self, key: &Secret) -> Option<(HeaderName, HeaderValue)> {
        let (name, value) = match self {
            Self::Authorization => (AUTHORIZATION, format!("Bearer {}", key.expose())),
            Self::XApiKey => (X_API_KEY, key.expose().to_owned()),
            Self::XGoogApiKey => (X_GOOG_API_KEY, key.expose().to_owned()),
            Self::ApiKey => (API_KEY, key.expose().to_owned()),
        };
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    }
}

/// Rewrites the agent's headers for the provider: removes its credentials and adds the real one.
pub(crate) fn to_provider(headers: &mut HeaderMap, key: Option<(KeyHeader, &Secret)>) {
    drop_hop_by_hop(headers);
    for name in CREDENTIALS.iter().chain(&SAID_BY_DOOR).chain(&PARTS) {
        headers.remove(name);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some((name, value)) = key.and_then(|(header, key)| header.header(key)) {
        headers.insert(name, value);
    }
}

/// Rewrites the provider's headers for the agent: none repeats the key.
pub(crate) fn to_agent(headers: &mut HeaderMap, key: Option<&Secret>) {
    drop_hop_by_hop(headers);
    let Some(key) = key else { return };
    let has_key = |text: &[u8]| memmem::find(text, key.expose().as_bytes()).is_some();
    let lower = key.expose().to_ascii_lowercase();
    let echoing: Vec<HeaderName> = headers
        .iter()
        .filter(|(name, value)| has_key(value.as_bytes()) || name.as_str().contains(&lower))
        .map(|(name, _)| name.clone())
        .collect();
    for name in echoing {
        headers.remove(name);
    }
}

/// Whether a provider's body is encoded so that a key cannot be found in it. Chunking does not
/// count: the searched body has no chunks.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    let other_than = |name, plain: &str| {
        let values = headers.get_all(name).iter();
        values.map(HeaderValue::as_bytes).flat_map(|value| value.split(|byte| *byte == b',')).any(
            |coding| {
                let coding = coding.trim_ascii();
                !coding.is_empty() && !coding.eq_ignore_ascii_case(plain.as_bytes())
            },
        )
    };
    other_than(CONTENT_ENCODING, "identity") || other_than(TRANSFER_ENCODING, "chunked")
}

/// Removes hop-by-hop headers.
pub(crate) fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(headers: &[(&'static str, &str)]) -> HeaderMap {
        let parsed = headers.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        let mut map = HeaderMap::new();
        parsed.for_each(|(name, value)| {
            map.append(name, value);
        });
        map
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Rule: no credential of the agent reaches the provider; the real one does, once.
    #[test]
    fn every_credential_of_the_agent_goes_and_the_real_one_comes() {
        let key = Secret::new("sk-real".to_owned());
        for header in KeyHeader::ALL {
            let mut headers = map(&[
                ("authorization", "Bearer a"),
                ("authorization", "Basic b"),
                ("x-api-key", "a"),
                ("x-goog-api-key", "a"),
                ("api-key", "a"),
                ("proxy-authorization", "a"),
                ("content-type", "application/json"),
            ]);
            to_provider(&mut headers, Some((header, &key)));
            let mut expected = ["accept-encoding", "content-type", header.name()];
            expected.sort_unstable();
            assert_eq!(names(&headers), expected);
            let value = &headers[header.name()];
            assert!(value.to_str().unwrap().ends_with("sk-real") && value.is_sensitive());
            assert!(!format!("{headers:?}").contains("sk-real"));
        }
        let mut headers = map(&[("x-api-key", "a")]);
        to_provider(&mut headers, None);
        assert_eq!(names(&headers), ["accept-encoding"]);
    }

    #[test]
    fn what_is_between_neighbours_stays_there() {
        let hop = [
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("x-kept", "1"),
        ];
        let (mut up, mut down) = (map(&hop), map(&hop));
        up.extend(map(&[("host", "evil"), ("expect", "100-continue"), ("content-length", "7")]));
        to_provider(&mut up, None);
        to_agent(&mut down, None);
        assert_eq!((names(&up), names(&down)), (vec!["accept-encoding", "x-kept"], vec!["x-kept"]));
    }

    /// Rule: no answer is requested or accepted in a form in which a key cannot be found.
    #[test]
    fn answers_are_asked_for_whole_and_plain() {
        let mut headers = map(&[
            ("accept-encoding", "gzip, br"),
            ("range", "bytes=0-3"),
            ("if-range", "\"tag\""),
        ]);
        to_provider(&mut headers, None);
        assert_eq!(names(&headers), ["accept-encoding"]);
        assert_eq!(headers["accept-encoding"], "identity");
        for plain in [
            &[][..],
            &[("content-encoding", "identity")],
            &[("content-encoding", " Identity , identity"), ("transfer-encoding", "chunked")],
            &[("content-encoding", "")],
        ] {
            assert!(!is_encoded(&map(plain)), "{plain:?}");
        }
        for encoded in [
            &[("content-encoding", "gzip")][..],
            &[("content-encoding", "identity, br")],
            &[("content-encoding", "identity"), ("content-encoding", "zstd")],
            &[("content-encoding", "x-own")],
            &[("transfer-encoding", "gzip, chunked")],
        ] {
            assert!(is_encoded(&map(encoded)), "{encoded:?}");
        }
    }

    #[test]
    fn a_header_that_repeats_the_key_is_dropped() {
        let mut headers =
            map(&[("x-debug", "you sent Bearer sk-real!"), ("x-sk-real", "1"), ("x-kept", "sk-")]);
        to_agent(&mut headers, Some(&Secret::new("sk-real".to_owned())));
        assert_eq!(names(&headers), ["x-kept"]);
    }
}
