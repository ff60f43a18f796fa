//! A music service: real HTTP, made-up music.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use ringback_music_services::{Endpoint, Service, Settings};
use ringback_studio_tools::{Settings as StudioSettings, Studio};
use ringback_testkit::Setup;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// A service that answers every `/predict` in the same way.
pub(crate) struct ModelService {
    pub(crate) endpoint: Endpoint,
    /// The requests it got.
    pub(crate) seen: Arc<Mutex<Vec<Value>>>,
    /// Their traces.
    pub(crate) traces: Arc<Mutex<Vec<String>>>,
    /// Signalled at each request.
    pub(crate) asked: Arc<Notify>,
    _serving: JoinSet<()>,
}

impl ModelService {
    /// Answers with a status and JSON.
    pub(crate) async fn answering(status: u16, answer: Value) -> Self {
        Self::start(status, Some(("application/json", answer.to_string()))).await
    }

    /// Streams an answer, a line for each part.
    pub(crate) async fn streaming(lines: &[Value]) -> Self {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Self::start(200, Some(("application/x-ndjson", text))).await
    }

    /// Never answers.
    pub(crate) async fn silent() -> Self {
        Self::start(200, None).await
    }

    async fn start(status: u16, answer: Option<(&'static str, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let (seen, asked) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let (inside, ring) = (Arc::clone(&seen), Arc::clone(&asked));
        let traces = Arc::new(Mutex::new(Vec::new()));
        let traced = Arc::clone(&traces);
        let predict = move |headers: HeaderMap, body: Bytes| {
            let trace = headers.get("traceparent").and_then(|value| value.to_str().ok());
            traced.lock().unwrap().extend(trace.map(ToOwned::to_owned));
            inside.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
            ring.notify_one();
            let answer = answer.clone();
            async move {
                match answer {
                    Some((kind, answer)) => {
                        (StatusCode::from_u16(status).unwrap(), [(CONTENT_TYPE, kind)], answer)
                    }
                    None => std::future::pending().await,
                }
            }
        };
        let router = Router::new().route("/predict", post(predict));
        let router = router.layer(DefaultBodyLimit::disable());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { endpoint, seen, traces, asked, _serving: serving }
    }

    /// Returns the setup of a daemon that uses this service for everything named.
    pub(crate) fn setup(&self, services: &[Service]) -> Setup {
        let studio = Arc::new(Studio::new(self.settings(services)));
        Setup::new().hoot().config(|config| config.studio = studio)
    }

    /// Returns settings of the music tools that use this service for everything named.
    pub(crate) fn settings(&self, services: &[Service]) -> StudioSettings {
        let endpoints: BTreeMap<_, _> =
            services.iter().map(|service| (*service, self.endpoint.clone())).collect();
        let patience = Some(Duration::from_secs(20));
        let services = Settings { endpoints, patience, ..Settings::default() };
        StudioSettings { services, ..StudioSettings::default() }
    }

    /// Returns the only request it got.
    pub(crate) fn only(&self) -> Value {
        let seen = self.seen.lock().unwrap();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }
}
