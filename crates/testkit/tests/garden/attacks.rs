//! What strangers try: to be the garden, to see or change the regions of others, to swap job ids.

use bytes::Bytes;
use ringback_client::{ServeError, Worker, WorkerTools};
use ringback_proto::any::{Any, Format};
use ringback_proto::frame::{Body, Command, Frame, Text};
use ringback_proto::garden::command::*;
use ringback_proto::garden::{CONTROL_SERVICE, SERVICE};
use ringback_proto::ids::{ProjectId, RequestId};
use ringback_proto::principal::Level;
use ringback_proto::ready::{OfferedTool, Ready};
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_proto::{CallOptions, Certainty, ErrorKind, ResponseEnvelope};
use ringback_testkit::{Hello, RawPeer, World, within};
use serde_json::json;

use crate::support::*;

fn named(tool: &str) -> OfferedTool {
    OfferedTool::Name(tool.to_owned())
}

/// Rule: only the daemon's own user and full administrators may be the garden.
#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_cannot_be_the_garden_and_keeps_nobody_out() {
    let daemon = World::with_hoot().await;
    let admin = daemon.admin().await;
    let narrow = TokenCreateRequest {
        name: "narrow".to_owned(),
        scope: Level::Admin,
        projects: Some(vec![ProjectId::from_random([1; 16])]),
        expires_in: None,
    };
    let narrow = admin.call::<TokenCreate>(narrow).await.unwrap().token;
    for stranger in [token(&daemon, Level::Write).await, narrow] {
        for service in [SERVICE, CONTROL_SERVICE] {
            for tools in [&["play"][..], &["something_else"]] {
                let offered = tools.iter().fold(WorkerTools::new(service), |offered, tool| {
                    offered.raw_tool(named(tool), async |_| Ok(Bytes::new()))
                });
                let refused = Worker::serve(daemon.client_config(&stranger), offered).await;
                let Err(ServeError::Refused { source, .. }) = refused else {
                    panic!("{service} was given away: {refused:?}")
                };
                assert_eq!(source.kind(), ErrorKind::Forbidden, "{source}");
            }
        }
    }
    let garden = ScriptedGarden::of(&daemon).await;
    command::<GardenPlay>(&admin, GardenPlayRequest { at: None }).await.unwrap();
    assert_eq!(garden.got().len(), 1);
    daemon.stop().await;
}

/// Rule: the tools of the garden are listed only as the native rows.
#[tokio::test(flavor = "multi_thread")]
async fn the_tools_of_the_process_are_neither_listed_nor_called_by_name() {
    let (daemon, garden) = with_garden().await;
    let admin = daemon.admin().await;
    let writer = daemon.client(&token(&daemon, Level::Write).await).await;
    let prefix = || ListToolsRequest { cursor: None, prefix: Some("garden".to_owned()) };
    let listed = writer.call::<ListTools>(prefix()).await.unwrap().tools;
    assert_eq!(listed.len(), 15, "{listed:?}");
    let listed = admin.call::<ListTools>(prefix()).await.unwrap().tools;
    let names: Vec<_> = listed.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names.len(), 19, "{names:?}");
    for hidden in ["garden_reload", "garden_set_region_state", "garden_control_emergency_pause"] {
        assert!(!names.contains(&hidden), "{names:?}");
        let nothing = Any { format: Format::MsgPack, bytes: Bytes::from_static(&[0x80]) };
        let called = admin.call_named(hidden, nothing, CallOptions::default()).await;
        assert_eq!(called.unwrap_err().kind(), ErrorKind::NotFound, "{hidden}");
    }
    for internal in ["garden_timeline", "garden_report", "garden_settle", "garden_monitor"] {
        assert!(names.contains(&internal), "{names:?}");
    }
    let refused = writer.call::<GardenTimeline>(GardenTimelineRequest {}).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
    let report = GardenReportRequest { events: vec![] };
    let refused = writer.call::<GardenReport>(report).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
    assert_eq!(garden.got(), []);
    daemon.stop().await;
}

/// Rule: others see where a region lies, but not what is in it, and change nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_sees_the_place_of_a_region_and_nothing_else() {
    let (daemon, garden) = with_garden().await;
    let owner = daemon.client(&token(&daemon, Level::Write).await).await;
    let stranger = daemon.client(&token(&daemon, Level::Write).await).await;
    let content = store(&owner, b"secret sound").await;
    let request = GardenCreateRegionRequest {
        name: Some("secret name".to_owned()),
        tags: vec!["secret tag".to_owned()],
        ..region(&content, 4.0)
    };
    let region_id = owner.call::<GardenCreateRegion>(request).await.unwrap().region_id;

    let seen = regions(&stranger).await;
    assert_eq!((seen.count, seen.regions[0].position, seen.regions[0].yours), (1, 4.0, false));
    assert_eq!(seen.regions[0].content, None);
    let own = regions(&owner).await;
    assert!(own.regions[0].yours && own.regions[0].content.is_some());

    let placed = stranger.call::<GardenCreateRegion>(region(&content, 0.0)).await.unwrap_err();
    assert_eq!(placed.kind(), ErrorKind::NotFound, "a hash alone gives nobody the content");
    let to = GardenMoveRegionRequest { region_id, new_position: 0.0 };
    let moved = command::<GardenMoveRegion>(&stranger, to.clone()).await.unwrap_err();
    let delete = GardenDeleteRegionRequest { region_id };
    let deleted = command::<GardenDeleteRegion>(&stranger, delete).await.unwrap_err();
    for refused in [moved, deleted] {
        assert_eq!(refused.kind(), ErrorKind::Forbidden, "{refused}");
    }
    let got: Vec<_> = garden.got().iter().map(|got| got.tool).collect();
    assert_eq!(got, [PREPARE_REGION, CREATE_REGION], "only the owner's reached the garden");
    assert_eq!(regions(&owner).await.regions[0].position, 4.0);
    command::<GardenMoveRegion>(&daemon.admin().await, to).await.unwrap();
    assert_eq!(regions(&owner).await.regions[0].position, 0.0);

    let poll = EventPollRequest { cursor: None, types: None, limit: None, wait_ms: None };
    let events = stranger.call::<EventPoll>(poll).await.unwrap().events;
    let told = format!("{events:?}");
    assert!(told.contains(&region_id.to_string()) && !told.contains("secret"), "{told}");
    assert!(!told.contains(&content.to_string()), "{told}");
    daemon.stop().await;
}

/// A garden that answers `play` with whatever job id it is given.
struct Swapper(RawPeer);

impl Swapper {
    async fn of(daemon: &World) -> Self {
        let hello = Hello::dealer(daemon.admin_token());
        let mut peer = RawPeer::connect(daemon.calls(), hello).await.unwrap();
        let tools = vec![named(PLAY)];
        let ready = Ready { protocol: "HOOT01".to_owned(), tools, accepts_binary: false };
        let body = Body::MsgPack(rmp_serde::to_vec_named(&ready).unwrap().into());
        let service = Text::try_from(SERVICE).unwrap();
        let frame = Frame { service, ..Frame::new(Command::Ready, RequestId::random(), body) };
        peer.send_frame(frame).await.unwrap();
        let (_, accepted) = within("an answer", peer.recv_reply()).await;
        assert!(matches!(accepted, ResponseEnvelope::Ack { .. }), "{accepted:?}");
        Self(peer)
    }

    async fn answer(&mut self, swap: impl FnOnce(&str) -> Option<String>) {
        let asked = within("a request", self.0.recv_frame()).await;
        let Body::MsgPack(body) = &asked.body else { panic!("{asked:?}") };
        let asked_body: serde_json::Value = rmp_serde::from_slice(body).unwrap();
        let mut reply = json!({"kind": "success", "response": {"state": "playing", "position": 0}});
        if let Some(job_id) = swap(asked_body["job_id"].as_str().unwrap()) {
            reply["job_id"] = json!(job_id);
        }
        let body = Body::MsgPack(rmp_serde::to_vec_named(&reply).unwrap().into());
        let frame = Frame::new(Command::Reply, asked.request_id, body);
        self.0.send_frame(frame).await.unwrap();
    }
}

/// Rule: a Reply with another job id, or with none, fails the job.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_id_that_is_swapped_or_lost_fails_the_job() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let mut garden = Swapper::of(&daemon).await;
    let play = || command::<GardenPlay>(&client, GardenPlayRequest { at: None });
    let (accepted, ()) = tokio::join!(play(), garden.answer(|job_id| Some(job_id.to_owned())));
    let (_, earlier) = accepted.unwrap();
    let (swapped, ()) = tokio::join!(play(), garden.answer(|_| Some(earlier.to_string())));
    let (lost, ()) = tokio::join!(play(), garden.answer(|_| None));
    for failed in [swapped.unwrap_err(), lost.unwrap_err()] {
        assert_eq!(failed.kind(), ErrorKind::ToolFailed, "{failed}");
        assert_eq!(failed.certainty(), Certainty::MayHaveRun);
        assert!(failed.message().contains("job_id"), "{failed}");
    }
    daemon.stop().await;
}
