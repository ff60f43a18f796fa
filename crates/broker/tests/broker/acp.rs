//! Sessions whose agents speak the Agent Client Protocol, or are started for each message.

use ringback_agents::Permissions;
use ringback_broker::{AgentCommand, AgentProtocol, Config, Credential};
use ringback_proto::ids::SessionId;
use ringback_proto::principal::Level;
use ringback_proto::request::{PermissionAnswer, SessionEventInfo, SessionMessageRequest};
use ringback_testkit::{GRACE, shell_agent};

use crate::common::{World, start_with};
use crate::sessions::{
    call, end, is_idle, project, refused, said, say, to_project, to_session, token, until,
};

/// `ask` asks for permission and repeats the answer, `wait` waits to be stopped, `die` fails, `how`
/// reports whether the conversation was resumed.
const AGENT: &str = r#"
say() { echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"one","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}}'; }
end() { echo '{"jsonrpc":"2.0","id":'$turn',"result":{"stopReason":"'$1'","usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3}}}'; }
how=started
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}';;
    *'"method":"session/new"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"one"}}';;
    *'"method":"session/load"'*) how=resumed; echo '{"jsonrpc":"2.0","id":'$id',"result":{}}';;
    *'"method":"session/cancel"'*) end cancelled;;
    *'"text":"ask"'*) turn=$id; echo '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"one","toolCall":{"toolCallId":"c","title":"rm -rf"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}';;
    *'"text":"wait"'*) turn=$id; say waiting;;
    *'"text":"die"'*) exit 3;;
    *'"method":"session/prompt"'*) turn=$id; say $how; end end_turn;;
    *'"outcome"'*) option=${line#*\"optionId\":\"}; say "answered ${option%%\"*}"; end end_turn;;
  esac
done"#;

pub(crate) fn with_agent(permissions: Permissions) -> impl FnOnce(&mut Config) {
    move |config| {
        let agent = AgentCommand {
            protocol: AgentProtocol::Acp,
            permissions: Some(permissions),
            ..shell_agent(AGENT)
        };
        config.sessions.agents.insert("acp".to_owned(), agent);
        config.sessions.agent_default = "acp".to_owned();
    }
}

pub(crate) fn is_question(event: &SessionEventInfo) -> bool {
    event.kind == "permission_request"
}

fn answer(session: SessionId, request_id: &str, option: &str) -> SessionMessageRequest {
    let (request_id, option) = (request_id.to_owned(), Some(option.to_owned()));
    SessionMessageRequest {
        session_id: Some(session),
        answer: Some(Box::new(PermissionAnswer { request_id, option })),
        ..Default::default()
    }
}

fn abort(session: SessionId) -> SessionMessageRequest {
    SessionMessageRequest { session_id: Some(session), abort: true, ..Default::default() }
}

async fn asked(fixture: &World, who: &Credential) -> (SessionId, SessionEventInfo) {
    let project = project(fixture, who).await;
    let session = say(fixture, who, to_project(project, "ask")).await.session_id;
    let events = until(fixture, who, session, -1, is_question).await;
    (session, events.last().unwrap().clone())
}

/// REQ: "Permission requests go to the caller": as an event, answered by a field of
/// `session_message`, only by the principal that started the session.
#[tokio::test]
async fn an_agent_that_asks_waits_for_the_answer_of_its_caller() {
    let fixture = start_with(with_agent(Permissions::Ask)).await;
    let (who, other) = (token(&fixture, Level::Write).await, token(&fixture, Level::Write).await);
    let (session, question) = asked(&fixture, &who).await;
    assert_eq!(question.tool_name.as_deref(), Some("rm -rf"));
    let kinds: Vec<_> = question.options.iter().map(|it| (&*it.id, &*it.kind)).collect();
    assert_eq!(kinds, [("yes", "allow_once"), ("no", "reject_once")]);
    let id = question.request_id.as_deref().unwrap();

    assert_eq!(refused(&fixture, &other, answer(session, id, "yes")).await.0, "not_found");
    let both = SessionMessageRequest { abort: true, ..answer(session, id, "yes") };
    assert_eq!(refused(&fixture, &who, both).await.0, "invalid_params");
    let (code, message) = refused(&fixture, &who, answer(session, id, "always")).await;
    assert!(code == "invalid_params" && message.contains("yes, no"), "{message}");

    say(&fixture, &who, answer(session, id, "yes")).await;
    // A second answer is refused, whether or not the agent has received the first by then.
    assert_eq!(refused(&fixture, &who, answer(session, id, "no")).await.0, "conflict");
    let events = until(&fixture, &who, session, -1, is_idle).await;
    assert_eq!(said(&events), ["answered yes"]);
    let answered = events.iter().find(|event| event.kind == "permission_answer").unwrap();
    assert_eq!(answered.role.as_deref(), Some("caller"));
    let end = events.iter().find(|event| event.kind == "completion").unwrap();
    assert_eq!(end.usage.as_ref().unwrap().total_tokens, 3);
}

/// Rule: a question ends with the agent that asked it, and its end is reported.
#[tokio::test]
async fn a_question_ends_with_its_agent_and_with_its_session() {
    let fixture = start_with(with_agent(Permissions::Ask)).await;
    let who = Credential::local();
    let (session, question) = asked(&fixture, &who).await;
    let id = question.request_id.clone().unwrap();
    assert!(fixture.broker.may_answer(&who, session, &id));
    end(&fixture, &who, session).await;
    assert!(!fixture.broker.may_answer(&who, session, &id));
    let events =
        until(&fixture, &who, session, -1, |event| event.kind == "permission_answer").await;
    let end = events.last().unwrap();
    assert_eq!((end.request_id.as_ref(), end.role.as_deref()), (Some(&id), Some("end")));
    assert_eq!(end.text, None);
}

/// REQ: "or follow a per-project policy".
#[tokio::test]
async fn a_policy_answers_in_place_of_the_caller() {
    for (permissions, expected) in
        [(Permissions::Allow, "answered yes"), (Permissions::Deny, "answered no")]
    {
        let fixture = start_with(with_agent(permissions)).await;
        let who = Credential::local();
        let (session, _) = asked(&fixture, &who).await;
        let events = until(&fixture, &who, session, -1, is_idle).await;
        assert_eq!(said(&events), [expected]);
    }
}

/// Rule: an abort ends the turn and not the session.
#[tokio::test]
async fn an_abort_ends_the_turn_and_not_the_session() {
    let fixture = start_with(with_agent(Permissions::Ask)).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let session = say(&fixture, &who, to_project(project, "wait")).await.session_id;
    until(&fixture, &who, session, -1, |event| event.text.as_deref() == Some("waiting")).await;
    let stopped = say(&fixture, &who, abort(session)).await;
    let events = until(&fixture, &who, session, stopped.last_event_index, is_idle).await;
    let end = events.iter().find(|event| event.kind == "completion").unwrap();
    assert_eq!(end.text.as_deref(), Some("cancelled"));
    let next = say(&fixture, &who, to_session(session, "how")).await;
    let events = until(&fixture, &who, session, next.last_event_index, is_idle).await;
    assert_eq!(said(&events), ["started"], "it is the same agent");
}

/// REQ: "follow-up messages to the same conversation ... resume after restart where the agent can".
#[tokio::test]
async fn a_conversation_is_taken_up_again_after_a_failure_and_after_a_restart() {
    let fixture = start_with(with_agent(Permissions::Ask)).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let session = say(&fixture, &who, to_project(project, "how")).await.session_id;
    let events = until(&fixture, &who, session, -1, is_idle).await;
    assert_eq!(said(&events), ["started"]);
    let died = say(&fixture, &who, to_session(session, "die")).await;
    until(&fixture, &who, session, died.last_event_index, is_idle).await;
    let next = say(&fixture, &who, to_session(session, "how")).await;
    let events = until(&fixture, &who, session, next.last_event_index, is_idle).await;
    assert_eq!(said(&events), ["resumed"]);

    let fixture = fixture.restart(GRACE).await;
    let next = say(&fixture, &who, to_session(session, "how")).await;
    let events = until(&fixture, &who, session, next.last_event_index, is_idle).await;
    assert_eq!(said(&events), ["resumed"]);
}

/// REQ: "one-shot as a command template": each message is a run of the program.
#[tokio::test]
async fn a_program_without_a_protocol_is_run_for_each_message() {
    let fixture = start_with(|config| {
        let agent = AgentCommand {
            command: ["/bin/sh", "-c", "echo said $1", "agent", "{message}"]
                .map(str::to_owned)
                .to_vec(),
            protocol: AgentProtocol::OneShot,
            ..AgentCommand::default()
        };
        config.sessions.agents.insert("shot".to_owned(), agent);
        config.sessions.agent_default = "shot".to_owned();
    })
    .await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let session = say(&fixture, &who, to_project(project, "one")).await.session_id;
    let events = until(&fixture, &who, session, -1, is_idle).await;
    assert_eq!(said(&events), ["said one"]);
    let next = say(&fixture, &who, to_session(session, "two")).await;
    let events = until(&fixture, &who, session, next.last_event_index, is_idle).await;
    assert_eq!(said(&events), ["said two"]);
    let seen: ringback_proto::request::SessionResponse =
        call(&fixture, &who, ringback_proto::request::SessionGetRequest { session_id: session })
            .await;
    assert_eq!(seen.agent, "shot");
}
