//! A broker in a temporary directory, and shortcuts to call it.

use std::sync::Arc;

use camino::Utf8PathBuf;
use ringback_broker::{Answer, Broker, Call, Clock, Config, ConfigView, Credential, Edge, Entropy};
use ringback_proto::envelope::{CallOptions, RequestEnvelope, ToolCall};
use ringback_proto::ids::RequestId;
use ringback_proto::value::Value;
use ringback_proto::{ResponseEnvelope, ToolRequest, ToolResponse};

#[derive(Debug)]
struct NoConfig;

impl ConfigView for NoConfig {
    fn get(&self, section: Option<&str>, _: Option<&str>) -> Option<Value> {
        section.is_none().then(|| Value::Map(Vec::new()))
    }
}

pub(crate) struct Fixture {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) broker: Broker,
}

pub(crate) fn config(dir: &tempfile::TempDir) -> Config {
    let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).expect("the fixture works");
    Config {
        data_dir: root.join("data"),
        file_roots: Vec::new(),
        version: "test".to_owned(),
        view: Arc::new(NoConfig),
        calls_per_principal_max: 64,
        jobs_running_max: 4,
        jobs_live_max: 8,
        jobs_per_principal_max: 8,
        events_kept_max: 1000,
        uploads_open_max: 4,
        upload_bytes_max: 1 << 20,
        call_ms_max: 3_600_000,
        lines: ringback_broker::LineSettings::default(),
        studio: Arc::new(ringback_broker::studio::NoStudio),
        containers: ringback_broker::ContainerSettings::default(),
        sessions: ringback_broker::SessionSettings::in_dir(root.join("run")),
    }
}

pub(crate) async fn start() -> Fixture {
    start_with(|_| ()).await
}

pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> Fixture {
    let dir = tempfile::tempdir().expect("the fixture works");
    let mut config = config(&dir);
    change(&mut config);
    let broker =
        Broker::start(config, Clock::system(), Entropy::system()).await.expect("the fixture works");
    Fixture { dir, broker }
}

impl Fixture {
    /// Stops the broker, giving running jobs `grace`, and starts another on the same directory.
    pub(crate) async fn restart(self, grace: std::time::Duration) -> Self {
        let Self { dir, broker } = self;
        broker.stop(grace).await;
        drop(broker);
        let config = config(&dir);
        let broker = Broker::start(config, Clock::system(), Entropy::system())
            .await
            .expect("the fixture works");
        Self { dir, broker }
    }
}

pub(crate) fn call<'a>(credential: &'a Credential, request: impl Into<ToolRequest>) -> Call<'a> {
    Call {
        credential,
        edge: Edge::Hoot,
        envelope: RequestEnvelope::plain(ToolCall::Native(request.into())),
        request_id: None,
    }
}

/// Returns the first reply.
pub(crate) async fn reply(broker: &Broker, call: Call<'_>) -> ResponseEnvelope {
    match broker.call(call) {
        Answer::Now(reply) => reply,
        Answer::Later(mut replies, _) => replies.next().await.expect("a first reply"),
    }
}

/// Returns the result of a call, waiting for it.
pub(crate) async fn result(
    broker: &Broker,
    credential: &Credential,
    request: impl Into<ToolRequest>,
) -> Result<ToolResponse, ringback_proto::error::ToolError> {
    let mut call = call(credential, request);
    call.envelope.options = CallOptions { wait_ms: Some(30_000), ..CallOptions::default() };
    match reply(broker, call).await {
        ResponseEnvelope::Success { response } => Ok(response),
        ResponseEnvelope::Error(error) => Err(error),
        other => panic!("neither a result nor an error: {other:?}"),
    }
}

pub(crate) fn request_id(number: u8) -> RequestId {
    RequestId::from_bytes([number; 16])
}
