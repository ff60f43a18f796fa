//! Music to send, and helpers for requests.

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use ringback_client::Client;
use ringback_proto::ids::{ArtifactId, BlobHash};
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_studio::render::{WavFormat, WavSink};
use ringback_studio_tools::{Settings, Studio};
use ringback_testkit::{Setup, World, within};

/// A tune of two lines.
pub(crate) const TUNE: &str = "X:1\nT:Reel\nM:4/4\nL:1/8\nQ:1/4=120\nK:D\n\
    |:FAdA BAdA|FAdA BAFE|FAdA BAdB|AFEF D4:|\n";

/// A daemon with the music tools.
pub(crate) fn music_setup() -> Setup {
    let studio = Arc::new(Studio::new(Settings::default()));
    Setup::new().hoot().config(|config| config.studio = studio)
}

/// Starts a daemon with the music tools.
pub(crate) async fn with_music() -> World {
    music_setup().start().await
}

/// The tune as a MIDI file.
pub(crate) fn midi() -> Bytes {
    midi_of(TUNE)
}

/// A tune as a MIDI file.
pub(crate) fn midi_of(tune: &str) -> Bytes {
    let parsed = ringback_studio::abc::parse(tune).unwrap();
    let options = ringback_studio::abc::Options::default();
    let performance = ringback_studio::abc::perform(&parsed.book, 0, &options).unwrap();
    ringback_studio::abc::to_midi(&performance).write().into()
}

/// Clicks, two a second, as a WAV file of 22,050 frames a second.
pub(crate) fn clicks(seconds: u32) -> Bytes {
    let samples: Vec<f32> = (0..seconds * 22_050)
        .map(|frame| {
            let since = (frame % 11_025) as f32 / 22_050.0;
            0.8 * (since * 880.0 * std::f32::consts::TAU).sin() * (-30.0 * since).exp()
        })
        .collect();
    let mut file = Cursor::new(Vec::new());
    let mut sink = WavSink::new(&mut file, WavFormat::Int16, 1, 22_050).unwrap();
    sink.write(&samples).unwrap();
    sink.finish().unwrap();
    file.into_inner().into()
}

pub(crate) async fn store(client: &Client, data: Bytes, mime_type: &str) -> BlobHash {
    let request = CasStoreRequest {
        data: ringback_proto::data::Data(data),
        mime_type: mime_type.to_owned(),
        upload_id: None,
        offset: None,
        last: None,
    };
    within("the upload", client.call::<CasStore>(request)).await.unwrap().hash.unwrap()
}

pub(crate) async fn content(client: &Client, hash: BlobHash) -> Bytes {
    let get = CasGetRequest { hash, offset: None, length: None };
    within("the content", client.call::<CasGet>(get)).await.unwrap().data.0
}

pub(crate) async fn artifact(client: &Client, id: ArtifactId) -> ArtifactInfoResponse {
    within("it", client.call::<ArtifactGet>(ArtifactGetRequest { id })).await.unwrap()
}

pub(crate) fn has_tags(artifact: &ArtifactInfoResponse, tags: &[&str]) {
    for tag in tags {
        assert!(artifact.tags.iter().any(|has| has == tag), "{tag}: {artifact:?}");
    }
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
