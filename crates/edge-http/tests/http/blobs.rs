//! `/v1/blobs`: content in and out.

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;

use crate::support::{BLOB_BYTES_MAX, World, code};

fn content(n_bytes: usize) -> Vec<u8> {
    (0..n_bytes).map(|n| (n % 251) as u8).collect()
}

/// A body without a length, in pieces of odd sizes.
fn in_pieces(data: &[u8]) -> Body {
    let pieces: Vec<_> = data
        .chunks(7001)
        .map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece)))
        .collect();
    Body::from_stream(stream::iter(pieces))
}

/// Rule: binary content with all byte values comes back unchanged, however it is sent.
#[tokio::test]
async fn content_comes_back_as_it_went_in() {
    let world = World::start().await;
    let data = content(3_000_000);
    let hash = blake3::hash(&data).to_hex().to_string();
    let mime = ["content-type: audio/midi"];
    let reply = world.admin.send("POST /v1/blobs", &mime, in_pieces(&data)).await;
    assert_eq!(reply.status, 201);
    let location = reply.header("location").to_owned();
    let (_, stored) = reply.json().await;
    let expected = json!({"hash": hash, "size": data.len(), "mime_type": "audio/midi"});
    assert_eq!((location, stored), (format!("/v1/blobs/{hash}"), expected));
    let again = world.admin.send("POST /v1/blobs", &mime, data.clone()).await;
    assert_eq!(again.status, 200, "it was there already");

    let whole = world.admin.send(&format!("GET /v1/blobs/{hash}"), &[], "").await;
    assert_eq!((whole.status, whole.header("content-type")), (200, "audio/midi"));
    assert_eq!(whole.header("content-security-policy"), "sandbox; default-src 'none'");
    assert_eq!(whole.header("x-content-type-options"), "nosniff");
    assert_eq!(whole.bytes().await, data);
    let head = world.admin.send(&format!("HEAD /v1/blobs/{hash}"), &[], "").await;
    assert_eq!((head.status, head.header("content-length")), (200, "3000000"));
    assert_eq!(head.header("etag"), format!("\"{hash}\""));
    assert_eq!(head.bytes().await, "");
    world.settled(|broker| broker.under_way().n_calls == 0).await;
}

#[tokio::test]
async fn a_range_is_a_part_and_what_is_known_is_not_sent() {
    let world = World::start().await;
    let data = content(1000);
    let hash = blake3::hash(&data).to_hex().to_string();
    let line = format!("GET /v1/blobs/{hash}");
    world.admin.send(&format!("PUT /v1/blobs/{hash}"), &[], data.clone()).await;
    for (range, part) in [("0-9", 0..10), ("990-", 990..1000), ("-5", 995..1000)] {
        let reply = world.admin.send(&line, &[&format!("range: bytes={range}")], "").await;
        assert_eq!(reply.status, 206);
        let expected = format!("bytes {}-{}/1000", part.start, part.end - 1);
        assert_eq!(reply.header("content-range"), expected);
        assert_eq!(reply.bytes().await, data[part]);
    }
    let behind = world.admin.send(&line, &["range: bytes=1000-"], "").await;
    assert_eq!((behind.status, behind.header("content-range")), (416, "bytes */1000"));
    assert_eq!(code(&behind.json().await.1), "RANGE_NOT_SATISFIABLE");
    let known = world.admin.send(&line, &[&format!("if-none-match: \"{hash}\"")], "").await;
    assert_eq!((known.status, known.bytes().await.len()), (304, 0));
}

/// Rule: content that does not match the hash its sender named is not kept.
#[tokio::test]
async fn content_under_another_name_is_refused_and_not_kept() {
    let world = World::start().await;
    let (wrong, right) = (blake3::hash(b"other").to_hex(), blake3::hash(b"mine").to_hex());
    let (status, refused) = world.admin.ask(&format!("PUT /v1/blobs/{wrong}"), &[], "mine").await;
    assert_eq!((status, code(&refused)), (400, "INVALID_REQUEST"));
    assert_eq!(refused["error"]["details"]["field"], "hash");
    for hash in [wrong, right] {
        assert_eq!(world.admin.get(&format!("/v1/blobs/{hash}")).await.0, 404);
    }
    let put = world.admin.send(&format!("PUT /v1/blobs/{right}"), &[], "mine").await;
    assert_eq!(
        (put.status, put.json().await.1["mime_type"].as_str()),
        (201, Some("application/octet-stream"))
    );
}

#[tokio::test]
async fn content_is_seen_by_its_owner_and_stored_by_those_who_may_write() {
    let world = World::start().await;
    let (owner, stranger, reader) =
        (world.agent("write").await, world.agent("write").await, world.agent("read").await);
    let hash = blake3::hash(b"mine").to_hex();
    let (status, denied) = reader.ask("POST /v1/blobs", &[], "mine").await;
    assert_eq!((status, code(&denied)), (403, "FORBIDDEN"));
    assert_eq!(owner.ask("POST /v1/blobs", &[], "mine").await.0, 201);
    assert_eq!(owner.send(&format!("GET /v1/blobs/{hash}"), &[], "").await.text().await, "mine");
    assert_eq!(stranger.get(&format!("/v1/blobs/{hash}")).await.0, 404);
}

#[tokio::test]
async fn too_much_content_and_content_that_breaks_off_leave_nothing() {
    let world = World::start().await;
    let n_pieces = BLOB_BYTES_MAX / (1 << 16) + 1;
    let piece = Bytes::from(vec![7; 1 << 16]);
    let pieces = (0..n_pieces).map(move |_| Ok::<_, std::io::Error>(piece.clone()));
    let reply =
        world.admin.send("POST /v1/blobs", &[], Body::from_stream(stream::iter(pieces))).await;
    let (status, refused) = reply.json().await;
    assert_eq!((status, code(&refused)), (413, "TOO_LARGE"));

    let torn = format!(
        "POST /v1/blobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Length: 100\r\n\r\nonly this",
        world.admin.token
    );
    let mut stream = tokio::net::TcpStream::connect(world.admin.addr).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, torn.as_bytes()).await.unwrap();
    world.settled(|broker| broker.under_way().n_calls == 1).await;
    drop(stream);
    world.settled(|broker| broker.under_way().n_calls == 0).await;
    let (_, stats) = world.admin.ask("POST /v1/tools/cas_stats/call", &[], "").await;
    assert_eq!(stats["result"]["blobs"], 0, "{stats}");
}

#[tokio::test]
async fn artifacts_are_listed_and_shown() {
    let world = World::start().await;
    let (_, stored) = world.admin.ask("POST /v1/blobs", &["content-type: text/plain"], "abc").await;
    let create = json!({"content_hash": stored["hash"], "tags": ["song"]});
    let (_, made) = world.admin.json("POST /v1/tools/artifact_create/call", create).await;
    let id = made["result"]["artifact_id"].as_str().unwrap();
    let (status, one) = world.admin.get(&format!("/v1/artifacts/{id}")).await;
    assert_eq!((status, &one["mime_type"]), (200, &json!("text/plain")));
    let (status, listed) = world.admin.get("/v1/artifacts?tag=song&limit=1").await;
    assert_eq!((status, &listed["artifacts"][0]["id"]), (200, &json!(id)));
    assert_eq!(world.admin.get("/v1/artifacts?tag=other").await.1["count"], 0);
}

/// Rule: content always matches its hash; damaged content is an error, and storing it again repairs
/// it.
#[tokio::test]
async fn damaged_content_is_refused_until_it_is_stored_again() {
    let world = World::start().await;
    let data = content(100_000);
    let hash = blake3::hash(&data).to_hex().to_string();
    let line = format!("/v1/blobs/{hash}");
    world.admin.send(&format!("PUT {line}"), &[], data.clone()).await;
    let file = world.dir().join("data/blobs").join(&hash[..2]).join(&hash[2..4]).join(&hash);
    for wrong in [&data[..100], &content(99_999)[..], &[b"x", &data[1..]].concat()] {
        // A separate file, as a failed copy would leave it.
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, wrong).unwrap();
        let etag = format!("if-none-match: \"{hash}\"");
        for headers in [&[][..], &["range: bytes=0-9"], &[&etag]] {
            let refused = world.admin.send(&format!("GET {line}"), headers, "").await;
            assert!(!refused.headers.contains_key("etag"));
            let (status, body) = refused.json().await;
            assert_eq!((status, code(&body)), (500, "DAMAGED"), "{body}");
        }
        assert_eq!(world.admin.send(&format!("HEAD {line}"), &[], "").await.status, 500);
        let healed = world.admin.send(&format!("PUT {line}"), &[], data.clone()).await;
        assert_eq!(healed.status, 200);
        let whole = world.admin.send(&format!("GET {line}"), &[], "").await;
        assert_eq!((whole.status, whole.header("etag")), (200, &*format!("\"{hash}\"")));
        assert_eq!(whole.bytes().await, data);
    }
}

/// Rule: neither the status nor the type of an answer reveals what others stored.
#[tokio::test]
async fn nobody_learns_from_an_upload_what_others_have() {
    let world = World::start().await;
    let (first, second) = (world.agent("write").await, world.agent("write").await);
    let data = content(1000);
    let hash = blake3::hash(&data).to_hex().to_string();
    let store = async |who: &crate::support::Agent, mime: &str| {
        let mime = format!("content-type: {mime}");
        let reply = who.send("POST /v1/blobs", &[&mime], data.clone()).await;
        let (status, stored) = reply.json().await;
        (status, stored["mime_type"].as_str().unwrap().to_owned())
    };
    let said = |status, mime: &str| (status, mime.to_owned());
    assert_eq!(store(&first, "audio/midi").await, said(201, "audio/midi"));
    assert_eq!(store(&second, "text/plain").await, said(201, "text/plain"));
    // Its own first type stays.
    assert_eq!(store(&second, "image/png").await, said(200, "text/plain"));
    assert_eq!(store(&first, "image/png").await, said(200, "audio/midi"));
    for (who, mime) in [(&first, "audio/midi"), (&second, "text/plain")] {
        let got = who.send(&format!("GET /v1/blobs/{hash}"), &[], "").await;
        assert_eq!((got.status, got.header("content-type")), (200, mime));
    }
}
