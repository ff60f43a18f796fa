//! One request: checked, given the key, forwarded, and its answer passed back.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Either, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, UPGRADE};
use hyper::http::response::Parts;
use hyper::{Method, Request, Response, StatusCode};
use ringback_proto::chain;
use ringback_proto::secret::Secret;
use ringback_service::http::{StalledBody, TimedBody};
use tokio::time::timeout;

use super::proxy::{Account, ProxyContext};
use super::refusal::Refusal;
use super::tap::{Answer, Upload};
use crate::client::reason;
use crate::headers::{is_encoded, to_agent, to_provider};
use crate::secrets::SecretError;
use crate::tokens::Scanner;

/// A shorter key is a word such as `EMPTY`: not a secret, and found everywhere.
const KEY_BYTES_HIDDEN_MIN: usize = 7;

/// The origin of a key that came with its session.
const SESSION: &str = "session";

/// The answer to an agent: the provider's, or the proxy's own.
pub(crate) type Body = Either<Full<Bytes>, Answer>;

/// The provider's answer, and the key to mask in it.
struct ProviderAnswer {
    parts: Parts,
    body: Incoming,
    hidden: Option<Secret>,
}

impl ProxyContext {
    /// Answers a request, through the provider or in its place.
    pub(crate) async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let mut account = Account::new(Arc::clone(&self), &request);
        match self.forward(request, &mut account).await {
            Ok(ProviderAnswer { parts, body, hidden }) => {
                account.status = Some(parts.status);
                let kind = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
                account.scanner = Some(Scanner::new(kind));
                let body = TimedBody::new(body, self.config.body_timeout);
                let answer = Answer::new(body, hidden, account, self.config.answer_bytes_max);
                Response::from_parts(parts, Either::Right(answer))
            }
            Err(refusal) => {
                account.status = Some(refusal.status());
                account.refusal = Some(refusal.message(&self.model.name));
                account.is_whole = true;
                refusal.response(&self.model.name).map(Either::Left)
            }
        }
    }

    async fn forward(
        &self,
        request: Request<Incoming>,
        account: &mut Account,
    ) -> Result<ProviderAnswer, Refusal> {
        let config = &self.config;
        let too_large = Refusal::TooLarge { bytes_max: config.request_bytes_max };
        if request.method() == Method::CONNECT || request.headers().contains_key(UPGRADE) {
            return Err(Refusal::Upgrade);
        }
        let provider = &self.model.provider;
        let uri = provider.url.join(request.uri()).map_err(|_| Refusal::Path)?;
        if request.body().size_hint().lower() > config.request_bytes_max as u64 {
            return Err(too_large);
        }
        let busy = Refusal::Busy { max: config.requests_at_once_max };
        account.place = Some(Arc::clone(&self.requests).try_acquire_owned().map_err(|_| busy)?);
        let admitted = self.recorder.admit(self.session).await;
        admitted.map_err(|spent| Refusal::Spent { limit: spent.limit })?;
        let key = self.key(account).await?;
        if !self.counters.take_request(provider.requests_max) {
            return Err(Refusal::UsedUp { max: provider.requests_max.unwrap_or(u64::MAX) });
        }

        let (mut head, body) = request.into_parts();
        to_provider(&mut head.headers, key.as_ref().map(|key| (provider.header, key)));
        let body =
            Limited::new(TimedBody::new(body, config.body_timeout), config.request_bytes_max);
        let mut onward = Request::new(Upload::new(body, Arc::clone(&account.n_sent)));
        *onward.method_mut() = head.method;
        *onward.uri_mut() = uri;
        *onward.headers_mut() = head.headers;
        account.is_sent = true;
        self.ask(onward, key.filter(|key| key.expose().len() >= KEY_BYTES_HIDDEN_MIN)).await
    }

    async fn ask(
        &self,
        request: Request<Upload>,
        hidden: Option<Secret>,
    ) -> Result<ProviderAnswer, Refusal> {
        let patience = self.config.answer_timeout;
        let answered = timeout(patience, self.model.client.request(request)).await;
        let answer = answered
            .map_err(|_| Refusal::Late { seconds: patience.as_secs() })?
            .map_err(|error| self.refusal(&error))?;
        let (mut parts, body) = answer.into_parts();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Refusal::Broken);
        }
        if hidden.is_some() && is_encoded(&parts.headers) {
            let (session, model) = (self.session, &self.model.name);
            tracing::warn!(%session, model, "refusing a model's compressed answer");
            return Err(Refusal::Encoded);
        }
        to_agent(&mut parts.headers, hidden.as_ref());
        // An upgrade of the provider's connection, if any, stays there.
        parts.extensions.clear();
        parts.version = hyper::Version::HTTP_11;
        Ok(ProviderAnswer { parts, body, hidden })
    }

    /// Read for each request, so that a new key needs no restart.
    async fn key(&self, account: &mut Account) -> Result<Option<Secret>, Refusal> {
        let Some(source) = &self.model.provider.key else { return Ok(None) };
        let model = &self.model.name;
        account.key = Some(source.origin());
        let key = match (source.get().await, self.own_key.get()) {
            (Ok(Some(key)), _) => key,
            (Ok(None), _) => return Err(Refusal::Key),
            (Err(SecretError::Missing { .. }), Some(own)) => {
                account.key = Some(SESSION.to_owned());
                own
            }
            (Err(error), _) => {
                tracing::error!(model, error = chain(&error), "cannot use the key of a model");
                return Err(Refusal::Key);
            }
        };
        self.recorder.conceal(self.session, &key);
        Ok(Some(key))
    }

    fn refusal(&self, error: &hyper_util::client::legacy::Error) -> Refusal {
        if has_cause::<LengthLimitError>(error) {
            return Refusal::TooLarge { bytes_max: self.config.request_bytes_max };
        }
        if has_cause::<StalledBody>(error) {
            return Refusal::Stalled;
        }
        let (session, model) = (self.session, &self.model.name);
        tracing::warn!(%session, model, error = chain(error), "a model did not answer");
        if error.is_connect() {
            Refusal::Unreachable { reason: reason(error) }
        } else {
            Refusal::Broken
        }
    }
}

fn has_cause<E: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    error.is::<E>() || error.source().is_some_and(has_cause::<E>)
}
