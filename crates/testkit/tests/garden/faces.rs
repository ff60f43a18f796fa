//! Commands over HOOT01, MCP and plain HTTP.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use ringback_edge_http::ClientToolSettings;
use ringback_proto::garden::command::*;
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_proto::{Error, ErrorKind};
use ringback_testkit::{Setup, World, within};
use serde_json::{Value, json};

use crate::support::*;

/// A client of the HTTP and MCP faces of a daemon.
struct Faces {
    http: HttpClient<HttpConnector, Full<Bytes>>,
    address: String,
    token: String,
    session: Option<String>,
}

impl Faces {
    async fn of(daemon: &World) -> Self {
        let http = HttpClient::builder(TokioExecutor::new()).build(HttpConnector::new());
        let (address, token) = (daemon.address().to_string(), daemon.admin_token().expose());
        let mut faces = Self { http, address, token: token.to_owned(), session: None };
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
                            "clientInfo": {"name": "t", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let (_, session, _) = faces.post("/mcp", &hello).await;
        faces.session = session;
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        faces.post("/mcp", &done).await;
        faces
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Option<String>, String) {
        let accept = "application/json, text/event-stream";
        let mut request = Request::post(format!("http://{}{path}", self.address))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("accept", if path == "/mcp" { accept } else { "application/json" });
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(Full::from(body.to_string())).unwrap();
        let answered = within("an answer", self.http.request(request)).await.unwrap();
        let status = answered.status().as_u16();
        let session = answered.headers().get("mcp-session-id");
        let session = session.map(|session| session.to_str().unwrap().to_owned());
        let body = within("a body", answered.into_body().collect()).await.unwrap().to_bytes();
        (status, session, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Calls a tool over MCP: its structured content, or the text of its error.
    async fn by_mcp(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let (_, _, text) = self.post("/mcp", &message).await;
        let last = text.lines().rev().find_map(|line| line.strip_prefix("data:"));
        let answer: Value = serde_json::from_str(last.unwrap_or(&text)).unwrap();
        let result = &answer["result"];
        if result["isError"] == json!(true) {
            return Err(result.to_string());
        }
        Ok(result["structuredContent"].clone())
    }

    /// Calls a tool over plain HTTP: its answer, or the text of its error.
    async fn by_http(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let (status, _, text) = self.post(&format!("/v1/tools/{tool}/call"), arguments).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        match status {
            200 => Ok(answer["result"].clone()),
            202 => Ok(answer["job"].clone()),
            _ => Err(text),
        }
    }
}

async fn with_faces() -> (World, ScriptedGarden, Faces) {
    let keepalive = Duration::from_secs(20);
    let daemon = Setup::new()
        .hoot()
        .http(ClientToolSettings { keepalive, timeout_ms_max: 60_000 })
        .mcp(ringback_edge_mcp::Config::default())
        .start()
        .await;
    let garden = ScriptedGarden::of(&daemon).await;
    let faces = Faces::of(&daemon).await;
    (daemon, garden, faces)
}

/// REQ: the seed's flow over MCP and HTTP; `flow` has it over HOOT01.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_over_mcp_and_http_is_a_job_with_an_acknowledgement() {
    let (daemon, garden, faces) = with_faces().await;
    let client = daemon.admin().await;
    for face in ["mcp", "http"] {
        let call = async |tool: &str, arguments: Value| match face {
            "mcp" => faces.by_mcp(tool, &arguments).await,
            _ => faces.by_http(tool, &arguments).await,
        };
        let played = call("garden_play", json!({"at": "next_beat"})).await.unwrap();
        let job_id = played["job_id"].as_str().unwrap().to_owned();
        assert!(played["message"].as_str().unwrap().contains("playing"), "{face}: {played}");
        assert_eq!(garden.last(PLAY).unwrap().job_id.as_ref(), Some(&job_id), "{face}");
        let status = job(&client, job_id.parse().unwrap()).await.status;
        assert_eq!(status, JobState::Complete, "{face}");

        let nothing = Error::new(ErrorKind::Conflict, "there is nothing to play");
        garden.script(PLAY, Script::Refuse(nothing));
        let refused = call("garden_play", json!({})).await.unwrap_err();
        assert!(refused.contains("nothing to play"), "{face}: {refused}");
        garden.behave();

        let paused = call("garden_emergency_pause", json!({})).await.unwrap();
        assert!(paused["job_id"].is_string(), "{face}: {paused}");
        assert_eq!(garden.last(EMERGENCY_PAUSE).unwrap().job_id, None, "{face}");
        let status = call("garden_status", json!({})).await.unwrap();
        assert_eq!(status["time_signature"], "4/4", "{face}: {status}");
        let content = store(&client, b"sound").await.to_string();
        let place = json!({"position": 4, "behavior_type": "play_content", "content_id": content});
        let placed = call("garden_create_region", place).await.unwrap();
        assert_eq!(placed["duration"], 4.0, "{face}: {placed}");
        let listed = call("garden_get_regions", json!({})).await.unwrap();
        assert!(listed["count"].as_u64().unwrap() >= 1, "{face}: {listed}");
        let region_id = &placed["region_id"];
        let signature = json!({"bpm": 90, "beat": 8, "time_signature": "3/4"});
        for (tool, arguments, sent) in [
            ("garden_pause", json!({}), PAUSE),
            ("garden_stop", json!({"at": "next_bar"}), STOP),
            ("garden_seek", json!({"beat": 2.5}), SEEK),
            ("garden_set_tempo", signature, SET_TEMPO),
            ("garden_set_loop", json!({"start": 0, "end": 8}), SET_LOOP),
            ("garden_set_loop", json!({}), SET_LOOP),
            ("garden_move_region", json!({"region_id": region_id, "new_position": 6}), MOVE_REGION),
            ("garden_reject", json!({"region_id": region_id}), SET_REGION_STATE),
        ] {
            let done = call(tool, arguments).await.unwrap();
            let got = garden.last(sent).unwrap();
            assert_eq!(got.job_id.as_deref(), done["job_id"].as_str(), "{face}: {tool} {done}");
            let job_id = done["job_id"].as_str().unwrap().parse().unwrap();
            assert_eq!(job(&client, job_id).await.status, JobState::Complete, "{face}: {tool}");
        }
        let listed = call("garden_get_regions", json!({})).await.unwrap();
        assert_eq!(listed["regions"][0]["position"], 6.0, "{face}: {listed}");
        assert_eq!(listed["tempo"][0]["time_signature"], "3/4", "{face}: {listed}");
        let delete = json!({"region_id": region_id});
        call("garden_delete_region", delete).await.unwrap();
        let bad = call("garden_seek", json!({"beat": -1})).await.unwrap_err();
        assert!(bad.contains("beat"), "{face}: {bad}");
    }
    let list = JobListRequest { status: Some(JobState::Failed), limit: None, cursor: None };
    let failed = client.call::<JobList>(list).await.unwrap();
    assert_eq!(failed.jobs.len(), 4, "two refusals and two bad beats");
    daemon.stop().await;
}
