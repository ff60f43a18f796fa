//! `/health`, `/ready` and `/metrics`.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::PrometheusHandle;
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::{Auth, Content, Operation, Route};
use crate::readiness::{Readiness, ReadyState};

/// A cached answer to "are you alive" would be wrong.
const NO_STORE: (HeaderName, &str) = (header::CACHE_CONTROL, "no-store");

/// The text format that every Prometheus version reads.
const PROMETHEUS_TEXT: (HeaderName, &str) =
    (header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");

/// What the status routes report on.
pub struct Status {
    /// The version that `/health` reports.
    pub version: &'static str,
    /// When the daemon started.
    pub started: Instant,
    /// Asked by `/ready`.
    pub readiness: Arc<dyn Readiness>,
    /// Rendered by `/metrics`.
    pub metrics: PrometheusHandle,
}

/// The process is alive.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The version of the build.
    version: &'static str,
    /// The time since the start.
    uptime_ms: u64,
}

/// Whether the daemon accepts calls.
#[derive(Serialize, JsonSchema)]
struct Ready {
    /// `starting`, `ready` or `draining`.
    status: &'static str,
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Status")
            .field("version", &self.version)
            .field("readiness", &self.readiness.state())
            .finish_non_exhaustive()
    }
}

pub(crate) fn routes() -> Vec<Route> {
    const TAG: &str = "status";
    let open = |id, about| Operation::new(TAG, id, about).auth(Auth::Nobody);
    vec![
        Route::get(
            "/health",
            health,
            open("get_health", "Reports whether the process is alive.").answers(
                200,
                "It is alive.",
                Content::json::<Health>(),
            ),
        ),
        Route::get(
            "/ready",
            ready,
            open("get_ready", "Reports whether the daemon accepts calls.")
                .answers(200, "It accepts calls.", Content::json::<Ready>())
                .answers(
                    503,
                    "The daemon is starting, draining or full.",
                    Content::json::<Ready>(),
                ),
        ),
        Route::get(
            "/metrics",
            metrics,
            open("get_metrics", "Returns metrics for Prometheus.").answers(
                200,
                "Metrics in the Prometheus text format.",
                Content::Text("text/plain"),
            ),
        ),
    ]
}

async fn health(State(status): State<Arc<Status>>) -> Response {
    let uptime_ms = u64::try_from(status.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    ([NO_STORE], Json(Health { status: "ok", version: status.version, uptime_ms })).into_response()
}

async fn ready(State(status): State<Arc<Status>>) -> Response {
    let state = status.readiness.state();
    (status_code(state), [NO_STORE], Json(Ready { status: state.name() })).into_response()
}

async fn metrics(State(status): State<Arc<Status>>) -> Response {
    ([NO_STORE, PROMETHEUS_TEXT], status.metrics.render()).into_response()
}

const fn status_code(state: ReadyState) -> StatusCode {
    match state {
        ReadyState::Ready => StatusCode::OK,
        ReadyState::Starting | ReadyState::Draining => StatusCode::SERVICE_UNAVAILABLE,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use axum::Router;
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use axum::routing::get;
    use http_body_util::BodyExt;
    use metrics_exporter_prometheus::PrometheusBuilder;
    use tower::ServiceExt;

    use super::{Status, health, metrics as metrics_text, ready};
    use crate::ReadyFlag;

    fn routes(flag: &ReadyFlag) -> Router {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            metrics::counter!("test_calls_total").increment(3)
        });
        let status = Status {
            version: "1.2.3",
            started: Instant::now(),
            readiness: Arc::new(flag.clone()),
            metrics: recorder.handle(),
        };
        Router::new()
            .route("/health", get(health))
            .route("/ready", get(ready))
            .route("/metrics", get(metrics_text))
            .with_state(Arc::new(status))
    }

    async fn fetch(router: &Router, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn health_answers_in_every_state() {
        let flag = ReadyFlag::new();
        let routes = routes(&flag);
        for step in [ReadyFlag::set_ready, ReadyFlag::set_draining] {
            let (status, body) = fetch(&routes, "/health").await;
            assert_eq!(status, StatusCode::OK);
            let health: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!((&health["status"], &health["version"]), (&"ok".into(), &"1.2.3".into()));
            assert!(health["uptime_ms"].is_u64());
            step(&flag);
        }
    }

    #[tokio::test]
    async fn ready_is_503_before_and_after() {
        let flag = ReadyFlag::new();
        let routes = routes(&flag);
        let check = async |code: u16, name: &str| {
            let (status, body) = fetch(&routes, "/ready").await;
            assert_eq!((status.as_u16(), body), (code, format!(r#"{{"status":"{name}"}}"#)));
        };
        check(503, "starting").await;
        flag.set_ready();
        check(200, "ready").await;
        flag.set_draining();
        check(503, "draining").await;
    }

    #[tokio::test]
    async fn metrics_are_prometheus_text() {
        let (status, body) = fetch(&routes(&ReadyFlag::new()), "/metrics").await;
        assert_eq!(status, StatusCode::OK);
        assert!(body.contains("# TYPE test_calls_total counter"), "{body}");
        assert!(body.contains("test_calls_total 3"), "{body}");
    }
}
