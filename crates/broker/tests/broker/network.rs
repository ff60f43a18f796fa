//! The network access of sessions: who decides, when their network proxies open, and what is
//! recorded.

use std::any::Any;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::Utf8Path;
use ringback_broker::{
    AuditLine, Broker, Config, Credential, NetworkConnection, NetworkDoor, NetworkOutcome,
};
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::network::NetworkPolicy;
use ringback_proto::principal::{KeyLevel, Level};
use ringback_proto::request::{
    ProjectCreateRequest, ProjectResponse, SessionGetRequest, SessionMessageRequest,
    SessionNetworkRequest, SessionResponse,
};
use tokio::sync::watch;

use crate::common::{World, start_with};
use crate::confinement::{Inside, with_shell};
use crate::sessions::{
    call, end, is_idle, named, project, refused, said, say, to_project, to_session, token, until,
    with_echo,
};

/// Records which sessions have a network proxy, and its settings.
#[derive(Debug, Default)]
pub(crate) struct Doors(Arc<Mutex<Vec<Door>>>);

type Door = (SessionId, watch::Receiver<Arc<NetworkPolicy>>);

struct Guard(Arc<Mutex<Vec<Door>>>, SessionId);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.lock().unwrap().retain(|(session, _)| *session != self.1);
    }
}

impl NetworkDoor for Doors {
    fn open(
        &self,
        _: Broker,
        session: SessionId,
        dir: &Utf8Path,
        policy: watch::Receiver<Arc<NetworkPolicy>>,
    ) -> io::Result<Box<dyn Any + Send + Sync>> {
        assert!(dir.is_dir());
        self.0.lock().unwrap().push((session, policy));
        Ok(Box::new(Guard(Arc::clone(&self.0), session)))
    }
}

impl Doors {
    /// Returns what the network proxy of a session allows, if it has one.
    pub(crate) fn allows(&self, session: SessionId) -> Option<String> {
        let doors = self.0.lock().unwrap();
        let door = doors.iter().find(|(of, _)| *of == session);
        door.map(|(_, policy)| policy.borrow().to_string())
    }
}

/// Runs the command that follows its own arguments.
const INSIDE: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";

fn with_inside(config: &mut Config) {
    with_shell(config);
    let path = config.data_dir.with_file_name("inside");
    std::fs::write(&path, INSIDE).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    config.sessions.inside = Some(Arc::new(Inside(path)));
}

pub(crate) async fn confined() -> (World, Arc<Doors>) {
    let doors = Arc::<Doors>::default();
    let network = Some(Arc::<Doors>::clone(&doors) as Arc<dyn NetworkDoor>);
    let fixture = start_with(|config| {
        with_inside(config);
        config.sessions.doors.network = network;
    })
    .await;
    (fixture, doors)
}

fn policy(text: &str) -> NetworkPolicy {
    text.parse().unwrap()
}

/// A message that starts a session with a network, in a workspace of its own.
fn reaching(project: ProjectId, network: &str) -> SessionMessageRequest {
    SessionMessageRequest {
        create_workspace: true,
        network: Some(Box::new(policy(network))),
        ..to_project(project, "true")
    }
}

fn change(session_id: SessionId, network: &str) -> SessionNetworkRequest {
    SessionNetworkRequest { session_id, network: policy(network) }
}

async fn changed(fixture: &World, who: &Credential, session_id: SessionId, network: &str) {
    let shown: SessionResponse = call(fixture, who, change(session_id, network)).await;
    assert_eq!(shown.network, Some(policy(network)));
}

async fn network_of(fixture: &World, who: &Credential, session_id: SessionId) -> Option<String> {
    let shown: SessionResponse = call(fixture, who, SessionGetRequest { session_id }).await;
    shown.network.map(|network| network.to_string())
}

/// REQ: network policy: `none` is the default, and then there is no network proxy at all; the
/// others must be requested, and the agent finds the proxy through its environment.
#[tokio::test]
async fn a_session_has_the_network_it_was_started_with() {
    let (fixture, doors) = confined().await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let show = "env | grep -ci _proxy= ; ls /mcp; true";
    let plain = say(&fixture, &who, to_project(project, show)).await.session_id;
    let events = until(&fixture, &who, plain, -1, is_idle).await;
    assert_eq!(said(&events), ["0 bin "], "{events:?}");
    assert_eq!(network_of(&fixture, &who, plain).await.unwrap(), "none");
    assert_eq!(doors.allows(plain), None);

    let text = "allow example.org:443 *.example.org:*";
    let open = say(&fixture, &who, reaching(project, text)).await.session_id;
    assert_eq!(network_of(&fixture, &who, open).await.as_deref(), Some(text));
    assert_eq!(doors.allows(open).as_deref(), Some(text));
    end(&fixture, &who, open).await;
    assert_eq!(doors.allows(open), None, "it closes with its session");

    let taken = SessionMessageRequest {
        network: Some(Box::new(policy("none"))),
        ..to_session(plain, "true")
    };
    let (code, message) = refused(&fixture, &who, taken).await;
    assert_eq!(code, "invalid_params", "{message}");
    assert!(message.contains("session_network"), "{message}");
    end(&fixture, &who, plain).await;
}

/// REQ: "No elevation": settings that loosen confinement (network) need admin, in a project, at the
/// start of a session and while it runs.
#[tokio::test]
async fn a_wider_network_needs_admin_and_a_narrower_one_does_not() {
    let (fixture, doors) = confined().await;
    let (writer, admin) = (token(&fixture, Level::Write).await, Credential::local());
    let with =
        |network: &str| ProjectCreateRequest { network: Some(policy(network)), ..named(network) };
    for network in ["allow example.org:443", "full"] {
        assert_eq!(refused(&fixture, &writer, with(network)).await.0, "permission_denied");
    }
    for network in ["none", "model", "allow"] {
        let made: ProjectResponse = call(&fixture, &writer, with(network)).await;
        assert_eq!(made.network, Some(policy(network)));
    }
    let own = project(&fixture, &writer).await;
    let wider = reaching(own, "allow example.org:443");
    assert_eq!(refused(&fixture, &writer, wider).await.0, "permission_denied");

    let session = say(&fixture, &writer, to_project(own, "true")).await.session_id;
    let wide = "allow example.org:443 example.net:443";
    assert_eq!(refused(&fixture, &writer, change(session, wide)).await.0, "permission_denied");
    assert_eq!(network_of(&fixture, &writer, session).await.unwrap(), "none");
    changed(&fixture, &admin, session, wide).await;
    changed(&fixture, &writer, session, "allow example.org:443").await;
    assert_eq!(doors.allows(session).unwrap(), "allow example.org:443");
    assert_eq!(refused(&fixture, &writer, change(session, wide)).await.0, "permission_denied");
    let stranger = token(&fixture, Level::Write).await;
    assert_eq!(refused(&fixture, &stranger, change(session, "none")).await.0, "not_found");
    end(&fixture, &writer, session).await;
    assert_eq!(refused(&fixture, &writer, change(session, "none")).await.0, "conflict");
}

/// REQ: changeable while a session runs, both ways; a session that an agent starts reaches no
/// further than the agent, also after a change.
#[tokio::test]
async fn a_change_opens_and_closes_the_door_of_a_session_and_of_its_children() {
    let (fixture, doors) = confined().await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let root = say(&fixture, &who, reaching(project, "allow a.test:1 b.test:2")).await.session_id;
    let child = fixture.broker.session_message_from(root, "true".to_owned(), None).await;
    let child = child.unwrap().session_id;
    assert_eq!(doors.allows(child).unwrap(), "allow a.test:1 b.test:2");
    changed(&fixture, &who, root, "allow a.test:1").await;
    for session in [root, child] {
        assert_eq!(doors.allows(session).unwrap(), "allow a.test:1");
    }
    changed(&fixture, &who, root, "none").await;
    assert_eq!((doors.allows(root), doors.allows(child)), (None, None));
    changed(&fixture, &who, root, "full").await;
    assert_eq!((doors.allows(root).as_deref(), doors.allows(child)), (Some("full"), None));
    let is_last = |event: &ringback_proto::request::SessionEventInfo| {
        event.kind == "network_changed"
            && event.text.as_deref().is_some_and(|text| text.starts_with("full; "))
    };
    until(&fixture, &who, root, -1, is_last).await;
    end(&fixture, &who, root).await;
}

/// REQ: "No elevation": a session that an agent starts with its key reaches no further than the
/// agent, whatever their project allows, also after a change.
#[tokio::test]
async fn an_agent_with_a_key_starts_nothing_that_reaches_further_than_itself() {
    let (fixture, doors) = confined().await;
    let who = Credential::local();
    let wide = ProjectCreateRequest {
        key_level: Some(KeyLevel::Write),
        network: Some(policy("full")),
        ..named("wide")
    };
    let project = call::<ProjectResponse>(&fixture, &who, wide).await.project_id;
    let narrow = SessionMessageRequest {
        message: "echo $OUBLIETTE_API_KEY".to_owned(),
        ..reaching(project, "allow a.test:1 b.test:2")
    };
    let session = say(&fixture, &who, narrow).await.session_id;
    let events = until(&fixture, &who, session, -1, is_idle).await;
    let agent = fixture.broker.authenticate_in(session, said(&events)[0].trim()).unwrap();
    let wider = refused(&fixture, &agent, reaching(project, "full")).await;
    assert_eq!(wider.0, "permission_denied", "{wider:?}");
    let own = refused(&fixture, &agent, change(session, "full")).await;
    assert_eq!(own.0, "permission_denied", "{own:?}");
    let usual = SessionMessageRequest { create_workspace: true, ..to_project(project, "true") };
    let made = say(&fixture, &agent, usual).await.session_id;
    assert_eq!(doors.allows(made).unwrap(), "allow a.test:1 b.test:2");
    changed(&fixture, &who, session, "allow a.test:1").await;
    assert_eq!(doors.allows(made).unwrap(), "allow a.test:1");
    end(&fixture, &who, made).await;
    end(&fixture, &who, session).await;
}

/// Rule: a session that continues after a restart has the network it had last.
#[tokio::test]
async fn the_network_of_a_session_outlives_the_daemon() {
    let (fixture, _doors) = confined().await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let session = say(&fixture, &who, reaching(project, "allow a.test:1")).await.session_id;
    changed(&fixture, &who, session, "allow b.test:2").await;
    let fixture = fixture.restart(Duration::from_millis(50)).await;
    assert_eq!(network_of(&fixture, &who, session).await.unwrap(), "allow b.test:2");
}

/// Rule: a limit that cannot be enforced is refused: an agent that is not confined reaches
/// everything.
#[tokio::test]
async fn a_network_that_cannot_be_kept_is_refused() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let loose = project(&fixture, &who).await;
    for network in ["none", "model", "allow a.test:1"] {
        let (code, message) = refused(&fixture, &who, reaching(loose, network)).await;
        assert_eq!(code, "invalid_params");
        assert!(message.contains("sandbox.backend"), "{message}");
    }
    let strict = ProjectCreateRequest { network: Some(policy("none")), ..named("strict") };
    let strict: ProjectResponse = call(&fixture, &who, strict).await;
    assert_eq!(
        refused(&fixture, &who, to_project(strict.project_id, "x")).await.0,
        "invalid_params"
    );
    let session = say(&fixture, &who, reaching(loose, "full")).await.session_id;
    assert_eq!(network_of(&fixture, &who, session).await, None);
    assert_eq!(refused(&fixture, &who, change(session, "none")).await.0, "invalid_params");
    let listed = NetworkPolicy { allow: policy("allow a.test:1").allow, ..policy("none") };
    let odd = SessionMessageRequest { network: Some(Box::new(listed)), ..reaching(loose, "full") };
    assert!(refused(&fixture, &who, odd).await.1.contains("use `allow`"));
}

/// REQ: every connection is in the audit log: host, port, outcome and bytes; refusals are reported
/// to the session's followers.
#[tokio::test]
async fn a_connection_is_in_the_audit_and_a_refusal_also_in_the_events() {
    let (fixture, _doors) = confined().await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let session = say(&fixture, &who, to_project(project, "true")).await.session_id;
    let asked = |place: &str, outcome| NetworkConnection {
        place: place.to_owned(),
        outcome,
        duration: Duration::from_millis(12),
        bytes_up: 10,
        bytes_down: 20,
    };
    fixture.broker.network_asked(session, &asked("a.test:443", NetworkOutcome::Passed));
    fixture.broker.network_asked(session, &asked("b.test:80", NetworkOutcome::HostRefused));
    let is_told =
        |event: &ringback_proto::request::SessionEventInfo| event.kind == "network_refused";
    let events = until(&fixture, &who, session, -1, is_told).await;
    assert_eq!(events.last().unwrap().text.as_deref(), Some("b.test:80: not allowed"));
    let audit = fixture.broker.audit(&who).unwrap().page(None, None).await.unwrap();
    let mut found: Vec<_> = Vec::new();
    for line in &audit.lines {
        if let AuditLine::Call(entry) = line
            && entry.edge == "network"
        {
            assert_eq!((entry.session, entry.duration_us), (Some(session), 12_000));
            let bytes = entry.bytes.unwrap();
            assert_eq!((bytes.up, bytes.down), (10, 20));
            found.push((&*entry.tool, entry.outcome.as_ref()));
        }
    }
    assert_eq!(found, [("network:b.test:80", "host_refused"), ("network:a.test:443", "success")]);
    end(&fixture, &who, session).await;
}
