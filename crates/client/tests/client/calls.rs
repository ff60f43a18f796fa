//! Calls, their outcomes, and what happens to them when the link is lost.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::support::{Daemon, curve, plain, token};
use bytes::Bytes;
use ringback_client::{Client, Config, ConnectError, Credentials, LinkState, Outcome};
use ringback_proto::frame::{Body, Command};
use ringback_proto::ids::JobId;
use ringback_proto::request::{JobSleepRequest, PingRequest, PongResponse};
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::{JobSleep, Ping};
use ringback_proto::{
    CallOptions, Certainty, Error, ErrorKind, RequestEnvelope, ResponseEnvelope, ToolCall,
    ToolRequest, ToolTiming,
};

fn pong(uptime_ms: u64) -> ResponseEnvelope {
    let response = PongResponse { uptime_ms, version: "1".to_owned() }.into();
    ResponseEnvelope::Success { response }
}

fn request_of(body: &Body) -> RequestEnvelope {
    match body {
        Body::MsgPack(body) => RequestEnvelope::decode(body).unwrap(),
        Body::RawBinary { data, header } => {
            RequestEnvelope::decode_raw(header, data.clone()).unwrap()
        }
        Body::Empty | Body::Credit(_) => panic!("no request: {body:?}"),
    }
}

#[tokio::test]
async fn a_call_gets_its_typed_answer() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let serve = async {
        let received = daemon.recv().await;
        let user_id = received.identity.peer_info().authentication.user_id.clone();
        assert_eq!(user_id, Some(Bytes::from_static(b"tok_1")));
        assert!(matches!(
            request_of(&received.frame.body).request,
            ToolCall::Native(ToolRequest::Ping(_))
        ));
        daemon.reply(&received, pong(5));
    };
    let (answer, ()) = tokio::join!(client.call::<Ping>(PingRequest::default()), serve);
    assert_eq!(answer.unwrap().uptime_ms, 5);
}

#[tokio::test]
async fn replies_find_their_callers_in_any_order() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let sleep = |milliseconds| client.submit::<JobSleep>(JobSleepRequest { milliseconds });
    let serve = async {
        let mut received = vec![daemon.recv().await, daemon.recv().await, daemon.recv().await];
        received.reverse();
        for received in received {
            let ToolCall::Native(ToolRequest::JobSleep(JobSleepRequest { milliseconds })) =
                request_of(&received.frame.body).request
            else {
                panic!("a job_sleep")
            };
            let response = ringback_proto::request::SleptResponse { milliseconds }.into();
            daemon.reply(&received, ResponseEnvelope::Success { response });
        }
    };
    let (one, two, three, ()) = tokio::join!(sleep(1), sleep(2), sleep(3), serve);
    let milliseconds = [one, two, three].map(|outcome| match outcome.unwrap() {
        Outcome::Done(slept) => slept.milliseconds,
        Outcome::Job { .. } | Outcome::Accepted { .. } => panic!("an answer"),
    });
    assert_eq!(milliseconds, [1, 2, 3]);
}

#[tokio::test]
async fn a_job_that_goes_on_is_told_with_its_id() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let job_id = JobId::from_random([1; 16]);
    let serve = async {
        for _ in 0..2 {
            let received = daemon.recv().await;
            let started = ResponseEnvelope::JobStarted {
                job_id,
                tool: "job_sleep".to_owned(),
                expected_timing: ToolTiming::AsyncShort,
            };
            daemon.reply(&received, started);
        }
    };
    let request = JobSleepRequest { milliseconds: 1 };
    let calls = async {
        let submitted = client.submit::<JobSleep>(request.clone()).await.unwrap();
        assert!(matches!(submitted, Outcome::Job { job_id: id, .. } if id == job_id));
        let error = client.call::<JobSleep>(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.message().contains(&job_id.to_string()));
    };
    tokio::join!(calls, serve);
}

#[tokio::test]
async fn the_daemon_s_error_is_the_call_s() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let serve = async {
        let received = daemon.recv().await;
        daemon.reply(&received, Error::forbidden("ping", "level read").into());
    };
    let (answer, ()) = tokio::join!(client.call::<Ping>(PingRequest::default()), serve);
    let error = answer.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Forbidden, Certainty::NotStarted));
}

#[tokio::test]
async fn a_wrong_token_is_refused_at_once() {
    let daemon = Daemon::start(plain()).await;
    let credentials = Credentials::Token(Secret::new("oub_wrong".to_owned()));
    let error = Client::connect(Config::new(&daemon.endpoint, credentials)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
    assert!(!format!("{error:?}").contains("oub_wrong"));
}

#[tokio::test]
async fn nobody_there_is_told_after_the_time_given() {
    let daemon = Daemon::start(plain()).await;
    let mut config = daemon.config();
    daemon.stop().await;
    config.connect_timeout = Duration::from_millis(50);
    let error = Client::connect(config).await.unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn with_curve_the_token_is_the_key() {
    let (mechanism, server_key) = curve();
    let daemon = Daemon::start(mechanism).await;
    let credentials = |token| Credentials::Curve { token, server_key: server_key.clone() };
    let client =
        Client::connect(Config::new(&daemon.endpoint, credentials(token()))).await.unwrap();
    let serve = async { daemon.reply(&daemon.recv().await, pong(1)) };
    let (answer, ()) = tokio::join!(client.call::<Ping>(PingRequest::default()), serve);
    assert_eq!(answer.unwrap().uptime_ms, 1);

    let other = Secret::new(format!("oub_{}", "00".repeat(32)));
    let refused = Client::connect(Config::new(&daemon.endpoint, credentials(other))).await;
    assert!(matches!(refused.unwrap_err(), ConnectError::Refused { .. }));
}

/// Rule: work whose result is no longer wanted is cancelled.
#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_daemon() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let mut call = Box::pin(client.call::<Ping>(PingRequest::default()));
    let request = tokio::select! {
        _ = &mut call => panic!("it was not answered"),
        request = daemon.recv() => request,
    };
    drop(call);
    let cancel = daemon.recv().await;
    assert_eq!(cancel.frame.command, Command::Cancel);
    assert_eq!(cancel.frame.request_id, request.frame.request_id);
}

#[tokio::test]
async fn a_call_past_its_deadline_ends_and_says_that_it_may_have_run() {
    let daemon = Daemon::start(plain()).await;
    let mut config = daemon.config();
    config.reply_timeout = Duration::from_millis(20);
    let client = Client::connect(config).await.unwrap();
    let error = client.call::<Ping>(PingRequest::default()).await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Timeout, Certainty::MayHaveRun));
    assert_eq!(daemon.recv().await.frame.command, Command::Request);
    assert_eq!(daemon.recv().await.frame.command, Command::Cancel);
}

#[tokio::test]
async fn a_deadline_travels_in_the_envelope() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let options = CallOptions { deadline_ms: NonZeroU64::new(9), ..CallOptions::default() };
    let serve = async {
        let received = daemon.recv().await;
        assert_eq!(request_of(&received.frame.body).options, options);
        daemon.reply(&received, pong(1));
    };
    let call = client.call_with::<Ping>(PingRequest::default(), options);
    let (outcome, ()) = tokio::join!(call, serve);
    assert!(matches!(outcome.unwrap(), Outcome::Done(_)));
}

/// Rule: a full queue answers `busy` instead of growing.
#[tokio::test]
async fn one_call_too_many_is_busy() {
    let daemon = Daemon::start(plain()).await;
    let mut config = daemon.config();
    config.calls_max = 1;
    let client = Client::connect(config).await.unwrap();
    let first = client.call::<Ping>(PingRequest::default());
    let second = async {
        let received = daemon.recv().await;
        let error = client.call::<Ping>(PingRequest::default()).await.unwrap_err();
        assert_eq!((error.kind(), error.certainty()), (ErrorKind::Busy, Certainty::NotStarted));
        daemon.reply(&received, pong(1));
    };
    let (answer, ()) = tokio::join!(first, second);
    assert!(answer.is_ok());
}

#[tokio::test]
async fn a_reply_that_is_no_frame_fails_its_call_alone() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let serve = async {
        let (broken, good) = (daemon.recv().await, daemon.recv().await);
        let mut parts = Vec::new();
        broken.frame.reply(Body::Empty).encode(&mut parts);
        parts.push(Bytes::from_static(b"one part too many"));
        daemon.send_parts(&broken.identity, vec![Bytes::from_static(b"noise")]);
        daemon.send_parts(&broken.identity, parts);
        daemon.reply(&good, pong(2));
    };
    let (broken, good, ()) = tokio::join!(
        client.call::<Ping>(PingRequest::default()),
        client.call::<Ping>(PingRequest::default()),
        serve
    );
    assert_eq!(broken.unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(good.unwrap().uptime_ms, 2);
}

/// Rule: a failure reports whether the tool ran.
#[tokio::test]
async fn a_lost_link_ends_calls_as_gone_and_a_new_one_takes_others() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let endpoint = daemon.endpoint.clone();
    let mut link = client.link();
    let lose = async {
        daemon.recv().await;
        daemon.stop().await;
    };
    let (answer, ()) = tokio::join!(client.call::<Ping>(PingRequest::default()), lose);
    let error = answer.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Gone, Certainty::MayHaveRun));
    link.wait_for(|state| *state == LinkState::Down).await.unwrap();
    let error = client.call::<Ping>(PingRequest::default()).await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Gone, Certainty::NotStarted));

    let daemon = Daemon::start_at(&endpoint, plain()).await;
    link.wait_for(|state| *state == LinkState::Up).await.unwrap();
    assert_eq!(daemon.recv_any().await.frame.command, Command::Ready);
    let serve = async { daemon.reply(&daemon.recv().await, pong(3)) };
    let (answer, ()) = tokio::join!(client.call::<Ping>(PingRequest::default()), serve);
    assert_eq!(answer.unwrap().uptime_ms, 3);
}

/// Both the answer and the end of the link may be waiting when the client looks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_came_just_before_the_link_ended_still_counts() {
    for _ in 0..20 {
        let daemon = Daemon::start(plain()).await;
        let client = daemon.client().await;
        let serve = async {
            daemon.reply(&daemon.recv().await, pong(4));
            daemon.finish().await;
        };
        let (answer, ()) = tokio::join!(client.call::<Ping>(PingRequest::default()), serve);
        assert_eq!(answer.unwrap().uptime_ms, 4);
    }
}

#[tokio::test]
async fn a_daemon_that_gives_no_sign_of_life_is_dead() {
    let daemon = Daemon::start(plain()).await;
    let mut config = daemon.config();
    config.heartbeat_interval = Duration::from_millis(10);
    let client = Client::connect(config).await.unwrap();
    let error = client.call::<Ping>(PingRequest::default()).await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Gone, Certainty::MayHaveRun));
    let mut n_heartbeats = 0;
    loop {
        let received = daemon.recv_any().await;
        match received.frame.command {
            Command::Heartbeat => n_heartbeats += 1,
            Command::Request => break,
            Command::Ready
            | Command::Reply
            | Command::Disconnect
            | Command::Cancel
            | Command::Credit => {}
        }
    }
    assert!(n_heartbeats <= 3, "{n_heartbeats}");
    client.link().wait_for(|state| *state == LinkState::Up).await.unwrap();
}

#[tokio::test]
async fn leaving_is_told_and_ends_what_is_in_flight() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let call = client.call::<Ping>(PingRequest::default());
    let leave = async {
        daemon.recv().await;
        client.clone().close().await;
        assert_eq!(daemon.recv().await.frame.command, Command::Disconnect);
    };
    let (answer, ()) = tokio::join!(call, leave);
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Gone);
    let error = client.call::<Ping>(PingRequest::default()).await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Gone, Certainty::NotStarted));
}
