//! The timeline: the garden accepts a change, then it is stored, then the caller is answered.

use ringback_proto::garden::command::*;
use ringback_proto::garden::{GardenAt, GardenContent, RegionState, Ticks};
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_proto::{Certainty, Error, ErrorKind};
use ringback_testkit::{GRACE, wait_for, within};

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_region_is_placed_moved_and_deleted_and_every_change_has_a_revision() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    let content = store(&client, b"sound").await;
    let request = GardenCreateRegionRequest {
        duration: Some(2.0),
        gain_db: Some(-6.5),
        pan: Some(-0.5),
        offset_seconds: Some(0.25),
        fade_in: Some(0.5),
        fade_out: Some(0.5),
        name: Some("drums".to_owned()),
        tags: vec!["loud".to_owned()],
        ..region(&content, 4.0)
    };
    let placed = within("it", client.call::<GardenCreateRegion>(request)).await.unwrap();
    assert_eq!((placed.position, placed.duration), (4.0, 2.0));
    assert!(placed.rounded.is_empty());
    let got = garden.last(CREATE_REGION).unwrap();
    assert!(got.job_id.is_some());
    let got: CreateRegionArguments = serde_json::from_value(got.arguments).unwrap();
    assert_eq!(got.revision, 1);
    assert_eq!((got.region.position, got.region.duration), (Ticks(3840), Some(Ticks(1920))));
    let expected = GardenContent { hash: content, mime_type: "audio/wav".to_owned() };
    assert_eq!((got.region.content, got.region.gain_db), (Some(expected), -6.5));
    assert_eq!((got.region.state, got.region.repeat), (RegionState::Ready, 1));

    let region_id = placed.region_id;
    let to = GardenMoveRegionRequest { region_id, new_position: 8.0001 };
    let (message, _) = command::<GardenMoveRegion>(&client, to).await.unwrap();
    assert!(message.contains("starts at beat 8 (rounded"), "{message}");
    assert_eq!(garden.last(MOVE_REGION).unwrap().arguments["revision"], 2);
    let listed = regions(&client).await;
    assert_eq!((listed.count, listed.revision, listed.regions[0].position), (1, 2, 8.0));
    let held = listed.regions[0].content.as_ref().unwrap();
    assert_eq!((held.name.as_deref(), &held.tags[..]), (Some("drums"), &["loud".to_owned()][..]));

    let delete = GardenDeleteRegionRequest { region_id };
    command::<GardenDeleteRegion>(&client, delete.clone()).await.unwrap();
    assert_eq!(garden.last(DELETE_REGION).unwrap().arguments["revision"], 3);
    let gone = command::<GardenDeleteRegion>(&client, delete).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    assert_eq!(regions(&client).await.count, 0);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_length_of_content_comes_from_the_garden_and_a_range_finds_regions() {
    let (daemon, _garden) = with_garden().await;
    let client = daemon.admin().await;
    let content = store(&client, b"sound").await;
    for beat in [0.0, 10.0, 20.000_1] {
        let placed = client.call::<GardenCreateRegion>(region(&content, beat)).await.unwrap();
        assert_eq!(placed.duration, CONTENT_TICKS.beats());
        assert_eq!(placed.rounded.is_empty(), beat != 20.000_1, "{placed:?}");
    }
    let range = GardenGetRegionsRequest { start: Some(4.0), end: Some(20.0) };
    let found = client.call::<GardenGetRegions>(range).await.unwrap().regions;
    let found: Vec<_> = found.iter().map(|region| region.position).collect();
    assert_eq!(found, [10.0]);
    daemon.stop().await;
}

/// Rule: what was acknowledged survives a restart, and the garden gets all of it.
#[tokio::test(flavor = "multi_thread")]
async fn the_timeline_survives_a_restart() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    let content = store(&client, b"sound").await;
    client.call::<GardenCreateRegion>(region(&content, 4.0)).await.unwrap();
    let tempo = GardenSetTempoRequest { bpm: 90.0, beat: None, time_signature: None, at: None };
    command::<GardenSetTempo>(&client, tempo).await.unwrap();
    let before = client.call::<GardenTimeline>(GardenTimelineRequest {}).await.unwrap();
    assert_eq!((before.revision, before.tempo.len(), before.regions.len()), (2, 1, 1));
    client.close().await;
    garden.leave().await;
    let daemon = daemon.restart(GRACE).await;
    let client = daemon.admin().await;
    let after = client.call::<GardenTimeline>(GardenTimelineRequest {}).await.unwrap();
    assert_eq!(after, before);
    daemon.stop().await;
}

/// Rule: a beat that is negative, not a number or beyond the timeline is invalid and names its field.
#[tokio::test(flavor = "multi_thread")]
async fn bad_values_are_invalid_name_their_field_and_never_reach_the_garden() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    let content = store(&client, b"sound").await;
    let mut refused = Vec::new();
    for beat in [-1.0, f64::NAN, 1_000_000.5] {
        let seek = GardenSeekRequest { beat, at: None };
        refused.push(("beat", command::<GardenSeek>(&client, seek).await.unwrap_err()));
        let play = GardenPlayRequest { at: Some(GardenAt::Beat(beat)) };
        refused.push(("at", command::<GardenPlay>(&client, play).await.unwrap_err()));
        let placed = client.call::<GardenCreateRegion>(region(&content, beat)).await;
        refused.push(("position", placed.unwrap_err()));
        let range = GardenGetRegionsRequest { start: Some(beat), end: None };
        refused.push(("start", client.call::<GardenGetRegions>(range).await.unwrap_err()));
    }
    for (field, request) in [
        ("duration", GardenCreateRegionRequest { duration: Some(0.0), ..region(&content, 0.0) }),
        ("gain_db", GardenCreateRegionRequest { gain_db: Some(f32::NAN), ..region(&content, 0.0) }),
        ("pan", GardenCreateRegionRequest { pan: Some(1.5), ..region(&content, 0.0) }),
        ("content_id", region(&"drums.wav", 0.0)),
    ] {
        refused.push((field, client.call::<GardenCreateRegion>(request).await.unwrap_err()));
    }
    for (field, bpm, signature) in [("bpm", 4.0, "4/4"), ("time_signature", 90.0, "4/3")] {
        let time_signature = Some(signature.to_owned());
        let tempo = GardenSetTempoRequest { bpm, beat: None, time_signature, at: None };
        refused.push((field, command::<GardenSetTempo>(&client, tempo).await.unwrap_err()));
    }
    for (field, error) in refused {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{field}: {error}");
        assert!(error.message().contains(field), "{field}: {error}");
    }
    assert_eq!(garden.got(), [], "nothing was sent");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_the_garden_refuses_is_not_stored() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    let content = store(&client, b"noise").await;
    let unknown = Error::invalid_field("content_id", "this is no sound");
    garden.script(CREATE_REGION, Script::Refuse(unknown));
    let refused = client.call::<GardenCreateRegion>(region(&content, 0.0)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let listed = regions(&client).await;
    assert_eq!((listed.count, listed.revision), (0, 0));
    daemon.stop().await;
}

/// Rule: content that takes long to decode keeps no other change waiting.
#[tokio::test(flavor = "multi_thread")]
async fn other_changes_do_not_wait_while_content_is_prepared() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    let content = store(&client, b"sound").await;
    let first = client.call::<GardenCreateRegion>(region(&content, 0.0)).await.unwrap();
    garden.script(PREPARE_REGION, Script::Hang);
    let other = daemon.admin().await;
    let slow = other.call::<GardenCreateRegion>(region(&content, 4.0));
    tokio::select! {
        _ = slow => panic!("the garden is still decoding"),
        () = async {
            let asked = || garden.got().iter().filter(|got| got.tool == PREPARE_REGION).count();
            wait_for("the decoder", async || asked() == 2).await;
            let to = GardenMoveRegionRequest { region_id: first.region_id, new_position: 8.0 };
            command::<GardenMoveRegion>(&client, to).await.unwrap();
        } => {}
    }
    assert_eq!(regions(&client).await.regions[0].position, 8.0);
    daemon.stop().await;
}

/// Rule: at most 10,000 regions exist, each counted as often as it is played.
#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_that_is_full_takes_no_further_region() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    let content = store(&client, b"sound").await;
    let placed = async |repeat| {
        let request = GardenCreateRegionRequest { repeat: Some(repeat), ..region(&content, 0.0) };
        client.call::<GardenCreateRegion>(request).await
    };
    for _ in 0..10 {
        placed(1000).await.unwrap();
    }
    let n_placed = garden.got().iter().filter(|got| got.tool == CREATE_REGION).count();
    let full = placed(1).await.unwrap_err();
    assert_eq!(full.kind(), ErrorKind::Conflict);
    assert!(full.message().contains("10000 regions"), "{full}");
    let n_asked = garden.got().iter().filter(|got| got.tool == CREATE_REGION).count();
    assert_eq!((n_placed, n_asked, regions(&client).await.count), (10, 10, 10));
    daemon.stop().await;
}

/// Rule: a garden that may have accepted a change that is not stored reads the timeline again.
#[tokio::test(flavor = "multi_thread")]
async fn a_garden_that_may_have_changed_more_than_the_store_reloads() {
    let (daemon, garden) = with_garden().await;
    let client = daemon.admin().await;
    let content = store(&client, b"sound").await;
    let placed = client.call::<GardenCreateRegion>(region(&content, 0.0)).await.unwrap();
    garden.script(MOVE_REGION, Script::Hang);
    let to = GardenMoveRegionRequest { region_id: placed.region_id, new_position: 8.0 };
    let lost = command::<GardenMoveRegion>(&client, to.clone()).await.unwrap_err();
    assert_eq!((lost.kind(), lost.certainty()), (ErrorKind::Gone, Certainty::MayHaveRun));
    wait_for("a reload", async || garden.last(RELOAD).is_some()).await;
    assert_eq!(regions(&client).await.regions[0].position, 0.0);
    garden.behave();
    command::<GardenMoveRegion>(&client, to).await.unwrap();
    assert_eq!(regions(&client).await.regions[0].position, 8.0);
    daemon.stop().await;
}
