//! Bytes from untrusted peers: a decoder returns a value or a short `invalid` for any input.

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use ringback_proto::chunk::StreamChunk;
use ringback_proto::error::ToolError;
use ringback_proto::event::{Heads, SequencedEvent};
use ringback_proto::frame::Frame;
use ringback_proto::{
    Error, ErrorKind, RequestEnvelope, ResponseEnvelope, ToolRequest, ToolResponse, msgpack,
};

/// More than any decoder needs to explain an error.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Rule: a body of random bytes never kills or wedges an edge.
#[track_caller]
fn assert_modest<T>(result: Result<T, Error>) {
    if let Err(error) = result {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().len() < MESSAGE_BYTES_MAX, "{} bytes", error.message().len());
    }
}

/// Passes the bytes to every decoder of a body, after the check that guards them.
fn decode_all(bytes: &[u8]) {
    let body = Bytes::copy_from_slice(bytes);
    assert_modest(RequestEnvelope::decode(&body));
    assert_modest(RequestEnvelope::decode_raw(&body, Bytes::from_static(b"data")));
    assert_modest(ResponseEnvelope::decode(&body));
    if msgpack::check(bytes).is_ok() {
        drop(rmp_serde::from_slice::<ToolResponse>(bytes));
        drop(rmp_serde::from_slice::<ToolError>(bytes));
        drop(rmp_serde::from_slice::<StreamChunk>(bytes));
        drop(rmp_serde::from_slice::<SequencedEvent>(bytes));
        drop(rmp_serde::from_slice::<Heads>(bytes));
        for row in ringback_proto::tool::TOOLS {
            let mut decoder = rmp_serde::Deserializer::from_read_ref(bytes);
            drop(ToolRequest::deserialize_named(row.name, &mut decoder));
        }
    }
}

/// A change that makes good bytes bad.
#[derive(Debug, Clone)]
enum Mutation {
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Delete(Index, u8),
    Truncate(Index),
    Repeat(Index, u8),
}

impl Mutation {
    fn any() -> impl Strategy<Value = Self> {
        prop_oneof![
            (any::<Index>(), 1..=255_u8).prop_map(|(at, bits)| Self::Flip(at, bits)),
            (any::<Index>(), proptest::collection::vec(any::<u8>(), 1..8))
                .prop_map(|(at, bytes)| Self::Insert(at, bytes)),
            (any::<Index>(), 1..16_u8).prop_map(|(at, len)| Self::Delete(at, len)),
            any::<Index>().prop_map(Self::Truncate),
            (any::<Index>(), 1..64_u8).prop_map(|(at, len)| Self::Repeat(at, len)),
        ]
    }

    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let len = bytes.len();
        let range = |at: &Index, n_bytes: u8| {
            let start = at.index(len);
            start..len.min(start + usize::from(n_bytes))
        };
        match self {
            Self::Flip(at, bits) => bytes[at.index(len)] ^= bits,
            Self::Insert(at, inserted) => {
                let at = at.index(len);
                bytes.splice(at..at, inserted.iter().copied());
            }
            Self::Delete(at, n_bytes) => drop(bytes.drain(range(at, *n_bytes))),
            Self::Truncate(at) => bytes.truncate(at.index(len)),
            Self::Repeat(at, n_bytes) => bytes.extend_from_within(range(at, *n_bytes)),
        }
    }
}

/// The committed bodies: every tool, reply, error, chunk and event.
fn golden_bodies() -> Vec<Vec<u8>> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/golden");
    let names =
        ["requests", "responses", "request_envelopes", "replies", "errors", "chunks", "events"];
    let mut bodies = Vec::new();
    for name in names {
        let text = std::fs::read_to_string(format!("{directory}/{name}.txt"))
            .expect("the golden vectors are committed");
        let hex = text
            .lines()
            .filter_map(|line| line.strip_prefix("map   ").or_else(|| line.strip_prefix("array ")));
        bodies.extend(hex.map(from_hex));
    }
    bodies
}

fn from_hex(hex: &str) -> Vec<u8> {
    let byte = |index| u8::from_str_radix(&hex[index..index + 2], 16).expect("hex digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn there_are_golden_bodies_to_start_from() {
    let bodies = golden_bodies();
    assert!(bodies.len() > 150, "{} bodies", bodies.len());
    bodies.iter().for_each(|body| decode_all(body));
}

#[test]
fn arbitrary_bodies_are_answered_shortly() {
    proptest!(config(), |(bytes in proptest::collection::vec(any::<u8>(), 0..300))| {
        decode_all(&bytes);
    });
}

#[test]
fn damaged_bodies_are_answered_shortly() {
    let bodies = golden_bodies();
    let mutations = proptest::collection::vec(Mutation::any(), 1..4);
    proptest!(config(), |(body in any::<Index>(), mutations in mutations)| {
        let mut bytes = body.get(&bodies).clone();
        mutations.iter().for_each(|mutation| mutation.apply(&mut bytes));
        decode_all(&bytes);
    });
}

#[test]
fn arbitrary_parts_are_never_more_than_a_frame_error() {
    let part = prop_oneof![
        Just(b"HOOT01".to_vec()),
        Just(vec![0, 2]),
        Just(vec![0, 1]),
        Just(vec![7; 16]),
        Just(Vec::new()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest!(config(), |(parts in proptest::collection::vec(part, 0..12))| {
        let parts: Vec<Bytes> = parts.into_iter().map(Bytes::from).collect();
        for error in [Frame::decode(&parts[..]).err(), Frame::decode_routed(&parts[..]).err()]
            .into_iter()
            .flatten()
        {
            prop_assert!(error.to_string().len() < MESSAGE_BYTES_MAX);
        }
    });
}

/// Decoders quote unexpected input, whose length an untrusted peer chooses.
#[test]
fn an_error_never_repeats_a_long_text_of_the_peer() {
    let long = "é".repeat(100_000);
    let in_a_field = serde_json::json!({ "tool": "job_list", "status": long });
    let as_bytes = serde_json::json!({ "tool": "cas_store", "mime_type": "", "data": long });
    let as_id = serde_json::json!({ "tool": "job_status", "job_id": long });
    let as_name = serde_json::json!({ "tool": long });
    let as_option = serde_json::json!({ "request": { "tool": "ping" }, "timing_hint": long });
    let as_kind = serde_json::json!({ "kind": long });
    for value in [in_a_field, as_bytes, as_id, as_name, as_option] {
        let body = Bytes::from(rmp_serde::to_vec_named(&value).unwrap());
        assert!(RequestEnvelope::decode(&body).is_err());
        decode_all(&body);
    }
    decode_all(&rmp_serde::to_vec_named(&as_kind).unwrap());
}

#[test]
fn raw_bytes_go_to_cas_store_alone_and_any_tool_may_ask_for_raw_bytes_back() {
    let header = |tool: &str| {
        let hash = "0".repeat(64);
        let request = serde_json::json!({ "tool": tool, "mime_type": "", "hash": hash });
        Bytes::from(rmp_serde::to_vec_named(&request).unwrap())
    };
    let data = || Bytes::from_static(b"data");
    assert!(RequestEnvelope::decode_raw(&header("cas_store"), data()).is_ok());
    assert!(RequestEnvelope::decode_raw(&header("cas_get"), Bytes::new()).is_ok());
    for tool in ["cas_get", "garden_status"] {
        let error = RequestEnvelope::decode_raw(&header(tool), data()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{tool}");
    }
}
