//! Logs, traces and metrics of the process: installed once, flushed at the end.
//!
//! Logs go to standard error as text or JSON. Traces go to an OpenTelemetry collector when
//! `telemetry.otlp_endpoint` is set, in builds with the feature `otel`. Metrics are always
//! collected, and rendered through a handle. None of them ever carries a secret: tokens and keys
//! are [`ringback_proto::secret::Secret`], which prints as `***`.

mod log_file;
#[cfg(feature = "otel")]
#[path = "telemetry/otel.rs"]
mod traces;
#[cfg(not(feature = "otel"))]
#[path = "telemetry/no_otel.rs"]
mod traces;

use std::io;
use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;
use tracing::Subscriber;
use tracing_subscriber::filter::Directive;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer};

use crate::config;
use crate::screen::has_colours_on_stderr;

pub use log_file::LogFile;
pub use traces::{set_parent, traceparent};

/// From a call that touches nothing to one at the longest wait of a timing class.
const LATENCY_BUCKETS_SECS: [f64; 12] =
    [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0];

/// Histograms keep every sample until upkeep runs; this bounds their memory when metrics are not
/// scraped.
const UPKEEP_PERIOD: Duration = Duration::from_secs(5);

/// The installed telemetry. Keep it until the end, then call [`Telemetry::shutdown`].
#[must_use = "unsent spans are lost without `shutdown`"]
#[derive(Debug)]
pub struct Telemetry {
    metrics: PrometheusHandle,
    traces: traces::Traces,
}

/// Why telemetry could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter does not parse; a checked configuration never has this.
    #[error("cannot use the log filter `{filter}`")]
    Filter {
        /// The filter.
        filter: String,
        /// The parser's error.
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// This process already has a log subscriber.
    #[error("cannot install the log subscriber")]
    Logs(#[source] TryInitError),
    /// This process already has a metrics recorder.
    #[error("cannot install the metrics recorder")]
    Metrics(#[source] BuildError),
    /// The trace exporter cannot be created.
    #[error("cannot export traces to `{endpoint}`")]
    Traces {
        /// The collector.
        endpoint: String,
        /// The exporter's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This build has no trace exporter.
    #[error(
        "`telemetry.otlp_endpoint` is set, but this build cannot export traces; remove the key, or \
         build with the feature `otel`"
    )]
    NoExporter,
}

impl Telemetry {
    /// Installs everything for this process. Logs go to a file if one is given.
    ///
    /// Needs a running tokio runtime if traces are exported.
    ///
    /// # Errors
    /// When telemetry is already installed, or traces cannot be exported.
    pub fn install(
        log: &config::Log,
        telemetry: &config::Telemetry,
        file: Option<LogFile>,
    ) -> Result<Self, TelemetryError> {
        let traces = traces::Traces::new(telemetry.otlp_endpoint.as_ref())?;
        let filter = EnvFilter::try_new(log.filter.as_str()).map_err(|source| {
            TelemetryError::Filter { filter: log.filter.as_str().to_owned(), source }
        })?;
        let filter = filter.add_directive(quiet_client());
        tracing_subscriber::registry()
            .with(filter)
            .with(traces.layer())
            .with(log_layer(log.format, file))
            .try_init()
            .map_err(TelemetryError::Logs)?;
        Ok(Self { metrics: install_metrics().map_err(TelemetryError::Metrics)?, traces })
    }

    /// Returns a handle that renders the metrics, for `/metrics`.
    #[must_use]
    pub fn metrics(&self) -> PrometheusHandle {
        self.metrics.clone()
    }

    /// Bounds the memory of metrics until `token` fires; spawn it in a stage.
    pub fn upkeep(&self, token: CancellationToken) -> impl Future<Output = ()> + Send + use<> {
        let metrics = self.metrics();
        async move {
            let mut period = tokio::time::interval(UPKEEP_PERIOD);
            loop {
                tokio::select! {
                    biased;
                    () = token.cancelled() => return,
                    _ = period.tick() => metrics.run_upkeep(),
                }
            }
        }
    }

    /// Sends the remaining spans, for at most a few seconds.
    ///
    /// # Cancel safety
    /// Dropping the future loses spans and nothing else.
    pub async fn shutdown(self) {
        self.traces.shutdown().await;
    }
}

fn install_metrics() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &LATENCY_BUCKETS_SECS)?
        .install_recorder()
}

/// The container engine client logs everything it sends, including the keys of agents.
fn quiet_client() -> Directive {
    "bollard=info".parse().expect("it is a directive")
}

fn log_layer<S>(format: config::LogFormat, file: Option<LogFile>) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let has_colours = file.is_none() && has_colours_on_stderr();
    let writer = match file {
        Some(file) => BoxMakeWriter::new(file),
        None => BoxMakeWriter::new(io::stderr),
    };
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    match format {
        config::LogFormat::Text => layer.with_ansi(has_colours).boxed(),
        config::LogFormat::Json => layer.json().boxed(),
    }
}
