//! Events on IOPub: who sees which, and how a gap shows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use ringback_client::{Client, Notice, Subscriber};
use ringback_proto::Event;
use ringback_proto::event::{Heads, SequencedEvent};
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::Level;
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_testkit::{GRACE, Hello, RawPeer, Setup, World, wait_for, within};

use crate::support::*;

/// Starts jobs until the subscriber gets an event of one: its subscription is in force then.
async fn heard(client: &Client, subscriber: &mut Subscriber) {
    let first = async {
        loop {
            sleep_job(client, 0).await;
            if tokio::time::timeout(Duration::from_millis(50), subscriber.next()).await.is_ok() {
                return;
            }
        }
    };
    within("the first event", first).await;
}

async fn next_event(subscriber: &mut Subscriber) -> SequencedEvent {
    loop {
        match within("an event", subscriber.next()).await.unwrap() {
            Notice::Event(event) => return event,
            Notice::Missed(gap) => panic!("missed {gap:?}"),
            Notice::Data(_) | Notice::Other { .. } => {}
        }
    }
}

/// Reads until the end of a job is reported.
async fn until_end(
    subscriber: &mut Subscriber,
    wanted: ringback_proto::ids::JobId,
) -> Vec<SequencedEvent> {
    let mut events = Vec::new();
    loop {
        let event = next_event(subscriber).await;
        let is_end = matches!(
            event.event,
            Event::JobStateChanged { job_id, state: JobState::Complete, .. } if job_id == wanted
        );
        events.push(event);
        if is_end {
            return events;
        }
    }
}

fn assert_gap_free(events: &[SequencedEvent]) {
    let mut last = BTreeMap::new();
    for event in events {
        let topic = event.event.topic();
        if let Some(before) = last.insert(topic, event.topic_seq) {
            assert_eq!(event.topic_seq, before + 1, "in {topic}");
        }
    }
}

/// Rule: an admin sees every event; numbers have no gaps in a topic.
#[tokio::test(flavor = "multi_thread")]
async fn an_admin_hears_all_topics_without_gaps() {
    let daemon = World::with_hoot().await;
    let token = daemon.new_token(Level::Write, None).await.token;
    let (admin, other) = (daemon.admin().await, daemon.client(&token).await);
    let mut subscriber = daemon.subscriber(daemon.admin_token(), &[""]).await;
    heard(&admin, &mut subscriber).await;
    let burst = (0..100).map(|number| sleep_job(if number % 2 == 0 { &admin } else { &other }, 1));
    join_all(burst).await;
    let stored = other.upload(&b"x"[..], "text/plain").await.unwrap().hash.unwrap();
    let request = ArtifactCreateRequest {
        content_hash: stored,
        metadata: None,
        tags: Vec::new(),
        creator: None,
        parent_id: None,
        variation_set_id: None,
    };
    other.call::<ArtifactCreate>(request).await.unwrap();
    let last = sleep_job(&other, 120).await;
    let events = until_end(&mut subscriber, last).await;
    assert_gap_free(&events);
    let topics: BTreeSet<_> = events.iter().map(|event| event.event.topic()).collect();
    let expected = ["artifact.created", "job.progress", "job.state_changed"];
    assert_eq!(topics, BTreeSet::from(expected));
    daemon.stop().await;
}

/// Rule: a subscription is admitted only to topics its token may see; a wider one yields nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_hears_its_own_events_under_its_own_name_and_nothing_wider() {
    let daemon = World::with_hoot().await;
    let TokenCreatedResponse { token, token_id, .. } = daemon.new_token(Level::Write, None).await;
    let stranger = daemon.new_token(Level::Write, None).await;
    let (admin, client) = (daemon.admin().await, daemon.client(&token).await);
    let own = format!("{token_id}/");
    let theirs = format!("{}/", stranger.token_id);
    let mut narrow = daemon.subscriber(&token, &[&own]).await;
    heard(&client, &mut narrow).await;
    // Its own topics too: what it gets of them shows that nothing else came before.
    let mut wide = daemon.subscriber(&token, &["", "job.", "tok_", &theirs, &own]).await;
    heard(&client, &mut wide).await;
    let others = daemon.client(&stranger.token).await;
    for _ in 0..20 {
        tokio::join!(sleep_job(&admin, 0), sleep_job(&others, 0), sleep_job(&client, 0));
    }
    let last = sleep_job(&client, 0).await;
    let events = until_end(&mut narrow, last).await;
    assert_gap_free(&events);
    for event in &events {
        let Event::JobStateChanged { job_id, .. } = event.event else { continue };
        state(&client, job_id).await;
    }
    let all: Vec<_> = events.iter().map(|event| event.topic_seq).collect();
    let widely: Vec<_> =
        until_end(&mut wide, last).await.iter().map(|event| event.topic_seq).collect();
    assert!(widely.len() > 20 && all.ends_with(&widely), "{widely:?} of {all:?}");
    daemon.stop().await;
}

/// Rule: a token narrowed to projects gets all events of these and of no others, without gaps.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_a_project_hears_the_project_under_its_own_name_without_gaps() {
    let daemon = World::with_hoot().await;
    let admin = daemon.admin().await;
    let token = async |projects: Option<Vec<ProjectId>>| {
        let (name, expires_in) = ("test".to_owned(), None);
        let request = TokenCreateRequest { name, scope: Level::Write, projects, expires_in };
        admin.call::<TokenCreate>(request).await.unwrap()
    };
    let project = async |name: &str| {
        let request = ProjectCreateRequest {
            name: name.to_owned(),
            description: None,
            limits: None,
            agent: None,
            key_level: None,
            network: None,
            image: None,
            permissions: None,
        };
        admin.call::<ProjectCreate>(request).await.unwrap().project_id
    };
    let (one, two) = (project("one").await, project("two").await);
    let (maker, member) = (token(Some(vec![one])).await, token(Some(vec![one])).await);
    let stranger = token(Some(vec![two])).await;
    let (making, members) = (daemon.client(&maker.token).await, daemon.client(&member.token).await);
    let others = daemon.client(&stranger.token).await;

    let view = format!("{}/{one}/", member.token_id);
    let mut listening = daemon.subscriber(&member.token, &[&view]).await;
    heard(&making, &mut listening).await;
    for _ in 0..20 {
        tokio::join!(
            sleep_job(&making, 0),
            sleep_job(&members, 0),
            sleep_job(&others, 0),
            sleep_job(&admin, 0)
        );
    }
    let last = sleep_job(&making, 0).await;
    let events = until_end(&mut listening, last).await;
    assert_gap_free(&events);
    let mut seen = BTreeSet::new();
    for event in &events {
        let Event::JobStateChanged { job_id, .. } = event.event else { continue };
        state(&members, job_id).await;
        seen.insert(job_id);
    }
    assert!(seen.len() > 40, "of the maker and its own: {}", seen.len());
    daemon.stop().await;
}

/// Rule: receiving can be cancelled at any moment and loses nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_gives_up_waiting_again_and_again_misses_nothing() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let mut subscriber = daemon.subscriber(daemon.admin_token(), &["job.state_changed"]).await;
    heard(&client, &mut subscriber).await;
    let burst = async {
        for _ in 0..10 {
            join_all((0..40).map(|_| sleep_job(&client, 0))).await;
        }
    };
    let mut events = Vec::new();
    let reading = async {
        loop {
            let patience = Duration::from_micros(events.len() as u64 % 7 * 100);
            if let Ok(notice) = tokio::time::timeout(patience, subscriber.next()).await {
                match notice.unwrap() {
                    Notice::Event(event) => events.push(event),
                    other => panic!("{other:?}"),
                }
            }
        }
    };
    tokio::select! {
        () = burst => {}
        () = reading => unreachable!("it reads for ever"),
    }
    let last = sleep_job(&client, 0).await;
    events.extend(until_end(&mut subscriber, last).await);
    assert_gap_free(&events);
    assert!(events.len() > 500, "{}", events.len());
    daemon.stop().await;
}

/// Rule: a slow subscriber neither slows the daemon nor misses events without noticing, and missed
/// events can be fetched.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_subscriber_can_tell_what_it_missed_and_fetch_it() {
    let setup = Setup::new().hoot().config(|config| config.events_kept_max = 200_000);
    let daemon = setup.start().await;
    let client = daemon.admin().await;
    let start = client.call::<EventPoll>(EventPollRequest::default()).await.unwrap().cursor;
    let mut quick = daemon.subscriber(daemon.admin_token(), &["job.state_changed"]).await;
    heard(&client, &mut quick).await;
    let hello = Hello { socket_type: "SUB", ..Hello::dealer(daemon.admin_token()) };
    let mut slow = RawPeer::connect_small(daemon.events(), hello).await.unwrap();
    for topic in ["job.state_changed", "heads"] {
        slow.subscribe(topic.as_bytes()).await.unwrap();
    }
    for _ in 0..60 {
        join_all((0..200).map(|_| sleep_job(&client, 0))).await;
    }
    let last = sleep_job(&client, 0).await;
    ended(&client, last).await;
    let total = fetch(&client, start).await;

    let mut seen = BTreeMap::new();
    let head = async {
        loop {
            let parts = slow.recv().await.expect("a slow subscriber stays connected");
            if parts[0] == Heads::TOPIC.as_bytes() {
                let heads: Heads = rmp_serde::from_slice(&parts[1]).unwrap();
                let head = heads.topics["job.state_changed"];
                if head == total.len() as u64 {
                    return head;
                }
            } else {
                let event: SequencedEvent = rmp_serde::from_slice(&parts[1]).unwrap();
                seen.insert(event.topic_seq, event);
            }
        }
    };
    let head = within("the heads", head).await;
    assert!(seen.len() < total.len(), "it was slow and has missed some");
    assert_eq!(head, *total.last_key_value().unwrap().0, "the heads tell of the last");
    for (topic_seq, event) in &seen {
        assert_eq!(total.get(topic_seq), Some(event), "what it has is what happened");
    }
    daemon.stop().await;
}

/// Returns every event of the topic, by its number, from `event_poll`.
async fn fetch(client: &Client, start: String) -> BTreeMap<u64, SequencedEvent> {
    let mut events = BTreeMap::new();
    let mut cursor = Some(start);
    loop {
        let types = Some(vec!["job.state_changed".to_owned()]);
        let request =
            EventPollRequest { cursor: cursor.take(), types, limit: Some(500), wait_ms: None };
        let page = within("a page", client.call::<EventPoll>(request)).await.unwrap();
        assert_eq!(page.missed.unwrap_or(0), 0);
        if page.events.is_empty() {
            break;
        }
        events.extend(page.events.into_iter().map(|event| (event.topic_seq, event)));
        cursor = Some(page.cursor);
    }
    let numbers: Vec<_> = events.keys().copied().collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "nothing is missing");
    events
}

/// Rule: `event_poll` waits for the next event and returns it.
#[tokio::test(flavor = "multi_thread")]
async fn event_poll_waits_until_something_happens() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let now = client.call::<EventPoll>(EventPollRequest::default()).await.unwrap();
    let request = EventPollRequest {
        cursor: Some(now.cursor),
        wait_ms: Some(30_000),
        ..EventPollRequest::default()
    };
    let mut waiting = Box::pin(client.call::<EventPoll>(request));
    let pings = async {
        for _ in 0..20 {
            client.call::<Ping>(PingRequest {}).await.unwrap();
        }
    };
    tokio::select! {
        events = &mut waiting => panic!("nothing happened: {events:?}"),
        () = pings => {}
    }
    sleep_job(&client, 0).await;
    assert!(!within("the event", waiting).await.unwrap().events.is_empty());
    daemon.stop().await;
}

/// Rule: a restart is a new epoch, and a subscriber keeps receiving.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_hears_on_after_a_restart() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let mut subscriber = daemon.subscriber(daemon.admin_token(), &["job.state_changed"]).await;
    heard(&client, &mut subscriber).await;
    let before = {
        sleep_job(&client, 0).await;
        next_event(&mut subscriber).await.epoch
    };
    let daemon = daemon.restart(GRACE).await;
    let client = daemon.admin().await;
    wait_for("an event of the new epoch arrives", async || {
        sleep_job(&client, 0).await;
        let told = tokio::time::timeout(Duration::from_millis(100), subscriber.next()).await;
        matches!(told, Ok(Ok(Notice::Event(event))) if event.epoch != before)
    })
    .await;
    daemon.stop().await;
}
