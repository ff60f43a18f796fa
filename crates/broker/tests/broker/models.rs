//! The model proxies of sessions: when they open, how the agent is started, when they close.

use std::any::Any;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_broker::{
    AgentCommand, AuditLine, Broker, Config, Credential, InsideProgram, ModelDoor, ModelRequest,
    ProviderKey, SessionKey,
};
use ringback_proto::ToolResponse;
use ringback_proto::error::ToolError;
use ringback_proto::ids::SessionId;
use ringback_proto::request::{
    ModelUsage, ProjectCreateRequest, ProjectResponse, SessionEndRequest, SessionEventInfo,
    SessionEventsRequest, SessionEventsResponse, SessionGetRequest, SessionMessageRequest,
    SessionMessagedResponse, SessionResponse,
};
use ringback_proto::secret::Secret;

use crate::common::{World, result, start_with};

/// Reports its own arguments.
const INSIDE: &str =
    "#!/bin/sh\nprintf '{\"type\":\"message\",\"text\":\"%s\"}\\n{\"type\":\"done\"}\\n' \"$*\"\n";

/// Records which sessions opened it, and whether it is still open.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    opened: Mutex<Vec<(SessionId, Utf8PathBuf, String)>>,
    keys: Mutex<Vec<SessionKey>>,
    is_open: Arc<AtomicBool>,
}

struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Doors {
    /// Returns the keys of the sessions that were opened since the last look.
    pub(crate) fn taken_keys(&self) -> Vec<Option<Secret>> {
        let keys = std::mem::take(&mut *self.keys.lock().unwrap());
        keys.iter().map(SessionKey::get).collect()
    }
}

impl ModelDoor for Doors {
    fn open(
        &self,
        _: Broker,
        session: SessionId,
        dir: &Utf8Path,
        model: &str,
        key: SessionKey,
    ) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.opened.lock().unwrap().push((session, dir.to_owned(), model.to_owned()));
        self.keys.lock().unwrap().push(key);
        self.is_open.store(true, Ordering::SeqCst);
        Ok(Box::new(Guard(Arc::clone(&self.is_open))))
    }

    /// Knows `openai` and `mine`, of which `openai` needs a key.
    fn check(&self, provider: &str, _: Option<&str>) -> Result<ProviderKey, String> {
        match provider {
            "mine" => Ok(ProviderKey::Ready),
            "openai" => Ok(ProviderKey::Missing("no key for `openai`".to_owned())),
            other => Err(format!("no provider `{other}`")),
        }
    }

    fn has_prices(&self, _model: &str) -> bool {
        false
    }
}

#[derive(Debug)]
struct Inside(Utf8PathBuf);

impl InsideProgram for Inside {
    fn path(&self) -> io::Result<Utf8PathBuf> {
        Ok(self.0.clone())
    }
}

/// The agents `asks`, which has a model, and `plain`, which has none.
pub(crate) fn with_agents(config: &mut Config) {
    let run_dir = &config.sessions.run_dir;
    std::fs::create_dir_all(run_dir).unwrap();
    let inside = run_dir.join("inside");
    std::fs::write(&inside, INSIDE).unwrap();
    std::fs::set_permissions(&inside, PermissionsExt::from_mode(0o700)).unwrap();
    let command = vec!["/bin/true".to_owned(), "{model}".to_owned()];
    let (provider, plain) = (Some("mine".to_owned()), vec![inside.to_string(), "plain".to_owned()]);
    let asks = AgentCommand { command, provider, ..AgentCommand::default() };
    let plain = AgentCommand { command: plain, ..AgentCommand::default() };
    config.sessions.agents.extend([("asks".to_owned(), asks), ("plain".to_owned(), plain)]);
    config.sessions.inside = Some(Arc::new(Inside(inside)));
}

async fn session(fixture: &World, agent: &str) -> Result<SessionId, ToolError> {
    let made = ProjectCreateRequest {
        name: format!("of {agent}"),
        description: None,
        limits: None,
        agent: None,
        key_level: None,
        network: None,
        image: None,
        permissions: None,
    };
    let made = result(&fixture.broker, &Credential::local(), made).await?;
    let project = ProjectResponse::try_from(made).unwrap();
    let message = SessionMessageRequest {
        message: "go".to_owned(),
        project_id: Some(project.project_id),
        agent: Some(agent.to_owned()),
        create_workspace: true,
        ..SessionMessageRequest::default()
    };
    let told = result(&fixture.broker, &Credential::local(), message).await?;
    Ok(SessionMessagedResponse::try_from(told).unwrap().session_id)
}

/// Returns the text of the first event that matches.
async fn text(
    fixture: &World,
    session_id: SessionId,
    is_wanted: impl Fn(&SessionEventInfo) -> bool,
) -> String {
    let mut since_index = Some(-1);
    loop {
        let request = SessionEventsRequest {
            session_id,
            since_index,
            max_events: None,
            wait_ms: Some(20_000),
            include_children: false,
            follow: false,
        };
        let page = result(&fixture.broker, &Credential::local(), request).await.unwrap();
        let page = SessionEventsResponse::try_from(page).unwrap();
        assert!(!page.events.is_empty(), "nothing more is said");
        if let Some(event) = page.events.iter().find(|event| is_wanted(event)) {
            return event.text.clone().unwrap();
        }
        since_index = Some(page.last_index);
    }
}

fn is_said(event: &SessionEventInfo) -> bool {
    event.role.as_deref() == Some("assistant")
}

/// REQ: "Model access without the key in the box": a session whose agent has a model gets a model
/// proxy for its lifetime, and its agent is started behind the program that gives the proxy an
/// address.
#[tokio::test]
async fn an_agent_with_a_model_gets_a_door_and_an_address_for_it() {
    let doors = Arc::<Doors>::default();
    let models = Some(Arc::<Doors>::clone(&doors) as Arc<dyn ModelDoor>);
    let fixture = start_with(|config| {
        with_agents(config);
        config.sessions.doors.models = models;
    })
    .await;
    let plain = session(&fixture, "plain").await.unwrap();
    assert_eq!(text(&fixture, plain, is_said).await, "plain");
    assert!(doors.opened.lock().unwrap().is_empty());

    let asks = session(&fixture, "asks").await.unwrap();
    let [(of, dir, model)] = <[_; 1]>::try_from(doors.opened.lock().unwrap().clone()).unwrap();
    assert_eq!((of, model.as_str()), (asks, "mine"));
    let expected = format!("forward --socket {dir}/model.sock -- /bin/true {{model}}");
    assert_eq!(text(&fixture, asks, is_said).await, expected);
    assert!(doors.is_open.load(Ordering::SeqCst));
    let ended = SessionEndRequest { session_id: asks };
    let ended = result(&fixture.broker, &Credential::local(), ended).await;
    assert!(matches!(ended, Ok(ToolResponse::Ack(_))), "{ended:?}");
    assert!(!doors.is_open.load(Ordering::SeqCst), "it closes with its session");
}

/// Rule: each request to a model is an event of its session and a line of the audit.
#[tokio::test]
async fn a_request_of_a_model_is_in_the_events_and_in_the_audit() {
    let fixture = start_with(with_agents).await;
    let session = session(&fixture, "plain").await.unwrap();
    let request = ModelRequest {
        model: "mine".to_owned(),
        method: "POST".to_owned(),
        path: "/v1/messages".to_owned(),
        status: Some(529),
        is_whole: true,
        duration: Duration::from_millis(120),
        answered_by: None,
        usage: ModelUsage { requests: 1, bytes_up: 10, bytes_down: 20, ..ModelUsage::default() },
        refusal: None,
        key: None,
    };
    fixture.broker.model_requested(session, &request);
    let said = text(&fixture, session, |event| event.kind == "model_request").await;
    assert_eq!(said, "POST /v1/messages: 529, 120 ms, 10 bytes sent, 20 received");
    let asked = SessionGetRequest { session_id: session };
    let shown = result(&fixture.broker, &Credential::local(), asked).await.unwrap();
    let shown = SessionResponse::try_from(shown).unwrap();
    assert_eq!(shown.model_usage, Some(request.usage), "the session shows its usage");
    let audit = fixture.broker.audit(&Credential::local()).unwrap().page(None, None).await.unwrap();
    let entry = audit.lines.iter().find_map(|line| match line {
        AuditLine::Call(entry) if &*entry.tool == "model:mine" => Some(entry),
        _ => None,
    });
    let entry = entry.unwrap();
    assert_eq!((entry.session, entry.edge.as_ref()), (Some(session), "model"));
    assert_eq!((entry.outcome.as_ref(), entry.duration_us), ("status_529", 120_000));
    assert_eq!(entry.bytes.map(|bytes| (bytes.up, bytes.down)), Some((10, 20)));
}

/// Rule: a model proxy that cannot be opened is reported, and leaves no session.
#[tokio::test]
async fn an_agent_whose_model_is_not_there_does_not_start() {
    let fixture = start_with(with_agents).await;
    let error = session(&fixture, "asks").await.unwrap_err();
    assert!(error.message.contains("`asks`") && error.message.contains("`mine`"), "{error:?}");
}
