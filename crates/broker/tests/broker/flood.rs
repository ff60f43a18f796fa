//! Agents that produce endless output: the kept part is limited in bytes, and is removed when they
//! end.

use ringback_broker::{Config, Credential, EventLimits};
use ringback_proto::record::SessionState;
use ringback_proto::request::{SessionEventsRequest, SessionEventsResponse};
use ringback_testkit::shell_agent;

use crate::common::start_with;
use crate::sessions::{call, end, is_idle, project, say, to_project, until};

const MIB: usize = 1 << 20;

/// Answers every message with 40 lines of nearly a megabyte.
const FLOOD: &str = r#"text=$(head -c 1000000 /dev/zero | tr '\0' x)
while read -r line; do
  n=0; while [ $n -lt 40 ]; do
    printf '{"type":"message","text":"%s"}\n' "$text"
    n=$((n+1))
  done
  echo '{"type":"done"}'
done"#;

fn with_flood(config: &mut Config) {
    config.sessions.agents.insert("flood".to_owned(), shell_agent(FLOOD));
    config.sessions.agent_default = "flood".to_owned();
    config.sessions.events_kept =
        EventLimits { events_max: 2000, bytes_max: 3 * MIB, total_bytes_max: 5 * MIB };
}

/// Rule: the events of sessions take no more memory than `sessions.event_memory` each and
/// `sessions.event_memory_total` together, none after their end, and can still be read.
#[tokio::test(flavor = "multi_thread")]
async fn what_agents_say_is_bounded_in_bytes_and_freed_at_their_end() {
    let fixture = start_with(with_flood).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(say(&fixture, &who, to_project(project, "talk")).await.session_id);
    }
    for session in &sessions {
        let events = until(&fixture, &who, *session, -1, is_idle).await;
        let longest = events.iter().filter_map(|event| event.text.as_ref()).map(String::len).max();
        assert!(longest < Some(MIB / 2), "a long text is cut: {longest:?}");
        let kept = fixture.broker.under_way().n_event_bytes;
        assert!(kept <= 5 * MIB, "{kept}");
    }
    for session in &sessions {
        end(&fixture, &who, *session).await;
    }
    assert_eq!(fixture.broker.under_way().n_event_bytes, 0);
    // From the journal, to the last word.
    let ended = |event: &ringback_proto::request::SessionEventInfo| {
        event.status == Some(SessionState::Ended)
    };
    let events = until(&fixture, &who, sessions[0], -1, ended).await;
    let cut = events.iter().filter_map(|event| event.text.as_ref());
    assert!(cut.filter(|text| text.ends_with("[cut]")).count() >= 20);
    let read = SessionEventsRequest {
        session_id: sessions[0],
        since_index: Some(i64::try_from(events.last().unwrap().index).unwrap()),
        max_events: None,
        wait_ms: None,
        include_children: true,
        follow: false,
    };
    let rest: SessionEventsResponse = call(&fixture, &who, read).await;
    assert_eq!((rest.events.len(), rest.status), (0, SessionState::Ended));
}
