//! Everything in a body that does not belong to a tool: envelopes, errors, chunks and events.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use bytes::Bytes;
use ringback_proto::any::{Any, Format};
use ringback_proto::chunk::{LogLevel, MidiEvent, StreamChunk};
use ringback_proto::data::Data;
use ringback_proto::error::ToolError;
use ringback_proto::event::{
    ClientToolCall, ClientTools, Heads, SequencedData, SequencedEvent, StreamData,
};
use ringback_proto::ids::{ArtifactId, BlobHash, JobId, ProjectId, SessionId, StreamId};
use ringback_proto::record::{JobState, SessionState};
use ringback_proto::request::{AckResponse, JobSleepRequest, PingRequest, SleptResponse};
use ringback_proto::{
    CallOptions, Certainty, Error, ErrorKind, Event, RequestEnvelope, ResponseEnvelope, ToolCall,
    ToolTiming,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::page::Page;
use crate::samples::garden;

const JOB: JobId = JobId::from_random([0x0f; 16]);
const STREAM: StreamId = StreamId::from_random([0x33; 16]);

/// Requests with options, and a tool that is not native.
pub(crate) fn request_envelopes() -> String {
    let mut page =
        Page::new("Request bodies: bare, with options, and of a tool that is not native.");
    let sleep = || ToolCall::from(JobSleepRequest { milliseconds: 250 });
    let with = |options| RequestEnvelope { request: sleep(), options };
    let none = CallOptions::default();
    let arguments =
        Any { format: Format::MsgPack, bytes: Bytes::from_static(&[0x81, 0xa1, b'a', 1]) };
    let named = ToolCall::Named { name: "gpu_status".into(), arguments };
    for (name, envelope) in [
        ("bare", RequestEnvelope::plain(PingRequest {})),
        ("timing_hint", with(CallOptions { timing_hint: Some(ToolTiming::AsyncLong), ..none })),
        ("wait_ms", with(CallOptions { wait_ms: Some(u64::MAX), ..none })),
        ("deadline_ms", with(CallOptions { deadline_ms: NonZeroU64::new(1 << 63), ..none })),
        ("stream", with(CallOptions { stream: true, ..none })),
        ("not native", RequestEnvelope { request: named, options: none }),
    ] {
        let body = envelope.encode();
        assert_eq!(RequestEnvelope::decode(&Bytes::from(body.clone())).expect(name), envelope);
        page.section(name).hex("map", &body);
    }
    page.text()
}

/// Every kind of reply.
pub(crate) fn replies() -> String {
    let mut page = Page::new("Reply bodies: every kind of ResponseEnvelope.");
    let slept = || SleptResponse { milliseconds: 250 }.into();
    let chunk = || StreamChunk::Progress { percent: 50.0, message: "half".into() };
    for reply in [
        ResponseEnvelope::Success { response: AckResponse { message: "ok".into() }.into() },
        ResponseEnvelope::JobStarted {
            job_id: JOB,
            tool: "job_sleep".into(),
            expected_timing: ToolTiming::AsyncShort,
        },
        ResponseEnvelope::Ack { message: "pong".into(), job_id: None },
        ResponseEnvelope::Ack { message: "accepted".into(), job_id: Some(JOB) },
        Error::not_found("job", JOB).into(),
        ResponseEnvelope::StreamStart {
            stream_id: STREAM,
            tool: "job_sleep".into(),
            job_id: Some(JOB),
        },
        ResponseEnvelope::StreamChunk { stream_id: STREAM, chunk: chunk() },
        ResponseEnvelope::StreamEnd { stream_id: STREAM, final_response: Some(slept()) },
        ResponseEnvelope::StreamEnd { stream_id: STREAM, final_response: None },
    ] {
        let body = reply.encode();
        assert_eq!(ResponseEnvelope::decode(&body).expect("our own reply"), reply);
        page.section(kind_of(&reply)).hex("map", &body).json(&reply);
    }
    page.text()
}

/// A new kind of reply does not compile until it is named here and has a sample above.
const fn kind_of(reply: &ResponseEnvelope) -> &'static str {
    match reply {
        ResponseEnvelope::Success { .. } => "success",
        ResponseEnvelope::JobStarted { .. } => "job_started",
        ResponseEnvelope::Ack { .. } => "ack",
        ResponseEnvelope::Error(_) => "error",
        ResponseEnvelope::StreamStart { .. } => "stream_start",
        ResponseEnvelope::StreamChunk { .. } => "stream_chunk",
        ResponseEnvelope::StreamEnd { .. } => "stream_end",
    }
}

/// Every kind of error, and those with details besides the message.
pub(crate) fn errors() -> String {
    let mut page = Page::new("Error replies: every kind, and the fields of those that have some.");
    let special = [
        ("a field", Error::invalid_field("limit", "too large")),
        ("a missing thing", Error::not_found("artifact", "art_x")),
        ("a missing scope", Error::forbidden("cas_store", "scope `write`")),
        ("a deadline", Error::timeout("job_sleep", u64::MAX).with_certainty(Certainty::MayHaveRun)),
        ("a reason", Error::cancelled("the caller left").with_certainty(Certainty::Ran)),
        ("a full queue", Error::busy("the job queue")),
        ("a log id", Error::internal("log_1", "never on the wire")),
    ];
    let kinds = ErrorKind::ALL.map(|kind| (kind.category_and_code().1, Error::new(kind, "text")));
    for (name, error) in kinds.into_iter().chain(special) {
        let reply = ResponseEnvelope::Error(ToolError::from(&error));
        let body = reply.encode();
        assert_eq!(ResponseEnvelope::decode(&body).expect(name), reply);
        page.section(name).hex("map", &body).json(&reply);
    }
    page.text()
}

/// Every kind of chunk.
pub(crate) fn chunks() -> String {
    let mut page = Page::new("Chunks: every kind, as they stand in `stream_chunk`.");
    for chunk in [
        StreamChunk::Progress { percent: 33.3, message: "音".into() },
        StreamChunk::PartialAudio {
            samples: Data::from([0.0_f32, 1.0, -0.5].map(f32::to_le_bytes).concat()),
            sample_rate: 48_000,
            channels: 1,
        },
        StreamChunk::PartialMidi {
            events: vec![MidiEvent { tick: u64::MAX, data: Data::from(vec![0x90, 60, 127]) }],
        },
        StreamChunk::LogLine { level: LogLevel::Warn, message: "3 lines were dropped".into() },
        StreamChunk::PartialContent {
            data: Data::from((0..=255).collect::<Vec<u8>>()),
            mime_type: "audio/wav".into(),
        },
    ] {
        vector(&mut page, chunk_kind(&chunk), &chunk);
    }
    page.text()
}

/// A new kind of chunk does not compile until it is named here and has a sample above.
const fn chunk_kind(chunk: &StreamChunk) -> &'static str {
    match chunk {
        StreamChunk::Progress { .. } => "progress",
        StreamChunk::PartialAudio { .. } => "partial_audio",
        StreamChunk::PartialMidi { .. } => "partial_midi",
        StreamChunk::LogLine { .. } => "log_line",
        StreamChunk::PartialContent { .. } => "partial_content",
    }
}

fn client_tools() -> ClientTools {
    ClientTools { client_id: "tab".into(), tool_ids: vec!["client_tab_read".into()] }
}

fn call() -> ClientToolCall {
    ClientToolCall {
        client_id: "tab".into(),
        request_id: "r1".into(),
        session_id: "s1".into(),
        message_id: "m1".into(),
        call_id: "c1".into(),
        tool: "client_tab_read".into(),
    }
}

/// Every event as IOPub sends it, and the heads.
pub(crate) fn events() -> String {
    let mut page = Page::new("IOPub: part 1 of every topic; part 0 is the section's name.");
    let events = [
        Event::JobStateChanged { job_id: JOB, tool: "job_sleep".into(), state: JobState::Running },
        Event::JobProgress { job_id: JOB, percent: 12.5, message: "slept".into() },
        Event::StreamChunk {
            stream_id: STREAM,
            chunk: StreamChunk::LogLine { level: LogLevel::Info, message: "line".into() },
        },
        Event::ArtifactCreated {
            artifact_id: ArtifactId::from_random([0xf0; 16]),
            content_hash: BlobHash::from_bytes([0xab; 32]),
            mime_type: "audio/midi".into(),
        },
        Event::ToolsChanged {
            line: "worker".into(),
            name: "gpu".into(),
            added: vec!["gpu_render".into()],
            removed: vec![],
        },
        Event::ClientToolRequest(call()),
        Event::ClientToolRegistered(client_tools()),
        Event::ClientToolUnregistered(client_tools()),
        Event::ClientToolExecuting(call()),
        Event::ClientToolCompleted { call: call(), success: true },
        Event::ClientToolFailed { call: call(), error: "timeout".into() },
        Event::SessionStateChanged {
            session_id: SessionId::from_random([0x33; 16]),
            project_id: ProjectId::from_random([0x11; 16]),
            status: SessionState::Idle,
        },
        Event::StreamStarted { stream_id: STREAM, tool: "midi_to_wav".into(), job_id: Some(JOB) },
        Event::StreamEnded { stream_id: STREAM, job_id: None, data: 3 },
        garden::published(garden::transport()),
        garden::published(garden::region()),
        garden::published(garden::trouble()),
        garden::published(garden::position()),
    ];
    assert!(events.iter().map(Event::topic).eq(Event::TOPICS), "one sample for each topic");
    for event in events {
        let name = event.topic();
        let event = SequencedEvent { epoch: 1 << 63, seq: u64::MAX, topic_seq: 1, at_ms: 0, event };
        vector(&mut page, name, &event);
    }
    let samples = Data::from(vec![0, 0, 0, 0x3f]);
    let chunk = StreamChunk::PartialAudio { samples, sample_rate: 48_000, channels: 1 };
    let event = StreamData::Chunk { stream_id: STREAM, chunk };
    let data = SequencedData { epoch: 1 << 63, seq: u64::MAX, topic_seq: 1, at_ms: 0, event };
    vector(&mut page, &format!("{}{STREAM}", StreamData::TOPIC_PREFIX), &data);
    let topics =
        BTreeMap::from([("job.state_changed".into(), 1), ("stream.chunk".into(), u64::MAX)]);
    vector(&mut page, Heads::TOPIC, &Heads { epoch: 1 << 63, seq: u64::MAX, at_ms: 0, topics });
    page.text()
}

/// Adds a value that reads back from its map, its array and its JSON.
fn vector<T>(page: &mut Page, name: &str, value: &T)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let map = rmp_serde::to_vec_named(value).expect(name);
    let array = rmp_serde::to_vec(value).expect(name);
    let json = serde_json::to_string(value).expect(name);
    assert_eq!(&rmp_serde::from_slice::<T>(&map).expect(name), value);
    assert_eq!(&rmp_serde::from_slice::<T>(&array).expect(name), value);
    assert_eq!(&serde_json::from_str::<T>(&json).expect(name), value);
    page.section(name).hex("map", &map).hex("array", &array).json(value);
}
