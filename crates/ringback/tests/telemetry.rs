//! Telemetry is global to a process, so this test has its own.

use ringback::config::{Log, Telemetry as TelemetryConfig};
use ringback::telemetry::{Telemetry, TelemetryError};

#[tokio::test]
async fn telemetry_is_installed_once_and_metrics_are_rendered() {
    let (log, config) = (Log::default(), TelemetryConfig::default());
    let telemetry = Telemetry::install(&log, &config, None).unwrap();
    metrics::counter!("calls_total").increment(2);
    metrics::histogram!("call_seconds").record(0.002);
    let text = telemetry.metrics().render();
    assert!(text.contains("calls_total 2"), "{text}");
    assert!(text.contains(r#"call_seconds_bucket{le="0.005"} 1"#), "{text}");
    assert!(matches!(Telemetry::install(&log, &config, None), Err(TelemetryError::Logs(_))));
    telemetry.shutdown().await;
}
