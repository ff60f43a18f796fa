//! Samples of the graph's tools.

use super::*;

fn hint() -> GraphHint {
    GraphHint { kind: HintKind::UsbSerial, value: awkward(), confidence: Some(0.5) }
}

fn hint_info() -> GraphHintInfo {
    GraphHintInfo { kind: HintKind::PipewireAlsaPath, value: awkward(), confidence: 1.0 }
}

fn tag() -> GraphTag {
    GraphTag { namespace: "role".into(), value: awkward() }
}

sample!(
    GraphBindRequest,
    Self { id: "jdxi".into(), name: "JD-Xi".into(), hints: vec![] },
    Self {
        id: awkward(),
        name: awkward(),
        hints: vec![
            hint(),
            GraphHint { kind: HintKind::MidiName, value: "JD-Xi".into(), confidence: None },
        ],
    }
);
sample!(
    GraphIdentityResponse,
    Self { id: "jdxi".into(), name: "JD-Xi".into(), created_at: 0, hints: vec![] },
    Self { id: awkward(), name: awkward(), created_at: u64::MAX, hints: vec![hint_info()] }
);
sample!(
    GraphTagRequest,
    Self { identity_id: "jdxi".into(), namespace: "role".into(), value: "synth".into() },
    Self { identity_id: awkward(), namespace: awkward(), value: awkward() }
);
sample!(
    GraphTagsResponse,
    Self { identity_id: "jdxi".into(), tags: vec![] },
    Self { identity_id: awkward(), tags: vec![tag()] }
);
sample!(
    GraphConnectRequest,
    Self {
        from_identity: "jdxi".into(),
        from_port: "out".into(),
        to_identity: "mixer".into(),
        to_port: "in 1".into(),
        transport: None,
    },
    Self {
        from_identity: awkward(),
        from_port: awkward(),
        to_identity: awkward(),
        to_port: awkward(),
        transport: Some("midi".into()),
    }
);
sample!(
    GraphConnectionResponse,
    Self {
        from_identity: "jdxi".into(),
        from_port: "out".into(),
        to_identity: "mixer".into(),
        to_port: "in 1".into(),
        transport: None,
        created_at: 0,
    },
    Self {
        from_identity: awkward(),
        from_port: awkward(),
        to_identity: awkward(),
        to_port: awkward(),
        transport: Some(awkward()),
        created_at: TWO_TO_THE_63,
    }
);
sample!(
    GraphFindRequest,
    Self::default(),
    Self {
        name: Some(awkward()),
        tag_namespace: Some("role".into()),
        tag_value: Some(awkward()),
        hints: vec![hint()],
        limit: Some(u32::MAX),
        cursor: Some(awkward()),
    }
);
sample!(
    GraphIdentitiesResponse,
    Self { identities: vec![], count: 0, next_cursor: None },
    Self {
        identities: vec![
            GraphFoundIdentity {
                id: awkward(),
                name: awkward(),
                yours: true,
                created_at: u64::MAX,
                hints: vec![hint_info()],
                tags: vec![tag()],
                matches: Some(HintMatch::Medium),
            },
            GraphFoundIdentity {
                id: "mixer".into(),
                name: String::new(),
                yours: false,
                created_at: 0,
                hints: vec![],
                tags: vec![],
                matches: None,
            },
        ],
        count: 2,
        next_cursor: Some(awkward()),
    }
);
sample!(
    GraphContextRequest,
    Self::default(),
    Self {
        limit: Some(u32::MAX),
        tag: Some(awkward()),
        creator: Some(awkward()),
        vibe_search: Some("warm".into()),
        within_minutes: Some(5),
        include_annotations: Some(false),
        include_metadata: Some(true),
    }
);
sample!(
    GraphContextResponse,
    Self { context: String::new(), artifact_count: 0, identity_count: 0 },
    Self { context: awkward(), artifact_count: u64::MAX, identity_count: TWO_TO_THE_63 }
);
