//! Samples of the tools for audio.

use super::*;

sample!(
    SoundfontInspectRequest,
    Self { soundfont_hash: None, include_drum_map: false },
    Self { soundfont_hash: Some(hash()), include_drum_map: true }
);
sample!(
    SoundfontInfoResponse,
    Self {
        name: String::new(),
        presets: vec![],
        preset_count: 0,
        instrument_count: 0,
        sample_count: 0,
        author: None,
        copyright: None,
        drum_maps: None,
    },
    Self {
        name: awkward(),
        presets: vec![SoundfontPreset { bank: 128, program: u16::MAX, name: awkward() }],
        preset_count: TWO_TO_THE_63,
        instrument_count: u64::MAX,
        sample_count: 1,
        author: Some(awkward()),
        copyright: Some(String::new()),
        drum_maps: Some(vec![SoundfontDrumMap {
            bank: 128,
            program: 0,
            keys: vec![SoundfontDrumKey {
                key: 36,
                sample_name: awkward(),
                instrument_name: awkward(),
            }],
        }]),
    }
);
sample!(
    SoundfontPresetInspectRequest,
    Self { soundfont_hash: None, bank: 0, program: 0 },
    Self { soundfont_hash: Some(hash()), bank: u16::MAX, program: 127 }
);
sample!(
    SoundfontPresetInfoResponse,
    Self { bank: 0, program: 0, name: String::new(), regions: vec![] },
    Self {
        bank: 128,
        program: 0,
        name: awkward(),
        regions: vec![SoundfontRegion {
            key_low: 0,
            key_high: 127,
            velocity_low: 1,
            velocity_high: 127,
            sample_name: Some(awkward()),
            instrument_name: Some(awkward()),
            root_key: 60,
            tuning_cents: -1200,
            pan: -50.0,
            attenuation_db: 0.5,
            looped: true,
            exclusive_class: 1,
        }],
    }
);
sample!(
    MidiToWavRequest,
    Self {
        input_hash: hash(),
        soundfont_hash: None,
        sample_rate: None,
        format: None,
        gain_db: None,
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    },
    Self {
        input_hash: hash(),
        soundfont_hash: Some(hash()),
        sample_rate: Some(u32::MAX),
        format: Some(SampleFormat::F32),
        gain_db: Some(-0.5),
        tags: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
    }
);
sample!(
    ArtifactsCreatedResponse,
    Self { artifacts: vec![], variation_set_id: None, backend: String::new() },
    Self {
        artifacts: vec![MadeArtifact {
            artifact_id: artifact(),
            content_hash: hash(),
            mime_type: awkward(),
            duration_seconds: Some(0.5),
        }],
        variation_set_id: Some(variations()),
        backend: awkward(),
    }
);
sample!(
    BeatthisAnalyzeRequest,
    Self { audio_hash: None, audio_path: None, include_frames: false },
    Self { audio_hash: Some(hash()), audio_path: Some(awkward()), include_frames: true }
);
sample!(
    BeatsAnalyzedResponse,
    Self {
        beats: vec![],
        downbeats: vec![],
        estimated_bpm: 0.0,
        confidence: 0.0,
        beats_per_bar: 0,
        duration_seconds: 0.0,
        frames: None,
        frames_per_second: None,
        backend: String::new(),
        artifact_id: None,
    },
    Self {
        beats: vec![0.0, 0.5],
        downbeats: vec![0.5],
        estimated_bpm: 120.25,
        confidence: 0.75,
        beats_per_bar: 4,
        duration_seconds: 1e9,
        frames: Some(vec![0.0, 1.5]),
        frames_per_second: Some(100.5),
        backend: awkward(),
        artifact_id: Some(artifact()),
    }
);
sample!(
    ClapAnalyzeRequest,
    Self {
        audio_hash: hash(),
        audio_b_hash: None,
        tasks: vec![],
        text_candidates: vec![],
        creator: None,
        parent_id: None,
    },
    Self {
        audio_hash: hash(),
        audio_b_hash: Some(hash()),
        tasks: vec![awkward()],
        text_candidates: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
    }
);
sample!(
    ClapAnalyzedResponse,
    Self {
        embeddings: None,
        features: None,
        genre: None,
        mood: None,
        zero_shot: None,
        similarity: None,
        unavailable: vec![],
        backend: String::new(),
        artifact_id: None,
    },
    Self {
        embeddings: Some(vec![0.5, -0.5]),
        features: Some(sound_features()),
        genre: Some(vec![LabelScore { label: awkward(), score: 0.5 }]),
        mood: Some(vec![]),
        zero_shot: Some(vec![LabelScore { label: String::new(), score: 0.0 }]),
        similarity: Some(1.0),
        unavailable: vec![awkward()],
        backend: awkward(),
        artifact_id: Some(artifact()),
    }
);

fn sound_features() -> SoundFeatures {
    SoundFeatures {
        duration_seconds: 0.5,
        sample_rate: 44_100,
        channels: 2,
        loudness_lufs: Some(-23.0),
        loudness_range_lu: Some(0.0),
        true_peak_dbtp: Some(-1.5),
        key: Some("D minor".to_owned()),
        key_confidence: Some(0.25),
        onsets: vec![0.0, 0.5],
        centroid_hertz: 1000.0,
        bandwidth_hertz: 500.0,
        rolloff_hertz: 2000.0,
        flatness: 0.125,
        rms: 0.25,
    }
}
