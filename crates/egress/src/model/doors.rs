//! The model proxies of all sessions, and the models behind them.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use camino::Utf8Path;
use ringback_broker::{Broker, LimitReached, ModelDoor, ModelRequest, ProviderKey, SessionKey};
use ringback_proto::ids::SessionId;
use ringback_proto::secret::Secret;
use ringback_service::SessionSockets;
use tokio::sync::Semaphore;

use super::proxy::{Model, ProxyContext};
use crate::sync::lock;
use crate::usage::Counters;
use crate::{Config, Provider, ProviderError, SecretError};

/// Decides whether a request may be made, and records each one once, when the last byte of its
/// answer has passed or it was abandoned.
pub trait Recorder: Send + Sync + std::fmt::Debug {
    /// Waits until a session may send a request to its model; an error if it no longer may.
    fn admit(&self, session: SessionId) -> AdmissionFuture<'_>;

    /// Learns the key that a request of a session is about to use, to hide it elsewhere. Must not
    /// block.
    fn conceal(&self, session: SessionId, key: &Secret);

    /// Records a request of a session. Must not block.
    fn record(&self, session: SessionId, request: &ModelRequest);
}

/// A pending decision.
pub type AdmissionFuture<'a> = Pin<Box<dyn Future<Output = Result<(), LimitReached>> + Send + 'a>>;

impl Recorder for Broker {
    fn admit(&self, session: SessionId) -> AdmissionFuture<'_> {
        Box::pin(self.may_ask_model(session))
    }

    fn conceal(&self, session: SessionId, key: &Secret) {
        Self::conceal(self, session, key);
    }

    fn record(&self, session: SessionId, request: &ModelRequest) {
        self.model_requested(session, request);
    }
}

/// Opens model proxies. The broker owns it and opens one with each session whose agent has a model,
/// so it must be stopped explicitly: the two hold each other.
#[derive(Debug)]
pub struct ModelDoors {
    config: Config,
    models: Mutex<BTreeMap<String, Known>>,
    sockets: SessionSockets,
}

/// A provider that sessions may name.
#[derive(Debug)]
enum Known {
    /// Checked, with its client.
    Ready(Arc<Model>),
    /// Not used so far: its client is made when a session needs it.
    Unused(Box<Provider>),
    /// It has no address; with what to do about it.
    Unaddressed(String),
}

impl ModelDoors {
    /// Creates proxies to these models, none of them open yet. Reads the keys and root
    /// certificates, to report now what would fail later.
    ///
    /// # Errors
    /// The first model that cannot be used, by name.
    pub fn new(
        config: Config,
        providers: BTreeMap<String, Provider>,
    ) -> Result<Self, (String, ProviderError)> {
        let sockets = SessionSockets::new("the model proxy");
        let mut models = BTreeMap::new();
        for (name, provider) in providers {
            let client = provider.check().and_then(|()| provider.client(&config, sockets.tasks()));
            let client = client.map_err(|error| (name.clone(), error))?;
            let model = Arc::new(Model { name: name.clone(), provider, client });
            models.insert(name, Known::Ready(model));
        }
        Ok(Self { config, models: Mutex::new(models), sockets })
    }

    /// Adds providers that sessions may name and that need not be usable until one does; those
    /// without an address come with what to do about it. Does not replace any.
    #[must_use]
    pub fn with_known(self, providers: BTreeMap<String, Result<Provider, String>>) -> Self {
        {
            let mut models = lock(&self.models);
            for (name, provider) in providers {
                models.entry(name).or_insert_with(|| match provider {
                    Ok(provider) => Known::Unused(Box::new(provider)),
                    Err(advice) => Known::Unaddressed(advice),
                });
            }
        }
        self
    }

    /// Returns a provider with its client. Blocks when it is used for the first time, to read root
    /// certificates.
    fn model(&self, name: &str) -> Result<Arc<Model>, String> {
        let mut models = lock(&self.models);
        match models.get(name) {
            Some(Known::Ready(model)) => Ok(Arc::clone(model)),
            Some(Known::Unaddressed(advice)) => Err(advice.clone()),
            Some(Known::Unused(provider)) => {
                let client = provider.client(&self.config, self.sockets.tasks());
                let client = client.map_err(|error| format!("provider `{name}`: {error}"))?;
                let (name, provider) = (name.to_owned(), Provider::clone(provider));
                let model = Arc::new(Model { name: name.clone(), provider, client });
                models.insert(name, Known::Ready(Arc::clone(&model)));
                Ok(model)
            }
            None => {
                let names: Vec<_> = models.keys().map(String::as_str).collect();
                Err(format!(
                    "unknown provider `{name}`; there are {}; add others to the configuration as \
                     `[providers.NAME]`",
                    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
                ))
            }
        }
    }

    /// Closes every proxy, and waits until all its tasks have ended.
    pub async fn stop(&self) {
        // This also drops idle connections, whose tasks would be waited for.
        lock(&self.models).clear();
        self.sockets.stop().await;
    }

    /// Binds the socket of a session's model proxy and serves it until the guard is dropped. The
    /// recorder hears of its requests.
    ///
    /// # Errors
    /// When there is no such provider, or the socket cannot be bound.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn serve(
        &self,
        recorder: Arc<dyn Recorder>,
        session: SessionId,
        dir: &Utf8Path,
        provider: &str,
        own_key: SessionKey,
    ) -> io::Result<Box<dyn Any + Send + Sync>> {
        let scope = self.sockets.scope()?;
        let model = self.model(provider);
        let model = model.map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
        let serving = ProxyContext {
            session,
            model,
            own_key,
            config: self.config,
            counters: Counters::default(),
            requests: Arc::new(Semaphore::new(self.config.requests_at_once_max)),
            recorder,
            scope,
        };
        Ok(Box::new(serving.open(dir)?))
    }
}

impl ModelDoor for ModelDoors {
    /// # Panics
    /// Outside of a tokio runtime.
    fn open(
        &self,
        broker: Broker,
        session: SessionId,
        dir: &Utf8Path,
        provider: &str,
        key: SessionKey,
    ) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.serve(Arc::new(broker), session, dir, provider, key)
    }

    fn check(&self, name: &str, api: Option<&str>) -> Result<ProviderKey, String> {
        let model = self.model(name)?;
        let provider = &model.provider;
        if let (Some(spoken), Some(offered)) = (api, provider.api)
            && spoken != offered
        {
            return Err(format!(
                "the agent speaks the `{spoken}` API and provider `{name}` the `{offered}` API; \
                 choose another provider, or another agent"
            ));
        }
        let Some(source) = &provider.key else { return Ok(ProviderKey::Ready) };
        if provider.url.is_in_the_clear() {
            return Err(format!("provider `{name}`: {}", ProviderError::Clear));
        }
        match source.look() {
            Ok(()) => Ok(ProviderKey::Ready),
            Err(SecretError::Missing { name: secret }) => {
                let or = provider.variable.map_or_else(String::new, |variable| {
                    format!(", or put it into {variable} where you type `ringback run`")
                });
                Ok(ProviderKey::Missing(format!(
                    "provider `{name}` has no key; store it with `ringback secret set {secret}`{or}"
                )))
            }
            Err(error) => Err(format!("provider `{name}`: {error}")),
        }
    }

    fn has_prices(&self, provider: &str) -> bool {
        match lock(&self.models).get(provider) {
            Some(Known::Ready(model)) => !model.provider.prices.0.is_empty(),
            Some(Known::Unused(provider)) => !provider.prices.0.is_empty(),
            Some(Known::Unaddressed(_)) | None => false,
        }
    }
}
