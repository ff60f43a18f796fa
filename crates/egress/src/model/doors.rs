//! The model proxies of all sessions, and the models behind them.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use camino::Utf8Path;
use ringback_broker::{Broker, LimitReached, ModelDoor, ModelRequest};
use ringback_proto::ids::SessionId;
use ringback_proto::secret::Secret;
use ringback_service::SessionSockets;
use tokio::sync::Semaphore;

use super::proxy::{Model, ProxyContext};
use crate::sync::lock;
use crate::usage::Counters;
use crate::{Config, Provider, ProviderError};

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
    models: Mutex<BTreeMap<String, Arc<Model>>>,
    sockets: SessionSockets,
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
            models.insert(name.clone(), Arc::new(Model { name, provider, client }));
        }
        Ok(Self { config, models: Mutex::new(models), sockets })
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
    /// When there is no such model, or the socket cannot be bound.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn serve(
        &self,
        recorder: Arc<dyn Recorder>,
        session: SessionId,
        dir: &Utf8Path,
        model: &str,
    ) -> io::Result<Box<dyn Any + Send + Sync>> {
        let scope = self.sockets.scope()?;
        let model = lock(&self.models).get(model).cloned().ok_or_else(|| {
            let message = format!("unknown model `{model}`; add it to the configuration");
            io::Error::new(io::ErrorKind::NotFound, message)
        })?;
        let serving = ProxyContext {
            session,
            model,
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
        model: &str,
    ) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.serve(Arc::new(broker), session, dir, model)
    }

    fn has_prices(&self, model: &str) -> bool {
        lock(&self.models).get(model).is_some_and(|model| !model.provider.prices.0.is_empty())
    }
}
