//! Generated music over HOOT01: with services, and without.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use ringback_client::StreamItem;
use ringback_music_services::Service;
use ringback_proto::chunk::StreamChunk;
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_proto::value::Value;
use ringback_proto::{Certainty, ErrorKind};
use ringback_studio::smf::Sequence;
use ringback_studio_tools::{Settings, Studio};
use ringback_testkit::{Setup, within};
use serde_json::json;

use crate::model_service::ModelService;
use crate::support::*;

fn generate(seed: u64) -> OrpheusGenerateRequest {
    OrpheusGenerateRequest {
        max_tokens: Some(90),
        num_variations: Some(2),
        seed: Some(seed),
        tags: vec!["mine".to_owned()],
        ..OrpheusGenerateRequest::default()
    }
}

/// REQ: without a service an embedded statistical model makes music, seeded, reproducible and
/// labelled as what it is; several results are variations of each other.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_service_the_embedded_model_composes_and_says_so() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let made = within("it", client.call::<OrpheusGenerate>(generate(7))).await.unwrap();
    assert!(made.backend.starts_with("embedded"), "{}", made.backend);
    assert_eq!(made.artifacts.len(), 2);
    assert_ne!(made.artifacts[0].content_hash, made.artifacts[1].content_hash);
    let info = artifact(&client, made.artifacts[1].artifact_id).await;
    has_tags(&info, &["mine", "type:midi", "source:embedded", "tool:orpheus_generate"]);
    assert_eq!(info.variation_set_id, made.variation_set_id);
    assert_eq!(info.variation_index, Some(1));
    assert_eq!(info.metadata.unwrap().get("seed"), Some(&Value::Int(8)));
    let again = within("it", client.call::<OrpheusGenerate>(generate(7))).await.unwrap();
    assert_eq!(again.artifacts[0].content_hash, made.artifacts[0].content_hash);
    let other = within("it", client.call::<OrpheusGenerate>(generate(100))).await.unwrap();
    assert_ne!(other.artifacts[0].content_hash, made.artifacts[0].content_hash);
    let file = content(&client, made.artifacts[0].content_hash).await;
    assert!(Sequence::read(&file).unwrap().n_notes() >= 30);
    daemon.stop().await;
}

/// REQ: `orpheus_generate_seeded`, `_continue`, `_bridge`, `_loops` and `_classify` without a service.
#[tokio::test(flavor = "multi_thread")]
async fn given_music_is_continued_bridged_looped_and_judged() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let hash = store(&client, midi(), "audio/midi").await;
    let (max_tokens, seed) = (Some(60), Some(1));
    let lineage = Lineage::default();
    let Lineage { tags, creator, parent_id, variation_set_id } = lineage;
    let going_on = OrpheusContinueRequest {
        input_hash: hash,
        max_tokens,
        num_variations: None,
        temperature: Some(0.8),
        top_p: None,
        model: None,
        seed,
        tags: tags.clone(),
        creator: creator.clone(),
        parent_id,
        variation_set_id,
    };
    let made = within("it", client.call::<OrpheusContinue>(going_on)).await.unwrap();
    assert_eq!((made.artifacts.len(), made.variation_set_id), (1, None));
    let longer = Sequence::read(&content(&client, made.artifacts[0].content_hash).await).unwrap();
    assert!(longer.n_notes() > Sequence::read(&midi()).unwrap().n_notes());
    let info = artifact(&client, made.artifacts[0].artifact_id).await;
    assert_eq!(info.metadata.unwrap().get("input_hash"), Some(&Value::Text(hash.to_string())));

    let bridge = OrpheusBridgeRequest {
        section_a_hash: hash,
        section_b_hash: Some(hash),
        max_tokens,
        temperature: None,
        top_p: None,
        model: None,
        seed,
        tags: tags.clone(),
        creator: creator.clone(),
        parent_id: Some(made.artifacts[0].artifact_id),
        variation_set_id,
    };
    let bridged = within("it", client.call::<OrpheusBridge>(bridge)).await.unwrap();
    let info = artifact(&client, bridged.artifacts[0].artifact_id).await;
    assert_eq!(info.parent_id, Some(made.artifacts[0].artifact_id));
    let request = OrpheusLoopsRequest { seed_hash: Some(hash), seed, ..Default::default() };
    let looped = within("it", client.call::<OrpheusLoops>(request)).await.unwrap();
    // Eight bars of four quarters at 120 a minute.
    assert_eq!(looped.artifacts[0].duration_seconds, Some(16.0));
    let seeded = OrpheusGenerateSeededRequest {
        seed_hash: hash,
        max_tokens,
        num_variations: None,
        temperature: None,
        top_p: None,
        model: None,
        seed,
        tags,
        creator,
        parent_id,
        variation_set_id,
    };
    within("it", client.call::<OrpheusGenerateSeeded>(seeded)).await.unwrap();
    let judge = OrpheusClassifyRequest { midi_hash: hash };
    let judged = within("it", client.call::<OrpheusClassify>(judge)).await.unwrap();
    assert_eq!(judged.classifications[0].label, "programmed");
    assert!(judged.backend.starts_with("embedded"), "{}", judged.backend);
    daemon.stop().await;
}

/// REQ: what is out of range or no music is a typed error with its field.
#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_told_by_its_field() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let wrong = [
        (OrpheusGenerateRequest { temperature: Some(2.5), ..generate(1) }, "temperature"),
        (OrpheusGenerateRequest { top_p: Some(f32::NAN), ..generate(1) }, "top_p"),
        (OrpheusGenerateRequest { max_tokens: Some(0), ..generate(1) }, "max_tokens"),
        (OrpheusGenerateRequest { num_variations: Some(17), ..generate(1) }, "num_variations"),
    ];
    for (request, field) in wrong {
        let error = within("it", client.call::<OrpheusGenerate>(request)).await.unwrap_err();
        assert_eq!(error.context().field.as_deref(), Some(field), "{error}");
    }
    for data in [&b"no music"[..], b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk\0\0\0\x04\0\xFF\x2F\0"] {
        let hash = store(&client, Bytes::from_static(data), "audio/midi").await;
        let judge = OrpheusClassifyRequest { midi_hash: hash };
        let error = within("it", client.call::<OrpheusClassify>(judge)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert_eq!(error.context().field.as_deref(), Some("midi_hash"), "{error}");
    }
    daemon.stop().await;
}

/// REQ: with a service its music is kept, with its lineage, and the answer names it.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_makes_notes() {
    let variation = json!({"midi_base64": base64(&midi()), "num_tokens": 9});
    let answer = json!({"variations": [variation.clone(), variation]});
    let service = ModelService::answering(200, answer).await;
    let daemon = service.setup(&[Service::Orpheus]).start().await;
    let client = daemon.admin().await;
    let made = within("it", client.call::<OrpheusGenerate>(generate(7))).await.unwrap();
    assert_eq!(made.backend, "service: orpheus");
    assert_eq!(made.artifacts.len(), 2);
    assert_eq!(content(&client, made.artifacts[0].content_hash).await, midi());
    let info = artifact(&client, made.artifacts[0].artifact_id).await;
    has_tags(&info, &["mine", "source:orpheus"]);
    assert_eq!(info.creator, "agent_orpheus");
    let seen = service.only();
    assert_eq!((&seen["task"], &seen["num_variations"]), (&json!("generate"), &json!(2)));
    assert!(seen["client_job_id"].as_str().unwrap().starts_with("job_"), "{seen}");
    let get =
        ConfigGetRequest { section: Some("studio.services".into()), key: Some("health".into()) };
    let health = within("it", client.call::<ConfigGet>(get)).await.unwrap().value;
    assert_eq!(health.get("orpheus"), Some(&Value::Text("answering".to_owned())));
    daemon.stop().await;
}

/// REQ: the audio generators say which service is missing and how to configure it.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_service_there_is_no_sound_and_the_error_says_why() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let request = MusicgenGenerateRequest::default();
    let error = within("it", client.call::<MusicgenGenerate>(request)).await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::ToolFailed, Certainty::NotStarted));
    assert!(error.message().contains("`studio.services.musicgen`"), "{error}");
    daemon.stop().await;
}

fn song() -> YueGenerateRequest {
    YueGenerateRequest {
        lyrics: "[verse]\nla la".to_owned(),
        genre: None,
        max_new_tokens: None,
        run_n_segments: None,
        seed: None,
        tags: Vec::new(),
        creator: None,
        parent_id: None,
        variation_set_id: None,
    }
}

/// REQ: `musicgen_generate` and `yue_generate` keep a service's sound.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_makes_sound() {
    let answer = json!({"audio_base64": base64(&clicks(2)), "sample_rate": 22_050});
    let service = ModelService::answering(200, answer).await;
    let daemon = service.setup(&[Service::Musicgen, Service::Yue]).start().await;
    let client = daemon.admin().await;
    let prompt = Some("a clock".to_owned());
    let request = MusicgenGenerateRequest { prompt, ..Default::default() };
    let made = within("it", client.call::<MusicgenGenerate>(request)).await.unwrap();
    assert_eq!(made.artifacts[0].duration_seconds, Some(2.0));
    let seen = service.only();
    assert_eq!((&seen["prompt"], &seen["top_k"]), (&json!("a clock"), &json!(250)));
    let info = artifact(&client, made.artifacts[0].artifact_id).await;
    has_tags(&info, &["type:audio", "format:wav", "source:musicgen", "tool:musicgen_generate"]);
    let sung = within("it", client.call::<YueGenerate>(song())).await.unwrap();
    let info = artifact(&client, sung.artifacts[0].artifact_id).await;
    has_tags(&info, &["has:vocals", "source:yue"]);
    assert_eq!(info.content_hash, made.artifacts[0].content_hash);
    daemon.stop().await;
}

/// REQ: what a service does wrong is typed, and says whether it ran.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_service_does_wrong_is_typed() {
    let bad_sound = json!({"audio_base64": base64(b"no sound")});
    for (status, answer, kind, certainty) in [
        (422, json!({"detail": "too long"}), ErrorKind::Invalid, Certainty::NotStarted),
        (500, json!({"error": "no GPU"}), ErrorKind::ToolFailed, Certainty::Ran),
        (200, json!({"nothing": 1}), ErrorKind::ToolFailed, Certainty::Ran),
        (200, bad_sound, ErrorKind::ToolFailed, Certainty::Ran),
    ] {
        let service = ModelService::answering(status, answer).await;
        let daemon = service.setup(&[Service::Yue]).start().await;
        let client = daemon.admin().await;
        let error = within("it", client.call::<YueGenerate>(song())).await.unwrap_err();
        assert_eq!((error.kind(), error.certainty()), (kind, certainty), "{error}");
        daemon.stop().await;
    }
    let gone = ModelService::silent().await;
    let setup = gone.setup(&[Service::Yue]);
    drop(gone);
    let daemon = setup.start().await;
    let client = daemon.admin().await;
    let error = within("it", client.call::<YueGenerate>(song())).await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Gone, Certainty::NotStarted));
    daemon.stop().await;
}

/// REQ: `orpheus_*` send `partial_midi` while they compose; together it is the file.
#[tokio::test(flavor = "multi_thread")]
async fn music_is_heard_while_it_is_composed() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let request =
        OrpheusGenerateRequest { max_tokens: Some(900), num_variations: Some(1), ..generate(7) };
    let mut stream = client.stream::<OrpheusGenerate>(request).unwrap();
    let (mut parts, mut heard, mut made) = (0, Vec::new(), None);
    while let Some(item) = within("an item", stream.next()).await {
        match item.unwrap() {
            StreamItem::Chunk(StreamChunk::PartialMidi { events }) => {
                parts += 1;
                heard.extend(events.into_iter().map(|event| (event.tick, event.data.0.to_vec())));
            }
            StreamItem::Started { .. } | StreamItem::Chunk(_) => {}
            StreamItem::End(response) => made = response,
        }
    }
    let made = made.unwrap().artifacts.remove(0);
    let file = Sequence::read(&content(&client, made.content_hash).await).unwrap();
    let written: Vec<_> =
        file.tracks[0].iter().map(|event| (event.tick, event.message.bytes())).collect();
    assert_eq!(heard, written);
    assert!(parts > 2, "{parts}");
    daemon.stop().await;
}

/// REQ: `musicgen_generate` and `yue_generate` pass on the progress and the sound that a service
/// streams.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_service_streams_reaches_the_caller() {
    let samples: Vec<u8> = [0.5_f32, -0.5].map(f32::to_le_bytes).concat();
    let service = ModelService::streaming(&[
        json!({"progress": 40.0, "message": "a clock"}),
        json!({"audio_base64": base64(&samples), "sample_rate": 32_000, "channels": 1}),
        json!({"result": {"audio_base64": base64(&clicks(2)), "sample_rate": 22_050}}),
    ])
    .await;
    let daemon = service.setup(&[Service::Musicgen, Service::Yue]).start().await;
    let client = daemon.admin().await;
    let mut stream = client.stream::<YueGenerate>(song()).unwrap();
    let (mut chunks, mut made) = (Vec::new(), None);
    while let Some(item) = within("an item", stream.next()).await {
        match item.unwrap() {
            StreamItem::Started { .. } => {}
            StreamItem::Chunk(chunk) => chunks.push(chunk),
            StreamItem::End(response) => made = response,
        }
    }
    let samples = samples.into();
    let audio = StreamChunk::PartialAudio { samples, sample_rate: 32_000, channels: 1 };
    assert!(chunks.contains(&audio), "{chunks:?}");
    let is_told = |chunk: &StreamChunk| matches!(chunk, StreamChunk::Progress { percent, message } if *percent == 40.0 && message == "a clock");
    assert!(chunks.iter().any(is_told), "{chunks:?}");
    assert_eq!(made.unwrap().artifacts[0].duration_seconds, Some(2.0));
    let request = MusicgenGenerateRequest::default();
    let made = within("it", client.call::<MusicgenGenerate>(request)).await.unwrap();
    assert_eq!(made.artifacts[0].duration_seconds, Some(2.0));
    daemon.stop().await;
}

/// REQ: long work is a job with progress, and cancelling it ends the request to its service.
#[tokio::test(flavor = "multi_thread")]
async fn work_of_a_service_is_followed_and_cancelled_in_the_middle() {
    let service = ModelService::silent().await;
    let daemon = service.setup(&[Service::Yue]).start().await;
    let client = daemon.admin().await;
    let mut stream = client.stream::<YueGenerate>(song()).unwrap();
    let mut job = None;
    loop {
        match within("an item", stream.next()).await.unwrap().unwrap() {
            StreamItem::Started { job_id, .. } => job = job_id,
            StreamItem::Chunk(StreamChunk::Progress { message, .. }) => {
                assert!(message.starts_with("yue has been working"), "{message}");
                break;
            }
            other @ (StreamItem::Chunk(_) | StreamItem::End(_)) => panic!("{other:?}"),
        }
    }
    within("a question", service.asked.notified()).await;
    let job_id = job.unwrap();
    let other = daemon.admin().await;
    within("it", other.call::<JobCancel>(JobCancelRequest { job_id })).await.unwrap();
    let status = within("it", other.call::<JobStatus>(JobStatusRequest { job_id })).await.unwrap();
    assert_eq!(status.status, JobState::Cancelled);
    drop(stream);
    daemon.stop().await;
}

/// REQ: `beatthis_analyze` and `clap_analyze` call their services when configured.
#[tokio::test(flavor = "multi_thread")]
async fn services_analyse_sound() {
    let answer = json!({
        "beats": [0.0, 0.5, 1.0, 1.5], "downbeats": [0.0], "bpm": 120.0, "num_beats": 4,
        "frames": {"beat_probs": [0.9, 0.1, 0.9, 0.1], "downbeat_probs": []},
        "embeddings": [0.5, 0.25], "genre": {"top_label": "clock", "top_score": 0.75},
    });
    let service = ModelService::answering(200, answer).await;
    let daemon = service.setup(&[Service::Clap, Service::Beatthis]).start().await;
    let client = daemon.admin().await;
    let hash = store(&client, clicks(2), "audio/wav").await;
    let request =
        BeatthisAnalyzeRequest { audio_hash: Some(hash), audio_path: None, include_frames: true };
    let beats = within("it", client.call::<BeatthisAnalyze>(request)).await.unwrap();
    assert_eq!((beats.backend.as_str(), beats.beats.len()), ("service: beatthis", 4));
    assert_eq!((beats.estimated_bpm, beats.frames_per_second), (120.0, Some(2.0)));
    let info = artifact(&client, beats.artifact_id.unwrap()).await;
    has_tags(&info, &["type:analysis", "tool:beatthis_analyze", "bpm:120"]);
    let request = ClapAnalyzeRequest {
        audio_hash: hash,
        audio_b_hash: None,
        tasks: ["embeddings", "genre", "mood", "features"].map(ToOwned::to_owned).to_vec(),
        text_candidates: Vec::new(),
        creator: None,
        parent_id: None,
    };
    let told = within("it", client.call::<ClapAnalyze>(request)).await.unwrap();
    assert_eq!((told.backend.as_str(), told.unavailable), ("service: clap", vec!["mood".into()]));
    assert_eq!(told.genre.unwrap()[0].label, "clock");
    assert!(told.features.is_some() && told.embeddings.is_some());
    daemon.stop().await;
}

/// REQ: the trace of a call goes on to the service it asks.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_learns_the_trace() {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let service = ModelService::answering(500, json!({})).await;
    let traceparent = |_: &_| Some(TRACE.to_owned());
    let settings = Settings { traceparent, ..service.settings(&[Service::Yue]) };
    let studio = Arc::new(Studio::new(settings));
    let daemon = Setup::new().hoot().config(|config| config.studio = studio).start().await;
    let client = daemon.admin().await;
    within("it", client.call::<YueGenerate>(song())).await.unwrap_err();
    assert_eq!(*service.traces.lock().unwrap(), [TRACE]);
    daemon.stop().await;
}
