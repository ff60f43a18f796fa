//! Every music tool over HOOT01, MCP and plain HTTP.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use ringback_client::Client;
use ringback_edge_http::ClientToolSettings;
use ringback_music_services::Service;
use ringback_proto::frame::{Body, Command, Frame};
use ringback_proto::ids::RequestId;
use ringback_proto::tool::TOOLS;
use ringback_testkit::{Setup, World, wait_for, within};
use serde_json::{Value, json};

use crate::model_service::ModelService;
use crate::support::*;

/// Adds HTTP and MCP.
fn with_faces(setup: Setup) -> Setup {
    let keepalive = Duration::from_secs(20);
    let setup = setup.http(ClientToolSettings { keepalive, timeout_ms_max: 60_000 });
    let setup = setup.mcp(ringback_edge_mcp::Config::default());
    setup.listener(|http| http.max_body_bytes = 64 << 20)
}

/// A client of the HTTP and MCP faces of a daemon.
struct Faces {
    http: HttpClient<HttpConnector, Full<Bytes>>,
    address: String,
    token: String,
    session: Option<String>,
}

impl Faces {
    async fn of(daemon: &World) -> Self {
        let mut faces = Self {
            http: HttpClient::builder(TokioExecutor::new()).build(HttpConnector::new()),
            address: daemon.address().to_string(),
            token: daemon.admin_token().expose().to_owned(),
            session: None,
        };
        faces.shake_hands().await;
        faces
    }

    async fn post(&self, path: &str, accept: &str, body: &Value) -> Response<Incoming> {
        let mut request = Request::post(format!("http://{}{path}", self.address))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("accept", accept);
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(Full::from(body.to_string())).unwrap();
        within("an answer", self.http.request(request)).await.unwrap()
    }

    async fn shake_hands(&mut self) {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
                            "clientInfo": {"name": "t", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answered = self.rpc(&message).await;
        self.session = Some(answered.headers()["mcp-session-id"].to_str().unwrap().to_owned());
        text(answered).await;
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.rpc(&done).await.status(), 202);
    }

    async fn rpc(&self, message: &Value) -> Response<Incoming> {
        self.post("/mcp", "application/json, text/event-stream", message).await
    }

    /// Calls a tool over MCP; returns the structured result of the last message.
    async fn by_mcp(&self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let text = text(self.rpc(&message).await).await;
        let last = text.lines().rev().find_map(|line| line.strip_prefix("data:"));
        let answer: Value = serde_json::from_str(last.unwrap_or(&text)).unwrap();
        let result = &answer["result"];
        assert_ne!(result["isError"], json!(true), "{tool}: {answer}");
        result["structuredContent"].clone()
    }

    /// Calls a tool over plain HTTP.
    async fn by_http(&self, tool: &str, arguments: &Value) -> Value {
        let path = format!("/v1/tools/{tool}/call");
        let answered = self.post(&path, "application/json", arguments).await;
        let status = answered.status();
        let answer: Value = serde_json::from_str(&text(answered).await).unwrap();
        if status == 202 {
            return answer["job"].clone();
        }
        assert_eq!(status, 200, "{tool}: {answer}");
        answer["result"].clone()
    }
}

/// Calls a tool over HOOT01, like a program without types.
pub(crate) async fn by_hoot(client: &Client, tool: &str, arguments: &Value) -> Value {
    let mut request = arguments.clone();
    request["tool"] = json!(tool);
    let body = rmp_serde::to_vec_named(&json!({"request": request, "wait_ms": 30_000})).unwrap();
    let frame = Frame::new(Command::Request, RequestId::random(), Body::MsgPack(body.into()));
    let reply = within("an answer", client.call_raw(frame)).await.unwrap();
    let Body::MsgPack(body) = reply.body else { panic!("{tool}: {reply:?}") };
    let answer: Value = rmp_serde::from_slice(&body).unwrap();
    assert_eq!(answer["kind"], "success", "{tool}: {answer}");
    answer["response"].clone()
}

async fn text(response: Response<Incoming>) -> String {
    let body = within("a body", response.into_body().collect()).await.unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

/// Returns every music tool that waits for its result, with arguments and the type of its answer.
fn calls(midi: &str, sound: &str) -> Vec<(&'static str, Value, &'static str)> {
    let few = json!(30);
    vec![
        ("abc_parse", json!({"abc": TUNE}), "abc_parsed"),
        ("abc_validate", json!({"abc": TUNE}), "abc_validated"),
        ("abc_transpose", json!({"abc": TUNE, "semitones": 2}), "abc_transposed"),
        ("abc_to_midi", json!({"abc": TUNE}), "abc_converted"),
        ("soundfont_inspect", json!({}), "soundfont_info"),
        ("soundfont_preset_inspect", json!({"bank": 0, "program": 0}), "soundfont_preset_info"),
        ("midi_to_wav", json!({"input_hash": midi, "format": "flac16"}), "artifacts_created"),
        ("beatthis_analyze", json!({"audio_hash": sound}), "beats_analyzed"),
        ("clap_analyze", json!({"audio_hash": sound}), "clap_analyzed"),
        ("orpheus_generate", json!({"max_tokens": few}), "artifacts_created"),
        ("orpheus_generate_seeded", json!({"seed_hash": midi}), "artifacts_created"),
        ("orpheus_continue", json!({"input_hash": midi}), "artifacts_created"),
        ("orpheus_bridge", json!({"section_a_hash": midi}), "artifacts_created"),
        ("orpheus_loops", json!({}), "artifacts_created"),
        ("orpheus_classify", json!({"midi_hash": midi}), "orpheus_classified"),
    ]
}

/// Returns the long ones, which answer with their job.
fn long_calls() -> Vec<(&'static str, Value)> {
    vec![
        ("musicgen_generate", json!({"prompt": "a clock"})),
        ("yue_generate", json!({"lyrics": "[verse]\nla"})),
    ]
}

/// Rule: the tests below cover every music tool of the table.
#[test]
fn no_music_tool_is_left_out() {
    const MUSIC: [&str; 8] =
        ["abc_", "soundfont_", "midi_", "beatthis_", "clap_", "orpheus_", "musicgen_", "yue_"];
    let is_music = |name: &&str| MUSIC.iter().any(|prefix| name.starts_with(prefix));
    let mut rows: Vec<_> = TOOLS.iter().map(|row| row.name).filter(is_music).collect();
    let called = calls("", "").into_iter().map(|(tool, ..)| tool);
    let mut called: Vec<_> = called.chain(long_calls().into_iter().map(|(tool, _)| tool)).collect();
    rows.sort_unstable();
    called.sort_unstable();
    assert_eq!(called, rows);
}

/// REQ: every music tool is called over HOOT01, MCP and HTTP; long ones answer with their job.
#[tokio::test(flavor = "multi_thread")]
async fn every_music_tool_is_called_over_hoot01_mcp_and_http() {
    let sound = json!({"audio_base64": base64(&clicks(1))});
    let service = ModelService::answering(200, sound).await;
    let setup = service.setup(&[Service::Musicgen, Service::Yue]);
    let daemon = with_faces(setup).start().await;
    let client = daemon.admin().await;
    let midi = store(&client, midi(), "audio/midi").await.to_string();
    let sound = store(&client, clicks(4), "audio/wav").await.to_string();
    let faces = Faces::of(&daemon).await;
    for (tool, arguments, answer) in calls(&midi, &sound) {
        assert_eq!(by_hoot(&client, tool, &arguments).await["type"], answer, "{tool} over HOOT01");
        assert_eq!(faces.by_mcp(tool, &arguments).await["type"], answer, "{tool} over MCP");
        assert_eq!(faces.by_http(tool, &arguments).await["type"], answer, "{tool} over HTTP");
    }
    for (tool, arguments) in long_calls() {
        assert_eq!(by_hoot(&client, tool, &arguments).await["type"], "artifacts_created", "{tool}");
        for job in [faces.by_mcp(tool, &arguments).await, faces.by_http(tool, &arguments).await] {
            let job_id = job["job_id"].as_str().unwrap_or_else(|| panic!("{tool}: {job}"));
            let poll = json!({"job_ids": [job_id], "timeout_ms": 20_000});
            assert_eq!(faces.by_mcp("job_poll", &poll).await["completed"][0], job_id);
            let status = faces.by_http("job_status", &json!({"job_id": job_id})).await;
            assert_eq!(status["result"]["type"], "artifacts_created", "{status}");
        }
    }
    drop(faces);
    daemon.stop().await;
}

/// REQ: a caller over HTTP that streams a render gets progress and its sound, then the artifact.
#[tokio::test(flavor = "multi_thread")]
async fn a_render_streams_over_http() {
    let daemon = with_faces(music_setup()).start().await;
    let client = daemon.admin().await;
    let midi = store(&client, midi(), "audio/midi").await.to_string();
    let faces = Faces::of(&daemon).await;
    let path = "/v1/tools/midi_to_wav/call";
    let arguments = json!({"input_hash": midi});
    let told = text(faces.post(path, "text/event-stream", &arguments).await).await;
    let events: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("event:")).collect();
    assert_eq!(events.first().map(|name| name.trim()), Some("start"), "{events:?}");
    assert_eq!(events.last().map(|name| name.trim()), Some("result"), "{events:?}");
    for part in ["\"partial_audio\"", "\"progress\"", "\"artifacts_created\""] {
        assert!(told.contains(part), "no {part}");
    }
    drop(faces);
    daemon.stop().await;
}

/// REQ: a long job is followed over MCP by its progress, and cancelled in the middle.
#[tokio::test(flavor = "multi_thread")]
async fn a_render_is_followed_and_cancelled_over_mcp() {
    let daemon = with_faces(music_setup()).start().await;
    let long = TUNE.replace("Q:1/4=120", "Q:1/4=2");
    let faces = Faces::of(&daemon).await;
    let made = faces.by_mcp("abc_to_midi", &json!({"abc": long})).await;
    let arguments = json!({"input_hash": made["content_hash"]});
    let meta = json!({"progressToken": "p"});
    let params = json!({"name": "midi_to_wav", "arguments": arguments, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params});
    let mut answered = faces.rpc(&call).await;
    let mut told = String::new();
    while !told.contains("notifications/progress") {
        let frame = within("progress", answered.body_mut().frame()).await.unwrap().unwrap();
        told.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap_or_default()));
        assert!(!told.contains("artifacts_created"), "it ended before it was cancelled");
    }
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": 9}});
    assert_eq!(faces.rpc(&cancel).await.status(), 202);
    // The stream ends when the work does.
    within("the end", answered.into_body().collect()).await.unwrap();
    wait_for("nothing is under way", async || daemon.broker.under_way().n_jobs == 0).await;
    let jobs = faces.by_mcp("job_list", &json!({})).await;
    let render = jobs["jobs"].as_array().unwrap().iter().find(|job| job["source"] == "midi_to_wav");
    assert_eq!(render.unwrap()["status"], "cancelled", "{jobs}");
    drop(faces);
    daemon.stop().await;
}
