//! The life of a command: its job, the garden, the acknowledgement or the error.

use ringback_proto::garden::command::*;
use ringback_proto::garden::{GardenAt, TransportState};
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_proto::{Certainty, Error, ErrorKind};
use ringback_testkit::{GRACE, Setup, World, wait_for, within};
use serde_json::json;

use crate::support::*;

/// REQ: the seed's flow, steps 1 to 7: a job is created, the garden gets its id as an opaque text and
/// returns it, the job ends, and the caller gets an acknowledgement with the id.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_becomes_a_job_whose_id_the_garden_returns() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    let request = GardenPlayRequest { at: Some(GardenAt::NextBar) };
    let (message, job_id) = command::<GardenPlay>(&client, request).await.unwrap();
    assert!(message.contains("playing at beat 0.5"), "{message}");
    let got = garden.last(PLAY).unwrap();
    assert_eq!(got.job_id, Some(job_id.to_string()));
    assert_eq!(got.arguments, json!({"at": "next_bar"}));
    let job = job(&client, job_id).await;
    assert_eq!(job.status, JobState::Complete);
    daemon.stop().await;
}

/// REQ: an immediate failure is an error for the caller, and the failed job can be looked up.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_the_garden_refuses_is_an_error_and_a_failed_job() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    let nothing = Error::new(ErrorKind::Conflict, "there is nothing to play: place a region first");
    garden.script(PLAY, Script::Refuse(nothing));
    let refused = command::<GardenPlay>(&client, GardenPlayRequest { at: None }).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.message().contains("place a region"), "{refused}");
    let list = JobListRequest { status: Some(JobState::Failed), limit: None, cursor: None };
    let failed = within("the list", client.call::<JobList>(list)).await.unwrap();
    let failed: Vec<_> = failed.jobs.iter().map(|job| job.source.as_str()).collect();
    assert_eq!(failed, ["garden_play"]);
    daemon.stop().await;
}

/// REQ: the seed's table of what needs a job.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_makes_no_job_and_a_command_with_an_outcome_does() {
    let (daemon, _garden) = with_garden().await;
    let client = daemon.admin().await;
    let content = store(&client, b"sound").await;
    let n_jobs = async || {
        let list = JobListRequest { status: None, limit: None, cursor: None };
        within("the list", client.call::<JobList>(list)).await.unwrap().total
    };
    let status = within("it", client.call::<GardenStatus>(GardenStatusRequest {})).await.unwrap();
    assert_eq!(status.state, TransportState::Playing);
    regions(&client).await;
    let config = ConfigGetRequest { section: None, key: None };
    within("it", client.call::<ConfigGet>(config)).await.unwrap();
    assert_eq!(n_jobs().await, 0, "queries make no job");
    command::<GardenPlay>(&client, GardenPlayRequest { at: None }).await.unwrap();
    assert_eq!(n_jobs().await, 1);
    let placed = client.call::<GardenCreateRegion>(region(&content, 0.0));
    within("it", placed).await.unwrap();
    assert_eq!(n_jobs().await, 2);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_reaches_the_garden_and_is_acknowledged() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    command::<GardenPause>(&client, GardenPauseRequest { at: None }).await.unwrap();
    command::<GardenStop>(&client, GardenStopRequest { at: Some(GardenAt::Beat(8.0)) })
        .await
        .unwrap();
    let seek = GardenSeekRequest { beat: 0.0001, at: None };
    let (message, _) = command::<GardenSeek>(&client, seek).await.unwrap();
    assert!(message.contains("rounded to beat 0,"), "{message}");
    let seek = GardenSeekRequest { beat: 1.0, at: Some(GardenAt::Beat(4.0001)) };
    let (message, _) = command::<GardenSeek>(&client, seek).await.unwrap();
    assert!(message.contains("(`at` rounded to beat 4,"), "{message}");
    let play = GardenPlayRequest { at: Some(GardenAt::Beat(8.0001)) };
    let (message, _) = command::<GardenPlay>(&client, play).await.unwrap();
    assert!(message.contains("(`at` rounded to beat 8,"), "{message}");
    let range = GardenSetLoopRequest { start: Some(0.0001), end: Some(4.0) };
    let (message, _) = command::<GardenSetLoop>(&client, range).await.unwrap();
    assert!(message.contains("(`start` rounded to beat 0,"), "{message}");
    let tempo = GardenSetTempoRequest {
        bpm: 90.0,
        beat: Some(4.0),
        time_signature: Some("3/4".to_owned()),
        at: None,
    };
    let (message, _) = command::<GardenSetTempo>(&client, tempo).await.unwrap();
    assert!(message.contains("90 quarter notes per minute in 3/4 from beat 4"), "{message}");
    command::<GardenEmergencyPause>(&client, GardenEmergencyPauseRequest {}).await.unwrap();
    let got: Vec<_> = garden.got().iter().map(|got| got.tool).collect();
    let expected = [PAUSE, STOP, SEEK, SEEK, PLAY, SET_LOOP, SET_TEMPO, EMERGENCY_PAUSE];
    assert_eq!(got, expected);
    assert_eq!(garden.last(STOP).unwrap().arguments, json!({"at": 8.0}));
    assert_eq!(garden.last(SET_TEMPO).unwrap().arguments["revision"], 2);
    daemon.stop().await;
}

/// Rule: a command with no garden fails, and says what to do.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_garden_a_command_is_unavailable_and_was_not_started() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let play = command::<GardenPlay>(&client, GardenPlayRequest { at: None }).await.unwrap_err();
    assert!(play.message().contains("start it with `ringback garden run`"), "{play}");
    let pause = command::<GardenEmergencyPause>(&client, GardenEmergencyPauseRequest {}).await;
    let status = client.call::<GardenStatus>(GardenStatusRequest {}).await;
    for error in [play, pause.unwrap_err(), status.unwrap_err()] {
        assert_eq!((error.kind(), error.certainty()), (ErrorKind::Gone, Certainty::NotStarted));
        assert!(error.message().contains("the garden is not running"), "{error}");
    }
    assert!(regions(&client).await.regions.is_empty(), "the store answers without a garden");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_garden_that_accepts_nothing_in_time_may_have_run_the_command() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    garden.script(PLAY, Script::Hang);
    let error = command::<GardenPlay>(&client, GardenPlayRequest { at: None }).await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Gone, Certainty::MayHaveRun));
    garden.behave();
    command::<GardenPlay>(&client, GardenPlayRequest { at: None }).await.unwrap();
    daemon.stop().await;
}

/// Rule: commands take no slot for running jobs.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_needs_no_slot_and_passes_a_full_queue() {
    let setup = Setup::new().hoot().config(|config| {
        (config.jobs_running_max, config.jobs_live_max) = (1, 2);
        config.jobs_per_principal_max = 2;
    });
    let daemon = setup.start().await;
    let garden = ScriptedGarden::of(&daemon).await;
    let client = daemon.admin().await;
    let sleep = || JobSleepRequest { milliseconds: 600_000 };
    for _ in 0..2 {
        client.submit::<JobSleep>(sleep()).await.unwrap();
    }
    let full = client.submit::<JobSleep>(sleep()).await.unwrap_err();
    assert_eq!(full.kind(), ErrorKind::Busy);
    command::<GardenPlay>(&client, GardenPlayRequest { at: None }).await.unwrap();
    command::<GardenEmergencyPause>(&client, GardenEmergencyPauseRequest {}).await.unwrap();
    assert_eq!(garden.last(EMERGENCY_PAUSE).unwrap().job_id, None, "it does not wait for its job");
    daemon.stop().await;
}

/// Rule: a `garden_play` from before a restart never plays after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_from_before_a_restart_fails_and_is_never_sent_again() {
    let (daemon, garden) = with_garden().await;
    garden.script(PLAY, Script::Hang);
    let client = daemon.admin().await;
    {
        let play = client.submit::<GardenPlay>(GardenPlayRequest { at: None });
        tokio::select! {
            _ = play => panic!("the garden hangs"),
            () = wait_for("the command", async || garden.last(PLAY).is_some()) => {}
        }
    }
    client.close().await;
    garden.leave().await;
    let daemon = daemon.restart(GRACE).await;
    let garden = ScriptedGarden::of(&daemon).await;
    let client = daemon.admin().await;
    command::<GardenPause>(&client, GardenPauseRequest { at: None }).await.unwrap();
    let got: Vec<_> = garden.got().iter().map(|got| got.tool).collect();
    assert_eq!(got, [PAUSE]);
    let list = JobListRequest { status: None, limit: None, cursor: None };
    let jobs = client.call::<JobList>(list).await.unwrap().jobs;
    let play = jobs.iter().find(|job| job.source == "garden_play").unwrap();
    assert!(matches!(play.status, JobState::Failed | JobState::Cancelled), "{play:?}");
    daemon.stop().await;
}
