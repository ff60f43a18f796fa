//! The address of a service.

use std::fmt;
use std::str::FromStr;

use hyper::Uri;

/// The address of a service: `http://host:port`, perhaps with a path before `/predict`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
    /// Without a trailing slash.
    base: String,
}

/// Why a text is not the address of a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL. The text is not quoted: people paste credentials into URLs.
    #[error("expected the address of a music service such as `http://127.0.0.1:2000`")]
    NoUrl,
    /// Another scheme.
    #[error("music services use plain `http://`; put a local proxy in front of a remote one")]
    Scheme,
    /// A name, a password or a query, which do not belong there.
    #[error("the URL of a music service has a host, a port and a path, and nothing else")]
    More,
}

impl Endpoint {
    /// Returns `host:port`, for a connection.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub(crate) fn path(&self) -> String {
        format!("{}/predict", self.base)
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let uri: Uri = text.parse().map_err(|_| EndpointError::NoUrl)?;
        match uri.scheme_str() {
            Some("http") => {}
            Some(_) => return Err(EndpointError::Scheme),
            None => return Err(EndpointError::NoUrl),
        }
        let authority = uri.authority().ok_or(EndpointError::NoUrl)?;
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(EndpointError::More);
        }
        Ok(Self {
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(80),
            base: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}{}", self.host, self.port, self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_plain_url() {
        let endpoint: Endpoint = "http://127.0.0.1:2000".parse().unwrap();
        assert_eq!(
            (endpoint.address().as_str(), endpoint.path().as_str()),
            ("127.0.0.1:2000", "/predict")
        );
        let endpoint: Endpoint = "http://gpu.local/orpheus/".parse().unwrap();
        assert_eq!(endpoint.to_string(), "http://gpu.local:80/orpheus");
        assert_eq!(endpoint.path(), "/orpheus/predict");
        let refused = |text: &str| text.parse::<Endpoint>().unwrap_err();
        assert_eq!(refused("https://gpu.local"), EndpointError::Scheme);
        assert_eq!(refused("http://me:secret@gpu.local"), EndpointError::More);
        assert_eq!(refused("http://gpu.local?token=1"), EndpointError::More);
        assert!(matches!(refused("gpu.local"), EndpointError::NoUrl));
        assert!(matches!(refused(""), EndpointError::NoUrl));
    }
}
