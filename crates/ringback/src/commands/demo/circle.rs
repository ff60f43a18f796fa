//! The circle: an agent in a session calls its caller's functions, and the daemon's own tools with
//! its session key.

use std::time::Duration;

use ringback_proto::any::Format;
use ringback_proto::ids::SessionId;
use ringback_proto::principal::KeyLevel;
use ringback_proto::raw::Raw;
use ringback_proto::record::SessionState;
use ringback_proto::request::{
    CallerTool, CallerToolRequestInfo, CallerToolRequestsRequest, CallerToolResponseRequest,
    ProjectCreateRequest, SessionContext, SessionEndRequest, SessionEventsRequest,
    SessionMessageRequest,
};
use ringback_proto::tool::tools::{
    CallerToolRequests, CallerToolResponse, ProjectCreate, SessionEnd, SessionEvents,
    SessionMessage,
};

use super::Step;
use super::stage::Stage;
use super::steps::check;
use crate::failure::Failure;

/// Far longer than the agent takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long one poll waits.
const WAIT_MS: u64 = 2000;

/// The message to the scripted agent, which runs it line by line.
const SCRIPT: &str = r#"{"say":"I look up the weather, and tell you."}
{"call":{"tool":"you_weather","arguments":{"city":"Oslo"}}}
{"expect":{"is_error":false,"contains":"snow"}}
{"call":{"tool":"you_send","arguments":{"message":"Take a coat.","id":12345678901234567890}}}
{"expect":{"is_error":false}}
{"call":{"tool":"oubliette_project_list"}}
{"expect":{"is_error":false,"contains":"demo"}}
{"call":{"tool":"oubliette_project_create","arguments":{"name":"mine"}}}
{"expect":{"is_error":true}}
{"say":"Done."}"#;

/// The demonstration's own functions.
fn answer(call: &CallerToolRequestInfo) -> (Option<Raw>, Option<String>) {
    let text = match call.tool.as_str() {
        "weather" => r#"{"sky":"snow","degrees":-3}"#,
        "send" => r#"{"sent":true}"#,
        other => return (None, Some(format!("unknown tool `{other}`"))),
    };
    let bytes = bytes::Bytes::from_static(text.as_bytes());
    (Some(Raw(ringback_proto::any::Any { format: Format::Json, bytes })), None)
}

fn tool(name: &str, description: &str) -> CallerTool {
    CallerTool {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        input_schema: None,
        timeout_ms: None,
        allowed: false,
    }
}

pub(super) async fn circle(stage: &Stage) -> Result<Step, Failure> {
    let client = &stage.client;
    let project = ProjectCreateRequest {
        name: "demo".to_owned(),
        description: None,
        limits: None,
        agent: None,
        key_level: Some(KeyLevel::Read),
        network: None,
        image: None,
        permissions: None,
    };
    let project = client.call::<ProjectCreate>(project).await?.project_id;
    let tools = vec![tool("weather", "Returns the weather"), tool("send", "Sends you a message")];
    let context = SessionContext {
        caller_id: Some("you".to_owned()),
        caller_tools: Some(tools),
        caller_server: None,
    };
    let request = SessionMessageRequest {
        project_id: Some(project),
        message: SCRIPT.to_owned(),
        context: Some(context),
        ..Default::default()
    };
    let session = client.call::<SessionMessage>(request).await?.session_id;
    let circle = async {
        tokio::select! {
            served = serve(stage, session) => served.map(|()| Vec::new()),
            followed = follow(stage, session) => followed,
        }
    };
    let mut happened = tokio::time::timeout(PATIENCE, circle)
        .await
        .unwrap_or_else(|_| Err(Failure::Wrong("the agent did not finish in time".to_owned())))?;
    client.call::<SessionEnd>(SessionEndRequest { session_id: session }).await?;
    let n_calls = happened.iter().filter(|line| line.contains("calls")).count();
    check(n_calls == 4, "the agent calls four tools")?;
    happened.insert(0, stage.confinement());
    Ok(Step {
        title: "an agent calls your functions",
        command: r#"ringback session start "…" --tool weather=… --tool send=…"#,
        why: "The agent ran in its own process; its calls rang back here, and each was answered once. Its key \
              could read but not write, and ended with the session.",
        happened,
    })
}

/// Serves the agent's calls, as your program would.
async fn serve(stage: &Stage, session: SessionId) -> Result<(), Failure> {
    loop {
        let look = CallerToolRequestsRequest {
            session_id: session,
            caller_id: None,
            wait_ms: Some(WAIT_MS),
        };
        for call in stage.client.call::<CallerToolRequests>(look).await?.requests {
            let (result, error) = answer(&call);
            let request_id = call.request_id;
            let answer =
                CallerToolResponseRequest { session_id: session, request_id, result, error };
            stage.client.call::<CallerToolResponse>(answer).await?;
        }
    }
}

/// Follows the agent until it is idle; returns what it said and did.
async fn follow(stage: &Stage, session: SessionId) -> Result<Vec<String>, Failure> {
    let (mut since, mut happened) = (-1, Vec::new());
    loop {
        let request = SessionEventsRequest {
            session_id: session,
            since_index: Some(since),
            max_events: None,
            wait_ms: Some(WAIT_MS),
            include_children: false,
            follow: false,
        };
        let page = stage.client.call::<SessionEvents>(request).await?;
        since = page.last_index;
        for event in &page.events {
            let text = event.text.as_deref().unwrap_or_default();
            let tool = event.tool_name.as_deref().unwrap_or_default();
            match event.kind.as_str() {
                "message" if event.role.as_deref() == Some("assistant") => {
                    happened.push(format!("the agent says: {text}"));
                }
                "tool_call" => happened.push(format!("the agent calls {tool}")),
                "tool_result" => happened.push(format!("{tool} {text}")),
                "error" => return Err(Failure::Wrong(format!("the agent failed: {text}"))),
                _ => {}
            }
            if event.kind == "status" && event.status == Some(SessionState::Idle) {
                return Ok(happened);
            }
        }
    }
}
