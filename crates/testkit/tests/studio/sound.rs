//! SoundFonts, renders and analyses over HOOT01.

use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use ringback_client::{Client, Notice, StreamItem, Subscriber};
use ringback_proto::chunk::StreamChunk;
use ringback_proto::event::{SequencedData, StreamData};
use ringback_proto::ids::BlobHash;
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_proto::value::Value;
use ringback_proto::{ErrorKind, Event};
use ringback_testkit::within;

use crate::support::*;

/// Returns a file with one track that plays a note for a number of quarters, half a second each.
fn midi(quarters: u32) -> Bytes {
    let ticks = quarters * 96;
    let mut track = vec![0, 0x90, 60, 100];
    for shift in [21, 14, 7] {
        if ticks >> shift > 0 {
            track.push((ticks >> shift & 0x7F) as u8 | 0x80);
        }
    }
    track.extend([(ticks & 0x7F) as u8, 0x80, 60, 0, 0, 0xFF, 0x2F, 0]);
    let mut file = b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk".to_vec();
    file.extend(u32::try_from(track.len()).unwrap().to_be_bytes());
    file.extend(track);
    file.into()
}

async fn store(client: &Client, data: Bytes, mime_type: &str) -> BlobHash {
    let request = CasStoreRequest {
        data: ringback_proto::data::Data(data),
        mime_type: mime_type.to_owned(),
        upload_id: None,
        offset: None,
        last: None,
    };
    within("the upload", client.call::<CasStore>(request)).await.unwrap().hash.unwrap()
}

async fn render(client: &Client, quarters: u32) -> MidiToWavRequest {
    MidiToWavRequest {
        input_hash: store(client, midi(quarters), "audio/midi").await,
        soundfont_hash: None,
        sample_rate: None,
        format: None,
        gain_db: None,
        tags: vec!["mine".to_owned()],
        creator: Some("ada".to_owned()),
        parent_id: None,
        variation_set_id: None,
    }
}

/// REQ: `soundfont_inspect` and `soundfont_preset_inspect` describe a font.
#[tokio::test(flavor = "multi_thread")]
async fn the_daemons_font_is_inspected() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let request = SoundfontInspectRequest { soundfont_hash: None, include_drum_map: true };
    let info = within("the font", client.call::<SoundfontInspect>(request)).await.unwrap();
    assert_eq!(info.preset_count, info.presets.len() as u64);
    assert!(info.preset_count >= 128);
    assert!(!info.drum_maps.unwrap()[0].keys.is_empty());
    let request = SoundfontPresetInspectRequest { soundfont_hash: None, bank: 0, program: 0 };
    let preset =
        within("it", client.call::<SoundfontPresetInspect>(request.clone())).await.unwrap();
    assert!(preset.regions.len() > 3);
    assert!(preset.regions.iter().all(|region| region.sample_name.is_some()));
    let request = SoundfontPresetInspectRequest { bank: 99, ..request };
    let error =
        within("an error", client.call::<SoundfontPresetInspect>(request)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    daemon.stop().await;
}

/// REQ: an invalid font is a typed error with its place.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_font_or_no_midi_is_an_error_that_says_where() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let hash = store(&client, Bytes::from_static(b"RIFF\xff\xff\xff\xff"), "audio/sf2").await;
    let request = SoundfontInspectRequest { soundfont_hash: Some(hash), include_drum_map: false };
    let error = within("an error", client.call::<SoundfontInspect>(request)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("at byte 0"), "{error}");
    let request = MidiToWavRequest { input_hash: hash, ..render(&client, 1).await };
    let error = within("an error", client.call::<MidiToWav>(request)).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.context().field.as_deref()),
        (ErrorKind::Invalid, Some("input_hash"))
    );
    let request = BeatthisAnalyzeRequest { audio_hash: Some(hash), ..Default::default() };
    let error = within("an error", client.call::<BeatthisAnalyze>(request)).await.unwrap_err();
    assert_eq!(error.context().field.as_deref(), Some("audio_hash"));
    daemon.stop().await;
}

/// REQ: `midi_to_wav` is a job with progress and `partial_audio`, and its result an artifact with
/// labels, lineage and the same bytes each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_render_streams_its_sound_and_ends_as_an_artifact() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let request = render(&client, 4).await;
    let mut stream = client.stream::<MidiToWav>(request.clone()).unwrap();
    let (mut n_samples, mut progress, mut made) = (0, 0, None);
    while let Some(item) = within("an item", stream.next()).await {
        match item.unwrap() {
            StreamItem::Started { job_id, .. } => assert!(job_id.is_some()),
            StreamItem::Chunk(StreamChunk::PartialAudio { samples, sample_rate, channels }) => {
                assert_eq!((sample_rate, channels), (44_100, 2));
                n_samples += samples.0.len() / 4;
            }
            StreamItem::Chunk(StreamChunk::Progress { .. }) => progress += 1,
            StreamItem::End(response) => made = response,
            other => panic!("{other:?}"),
        }
    }
    let made = made.unwrap().artifacts.remove(0);
    assert!(progress > 0);
    let seconds = made.duration_seconds.unwrap();
    assert_eq!(n_samples, (seconds * 44_100.0).round() as usize * 2);
    let get = CasGetRequest { hash: made.content_hash, offset: None, length: None };
    let content = within("it", client.call::<CasGet>(get)).await.unwrap();
    assert_eq!(content.mime_type, "audio/wav");
    assert_eq!(content.data.0.len(), 44 + n_samples * 2);
    let get = ArtifactGetRequest { id: made.artifact_id };
    let artifact = within("it", client.call::<ArtifactGet>(get)).await.unwrap();
    assert_eq!(artifact.creator, "ada");
    for tag in ["mine", "type:audio", "format:wav", "tool:midi_to_wav"] {
        assert!(artifact.tags.iter().any(|has| has == tag), "{tag}");
    }
    let metadata = artifact.metadata.unwrap();
    assert_eq!(metadata.get("sample_rate"), Some(&Value::Int(44_100)));

    let child = MidiToWavRequest { parent_id: Some(made.artifact_id), ..request };
    let again = within("it", client.call::<MidiToWav>(child)).await.unwrap().artifacts.remove(0);
    assert_eq!(again.content_hash, made.content_hash);
    assert_ne!(again.artifact_id, made.artifact_id);
    let get = ArtifactGetRequest { id: again.artifact_id };
    let artifact = within("it", client.call::<ArtifactGet>(get)).await.unwrap();
    assert_eq!(artifact.parent_id, Some(made.artifact_id));
    daemon.stop().await;
}

/// REQ: IOPub carries the sound of a render that nobody follows, on the stream of its job.
#[tokio::test(flavor = "multi_thread")]
async fn subscribers_hear_a_render_that_nobody_follows() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let topics = ["stream.started", "stream.ended", "stream.data."];
    let mut subscriber = daemon.subscriber(daemon.admin_token(), &topics).await;
    let request = MidiToWavRequest { format: Some(SampleFormat::F32), ..render(&client, 8).await };
    // Until the subscription is in force from the first piece on.
    let (made, sound) = loop {
        let made = within("it", client.call::<MidiToWav>(request.clone())).await.unwrap();
        let heard = tokio::time::timeout(SOON, heard(&mut subscriber)).await;
        if let Ok((first, last, n_pieces, sound)) = heard
            && (first, last) == (1, n_pieces)
        {
            break (made, sound);
        }
    };
    let get = CasGetRequest { hash: made.artifacts[0].content_hash, offset: None, length: None };
    let wav = within("it", client.call::<CasGet>(get)).await.unwrap().data.0;
    assert!(!sound.is_empty() && wav.ends_with(&sound), "the sound is that of the file");
    assert!(wav.len() - sound.len() < 100, "nothing but the header is missing");
    daemon.stop().await;
}

/// How long to wait for a stream that may have ended before the subscription was in force.
const SOON: Duration = Duration::from_secs(1);

/// Reads a stream to its end: the numbers of its first and last piece, how many there were, and the
/// sound.
async fn heard(subscriber: &mut Subscriber) -> (u64, u64, u64, Vec<u8>) {
    let (mut first, mut last, mut sound) = (0, 0, Vec::new());
    let mut started = None;
    loop {
        match within("a notice", subscriber.next()).await.unwrap() {
            Notice::Data(SequencedData { topic_seq, event, .. }) => {
                let StreamData::Chunk { stream_id, chunk } = event;
                if started.is_some_and(|started| started != stream_id) || last > topic_seq {
                    (first, sound) = (0, Vec::new());
                }
                (first, last) = (if first == 0 { topic_seq } else { first }, topic_seq);
                let StreamChunk::PartialAudio { samples, .. } = chunk else { panic!("{chunk:?}") };
                sound.extend_from_slice(&samples.0);
            }
            Notice::Event(event) => {
                if let Event::StreamStarted { stream_id, tool, job_id } = event.event {
                    assert_eq!((tool.as_str(), job_id.is_some()), ("midi_to_wav", true));
                    (started, first, sound) = (Some(stream_id), 0, Vec::new());
                    continue;
                }
                let Event::StreamEnded { stream_id, data, .. } = event.event else {
                    panic!("{event:?}")
                };
                assert!(started.is_none_or(|started| started == stream_id));
                return (first, last, data, sound);
            }
            notice @ (Notice::Missed(_) | Notice::Other { .. }) => panic!("{notice:?}"),
        }
    }
}

/// REQ: a render that is cancelled in the middle stops, and makes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_render_is_cancelled_in_the_middle() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let request = render(&client, 7000).await;
    let mut stream = client.stream::<MidiToWav>(request).unwrap();
    let mut job = None;
    loop {
        match within("an item", stream.next()).await.unwrap().unwrap() {
            StreamItem::Started { job_id, .. } => job = job_id,
            StreamItem::Chunk(StreamChunk::PartialAudio { .. }) => break,
            StreamItem::Chunk(_) => {}
            StreamItem::End(_) => panic!("it ended before it was cancelled"),
        }
    }
    let job_id = job.unwrap();
    let other = daemon.admin().await;
    within("it", other.call::<JobCancel>(JobCancelRequest { job_id })).await.unwrap();
    let status = within("it", other.call::<JobStatus>(JobStatusRequest { job_id })).await.unwrap();
    assert_eq!(status.status, JobState::Cancelled);
    let list = ArtifactListRequest { tag: Some("type:audio".to_owned()), ..Default::default() };
    let listed = within("it", other.call::<ArtifactList>(list)).await.unwrap();
    assert_eq!(listed.count, 0);
    drop(stream);
    daemon.stop().await;
}

/// Rule: a small file never makes a huge render: the limit prevents it.
#[tokio::test(flavor = "multi_thread")]
async fn a_render_past_the_limit_is_refused() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let request = render(&client, 2_000_000).await;
    let error = within("an error", client.call::<MidiToWav>(request)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.message().contains("studio.render_max"), "{error}");
    daemon.stop().await;
}

/// Returns clicks at 120 a minute, as a WAV file.
fn clicks() -> Bytes {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clicks.wav");
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-f", "lavfi", "-i"])
        .arg("aevalsrc=0.8*sin(2*PI*880*t)*exp(-30*mod(t\\,0.5)):d=12:s=44100")
        .arg(&path)
        .status()
        .expect("`ffmpeg` is installed by the tests' preparation");
    assert!(made.success());
    std::fs::read(path).unwrap().into()
}

/// REQ: `beatthis_analyze` without a service uses the embedded method, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn the_beats_of_a_click_are_found() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let hash = store(&client, clicks(), "audio/wav").await;
    let request =
        BeatthisAnalyzeRequest { audio_hash: Some(hash), audio_path: None, include_frames: true };
    let found = within("it", client.call::<BeatthisAnalyze>(request)).await.unwrap();
    assert!((found.estimated_bpm - 120.0).abs() < 2.0, "{}", found.estimated_bpm);
    assert!(found.beats.len() >= 20);
    assert!(found.backend.starts_with("embedded"), "{}", found.backend);
    assert!(found.frames.unwrap().len() > 1000);
    let get = ArtifactGetRequest { id: found.artifact_id.unwrap() };
    let artifact = within("it", client.call::<ArtifactGet>(get)).await.unwrap();
    assert!(artifact.tags.iter().any(|tag| tag == "type:analysis"));
    let neither = BeatthisAnalyzeRequest::default();
    let error = within("an error", client.call::<BeatthisAnalyze>(neither)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    daemon.stop().await;
}

/// REQ: `clap_analyze` without a service measures what it can, names what it cannot, and refuses
/// when nothing is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_sound_is_described_and_what_needs_a_model_is_named() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let hash = store(&client, clicks(), "audio/wav").await;
    let tasks = |tasks: &[&str]| ClapAnalyzeRequest {
        audio_hash: hash,
        audio_b_hash: Some(hash),
        tasks: tasks.iter().map(|task| (*task).to_owned()).collect(),
        text_candidates: Vec::new(),
        creator: None,
        parent_id: None,
    };
    let asked = tasks(&["embeddings", "features", "similarity", "genre"]);
    let told = within("it", client.call::<ClapAnalyze>(asked)).await.unwrap();
    assert!((told.similarity.unwrap() - 1.0).abs() < 1e-3);
    assert_eq!(told.unavailable, ["genre"]);
    assert!(told.features.unwrap().onsets.len() >= 20);
    assert!(!told.embeddings.unwrap().is_empty());
    let error = within("it", client.call::<ClapAnalyze>(tasks(&["mood"]))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ToolFailed);
    let error = within("it", client.call::<ClapAnalyze>(tasks(&["smell"]))).await.unwrap_err();
    assert_eq!(error.context().field.as_deref(), Some("tasks"));
    daemon.stop().await;
}
