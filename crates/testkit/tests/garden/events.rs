//! What the garden reports, and who gets it.

use ringback_client::Notice;
use ringback_proto::Event;
use ringback_proto::garden::*;
use ringback_proto::principal::Level;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_testkit::within;

use crate::support::*;

fn position(beat: f64) -> GardenEvent {
    GardenEvent::Position(GardenPositionEvent {
        position_beats: beat,
        state: TransportState::Playing,
        peaks: [0.5, 0.25],
    })
}

fn transport(cause: TransportCause) -> GardenEvent {
    GardenEvent::Transport(GardenTransportEvent {
        state: TransportState::Playing,
        position_beats: 0.0,
        tempo_bpm: 120.0,
        cause,
        job_id: None,
    })
}

/// Rule: position events are published live and never push other events out of the event ring.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_becomes_events_for_everyone_and_positions_are_only_live() {
    let (daemon, _garden) = with_garden().await;
    let admin = daemon.admin().await;
    let created = daemon.new_token(Level::Read, None).await;
    let reader = daemon.client(&created.token).await;
    let own = format!("{}/garden.", created.token_id);
    let mut views = [
        daemon.subscriber(daemon.admin_token(), &["garden."]).await,
        daemon.subscriber(&created.token, &[&own]).await,
    ];
    // A subscription takes effect a little later; repeat until both have the first event.
    let report = async |events: Vec<GardenEvent>| {
        within("it", admin.call::<GardenReport>(GardenReportRequest { events })).await.unwrap();
    };
    for view in &mut views {
        loop {
            report(vec![position(1.0)]).await;
            let next = tokio::time::timeout(std::time::Duration::from_millis(50), view.next());
            if let Ok(notice) = next.await {
                assert!(matches!(notice.unwrap(), Notice::Event(_)));
                break;
            }
        }
    }
    report(vec![transport(TransportCause::Restart), position(2.0)]).await;
    for view in &mut views {
        let mut got = Vec::new();
        while got.len() < 2 {
            let notice = within("an event", view.next()).await.unwrap();
            let Notice::Event(sequenced) = notice else { panic!("{notice:?}") };
            let event = sequenced.event;
            if let Event::GardenPosition(position) = &event
                && position.position_beats < 2.0
            {
                continue;
            }
            got.push(event.topic());
        }
        assert_eq!(got, ["garden.transport", "garden.position"]);
    }
    let poll = EventPollRequest { cursor: None, types: None, limit: None, wait_ms: None };
    let kept = reader.call::<EventPoll>(poll).await.unwrap();
    let kept: Vec<_> = kept.events.iter().map(|event| event.event.topic()).collect();
    assert_eq!(kept, ["garden.transport"]);
    daemon.stop().await;
}
