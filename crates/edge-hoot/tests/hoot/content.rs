//! Bytes in and out.

use bytes::Bytes;
use camino::Utf8Path;
use ringback_client::Client;
use ringback_proto::data::Data;
use ringback_proto::frame::{Body, Command, Frame};
use ringback_proto::ids::{BlobHash, RequestId};
use ringback_proto::ready::Ready;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_proto::{
    CallOptions, ErrorKind, RequestEnvelope, ResponseEnvelope, ToolCall, ToolResponse,
};
use ringback_testkit::{Setup, World, envelope, within};

use crate::support::*;

fn store(data: Bytes) -> CasStoreRequest {
    CasStoreRequest {
        data: Data(data),
        mime_type: "application/octet-stream".to_owned(),
        upload_id: None,
        offset: None,
        last: None,
    }
}

fn get(hash: BlobHash) -> CasGetRequest {
    CasGetRequest { hash, offset: None, length: None }
}

/// Returns a request whose bytes travel separately.
fn raw_binary(tool: impl Into<ringback_proto::ToolRequest>, data: Bytes) -> Frame {
    let request = ToolCall::Native(tool.into());
    let header = RequestEnvelope { request, options: CallOptions::default() }.encode().into();
    Frame::new(Command::Request, RequestId::random(), Body::RawBinary { data, header })
}

fn stored(reply: ResponseEnvelope) -> CasStoredResponse {
    match reply {
        ResponseEnvelope::Success { response: ToolResponse::CasStored(stored) } => stored,
        other => panic!("not stored: {other:?}"),
    }
}

fn content_of(reply: ResponseEnvelope) -> Bytes {
    match reply {
        ResponseEnvelope::Success { response: ToolResponse::CasContent(content) } => content.data.0,
        other => panic!("no content: {other:?}"),
    }
}

fn hash_of(content: &[u8]) -> BlobHash {
    BlobHash::from_bytes(*blake3::hash(content).as_bytes())
}

/// Rule: binary with all 256 byte values comes back unchanged, in every form it can travel in.
#[tokio::test(flavor = "multi_thread")]
async fn every_byte_value_survives_as_raw_binary_and_as_msgpack() {
    let daemon = World::with_hoot().await;
    let mut peer = raw(&daemon).await;
    let content = content(100_000);
    assert_eq!(content.iter().collect::<std::collections::HashSet<_>>().len(), 256);
    let hash = hash_of(&content);
    let as_raw = stored(ask(&mut peer, raw_binary(store(Bytes::new()), content.clone())).await);
    let as_msgpack = stored(ask(&mut peer, plain(store(content.clone()))).await);
    assert_eq!((as_raw.hash, as_msgpack.hash), (Some(hash), Some(hash)));

    peer.send_frame(plain(get(hash))).await.unwrap();
    let reply = within("the content", peer.recv_frame()).await;
    assert!(matches!(reply.body, Body::MsgPack(_)), "raw bytes were not requested");
    assert_eq!(content_of(envelope(&reply)), content);

    let ready = Ready { protocol: "HOOT01".to_owned(), tools: Vec::new(), accepts_binary: true };
    let body = Body::MsgPack(rmp_serde::to_vec_named(&ready).unwrap().into());
    ask(&mut peer, Frame::new(Command::Ready, RequestId::random(), body)).await;
    peer.send_frame(plain(get(hash))).await.unwrap();
    let reply = within("the content", peer.recv_frame()).await;
    assert!(matches!(reply.body, Body::RawBinary { .. }), "now they are");
    assert_eq!(content_of(envelope(&reply)), content);
    daemon.stop().await;
}

async fn goes_round(client: &Client, content: &Bytes) {
    let stored = within("the upload", client.upload(&content[..], "audio/wav")).await.unwrap();
    assert_eq!((stored.hash, stored.size), (Some(hash_of(content)), content.len() as u64));
    let mut back = Vec::new();
    within("the download", client.download(hash_of(content), &mut back)).await.unwrap();
    assert!(back == *content, "{} bytes came back changed", content.len());
}

/// Rule: content of any size is uploaded and downloaded in pieces, even if its last piece is full
/// or empty.
#[tokio::test(flavor = "multi_thread")]
async fn content_around_the_size_of_a_piece_goes_up_and_down() {
    let daemon = World::with_hoot().await;
    let mut config = daemon.client_config(daemon.admin_token());
    config.piece_bytes = 1000;
    let client = Client::connect(config).await.unwrap();
    for n_bytes in [0, 1, 999, 1000, 1001, 2000, 5000, 12_345] {
        goes_round(&client, &content(n_bytes)).await;
    }
    daemon.stop().await;
}

/// Rule: content larger than any piece is uploaded and downloaded.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_mebibytes_go_up_and_down() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    goes_round(&client, &content(50 << 20)).await;
    goes_round(&client, &content(8 << 20)).await;
    daemon.stop().await;
}

/// Rule: pieces fit together or are refused, and a repeated piece is the same piece.
#[tokio::test(flavor = "multi_thread")]
async fn pieces_with_a_hole_are_refused() {
    let daemon = World::with_hoot().await;
    let mut peer = raw(&daemon).await;
    let piece = |offset, last| CasStoreRequest {
        upload_id: Some("one".to_owned()),
        offset: Some(offset),
        last: Some(last),
        ..store(Bytes::new())
    };
    let first = raw_binary(piece(0, false), content(10));
    assert_eq!(stored(ask(&mut peer, first.clone()).await).hash, None);
    assert_eq!(stored(ask(&mut peer, first).await).hash, None, "the same frame again");
    let hole = ask(&mut peer, raw_binary(piece(11, true), content(10))).await;
    assert!(matches!(hole, ResponseEnvelope::Error(_)), "{hole:?}");
    let last = ask(&mut peer, raw_binary(piece(10, true), Bytes::new())).await;
    assert_eq!(stored(last).hash, Some(hash_of(&content(10))));
    daemon.stop().await;
}

/// Rule: `cas_upload_file` reads nothing outside its roots, through `..` or a symlink.
#[tokio::test(flavor = "multi_thread")]
async fn files_outside_the_roots_cannot_be_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = Utf8Path::from_path(dir.path()).unwrap();
    let root = dir.join("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("inside"), "inside").unwrap();
    std::fs::write(dir.join("outside"), "outside").unwrap();
    std::os::unix::fs::symlink(dir.join("outside"), root.join("link")).unwrap();
    let setup = Setup::new().hoot().config(|config| config.file_roots = vec![root.clone()]);
    let daemon = setup.start().await;
    let client = daemon.admin().await;
    let upload = async |path: String| {
        let request = CasUploadFileRequest { file_path: path, mime_type: "text/plain".to_owned() };
        within("an upload", client.call::<CasUploadFile>(request)).await
    };
    let inside = upload(root.join("inside").into_string()).await.unwrap();
    assert_eq!(inside.hash, Some(hash_of(b"inside")));
    for path in [root.join("../outside"), root.join("link"), dir.join("outside")] {
        let error = upload(path.into_string()).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::Invalid), "{error:?}");
    }
    let outside = within(
        "a look",
        client.call::<CasInspect>(CasInspectRequest { hash: hash_of(b"outside") }),
    );
    assert!(!outside.await.unwrap().exists);
    daemon.stop().await;
}
