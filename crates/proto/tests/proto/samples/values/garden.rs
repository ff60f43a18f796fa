//! Samples of the garden's tools and events.

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

sample!(GardenStatusRequest, Self {});
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
    Self { regions: vec![], count: 0, revision: 0 },
    Self {
        regions: vec![GardenRegionInfo {
            region_id: region_id(),
            position: 0.5,
            duration: 4.0,
            yours: true,
            content: Some(GardenRegionContent {
                behavior_type: RegionBehavior::PlayContent,
                artifact_id: Some(artifact()),
                content_hash: hash(),
                mime_type: "audio/wav".to_owned(),
                gain_db: -6.5,
                pan: -1.0,
                offset_seconds: 0.125,
                fade_in: 0.25,
                fade_out: 0.5,
                name: Some(awkward()),
                tags: vec![awkward()],
            }),
        }],
        count: TWO_TO_THE_63,
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
        name: None,
        tags: vec![],
    },
    Self {
        position: 3.75,
        duration: Some(4.0),
        behavior_type: RegionBehavior::PlayContent,
        content_id: artifact().to_string(),
        gain_db: Some(-6.5),
        pan: Some(1.0),
        offset_seconds: Some(0.125),
        fade_in: Some(0.25),
        fade_out: Some(0.5),
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
    Self { events: vec![transport(), region(), trouble(), position()] }
);
sample!(
    GardenTimeline,
    Self { revision: 0, tempo: vec![], regions: vec![] },
    Self {
        revision: u64::MAX,
        tempo: vec![TempoChange::DEFAULT],
        regions: vec![GardenRegion {
            region_id: region_id(),
            position: Ticks(960_000_000),
            duration: Some(Ticks(480)),
            content_hash: hash(),
            mime_type: "audio/midi".to_owned(),
            gain_db: 6.0,
            pan: 0.5,
            offset_seconds: 0.0,
            fade_in: Ticks(0),
            fade_out: Ticks(1),
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
