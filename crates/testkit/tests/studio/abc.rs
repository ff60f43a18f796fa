//! Tunes in ABC notation.

use ringback_proto::ErrorKind;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_studio::smf::{Event, Message, Sequence, TempoMap};

use crate::support::with_music;

const TUNE: &str = "X:1\nT:Scale\nM:4/4\nL:1/4\nQ:1/4=120\nK:D\n|:DEFG|ABcd:|\n";

fn to_midi(abc: &str) -> AbcToMidiRequest {
    AbcToMidiRequest {
        abc: abc.to_owned(),
        tune: None,
        tempo_override: None,
        transpose: None,
        velocity: None,
        channel: None,
        chords: false,
        tags: vec!["mine".to_owned()],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    }
}

/// REQ: `abc_validate`: invalid ABC is a success with `valid: false` and its errors.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_text_is_an_answer_with_places() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let request = AbcValidateRequest { abc: "hello world".to_owned() };
    let hello = client.call::<AbcValidate>(request).await.unwrap();
    assert!(!hello.valid);
    assert_eq!((hello.errors[0].line, hello.errors[0].column), (1, 1));
    assert!(hello.errors[0].help.contains("X:1"), "{hello:?}");
    let request = AbcValidateRequest { abc: TUNE.replace("G|", "G [CE|") };
    let torn = client.call::<AbcValidate>(request).await.unwrap();
    assert_eq!((torn.errors[0].line, torn.errors[0].column), (7, 8), "{torn:?}");
}

/// REQ: `abc_parse` returns the structure.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_read_into_its_tunes() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let abc = format!("{TUNE}\nX:2\nT:Other\nK:Gm\nV:1\nG|\nV:2\nD|\n");
    let request = AbcParseRequest { abc, include_notes: true };
    let parsed = client.call::<AbcParse>(request).await.unwrap();
    assert!(parsed.valid);
    assert_eq!((parsed.title.as_deref(), parsed.key.as_deref()), (Some("Scale"), Some("D")));
    assert_eq!((parsed.meter.as_deref(), parsed.tempo), (Some("4/4"), Some(120)));
    assert_eq!((parsed.notes_count, parsed.tunes.len()), (10, 2));
    assert_eq!(parsed.tunes[0].duration_seconds, Some(8.0));
    assert_eq!(parsed.tunes[0].notes.as_ref().unwrap().len(), 16);
    assert_eq!(parsed.tunes[1].voices, ["1", "2"]);
}

/// REQ: `abc_transpose` by semitones or to a key gives ABC that reads back.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_transposed_by_semitones_or_to_a_key() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let ask = |semitones, target_key: Option<&str>| AbcTransposeRequest {
        abc: TUNE.to_owned(),
        semitones,
        target_key: target_key.map(ToOwned::to_owned),
    };
    let up = client.call::<AbcTranspose>(ask(Some(-2), None)).await.unwrap();
    let to = client.call::<AbcTranspose>(ask(None, Some("C"))).await.unwrap();
    assert_eq!(up, to);
    assert_eq!((up.original_key.as_deref(), up.new_key.as_deref()), (Some("D"), Some("C")));
    assert_eq!(up.semitones, -2);
    assert!(up.abc.contains("|:CDEF|GABc:|"), "{}", up.abc);
    for wrong in
        [ask(None, None), ask(Some(1), Some("C")), ask(Some(100), None), ask(None, Some("H"))]
    {
        let error = client.call::<AbcTranspose>(wrong).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    }
}

/// REQ: `abc_to_midi` is a job whose result is an artifact with lineage, and the same request gives
/// the same bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_tune_becomes_a_midi_artifact() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let made = client.call::<AbcToMidi>(to_midi(TUNE)).await.unwrap();
    assert_eq!((made.notes_count, made.duration_seconds), (16, 8.0));
    let artifact =
        client.call::<ArtifactGet>(ArtifactGetRequest { id: made.artifact_id }).await.unwrap();
    assert_eq!(artifact.mime_type, "audio/midi");
    for tag in ["mine", "type:midi", "source:abc", "tool:abc_to_midi"] {
        assert!(artifact.tags.iter().any(|known| known == tag), "{artifact:?}");
    }
    let get = |hash| CasGetRequest { hash, offset: None, length: None };
    let midi = client.call::<CasGet>(get(made.content_hash)).await.unwrap();
    assert!(midi.data.0.starts_with(b"MThd"));
    let text = client.call::<CasGet>(get(made.abc_hash)).await.unwrap();
    assert_eq!(text.data.0, TUNE.as_bytes());
    let child = AbcToMidiRequest { parent_id: Some(made.artifact_id), ..to_midi(TUNE) };
    let again = client.call::<AbcToMidi>(child).await.unwrap();
    assert_eq!(again.content_hash, made.content_hash);
    assert_ne!(again.artifact_id, made.artifact_id);
}

/// Returns the channel, key and velocity of every note-on, and the quarters per minute.
fn notes(midi: &[u8]) -> (Vec<(u8, u8, u8)>, f64) {
    let sequence = Sequence::read(midi).unwrap();
    let note = |event: &Event| {
        let Message::NoteOn { channel, key, velocity } = event.message else { return None };
        Some((channel, key, velocity))
    };
    let notes = sequence.tracks.iter().flatten().filter_map(note).collect();
    let tempo = TempoMap::new(&sequence).quarters_per_minute(0, sequence.timing);
    (notes, tempo.unwrap())
}

/// REQ: `abc_to_midi` with tempo, transpose, velocity, channel and accompaniment when asked, by a call.
#[tokio::test(flavor = "multi_thread")]
async fn the_options_of_a_call_are_heard_in_its_midi() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let convert = async |request: AbcToMidiRequest| {
        let made = client.call::<AbcToMidi>(request).await.unwrap();
        let get = CasGetRequest { hash: made.content_hash, offset: None, length: None };
        let midi = client.call::<CasGet>(get).await.unwrap().data.0;
        (notes(&midi), made.duration_seconds)
    };
    let plain = to_midi(TUNE);
    let ((usual, tempo), seconds) = convert(plain.clone()).await;
    assert_eq!((usual.len(), usual[0].1, tempo, seconds), (16, 62, 120.0, 8.0));

    let faster = AbcToMidiRequest { tempo_override: Some(240), ..plain.clone() };
    assert_eq!(convert(faster).await, ((usual.clone(), 240.0), 4.0));
    let higher = AbcToMidiRequest { transpose: Some(5), ..plain.clone() };
    let ((moved, _), _) = convert(higher).await;
    let up = |(channel, key, velocity): &(u8, u8, u8)| (*channel, key + 5, *velocity);
    assert_eq!(moved, usual.iter().map(up).collect::<Vec<_>>());
    let quiet = AbcToMidiRequest { velocity: Some(33), channel: Some(7), ..plain.clone() };
    let ((quiet, _), _) = convert(quiet).await;
    assert!(quiet.iter().all(|(channel, _, _)| *channel == 7), "{quiet:?}");
    let loud = |notes: &[(u8, u8, u8)]| notes.iter().map(|note| note.2).max();
    assert!(loud(&quiet) < loud(&usual), "{quiet:?}");
    let abc = TUNE.replace("|:DEFG", "|:\"D\"DEFG");
    let (alone, accompanied) = (
        convert(to_midi(&abc)).await.0.0,
        convert(AbcToMidiRequest { chords: true, ..to_midi(&abc) }).await.0.0,
    );
    assert!(alone.len() == 16 && accompanied.len() > 16, "{accompanied:?}");
}

/// REQ: ABC past its limits is a typed error.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_past_a_limit_is_a_typed_error() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let long = AbcValidateRequest { abc: "C".repeat(300_000) };
    let error = client.call::<AbcValidate>(long).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    for (abc, kind) in [
        ("hello world".to_owned(), ErrorKind::Invalid),
        (format!("{TUNE}Z9999|Z9999|Z9999|\n"), ErrorKind::Invalid),
    ] {
        let error = client.call::<AbcToMidi>(to_midi(&abc)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
    }
}
