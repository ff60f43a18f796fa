//! One request: a tunnel to a place, or a plain HTTP request that is forwarded.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Either, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, EXPECT, HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use ringback_proto::network::{Destination, Host};
use ringback_service::Place;
use tokio::io::copy_bidirectional;

use super::door::{BUFFER_BYTES_MAX, Door};
use super::refusal::Refusal;
use crate::headers::drop_hop_by_hop;

/// The default port of plain HTTP.
const HTTP_PORT: u16 = 80;

/// The answer to an agent: a host's, or the proxy's own.
pub(super) type Body = Either<Either<Full<Bytes>, Empty<Bytes>>, Incoming>;

impl Door {
    /// Answers a request, through its host or in its place.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        place: Place,
    ) -> Response<Body> {
        let answered = if request.method() == Method::CONNECT {
            self.tunnel(request, place).await
        } else {
            self.pass(request, place).await
        };
        answered.unwrap_or_else(|refusal| {
            refusal.response(self.session).map(|body| Either::Left(Either::Left(body)))
        })
    }

    async fn tunnel(
        self: &Arc<Self>,
        mut request: Request<Incoming>,
        place: Place,
    ) -> Result<Response<Body>, Refusal> {
        let (host, port) = (request.uri().host(), request.uri().port_u16());
        let to = host.zip(port).and_then(|(host, port)| Destination::new(host, port).ok());
        let (mut far, passage) = self.reach(to.ok_or(Refusal::Target)?).await?;
        let upgrading = hyper::upgrade::on(&mut request);
        drop(self.scope.tasks.spawn(async move {
            let copying = async {
                if let Ok(near) = upgrading.await {
                    // An error here only means that one side broke off.
                    drop(copy_bidirectional(&mut TokioIo::new(near), &mut far).await);
                }
            };
            passage.hold(copying).await;
            drop(place);
        }));
        Ok(Response::new(Either::Left(Either::Right(Empty::new()))))
    }

    async fn pass(
        self: &Arc<Self>,
        request: Request<Incoming>,
        place: Place,
    ) -> Result<Response<Body>, Refusal> {
        let to = plain(request.uri()).ok_or(Refusal::Target)?;
        let onward = onward(request, &to).ok_or(Refusal::Target)?;
        let (far, passage) = self.reach(to).await?;
        let mut client = http1::Builder::new();
        let connecting = client.max_buf_size(BUFFER_BYTES_MAX).handshake(TokioIo::new(far)).await;
        let (mut sender, connection) = connecting.map_err(|_| Refusal::Broken)?;
        drop(self.scope.tasks.spawn(async move {
            // The answer shows how it ended.
            passage.hold(async { drop(connection.await) }).await;
            drop(place);
        }));
        let answer = sender.send_request(onward).await.map_err(|_| Refusal::Broken)?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Refusal::Broken);
        }
        let (mut head, body) = answer.into_parts();
        drop_hop_by_hop(&mut head.headers);
        head.extensions.clear();
        head.version = Version::HTTP_11;
        Ok(Response::from_parts(head, Either::Right(body)))
    }
}

/// The destination of a plain HTTP request.
fn plain(uri: &Uri) -> Option<Destination> {
    let is_http = uri.scheme_str() == Some("http");
    let host = uri.host().filter(|_| is_http)?;
    Destination::new(host, uri.port_u16().unwrap_or(HTTP_PORT)).ok()
}

/// The request for its host: the `Host` header is where it really goes.
fn onward(request: Request<Incoming>, to: &Destination) -> Option<Request<Incoming>> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    head.uri = path.parse().ok()?;
    drop_hop_by_hop(&mut head.headers);
    for name in [PROXY_AUTHORIZATION, EXPECT] {
        head.headers.remove(name);
    }
    let host = match (&to.host, to.port) {
        (Host::Name(name), HTTP_PORT) => name.to_string(),
        (Host::Name(_) | Host::Address(_), _) => to.to_string(),
    };
    head.headers.insert(HOST, HeaderValue::from_str(&host).ok()?);
    head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    head.version = Version::HTTP_11;
    head.extensions.clear();
    Some(Request::from_parts(head, body))
}
