//! One frame of every kind, as a ROUTER receives or sends it.

use bytes::Bytes;
use ringback_proto::frame::{Body, Command, Frame, Prefix, Text};
use ringback_proto::ids::{BlobHash, RequestId};
use ringback_proto::request::{
    CasContentResponse, CasGetRequest, CasStoreRequest, PingRequest, PongResponse,
};
use ringback_proto::value::Value;
use ringback_proto::{RequestEnvelope, ResponseEnvelope};

use super::page::{Page, hex};

const REQUEST_ID: RequestId =
    RequestId::from_bytes(*b"\x01\x23\x45\x67\x89\xab\x4d\xef\x81\x23\x45\x67\x89\xab\xcd\xef");
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const PARTS: [&str; 8] =
    ["magic", "command", "content", "id", "service", "trace", "body", "header"];

/// Every kind of frame, with the prefixes a peer may have.
pub(crate) fn frames() -> String {
    let mut page = Page::new("Frames: the parts of each, the routing prefix first.");
    let dealer: &[&[u8]] = &[b"\0peer"];
    for (name, frame) in commands().into_iter().chain(raw_binary()) {
        section(&mut page, name, dealer, &frame);
    }
    let ping = request(&RequestEnvelope::plain(PingRequest {}));
    section(&mut page, "request of a REQ peer", &[b"\0peer", b""], &ping);
    section(&mut page, "request of a REQ peer behind a proxy", &[b"\0peer", b"hop", b""], &ping);
    section(&mut page, "request of a peer that calls itself HOOT01", &[b"HOOT01"], &ping);

    let traced = Frame { traceparent: text(TRACEPARENT), ..ping };
    let pong = PongResponse { uptime_ms: 1, version: "0.1.0".into() };
    let reply = traced.reply(msgpack(&ResponseEnvelope::Success { response: pong.into() }));
    section(&mut page, "request with traceparent", dealer, &traced);
    section(&mut page, "reply with traceparent", dealer, &reply);
    page.text()
}

fn commands() -> Vec<(&'static str, Frame)> {
    let empty = |command| Frame::new(command, REQUEST_ID, Body::Empty);
    let ready = Value::Map(vec![
        ("protocol".into(), Value::Text("HOOT01".into())),
        ("accepts_binary".into(), Value::Bool(true)),
        ("tools".into(), Value::List(vec![Value::Text("status".into())])),
    ]);
    let ready = Bytes::from(rmp_serde::to_vec_named(&ready).expect("a value can be encoded"));
    let service = |frame| Frame { service: text("garden"), ..frame };
    let ping = request(&RequestEnvelope::plain(PingRequest {}));
    let ack = ResponseEnvelope::Ack { message: "pong".into(), job_id: None };
    Command::ALL
        .into_iter()
        .map(|command| match command {
            Command::Ready => {
                ("ready", service(Frame::new(command, REQUEST_ID, Body::MsgPack(ready.clone()))))
            }
            Command::Request => ("request", ping.clone()),
            Command::Reply => ("reply", ping.reply(msgpack(&ack))),
            Command::Heartbeat => ("heartbeat", empty(command)),
            Command::Disconnect => ("disconnect", empty(command)),
            Command::Cancel => ("cancel", empty(command)),
            Command::Credit => ("credit", Frame::new(command, REQUEST_ID, Body::Credit(1 << 20))),
        })
        .chain([("request to a service", service(ping.clone()))])
        .collect()
}

/// `cas_store` in and `cas_get` out, with separate bytes.
fn raw_binary() -> [(&'static str, Frame); 3] {
    let data = Bytes::from((0..=255).collect::<Vec<u8>>());
    let hash = BlobHash::from_bytes([0xab; 32]);
    let store = CasStoreRequest {
        data: Vec::new().into(),
        mime_type: "audio/midi".into(),
        upload_id: None,
        offset: None,
        last: None,
    };
    let get = CasGetRequest { hash, offset: None, length: None };
    let content = CasContentResponse {
        hash,
        size: 256,
        mime_type: "audio/midi".into(),
        data: data.to_vec().into(),
    };
    let mut reply = ResponseEnvelope::Success { response: content.into() };
    let taken = reply.take_data().expect("content has bytes");
    let raw = |data, header: Vec<u8>| Body::RawBinary { data, header: header.into() };
    let frame = |body| Frame::new(Command::Request, REQUEST_ID, body);
    let store = RequestEnvelope::plain(store).encode();
    let get = frame(raw(Bytes::new(), RequestEnvelope::plain(get).encode()));
    let content = get.reply(raw(taken, reply.encode()));
    [
        ("RawBinary request, cas_store", frame(raw(data, store))),
        ("RawBinary request, cas_get", get),
        ("RawBinary reply, cas_get", content),
    ]
}

fn request(envelope: &RequestEnvelope) -> Frame {
    Frame::new(Command::Request, REQUEST_ID, Body::MsgPack(envelope.encode().into()))
}

fn msgpack(reply: &ResponseEnvelope) -> Body {
    Body::MsgPack(reply.encode().into())
}

fn text(text: &str) -> Text {
    Text::try_from(text).expect("short enough")
}

/// Writes the parts and checks that they are read as the same frame.
fn section(page: &mut Page, name: &str, prefix: &[&[u8]], frame: &Frame) {
    let mut parts: Vec<Bytes> = prefix.iter().map(|part| Bytes::copy_from_slice(part)).collect();
    frame.clone().encode(&mut parts);

    let (read_prefix, read_frame): (Prefix, Frame) =
        Frame::decode_routed(&parts[..]).expect("our own frame");
    assert_eq!(&read_frame, frame, "{name}");
    let mut again = vec![read_prefix.identity().clone()];
    read_prefix.encode_rest(&mut again);
    assert_eq!(again, &parts[..prefix.len()], "the prefix of {name}");

    page.section(name);
    for (index, part) in parts.iter().enumerate() {
        let label = index.checked_sub(prefix.len()).map_or("prefix", |index| PARTS[index]);
        page.line(format_args!("{index} {label:<8} {}", hex(part)));
    }
}
