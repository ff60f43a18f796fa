//! The budgets of sessions: limits, the question at a limit, and its answer. The test plays the
//! model, through the model proxy's interface.

use std::any::Any;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::FutureExt as _;
use ringback_broker::{
    Broker, Config, Credential, InsideProgram, LimitReached, ModelDoor, ModelRequest, ProviderKey,
    SessionKey,
};
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::money::MicroUsd;
use ringback_proto::principal::{KeyLevel, Level};
use ringback_proto::request::{
    ModelUsage, PermissionAnswer, ProjectCreateRequest, ProjectLimits, ProjectResponse,
    SessionEventInfo, SessionGetRequest, SessionMessageRequest, SessionResponse,
    SessionSpawnRequest, SpendLimits, TokenCreateRequest, TokenCreatedResponse,
};
use ringback_proto::secret::Secret;
use ringback_testkit::{GRACE, pass, within};

use crate::common::{World, start_with};
use crate::sessions::{
    call, end, is_idle, named, project, refused, said, say, to_project, to_session, until,
    with_echo,
};

/// How long a question waits where the test does not answer.
const LIMIT_WAIT: Duration = Duration::from_secs(20);

/// Runs the command that follows its own arguments.
const INSIDE: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";

#[derive(Debug)]
struct Doors {
    has_prices: bool,
}

impl ModelDoor for Doors {
    fn open(
        &self,
        _: Broker,
        _session: SessionId,
        _dir: &Utf8Path,
        _model: &str,
        _key: SessionKey,
    ) -> io::Result<Box<dyn Any + Send + Sync>> {
        Ok(Box::new(()))
    }

    fn check(&self, _: &str, _: Option<&str>) -> Result<ProviderKey, String> {
        Ok(ProviderKey::Ready)
    }

    fn has_prices(&self, _model: &str) -> bool {
        self.has_prices
    }
}

#[derive(Debug)]
struct Inside(Utf8PathBuf);

impl InsideProgram for Inside {
    fn path(&self) -> io::Result<Utf8PathBuf> {
        Ok(self.0.clone())
    }
}

/// The agent `echo` with a model; `plain` is the same without.
fn with_model(config: &mut Config) {
    with_echo(config);
    let path = config.data_dir.with_file_name("inside");
    std::fs::write(&path, INSIDE).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    config.sessions.inside = Some(Arc::new(Inside(path)));
    let plain = config.sessions.agents["echo"].clone();
    config.sessions.agents.insert("plain".to_owned(), plain);
    let echo = config.sessions.agents.get_mut("echo").unwrap();
    echo.provider = Some("mine".to_owned());
    config.sessions.doors.models = Some(Arc::new(Doors { has_prices: true }));
}

async fn world(change: impl FnOnce(&mut Config)) -> World {
    start_with(|config| {
        with_model(config);
        change(config);
    })
    .await
}

fn tokens(max: u64) -> SpendLimits {
    SpendLimits { max_tokens: Some(max), ..SpendLimits::default() }
}

/// A message that starts a session with limits, in a workspace of its own.
fn limited(project: ProjectId, text: &str, limits: SpendLimits) -> SessionMessageRequest {
    let limits = (!limits.is_none()).then_some(limits);
    SessionMessageRequest { create_workspace: true, limits, ..to_project(project, text) }
}

fn answer(session: SessionId, request_id: &str, option: &str) -> SessionMessageRequest {
    let answer =
        PermissionAnswer { request_id: request_id.to_owned(), option: Some(option.to_owned()) };
    SessionMessageRequest {
        session_id: Some(session),
        answer: Some(Box::new(answer)),
        ..Default::default()
    }
}

/// A model's answer with this many tokens.
fn spend(fixture: &World, session: SessionId, usage: ModelUsage) {
    let request = ModelRequest {
        model: "mine".to_owned(),
        method: "POST".to_owned(),
        path: "/v1/messages".to_owned(),
        status: Some(200),
        is_whole: true,
        duration: Duration::from_millis(1),
        answered_by: Some("m".to_owned()),
        usage: ModelUsage { requests: 1, ..usage },
        refusal: None,
        key: None,
    };
    fixture.broker.model_requested(session, &request);
}

fn used(tokens: u64) -> ModelUsage {
    ModelUsage { input_tokens: tokens, ..ModelUsage::default() }
}

async fn show(fixture: &World, session_id: SessionId) -> SessionResponse {
    call(fixture, &Credential::local(), SessionGetRequest { session_id }).await
}

fn is_question(event: &SessionEventInfo) -> bool {
    event.kind == "permission_request"
}

fn is_error(event: &SessionEventInfo) -> bool {
    event.kind == "error"
}

/// Returns the next question of a session, once a request to its model waits for it.
async fn question(fixture: &World, session: SessionId, since: i64) -> SessionEventInfo {
    let events = until(fixture, &Credential::local(), session, since, is_question).await;
    events.last().unwrap().clone()
}

/// Returns whether a request to the model waits now. It is answered immediately otherwise.
fn waits(fixture: &World, session: SessionId) -> bool {
    fixture.broker.may_ask_model(session).now_or_never().is_none()
}

/// REQ: "enforces `--max-tokens` ... by pausing the session and asking": the model request waits,
/// an event asks as for a permission, `more` allows as much again.
#[tokio::test]
async fn at_its_limit_a_session_waits_for_an_answer_and_goes_on_with_more() {
    let fixture = world(|_| ()).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let session = say(&fixture, &who, limited(project, "hi", tokens(100))).await.session_id;
    until(&fixture, &who, session, -1, is_idle).await;
    assert_eq!(fixture.broker.may_ask_model(session).await, Ok(()));
    spend(&fixture, session, used(120));
    let shown = show(&fixture, session).await;
    assert_eq!((shown.model_usage.unwrap().tokens(), shown.limits), (120, Some(tokens(100))));
    assert_eq!(shown.paused, None, "no request was made after that");

    let (first, second) =
        (fixture.broker.may_ask_model(session), fixture.broker.may_ask_model(session));
    let answering = async {
        let asked = question(&fixture, session, -1).await;
        let ids: Vec<_> = asked.options.iter().map(|option| option.id.as_str()).collect();
        assert_eq!(ids, ["more", "end"]);
        assert!(asked.text.as_deref().unwrap().contains("120 of 100 tokens"), "{asked:?}");
        let request_id = asked.request_id.unwrap();
        let pause = show(&fixture, session).await.paused.unwrap();
        assert_eq!((pause.limit.as_str(), &pause.request_id), ("max_tokens", &request_id));
        let odd = refused(&fixture, &who, answer(session, &request_id, "perhaps")).await;
        assert!(odd.1.contains("choose one of more, end"), "{odd:?}");
        say(&fixture, &who, answer(session, &request_id, "more")).await;
        request_id
    };
    let (first, second, request_id) =
        Box::pin(within("both go on", async { tokio::join!(first, second, answering) })).await;
    assert_eq!((first, second), (Ok(()), Ok(())));
    let shown = show(&fixture, session).await;
    assert_eq!((shown.limits, shown.paused), (Some(tokens(200)), None));
    let is_answer = |event: &SessionEventInfo| event.kind == "permission_answer";
    let events = until(&fixture, &who, session, -1, is_answer).await;
    assert_eq!(events.iter().filter(|event| is_question(event)).count(), 1, "asked once");
    let answered = events.last().unwrap();
    assert_eq!((&answered.request_id, answered.text.as_deref()), (&Some(request_id), Some("more")));
    end(&fixture, &who, session).await;
}

/// Rule: `end` refuses the waiting request and stops the agent; the session rests, and the next
/// message of its owner asks again.
#[tokio::test]
async fn an_answer_that_ends_stops_the_agent_and_the_session_rests() {
    let fixture = world(|_| ()).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let session = say(&fixture, &who, limited(project, "wait", tokens(10))).await.session_id;
    until(&fixture, &who, session, -1, |event| event.role.as_deref() == Some("assistant")).await;
    spend(&fixture, session, used(10));
    let asking = fixture.broker.may_ask_model(session);
    let answering = async {
        let request_id = question(&fixture, session, -1).await.request_id.unwrap();
        say(&fixture, &who, answer(session, &request_id, "end")).await;
    };
    let (asked, ()) = within("it ends", async { tokio::join!(asking, answering) }).await;
    assert_eq!(asked, Err(LimitReached { limit: "max_tokens" }));
    let events = until(&fixture, &who, session, -1, is_idle).await;
    let error = events.iter().find(|event| is_error(event)).unwrap();
    assert!(error.text.as_deref().unwrap().contains("10 of 10 tokens"), "{error:?}");
    assert_eq!(
        fixture.broker.may_ask_model(session).await,
        Err(LimitReached { limit: "max_tokens" })
    );
    let since = say(&fixture, &who, to_session(session, "hi")).await.last_event_index;
    assert!(waits(&fixture, session));
    question(&fixture, session, since).await;
    end(&fixture, &who, session).await;
}

/// REQ: "Without an answer in time requests are refused and the session rests".
#[tokio::test]
async fn a_question_that_nobody_answers_stops_the_agent() {
    let fixture = world(|config| config.sessions.limit_wait = LIMIT_WAIT).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let session = say(&fixture, &who, limited(project, "wait", tokens(10))).await.session_id;
    until(&fixture, &who, session, -1, |event| event.role.as_deref() == Some("assistant")).await;
    spend(&fixture, session, used(11));
    let (asked, ()) =
        tokio::join!(within("it is refused", fixture.broker.may_ask_model(session)), async {
            question(&fixture, session, -1).await;
            pass(LIMIT_WAIT).await;
        });
    assert_eq!(asked, Err(LimitReached { limit: "max_tokens" }));
    let events = until(&fixture, &who, session, -1, is_idle).await;
    let answered = events.iter().find(|event| event.kind == "permission_answer").unwrap();
    assert_eq!((answered.role.as_deref(), &answered.text), (Some("nobody"), &None));
    assert_eq!(show(&fixture, session).await.paused, None);
    end(&fixture, &who, session).await;
}

/// REQ: "never by the agent itself or with its key": neither with a key created for it, nor with a
/// token that its owner passed to it.
#[tokio::test]
async fn no_key_of_an_agent_answers_for_what_agents_spend() {
    let fixture = world(|_| ()).await;
    let who = Credential::local();
    let keyed = ProjectCreateRequest { key_level: Some(KeyLevel::Write), ..named("keyed") };
    let project = call::<ProjectResponse>(&fixture, &who, keyed).await.project_id;
    let session = say(&fixture, &who, limited(project, "env", tokens(10))).await.session_id;
    let events = until(&fixture, &who, session, -1, is_idle).await;
    let key = said(&events)[0].split(' ').find_map(|it| it.strip_prefix("OUBLIETTE_API_KEY="));
    let agent = fixture.broker.authenticate_in(session, key.unwrap()).unwrap();
    spend(&fixture, session, used(10));
    assert!(waits(&fixture, session));
    let request_id = question(&fixture, session, -1).await.request_id.unwrap();
    let by_key = refused(&fixture, &agent, answer(session, &request_id, "more")).await;
    assert_eq!(by_key.0, "permission_denied", "{by_key:?}");
    assert!(waits(&fixture, session));

    // A session it starts with its key spends from the same budget, has no limits of its own, and
    // is not asked itself.
    let more = limited(project, "hi", tokens(1_000_000));
    assert!(refused(&fixture, &agent, more).await.1.contains("that agent's budget"));
    let made = say(&fixture, &agent, limited(project, "hi", SpendLimits::default())).await;
    assert!(waits(&fixture, made.session_id));
    let by_key = refused(&fixture, &agent, answer(made.session_id, &request_id, "more")).await;
    assert!(by_key.1.contains("an agent's key"), "{by_key:?}");
    say(&fixture, &who, answer(session, &request_id, "more")).await;
    assert_eq!(within("it goes on", fixture.broker.may_ask_model(made.session_id)).await, Ok(()));
    end(&fixture, &who, session).await;
    let over = show(&fixture, made.session_id).await.status;
    assert_eq!(over, ringback_proto::record::SessionState::Ended, "it ends with its budget");

    let (name, projects, expires_in) = ("own".to_owned(), None, None);
    let request = TokenCreateRequest { name, scope: Level::Write, projects, expires_in };
    let secret: TokenCreatedResponse = call(&fixture, &who, request).await;
    let passed = fixture.broker.authenticate(secret.token.expose()).unwrap();
    let own = crate::sessions::project(&fixture, &passed).await;
    let api_key = Some(Secret::new(secret.token.expose().to_owned()));
    let start = SessionMessageRequest { api_key, ..limited(own, "hi", tokens(10)) };
    let session = say(&fixture, &passed, start).await.session_id;
    spend(&fixture, session, used(10));
    assert!(waits(&fixture, session));
    let request_id = question(&fixture, session, -1).await.request_id.unwrap();
    let secret = secret.token.expose();
    let agent = fixture.broker.authenticate_in(session, secret).unwrap();
    let by_agent = refused(&fixture, &agent, answer(session, &request_id, "more")).await;
    assert!(by_agent.1.contains("an agent's key"), "{by_agent:?}");
    // The user has a token that the agent does not have.
    say(&fixture, &passed, answer(session, &request_id, "more")).await;
    end(&fixture, &who, session).await;
}

/// Rule: a session that an agent starts spends from its root's budget, and shows its own part.
#[tokio::test]
async fn children_spend_from_the_budget_of_their_root() {
    let fixture = world(|_| ()).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let root = say(&fixture, &who, limited(project, "hi", tokens(100))).await.session_id;
    let told = fixture.broker.session_message_from(root, "hi".to_owned(), None).await.unwrap();
    let child = told.session_id;
    spend(&fixture, root, used(60));
    spend(&fixture, child, used(39));
    assert_eq!(fixture.broker.may_ask_model(child).await, Ok(()));
    spend(&fixture, child, used(1));
    assert!(waits(&fixture, child) && waits(&fixture, root));
    let (of_root, of_child) = (show(&fixture, root).await, show(&fixture, child).await);
    assert_eq!(of_root.model_usage.unwrap().tokens(), 100);
    assert_eq!((of_child.model_usage.unwrap().tokens(), of_child.limits), (40, None));
    assert!(of_child.paused.is_some() && of_child.paused == of_root.paused);
    end(&fixture, &who, root).await;
}

/// REQ: "stored with the session so that they hold after a restart, counters too".
#[tokio::test]
async fn what_a_session_may_spend_and_has_spent_outlives_the_daemon() {
    let fixture = world(|_| ()).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let session = say(&fixture, &who, limited(project, "hi", tokens(100))).await.session_id;
    until(&fixture, &who, session, -1, is_idle).await;
    let cost = Some(MicroUsd(7));
    spend(&fixture, session, ModelUsage { cost_micro_usd: cost, estimated: true, ..used(150) });
    assert!(waits(&fixture, session));
    let request_id = question(&fixture, session, -1).await.request_id.unwrap();
    say(&fixture, &who, answer(session, &request_id, "more")).await;
    let before = show(&fixture, session).await;
    let fixture = fixture.restart(GRACE).await;
    let after = show(&fixture, session).await;
    assert_eq!((after.limits, after.model_usage), (Some(tokens(200)), before.model_usage));
    assert_eq!(after.model_usage.unwrap().cost_micro_usd, cost);
    assert!(after.working_ms >= before.working_ms);
    say(&fixture, &who, to_session(session, "hi")).await;
    assert_eq!(fixture.broker.may_ask_model(session).await, Ok(()));
    spend(&fixture, session, used(50));
    assert!(waits(&fixture, session), "what was spent before counts");
    end(&fixture, &who, session).await;
}

/// REQ: `--max-time`: the working time of an agent is limited, whether it uses its model or not.
#[tokio::test]
async fn an_agent_that_works_for_too_long_is_asked_about_and_stopped() {
    let fixture = world(|config| config.sessions.limit_wait = LIMIT_WAIT).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let time = SpendLimits { max_time_ms: Some(10_000), ..SpendLimits::default() };
    let start =
        SessionMessageRequest { agent: Some("plain".to_owned()), ..limited(project, "wait", time) };
    let session = say(&fixture, &who, start).await.session_id;
    until(&fixture, &who, session, -1, |event| event.role.as_deref() == Some("assistant")).await;
    pass(Duration::from_secs(11)).await;
    question(&fixture, session, -1).await;
    pass(LIMIT_WAIT).await;
    let events = until(&fixture, &who, session, -1, is_idle).await;
    let asked = events.iter().find(|event| is_question(event)).unwrap();
    assert!(asked.text.as_deref().unwrap().contains("seconds"), "{asked:?}");
    assert!(events.iter().any(is_error));
    let shown = show(&fixture, session).await;
    assert!(shown.working_ms >= 10_000 && shown.limits == Some(time), "{shown:?}");
    end(&fixture, &who, session).await;
}

/// Rule: a limit that cannot be counted is refused at the start, with what to do; default limits of
/// the daemon and of projects apply where they can.
#[tokio::test]
async fn limits_that_cannot_be_kept_are_refused() {
    let fixture = world(|config| config.sessions.spending = tokens(500)).await;
    let who = Credential::local();
    let usual = project(&fixture, &who).await;
    let usd = |micros| SpendLimits { max_micro_usd: Some(MicroUsd(micros)), ..Default::default() };
    let plain = |limits| SessionMessageRequest {
        agent: Some("plain".to_owned()),
        ..limited(usual, "hi", limits)
    };
    for limits in [tokens(5), usd(5)] {
        let (_, message) = refused(&fixture, &who, plain(limits)).await;
        assert!(message.contains("`plain` has no `provider`"), "{message}");
    }
    let (_, message) = refused(&fixture, &who, limited(usual, "hi", tokens(0))).await;
    assert!(message.contains("a limit of 0"), "{message}");
    let unlimited = say(&fixture, &who, plain(SpendLimits::default())).await.session_id;
    assert_eq!(show(&fixture, unlimited).await.limits, Some(tokens(500)), "the default");
    let late = SessionMessageRequest { limits: Some(tokens(5)), ..to_session(unlimited, "hi") };
    assert!(refused(&fixture, &who, late).await.1.contains("keeps its limits"));

    let max_time_ms = Some(60_000);
    let limits = Some(ProjectLimits { max_tokens: Some(50), max_time_ms, ..Default::default() });
    let thrifty = ProjectCreateRequest { limits, ..named("thrifty") };
    let project_id = call::<ProjectResponse>(&fixture, &who, thrifty).await.project_id;
    let spawn = SessionSpawnRequest {
        project_id,
        workspace_id: None,
        create_workspace: true,
        agent: None,
        context: None,
        caller_id: None,
        caller_tools: None,
        network: None,
        limits: Some(usd(9)),
        toolchains: None,
        model: None,
        permissions: None,
    };
    let spawned: SessionResponse = call(&fixture, &who, spawn).await;
    let expected = SpendLimits { max_tokens: Some(50), max_time_ms, ..usd(9) };
    assert_eq!(spawned.limits, Some(expected));
    for session in [unlimited, spawned.session_id] {
        end(&fixture, &who, session).await;
    }

    let fixture = start_with(|config| {
        with_model(config);
        config.sessions.doors.models = Some(Arc::new(Doors { has_prices: false }));
    })
    .await;
    let project = project(&fixture, &who).await;
    let (_, message) = refused(&fixture, &who, limited(project, "hi", usd(5))).await;
    assert!(message.contains("[providers.mine.prices."), "{message}");
}

/// Rule: a session with a money limit that uses a model without a price asks its owner.
#[tokio::test]
async fn a_model_without_a_price_is_asked_about() {
    let fixture = world(|_| ()).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let limits = SpendLimits { max_micro_usd: Some(MicroUsd(1_000_000)), ..Default::default() };
    let session = say(&fixture, &who, limited(project, "hi", limits)).await.session_id;
    spend(&fixture, session, ModelUsage { cost_micro_usd: Some(MicroUsd(10)), ..used(5) });
    assert_eq!(fixture.broker.may_ask_model(session).await, Ok(()));
    spend(&fixture, session, ModelUsage { unpriced_tokens: 5, ..used(5) });
    assert!(waits(&fixture, session));
    assert_eq!(show(&fixture, session).await.paused.unwrap().limit, "prices");
    let request_id = question(&fixture, session, -1).await.request_id.unwrap();
    say(&fixture, &who, answer(session, &request_id, "more")).await;
    assert_eq!(fixture.broker.may_ask_model(session).await, Ok(()));
    end(&fixture, &who, session).await;
}
