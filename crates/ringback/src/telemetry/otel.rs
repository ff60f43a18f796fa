//! Traces over OTLP, and W3C trace context in and out.

use std::collections::HashMap;
use std::time::Duration;

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use ringback_proto::chain;
use tracing::{Metadata, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::TelemetryError;
use crate::config::OtlpEndpoint;

/// The header of W3C trace context.
const TRACEPARENT: &str = "traceparent";

/// How long an unresponsive collector may delay the end of the process.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The libraries of the exporter: tracing them would make every export cause another.
const EXPORTER_TARGETS: [&str; 5] = ["h2", "hyper", "opentelemetry", "tonic", "tower"];

/// The exporter, if there is a collector.
#[derive(Debug)]
pub(super) struct Traces {
    provider: Option<SdkTracerProvider>,
}

impl Traces {
    pub(super) fn new(endpoint: Option<&OtlpEndpoint>) -> Result<Self, TelemetryError> {
        Ok(Self { provider: endpoint.map(provider).transpose()? })
    }

    pub(super) fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let tracer = self.provider.as_ref()?.tracer(env!("CARGO_PKG_NAME"));
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        Some(layer.with_filter(filter_fn(is_ours)))
    }

    pub(super) async fn shutdown(self) {
        let Some(provider) = self.provider else { return };
        // The flush waits for a thread, so it must not block the runtime that sends for it.
        let flush = move || provider.shutdown_with_timeout(FLUSH_TIMEOUT);
        match tokio::task::spawn_blocking(flush).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(error = chain(&error), "cannot export some spans"),
            Err(error) => tracing::error!(error = chain(&error), "cannot flush spans"),
        }
    }
}

/// Makes the span a child of a caller's trace.
///
/// Call it before the span is entered for the first time. An invalid `traceparent` is ignored, as
/// the W3C recommendation asks: the span then starts its own trace.
pub fn set_parent(span: &Span, traceparent: &str) {
    let parent = TraceContextPropagator::new().extract(&Header(traceparent));
    if !parent.span().span_context().is_valid() {
        tracing::debug!("ignoring a malformed traceparent");
        return;
    }
    if let Err(error) = span.set_parent(parent) {
        // Traces are not collected, or not at this level: there is nothing to continue.
        tracing::trace!(%error, "cannot continue a trace");
    }
}

/// Returns the `traceparent` that passes this span's trace on; `None` if it is not traced.
#[must_use]
pub fn traceparent(span: &Span) -> Option<String> {
    let mut headers = HashMap::new();
    TraceContextPropagator::new().inject_context(&span.context(), &mut headers);
    headers.remove(TRACEPARENT)
}

/// A single header, in the propagator's form.
struct Header<'a>(&'a str);

impl Extractor for Header<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        (key == TRACEPARENT).then_some(self.0)
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT]
    }
}

fn provider(endpoint: &OtlpEndpoint) -> Result<SdkTracerProvider, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint.as_str())
        .with_timeout(FLUSH_TIMEOUT)
        .build()
        .map_err(|error| TelemetryError::Traces {
            endpoint: endpoint.as_str().to_owned(),
            source: error.into(),
        })?;
    let resource = Resource::builder().with_service_name(env!("CARGO_PKG_NAME")).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    let root = metadata.target().split("::").next().unwrap_or_default();
    !EXPORTER_TARGETS.iter().any(|target| root.starts_with(target))
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing::info_span;
    use tracing_subscriber::layer::SubscriberExt;

    use super::{Traces, set_parent, traceparent};

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn traced<T>(run: impl FnOnce() -> T) -> T {
        let traces = Traces { provider: Some(SdkTracerProvider::builder().build()) };
        let subscriber = tracing_subscriber::registry().with(traces.layer());
        tracing::subscriber::with_default(subscriber, run)
    }

    #[test]
    fn a_callers_trace_is_continued_and_handed_on() {
        let onward = traced(|| {
            let span = info_span!("call");
            set_parent(&span, &format!("00-{TRACE}-00f067aa0ba902b7-01"));
            let child = span.in_scope(|| info_span!("inner"));
            [traceparent(&span), traceparent(&child)].map(Option::unwrap)
        });
        for header in &onward {
            assert!(header.starts_with(&format!("00-{TRACE}-")), "{header}");
            assert!(header.ends_with("-01") && !header.contains("00f067aa0ba902b7"), "{header}");
        }
        assert_ne!(onward[0], onward[1]);
    }

    #[test]
    fn a_malformed_traceparent_starts_a_trace_of_its_own() {
        for malformed in
            ["", "00", "\u{fe0f}", "00-0-0-01", &format!("00-{TRACE}-0000000000000000-01")]
        {
            let header = traced(|| {
                let span = info_span!("call");
                set_parent(&span, malformed);
                traceparent(&span).unwrap()
            });
            assert!(!header.contains(TRACE), "{malformed}: {header}");
        }
    }

    #[test]
    fn without_a_collector_nothing_is_handed_on() {
        let span = info_span!("call");
        set_parent(&span, &format!("00-{TRACE}-00f067aa0ba902b7-01"));
        assert_eq!(traceparent(&span), None);
    }
}
