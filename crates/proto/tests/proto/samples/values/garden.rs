//! Samples of the garden's tools and events.

use bytes::Bytes;
use ringback_proto::garden::*;

use super::*;

const fn region_id() -> RegionId {
    RegionId::from_random([0x5e; 16])
}

pub(crate) fn transport() -> GardenEvent {
    GardenEvent::Transport(GardenTransportEvent {
        state: TransportState::Playing,
        position_beats: 0.25,
        tempo_bpm: 120.0,
        cause: TransportCause::Command,
        job_id: Some(job()),
    })
}

pub(crate) fn region() -> GardenEvent {
    GardenEvent::Region(GardenRegionEvent {
        region_id: region_id(),
        change: RegionChange::Failed,
        position_beats: 4.0,
        duration_beats: Some(1.5),
        message: Some(awkward()),
    })
}

pub(crate) fn trouble() -> GardenEvent {
    GardenEvent::Trouble(GardenTroubleEvent {
        kind: TroubleKind::Late,
        position_beats: 0.0,
        cause: awkward(),
        region_id: Some(region_id()),
    })
}

pub(crate) fn position() -> GardenEvent {
    GardenEvent::Position(GardenPositionEvent {
        position_beats: 1_000_000.0,
        state: TransportState::Paused,
        peaks: [0.5, 1.25],
    })
}

/// The event that subscribers get.
pub(crate) fn published(event: GardenEvent) -> Event {
    match event {
        GardenEvent::Transport(event) => Event::GardenTransport(event),
        GardenEvent::Region(event) => Event::GardenRegion(event),
        GardenEvent::Trouble(event) => Event::GardenTrouble(event),
        GardenEvent::Position(event) => Event::GardenPosition(event),
        GardenEvent::Heard(_) => panic!("it is only recorded"),
    }
}

fn heard() -> GardenEvent {
    GardenEvent::Heard(GardenHeard {
        region_id: region_id(),
        from: Ticks(0),
        to: Ticks(960_000_000),
    })
}

sample!(GardenStatusRequest, Self {});
sample!(
    GardenSetLoopRequest,
    Self { start: None, end: None },
    Self { start: Some(4.0), end: Some(8.0) }
);
sample!(
    GardenApproveRequest,
    Self { region_id: region_id(), reason: None },
    Self { region_id: region_id(), reason: Some(awkward()) }
);
sample!(
    GardenRejectRequest,
    Self { region_id: region_id(), reason: None },
    Self { region_id: region_id(), reason: Some(awkward()) }
);
sample!(
    GardenSettleRequest,
    Self {
        region_id: region_id(),
        job_id: job(),
        content: None,
        artifact_id: None,
        message: Some(awkward()),
    },
    Self {
        region_id: region_id(),
        job_id: job(),
        content: Some(GardenContent { hash: hash(), mime_type: "audio/midi".to_owned() }),
        artifact_id: Some(artifact()),
        message: Some(awkward()),
    }
);
sample!(
    GardenExportRequest,
    Self {
        start: None,
        end: None,
        format: None,
        sample_rate: None,
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    },
    Self {
        start: Some(0.5),
        end: Some(1_000_000.0),
        format: Some(SampleFormat::F32),
        sample_rate: Some(u32::MAX),
        tags: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
    }
);
sample!(
    GardenSettledResponse,
    Self { state: RegionState::Ready, revision: 0 },
    Self { state: RegionState::AwaitingApproval, revision: u64::MAX }
);
sample!(
    GardenMonitorRequest,
    Self { frames: Data(Bytes::from_static(&[0, 0, 128, 63])), missed: 0 },
    Self { frames: Data(Bytes::from_static(&[0, 0, 128, 63])), missed: u64::MAX }
);
sample!(GardenMonitorResponse, Self { listeners: 0 }, Self { listeners: u32::MAX });
sample!(GardenEmergencyPauseRequest, Self {});
sample!(GardenTimelineRequest, Self {});
sample!(GardenPlayRequest, Self { at: None }, Self { at: Some(GardenAt::NextBar) });
sample!(GardenPauseRequest, Self { at: None }, Self { at: Some(GardenAt::Beat(4.5)) });
sample!(GardenStopRequest, Self { at: None }, Self { at: Some(GardenAt::NextBeat) });
sample!(
    GardenSeekRequest,
    Self { beat: 0.0, at: None },
    Self { beat: 1_000_000.0, at: Some(GardenAt::Now) }
);
sample!(
    GardenSetTempoRequest,
    Self { bpm: 5.0, beat: None, time_signature: None, at: None },
    Self {
        bpm: 90.5,
        beat: Some(4.0),
        time_signature: Some("7/8".to_owned()),
        at: Some(GardenAt::NextBar),
    }
);
sample!(
    GardenGetRegionsRequest,
    Self { start: None, end: None },
    Self { start: Some(0.5), end: Some(8.0) }
);
sample!(
    GardenRegionsResponse,
    Self { regions: vec![], count: 0, tempo: vec![], loop_range: None, revision: 0 },
    Self {
        regions: vec![GardenRegionInfo {
            region_id: region_id(),
            position: 0.5,
            duration: 4.0,
            repeat: 2,
            state: RegionState::Rejected,
            yours: true,
            last_heard_at: Some(TWO_TO_THE_63),
            content: Some(GardenRegionContent {
                behavior_type: RegionBehavior::Latent,
                artifact_id: Some(artifact()),
                content_hash: Some(hash()),
                mime_type: Some("audio/wav".to_owned()),
                job_id: Some(job()),
                if_late: Some(IfLate::Silence),
                approval: RegionApproval::Required,
                reason: Some(awkward()),
                gain_db: -6.5,
                pan: -1.0,
                offset_seconds: 0.125,
                fade_in: 0.25,
                fade_out: 0.5,
                crossfade: 0.75,
                name: Some(awkward()),
                tags: vec![awkward()],
            }),
        }],
        count: TWO_TO_THE_63,
        tempo: vec![GardenTempoPoint { beat: 4.0, bpm: 90.5, time_signature: "7/8".to_owned() }],
        loop_range: Some(GardenLoop { start: 0.0, end: 16.0 }),
        revision: u64::MAX,
    }
);
sample!(
    GardenCreateRegionRequest,
    Self {
        position: 0.0,
        duration: None,
        behavior_type: RegionBehavior::PlayContent,
        content_id: String::new(),
        gain_db: None,
        pan: None,
        offset_seconds: None,
        fade_in: None,
        fade_out: None,
        crossfade: None,
        repeat: None,
        approval: None,
        if_late: None,
        name: None,
        tags: vec![],
    },
    Self {
        position: 3.75,
        duration: Some(4.0),
        behavior_type: RegionBehavior::Latent,
        content_id: job().to_string(),
        gain_db: Some(-6.5),
        pan: Some(1.0),
        offset_seconds: Some(0.125),
        fade_in: Some(0.25),
        fade_out: Some(0.5),
        crossfade: Some(1.0),
        repeat: Some(1000),
        approval: Some(RegionApproval::Required),
        if_late: Some(IfLate::Vamp),
        name: Some(awkward()),
        tags: vec![awkward()],
    }
);
sample!(
    GardenRegionCreatedResponse,
    Self { region_id: region_id(), position: 0.0, duration: 0.0, rounded: vec![] },
    Self {
        region_id: region_id(),
        position: 3.75,
        duration: 4.0,
        rounded: vec!["position".to_owned()],
    }
);
sample!(GardenMoveRegionRequest, Self { region_id: region_id(), new_position: 2.5 });
sample!(GardenDeleteRegionRequest, Self { region_id: region_id() });
sample!(
    GardenReportRequest,
    Self { events: vec![] },
    Self { events: vec![transport(), region(), trouble(), position(), heard()] }
);
sample!(
    GardenTimeline,
    Self { revision: 0, tempo: vec![], loop_range: None, regions: vec![] },
    Self {
        revision: u64::MAX,
        tempo: vec![TempoChange::DEFAULT],
        loop_range: Some(LoopRange { start: Ticks(0), end: Ticks(3840) }),
        regions: vec![GardenRegion {
            region_id: region_id(),
            position: Ticks(960_000_000),
            duration: Some(Ticks(480)),
            state: RegionState::Pending,
            content: Some(GardenContent { hash: hash(), mime_type: "audio/midi".to_owned() }),
            promise: Some(GardenPromise { job_id: job(), if_late: IfLate::Vamp }),
            repeat: 1,
            gain_db: 6.0,
            pan: 0.5,
            offset_seconds: 0.0,
            fade_in: Ticks(0),
            fade_out: Ticks(1),
            crossfade: Ticks(2),
            name: Some(awkward()),
        }],
    }
);
sample!(
    GardenStatus,
    Self {
        state: TransportState::Stopped,
        position: Ticks(0),
        position_beats: 0.0,
        position_seconds: 0.0,
        bar: 1,
        beat_in_bar: 1.0,
        tempo_bpm: 120.0,
        time_signature: String::new(),
        loop_range: None,
        waiting_for: None,
        region_count: 0,
        revision: 0,
        device: device(None),
        counters: GardenCounters::default(),
    },
    Self {
        state: TransportState::Playing,
        position: Ticks(3840),
        position_beats: 4.0,
        position_seconds: 2.0,
        bar: 2,
        beat_in_bar: 1.0,
        tempo_bpm: 120.0,
        time_signature: "4/4".to_owned(),
        loop_range: Some(GardenLoop { start: 0.0, end: 16.0 }),
        waiting_for: Some(region_id()),
        region_count: 10_000,
        revision: u64::MAX,
        device: device(Some(awkward())),
        counters: GardenCounters {
            frames: u64::MAX,
            underruns: 1,
            late: 2,
            clipped: 3,
            commands: TWO_TO_THE_63,
        },
    }
);

fn device(message: Option<String>) -> GardenDevice {
    GardenDevice {
        kind: "null".to_owned(),
        name: awkward(),
        sample_rate: 48_000,
        buffer_frames: 128,
        state: GardenDeviceState::Fallback,
        message,
        realtime: true,
    }
}
