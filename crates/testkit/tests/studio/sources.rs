//! What an artifact was made from: every tool that reads content records it.

use std::collections::BTreeSet;

use ringback_client::Client;
use ringback_proto::ids::{ArtifactId, BlobHash};
use ringback_proto::request::SourceRole;
use ringback_proto::tool::{TOOLS, ToolRow};
use serde_json::{Map, Value, json};

use crate::faces::by_hoot;
use crate::support::*;

/// The names of the fields of a tool's request, or of its response.
fn fields(schema: &Value) -> BTreeSet<String> {
    let properties = schema["properties"].as_object();
    properties.map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

/// The fields of a request that name content.
fn hash_fields(row: &ToolRow) -> Vec<String> {
    let fields = fields(&json!((row.request_schema)()));
    fields.into_iter().filter(|field| field.ends_with("_hash")).collect()
}

/// Whether a tool makes artifacts: its response names them, and it is not one that reads them.
fn makes_artifacts(row: &ToolRow) -> bool {
    const READERS: [&str; 3] = ["artifact_get", "artifact_list", "add_annotation"];
    let fields = fields(&json!((row.response_schema)()));
    let names_them = fields.contains("artifact_id") || fields.contains("artifacts");
    names_them && !READERS.contains(&row.name)
}

/// Content for the fields of requests.
struct Files {
    midi: [BlobHash; 2],
    sound: [BlobHash; 2],
}

impl Files {
    async fn store(client: &Client) -> Self {
        let other = midi_of(&TUNE.replace("K:D", "K:G"));
        Self {
            midi: [
                store(client, midi(), "audio/midi").await,
                store(client, other, "audio/midi").await,
            ],
            sound: [
                store(client, clicks(4), "audio/wav").await,
                store(client, clicks(5), "audio/wav").await,
            ],
        }
    }

    /// The content for a field. A SoundFont is left out: the daemon has its own.
    fn of(&self, field: &str) -> Option<BlobHash> {
        match field {
            "content_hash" | "input_hash" | "seed_hash" | "section_a_hash" => Some(self.midi[0]),
            "section_b_hash" => Some(self.midi[1]),
            "audio_hash" => Some(self.sound[0]),
            "audio_b_hash" => Some(self.sound[1]),
            "soundfont_hash" => None,
            other => panic!("`{other}` names content: say which, and give it a role"),
        }
    }
}

/// The artifacts in an answer.
fn made(answer: &Value) -> Vec<ArtifactId> {
    let ids = std::iter::once(answer).chain(answer["artifacts"].as_array().into_iter().flatten());
    ids.filter_map(|made| made["artifact_id"].as_str()).map(|id| id.parse().unwrap()).collect()
}

/// Rule: every native tool that reads content and makes an artifact records all of it, with its
/// role; an artifact keeps its tool and its job. The table decides which tools these are.
#[tokio::test(flavor = "multi_thread")]
async fn every_tool_that_reads_content_records_it_as_a_source() {
    let daemon = music_setup().start().await;
    let client = daemon.admin().await;
    let files = Files::store(&client).await;
    let mut checked = Vec::new();
    for row in TOOLS.iter().copied().filter(|row| makes_artifacts(row)) {
        let named = hash_fields(row);
        if named.is_empty() {
            continue;
        }
        let mut input = Map::new();
        let mut expected = BTreeSet::new();
        for field in &named {
            let role = field.strip_suffix("_hash").unwrap();
            if let Some(hash) = files.of(field) {
                input.insert(field.clone(), json!(hash));
                expected.insert((role.to_owned(), Some(hash)));
            } else {
                expected.insert((role.to_owned(), None));
            }
        }
        let answer = answered(&client, row.name, Value::Object(input)).await;
        let ids = made(&answer);
        assert!(!ids.is_empty(), "{}: {answer}", row.name);
        for id in ids {
            let info = artifact(&client, id).await;
            assert_eq!(info.tool.as_deref(), Some(row.name));
            assert_eq!(info.job_id.is_some(), row.makes_job, "{}", row.name);
            let found: BTreeSet<_> = info
                .sources
                .iter()
                .map(|source| {
                    // The hash of the daemon's own SoundFont is that of a file.
                    let is_own = source.role == SourceRole::Soundfont;
                    assert!(source.content_hash.is_some(), "{}", row.name);
                    (source.role.as_str().to_owned(), source.content_hash.filter(|_| !is_own))
                })
                .collect();
            assert_eq!(found, expected, "{}", row.name);
        }
        checked.push(row.name);
    }
    for known in ["artifact_create", "midi_to_wav", "orpheus_bridge", "clap_analyze"] {
        assert!(checked.contains(&known), "{known} is not in {checked:?}");
    }
    daemon.stop().await;
}

/// Rule: a tune that was given as text is a source too.
#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_a_tune_is_the_source_of_its_midi() {
    let daemon = music_setup().start().await;
    let client = daemon.admin().await;
    let answer = by_hoot(&client, "abc_to_midi", &json!({"abc": TUNE})).await;
    let text = store(&client, TUNE.into(), "text/plain").await;
    let ids = made(&answer);
    assert_eq!(ids.len(), 1, "{answer}");
    let info = artifact(&client, ids[0]).await;
    let found: Vec<_> =
        info.sources.iter().map(|source| (source.role, source.content_hash)).collect();
    assert_eq!(found, [(SourceRole::Abc, Some(text))]);
    daemon.stop().await;
}

/// Calls a tool by name, with little work, and returns its result.
async fn answered(client: &Client, tool: &str, mut input: Value) -> Value {
    if tool == "clap_analyze" {
        input["tasks"] = json!(["features", "similarity"]);
    }
    if tool.starts_with("orpheus") {
        input["max_tokens"] = json!(60);
    }
    by_hoot(client, tool, &input).await
}
