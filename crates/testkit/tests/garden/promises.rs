//! Promises, approval, loops and exports: what the daemon keeps, and what it lets the garden do.

use ringback_client::{Client, Outcome};
use ringback_proto::garden::command::*;
use ringback_proto::garden::*;
use ringback_proto::ids::{BlobHash, JobId, RegionId};
use ringback_proto::principal::Level;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_proto::{Error, ErrorKind};
use ringback_testkit::{GRACE, World, within};
use serde_json::json;

use crate::support::*;

/// Starts a job that runs until it is cancelled.
async fn running_job(client: &Client) -> JobId {
    let sleep = JobSleepRequest { milliseconds: 600_000 };
    match within("a job", client.submit::<JobSleep>(sleep)).await.unwrap() {
        Outcome::Job { job_id, .. } => job_id,
        Outcome::Done(_) | Outcome::Accepted { .. } => panic!("it sleeps"),
    }
}

/// A region for what a job is making.
fn promise(job_id: JobId, position: f64) -> GardenCreateRegionRequest {
    GardenCreateRegionRequest {
        duration: Some(8.0),
        behavior_type: RegionBehavior::Latent,
        if_late: Some(IfLate::Vamp),
        ..region(&job_id, position)
    }
}

async fn placed(client: &Client, request: GardenCreateRegionRequest) -> Result<RegionId, Error> {
    let placed = within("it", client.call::<GardenCreateRegion>(request)).await?;
    Ok(placed.region_id)
}

/// What the garden says when it has prepared the content of a job.
async fn settled(client: &Client, region_id: RegionId, job_id: JobId) -> GardenSettleRequest {
    let hash = store(client, b"made").await;
    GardenSettleRequest {
        region_id,
        job_id,
        content: Some(GardenContent { hash, mime_type: "audio/wav".to_owned() }),
        artifact_id: None,
        message: None,
    }
}

async fn state_of(client: &Client, region_id: RegionId) -> RegionState {
    let found = regions(client).await.regions;
    found.iter().find(|region| region.region_id == region_id).unwrap().state
}

/// The changes of regions that subscribers got.
async fn changes(client: &Client) -> Vec<RegionChange> {
    let types = Some(vec!["garden.region".to_owned()]);
    let poll = EventPollRequest { cursor: None, types, limit: None, wait_ms: None };
    let events = client.call::<EventPoll>(poll).await.unwrap().events;
    let changes = events.into_iter().map(|event| {
        let ringback_proto::Event::GardenRegion(event) = event.event else { panic!("{event:?}") };
        event.change
    });
    changes.collect()
}

/// REQ: a region may hold what a job is still making; it is settled once, and that is durable.
#[tokio::test(flavor = "multi_thread")]
async fn a_promise_is_placed_settled_once_and_survives_a_restart() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    let job_id = running_job(&client).await;
    let region_id = placed(&client, promise(job_id, 8.0)).await.unwrap();
    let got: CreateRegionArguments =
        serde_json::from_value(garden.last(CREATE_REGION).unwrap().arguments).unwrap();
    assert_eq!((got.region.state, got.region.content), (RegionState::Pending, None));
    assert_eq!(got.region.promise, Some(GardenPromise { job_id, if_late: IfLate::Vamp }));
    let report = settled(&client, region_id, job_id).await;
    let answer = client.call::<GardenSettle>(report.clone()).await.unwrap();
    assert_eq!((answer.state, answer.revision), (RegionState::Ready, 2));
    let again = GardenSettleRequest { content: None, ..report.clone() };
    let again = client.call::<GardenSettle>(again).await.unwrap();
    assert_eq!((again.state, again.revision), (RegionState::Ready, 2), "nothing has changed");
    let other = GardenSettleRequest { job_id: JobId::from_random([1; 16]), ..report.clone() };
    let refused = client.call::<GardenSettle>(other).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    assert_eq!(changes(&client).await, [RegionChange::Created, RegionChange::Ready]);
    client.close().await;
    garden.leave().await;
    let daemon = daemon.restart(GRACE).await;
    let client = daemon.admin().await;
    let listed = regions(&client).await;
    let content = listed.regions[0].content.clone().unwrap();
    assert_eq!((listed.regions[0].state, content.job_id), (RegionState::Ready, Some(job_id)));
    assert_eq!(content.content_hash, report.content.map(|content| content.hash));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promise_that_cannot_be_kept_says_why_to_its_owner() {
    let (daemon, _garden) = with_garden().await;
    let client = daemon.admin().await;
    let job_id = running_job(&client).await;
    let region_id = placed(&client, promise(job_id, 0.0)).await.unwrap();
    let report = GardenSettleRequest {
        region_id,
        job_id,
        content: None,
        artifact_id: None,
        message: Some("the job was cancelled".to_owned()),
    };
    let answer = client.call::<GardenSettle>(report).await.unwrap();
    assert_eq!(answer.state, RegionState::Failed);
    let listed = regions(&client).await.regions;
    let reason = listed[0].content.as_ref().unwrap().reason.clone();
    assert_eq!(reason.as_deref(), Some("the job was cancelled"));
    let stranger = daemon.client(&token(&daemon, Level::Write).await).await;
    assert_eq!(regions(&stranger).await.regions[0].content, None);
    assert_eq!(changes(&stranger).await, [RegionChange::Created, RegionChange::Failed]);
    daemon.stop().await;
}

/// Rule: nothing is heard before it is approved, and a rejection is final.
#[tokio::test(flavor = "multi_thread")]
async fn a_region_that_needs_approval_waits_for_its_owner() {
    let (daemon, garden) = with_garden().await;
    let owner = daemon.client(&token(&daemon, Level::Write).await).await;
    let stranger = daemon.client(&token(&daemon, Level::Write).await).await;
    let admin = daemon.admin().await;
    let content = store(&owner, b"sound").await;
    let ask = || GardenCreateRegionRequest {
        approval: Some(RegionApproval::Required),
        ..region(&content, 0.0)
    };
    let [first, second] = [placed(&owner, ask()).await, placed(&owner, ask()).await];
    let [first, second] = [first.unwrap(), second.unwrap()];
    assert_eq!(state_of(&stranger, first).await, RegionState::AwaitingApproval);
    let approve = |region_id| GardenApproveRequest { region_id, reason: None };
    let reject = |region_id| GardenRejectRequest { region_id, reason: Some("off key".to_owned()) };
    let taken = command::<GardenApprove>(&stranger, approve(first)).await.unwrap_err();
    let spoiled = command::<GardenReject>(&stranger, reject(first)).await.unwrap_err();
    for refused in [taken, spoiled] {
        assert_eq!(refused.kind(), ErrorKind::Forbidden, "{refused}");
    }
    assert_eq!(garden.last(SET_REGION_STATE), None, "nothing reached the garden");
    let (message, _) = command::<GardenApprove>(&owner, approve(first)).await.unwrap();
    assert!(message.contains("is ready"), "{message}");
    let got = garden.last(SET_REGION_STATE).unwrap();
    let expected = json!({"region_id": first.to_string(), "state": "ready", "revision": 3});
    assert!(got.job_id.is_some() && got.arguments == expected, "{got:?}");
    command::<GardenReject>(&admin, reject(second)).await.unwrap();
    assert_eq!(state_of(&owner, second).await, RegionState::Rejected);
    for again in [
        command::<GardenApprove>(&owner, approve(second)).await,
        command::<GardenReject>(&owner, reject(second)).await,
        command::<GardenApprove>(&owner, approve(first)).await,
    ] {
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Conflict);
    }
    let told = changes(&stranger).await;
    assert_eq!(told[2..], [RegionChange::Ready, RegionChange::Rejected]);
    daemon.stop().await;
}

/// Rule: a promise is for a job that its caller sees, with a length.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_promise_is_refused_and_names_its_field() {
    let (daemon, garden) = with_garden().await;
    let owner = daemon.client(&token(&daemon, Level::Write).await).await;
    let stranger = daemon.client(&token(&daemon, Level::Write).await).await;
    let job_id = running_job(&owner).await;
    let unseen = placed(&stranger, promise(job_id, 0.0)).await.unwrap_err();
    assert_eq!(unseen.kind(), ErrorKind::NotFound, "a job of another token does not exist");
    let content = store(&owner, b"sound").await;
    let latent = || promise(job_id, 0.0);
    let played = || region(&content, 0.0);
    let ended = running_job(&owner).await;
    owner.call::<JobCancel>(JobCancelRequest { job_id: ended }).await.unwrap();
    for (field, request) in [
        ("duration", GardenCreateRegionRequest { duration: None, ..latent() }),
        ("content_id", GardenCreateRegionRequest { content_id: content.to_string(), ..latent() }),
        ("content_id", promise(ended, 0.0)),
        ("content_id", GardenCreateRegionRequest { content_id: job_id.to_string(), ..played() }),
        ("if_late", GardenCreateRegionRequest { if_late: Some(IfLate::Vamp), ..played() }),
        ("repeat", GardenCreateRegionRequest { repeat: Some(0), ..played() }),
        ("repeat", GardenCreateRegionRequest { repeat: Some(1001), ..played() }),
        ("crossfade", GardenCreateRegionRequest { crossfade: Some(-1.0), ..played() }),
        ("crossfade", GardenCreateRegionRequest { crossfade: Some(9.0), ..latent() }),
    ] {
        let error = placed(&owner, request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{field}: {error}");
        assert!(error.message().contains(field), "{field}: {error}");
    }
    assert_eq!(garden.got(), [], "nothing was sent");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_is_set_ended_and_kept() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    let set = |start, end| GardenSetLoopRequest { start, end };
    for (field, start, end) in [
        ("end", Some(4.0), None),
        ("start", None, Some(4.0)),
        ("end", Some(4.0), Some(4.1)),
        ("start", Some(-4.0), Some(4.0)),
    ] {
        let refused = command::<GardenSetLoop>(&client, set(start, end)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.message().contains(field), "{refused}");
    }
    command::<GardenSetLoop>(&client, set(Some(4.0), Some(8.0))).await.unwrap();
    let got = garden.last(SET_LOOP).unwrap().arguments;
    assert_eq!(got, json!({"loop": {"start": 3840, "end": 7680}, "revision": 1}));
    assert_eq!(regions(&client).await.loop_range, Some(GardenLoop { start: 4.0, end: 8.0 }));
    let (message, _) = command::<GardenSetLoop>(&client, set(None, None)).await.unwrap();
    assert!(message.contains("no loop"), "{message}");
    let listed = regions(&client).await;
    assert_eq!((listed.loop_range, listed.revision), (None, 2));
    daemon.stop().await;
}

/// Rule: an export belongs to its caller, with the lineage that the caller gave.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_an_artifact_of_its_caller() {
    let (daemon, garden) = with_garden().await;
    let admin = daemon.admin().await;
    let client = daemon.client(&token(&daemon, Level::Write).await).await;
    let hash = store(&admin, b"a rendered file").await;
    garden.export(hash, Vec::new());
    let request = GardenExportRequest {
        start: Some(4.0),
        end: Some(8.0),
        format: Some(SampleFormat::F32),
        sample_rate: Some(44_100),
        tags: vec!["mine".to_owned()],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    };
    let made = within("an export", client.call::<GardenExport>(request.clone())).await.unwrap();
    let made = &made.artifacts[0];
    assert_eq!((made.content_hash, made.duration_seconds), (hash, Some(2.0)));
    let got = garden.last(EXPORT).unwrap();
    let expected = json!({"start": 3840, "end": 7680, "format": "f32", "sample_rate": 44100});
    assert!(got.job_id.is_some() && got.arguments == expected, "{got:?}");
    let id = made.artifact_id;
    let info = client.call::<ArtifactGet>(ArtifactGetRequest { id }).await.unwrap();
    assert!(info.tags.contains(&"mine".to_owned()), "{info:?}");
    let mut bytes = Vec::new();
    client.download(hash, &mut bytes).await.unwrap();
    assert_eq!(bytes, b"a rendered file", "its caller may read it");
    for (field, bad) in [
        ("end", GardenExportRequest { end: Some(4.0), ..request.clone() }),
        ("sample_rate", GardenExportRequest { sample_rate: Some(8000), ..request.clone() }),
        ("start", GardenExportRequest { start: Some(f64::NAN), ..request }),
    ] {
        let error = client.call::<GardenExport>(bad).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.message().contains(field), "{error}");
    }
    daemon.stop().await;
}

/// Rule: an export has the content of each of its regions as a source, and the SoundFont. Content
/// that its maker may not see stays hidden in it.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_names_its_regions_and_hides_what_its_caller_may_not_see() {
    let (daemon, garden) = with_garden().await;
    let admin = daemon.admin().await;
    let client = daemon.client(&token(&daemon, Level::Write).await).await;
    let (mine, theirs) = (store(&client, b"mine").await, store(&admin, b"theirs").await);
    let create = ArtifactCreateRequest {
        content_hash: mine,
        metadata: None,
        tags: Vec::new(),
        creator: None,
        parent_id: None,
        variation_set_id: None,
    };
    let own = client.call::<ArtifactCreate>(create).await.unwrap().artifact_id;
    let my_region = placed(&client, region(&own.to_string(), 0.0)).await.unwrap();
    let their_region = placed(&admin, region(&theirs.to_string(), 4.0)).await.unwrap();
    let heard = |region_id, hash| ExportedRegion { region_id, hash };
    let file = store(&admin, b"a rendered file").await;
    garden.export(file, vec![heard(my_region, mine), heard(their_region, theirs)]);
    let request = GardenExportRequest {
        start: None,
        end: None,
        format: None,
        sample_rate: None,
        tags: Vec::new(),
        creator: None,
        parent_id: None,
        variation_set_id: None,
    };
    let made = within("an export", client.call::<GardenExport>(request)).await.unwrap();
    let id = made.artifacts[0].artifact_id;
    let get = ArtifactGetRequest { id };
    let info = client.call::<ArtifactGet>(get.clone()).await.unwrap();
    assert_eq!(info.tool.as_deref(), Some("garden_export"));
    assert!(info.job_id.is_some());
    let source = |role, artifact_id, content_hash| SourceInfo { role, artifact_id, content_hash };
    let font = source(SourceRole::Soundfont, None, Some(BlobHash::from_bytes([0x5f; 32])));
    let first = source(SourceRole::Region, Some(own), Some(mine));
    let hidden = source(SourceRole::Region, None, None);
    assert_eq!(info.sources, [first, hidden, font]);
    daemon.stop().await;
}

/// Rule: what was heard is recorded with what it played, and shown with the regions.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_heard_is_recorded_and_survives_a_restart() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    let content = store(&client, b"sound").await;
    let region_id = placed(&client, region(&content, 0.0)).await.unwrap();
    assert_eq!(regions(&client).await.regions[0].last_heard_at, None);
    let heard = |region_id| {
        let (from, to) = (Ticks(0), Ticks(960));
        GardenEvent::Heard(GardenHeard { region_id, from, to })
    };
    let events = vec![heard(region_id), heard(RegionId::from_random([3; 16]))];
    let report = GardenReportRequest { events };
    within("it", client.call::<GardenReport>(report)).await.unwrap();
    let at = regions(&client).await.regions[0].last_heard_at;
    assert!(at.is_some());
    client.close().await;
    garden.leave().await;
    let daemon = daemon.restart(GRACE).await;
    let client = daemon.admin().await;
    assert_eq!(regions(&client).await.regions[0].last_heard_at, at);
    daemon.stop().await;
}

/// Rule: what was heard is recorded with what it played, also of a region that was deleted before the
/// garden said so.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_heard_of_a_deleted_region_is_recorded() {
    let (daemon, _garden) = with_garden().await;
    let client = daemon.admin().await;
    let hash = store(&client, b"sound").await;
    let artifact = ArtifactCreateRequest {
        content_hash: hash,
        tags: vec![],
        creator: None,
        metadata: None,
        parent_id: None,
        variation_set_id: None,
    };
    let artifact = client.call::<ArtifactCreate>(artifact).await.unwrap().artifact_id;
    let region_id = placed(&client, region(&artifact, 0.0)).await.unwrap();
    let delete = GardenDeleteRegionRequest { region_id };
    command::<GardenDeleteRegion>(&client, delete).await.unwrap();
    let heard = GardenEvent::Heard(GardenHeard { region_id, from: Ticks(0), to: Ticks(960) });
    let report = GardenReportRequest { events: vec![heard] };
    within("it", client.call::<GardenReport>(report)).await.unwrap();
    let query = "SELECT region_id, artifact_id, end_position FROM heard".to_owned();
    let query = GraphQueryRequest { query, variables: None, limit: None };
    let found = client.call::<GraphQuery>(query).await.unwrap();
    let found = serde_json::to_string(&found.results).unwrap();
    assert!(found.contains(&region_id.to_string()), "{found}");
    assert!(found.contains(&artifact.to_string()) && found.contains("1.0"), "{found}");
    daemon.stop().await;
}

/// Rule: only the daemon's own user and full administrators settle promises.
#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_cannot_settle_a_promise() {
    let daemon = World::with_hoot().await;
    let writer = daemon.client(&token(&daemon, Level::Write).await).await;
    let region_id = RegionId::from_random([1; 16]);
    let report = settled(&writer, region_id, JobId::from_random([1; 16])).await;
    let refused = writer.call::<GardenSettle>(report).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
    daemon.stop().await;
}
