//! Malformed frames, and frames of peers with other habits.

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use ringback_proto::frame::{Body, Command, Frame, Text};
use ringback_proto::ids::RequestId;
use ringback_proto::ready::{OfferedTool, Ready};
use ringback_proto::request::*;
use ringback_proto::{ResponseEnvelope, ToolResponse};
use ringback_testkit::{Hello, RawPeer, Setup, World, parts_of, within};

use crate::support::*;

type FrameMutation = fn(&mut Vec<Bytes>);

/// Returns the parts of a request, to be damaged.
fn parts() -> (RequestId, Vec<Bytes>) {
    let frame = ping();
    (frame.request_id, parts_of(frame))
}

fn ready(tools: Vec<OfferedTool>, accepts_binary: bool) -> Frame {
    let ready = Ready { protocol: "HOOT01".to_owned(), tools, accepts_binary };
    let body = rmp_serde::to_vec_named(&ready).unwrap();
    Frame::new(Command::Ready, RequestId::random(), Body::MsgPack(body.into()))
}

/// Rule: a message that is not a frame gets an error with its own ID if prefix and ID can be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_spoiled_frame_whose_id_can_be_read_is_answered_under_that_id() {
    let daemon = World::with_hoot().await;
    let mut peer = raw(&daemon).await;
    let spoil: [(&str, FrameMutation); 9] = [
        ("invalid_params", |parts| parts[1] = Bytes::from_static(&[0, 99])),
        ("invalid_params", |parts| parts[1] = Bytes::from_static(b"2")),
        ("unsupported_content_type", |parts| parts[2] = Bytes::from_static(&[0, 3])),
        ("unsupported_content_type", |parts| parts[2] = Bytes::from_static(&[9, 9])),
        ("invalid_params", |parts| parts[2] = Bytes::from_static(&[0, 2])),
        ("invalid_params", |parts| parts[2] = Bytes::from_static(&[0, 0])),
        ("invalid_params", |parts| parts[4] = Bytes::from_static(&[0xff, 0xfe])),
        ("invalid_params", |parts| parts.truncate(5)),
        ("invalid_params", |parts| parts.push(Bytes::from_static(b"more"))),
    ];
    for (code, spoil) in spoil {
        let (request_id, mut parts) = parts();
        spoil(&mut parts);
        peer.send(&parts).await.unwrap();
        let (answered, reply) = within("an error", peer.recv_reply()).await;
        assert_eq!(answered, request_id);
        not_started(reply, code);
    }
    assert_pings(&mut peer).await;
    daemon.stop().await;
}

/// Rule: a body that cannot be read is answered with an error under the same ID.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_request_is_answered_with_an_error() {
    let daemon = World::with_hoot().await;
    let mut peer = raw(&daemon).await;
    let deep = vec![0x91; 100_000];
    let huge_length = vec![0xdd, 0xff, 0xff, 0xff, 0xff];
    let unknown = b"\x81\xa4tool\xa7no_such".to_vec();
    for body in [Vec::new(), vec![0xc1], vec![0x80], deep, huge_length, unknown, vec![0xff; 100]] {
        let body = Body::MsgPack(body.into());
        let frame = Frame::new(Command::Request, RequestId::random(), body);
        let error = error(ask(&mut peer, frame).await);
        assert!(["invalid_params", "not_found", "too_large"].contains(&&*error.code), "{error:?}");
    }
    let empty = Frame::new(Command::Request, RequestId::random(), Body::Empty);
    not_started(ask(&mut peer, empty).await, "unsupported_content_type");
    let elsewhere =
        Frame { service: Text::try_from(Bytes::from_static(b"garden")).unwrap(), ..ping() };
    not_started(ask(&mut peer, elsewhere).await, "not_found");
    // Clients of hootenanny name it in every request, and mean this daemon.
    let itself =
        Frame { service: Text::try_from(Bytes::from_static(b"hootenanny")).unwrap(), ..ping() };
    let reply = ask(&mut peer, itself).await;
    assert!(
        matches!(reply, ResponseEnvelope::Success { response: ToolResponse::Pong(_) }),
        "{reply:?}"
    );
    assert_pings(&mut peer).await;
    daemon.stop().await;
}

/// Rule: a body of random bytes kills and wedges nothing.
#[tokio::test(flavor = "multi_thread")]
async fn random_messages_leave_the_edge_as_it_was() {
    let seed = rand::random();
    println_seed(seed);
    let mut rng = StdRng::seed_from_u64(seed);
    let daemon = World::with_hoot().await;
    let mut other = raw(&daemon).await;
    for _ in 0..20 {
        let mut peer = raw(&daemon).await;
        for _ in 0..50 {
            let (_, mut parts) = parts();
            for _ in 0..rng.random_range(1..4) {
                let index = rng.random_range(0..parts.len());
                let mut part = vec![0; rng.random_range(0..40)];
                rng.fill_bytes(&mut part);
                parts[index] = part.into();
            }
            parts.truncate(rng.random_range(1..=parts.len()));
            peer.send(&parts).await.unwrap();
        }
        assert_pings(&mut other).await;
        drop(peer);
    }
    daemon.stop().await;
}

/// Rule: random bytes instead of the protocol, before and after the handshake, harm no one else.
#[tokio::test(flavor = "multi_thread")]
async fn random_bytes_on_the_socket_harm_nobody_else() {
    let seed = rand::random();
    println_seed(seed);
    let mut rng = StdRng::seed_from_u64(seed);
    let daemon = World::with_hoot().await;
    let mut other = raw(&daemon).await;
    for round in 0..60 {
        let mut stranger = if round % 2 == 0 {
            RawPeer::stranger(daemon.calls()).await.unwrap()
        } else {
            raw(&daemon).await
        };
        let mut bytes = vec![0; rng.random_range(1..2000)];
        rng.fill_bytes(&mut bytes);
        // The daemon may hang up in the middle.
        drop(stranger.send_bytes(&bytes).await);
        assert_pings(&mut other).await;
    }
    daemon.stop().await;
}

/// Rule: a message over the limit ends its connection, a partial message ends with its connection,
/// and neither harms others.
#[tokio::test(flavor = "multi_thread")]
async fn oversized_and_unfinished_messages_end_with_their_peer() {
    let setup = Setup::new().hoot_with(|hoot| hoot.message_bytes_max = 1 << 20);
    let daemon = setup.start().await;
    let mut other = raw(&daemon).await;
    let mut peer = raw(&daemon).await;
    let (_, mut parts) = parts();
    parts[6] = vec![0; 4 << 20].into();
    // The daemon may hang up before everything was sent.
    drop(peer.send(&parts).await);
    assert_eq!(within("the end of the connection", peer.recv()).await, None);

    let mut half = raw(&daemon).await;
    half.send_bytes(b"\x01\x06HOOT01\x01\x02\x00\x02\x01\x02\x00\x01\x01\x10half").await.unwrap();
    drop(half);
    let mut announced = raw(&daemon).await;
    announced.send_bytes(&[2, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff]).await.unwrap();
    assert_eq!(within("the end of the connection", announced.recv()).await, None);
    assert_pings(&mut other).await;
    daemon.stop().await;
}

/// Rule: the prefix is returned verbatim, for a REQ peer and behind proxies.
#[tokio::test(flavor = "multi_thread")]
async fn replies_carry_the_prefix_of_their_request() {
    let daemon = World::with_hoot().await;
    let hello = Hello { socket_type: "REQ", ..Hello::dealer(daemon.admin_token()) };
    let mut req = RawPeer::connect(daemon.calls(), hello).await.unwrap();
    let mut dealer = raw(&daemon).await;
    let hops: [&[&[u8]]; 2] = [&[b""], &[b"hop", b"HOOT01", b""]];
    for (peer, hops) in [&mut req, &mut dealer].into_iter().zip(hops) {
        let (request_id, parts) = parts();
        let hops: Vec<_> = hops.iter().map(|hop| Bytes::from_static(hop)).collect();
        let message: Vec<_> = hops.iter().cloned().chain(parts).collect();
        peer.send(&message).await.unwrap();
        let reply = within("the reply", peer.recv()).await.unwrap();
        let (prefix, frame) = reply.split_at(hops.len());
        assert_eq!(prefix, hops);
        assert_eq!(Frame::decode(frame).unwrap().request_id, request_id);
    }
    daemon.stop().await;
}

/// Rule: the magic is never searched for, so a peer may call itself `HOOT01`.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_may_call_itself_like_the_protocol() {
    let daemon = World::with_hoot().await;
    let hello = Hello::dealer(daemon.admin_token()).named(b"HOOT01");
    let mut peer = RawPeer::connect(daemon.calls(), hello).await.unwrap();
    assert_pings(&mut peer).await;
    peer.send(&["HOOT01"]).await.unwrap();
    peer.send(&["", "HOOT01"]).await.unwrap();
    assert_pings(&mut peer).await;
    daemon.stop().await;
}

/// Rule: the trace parent comes back as it was sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_trace_parent_is_echoed_in_every_reply() {
    let daemon = World::with_hoot().await;
    let mut peer = raw(&daemon).await;
    let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let traceparent = Text::try_from(Bytes::from_static(text.as_bytes())).unwrap();
    for frame in [ping(), request(JobSleepRequest { milliseconds: 1 }, WAIT), heartbeat()] {
        peer.send_frame(Frame { traceparent: traceparent.clone(), ..frame }).await.unwrap();
        assert_eq!(within("the reply", peer.recv_frame()).await.traceparent, traceparent);
    }
    daemon.stop().await;
}

/// Rule: Ready is acknowledged; with tools it is refused, because they could not be called.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_is_welcome_and_a_worker_is_refused() {
    let daemon = World::with_hoot().await;
    let mut peer = raw(&daemon).await;
    let welcome = ask(&mut peer, ready(Vec::new(), true)).await;
    assert!(matches!(welcome, ResponseEnvelope::Ack { .. }), "{welcome:?}");
    let tools = vec![OfferedTool::Name("play".to_owned())];
    not_started(ask(&mut peer, ready(tools, true)).await, "invalid_params");
    let mut other = ready(Vec::new(), true);
    other.body = Body::MsgPack(Bytes::from_static(b"\x81\xa8protocol\xa6HOOT99"));
    not_started(ask(&mut peer, other).await, "invalid_params");
    let empty = Frame { body: Body::Empty, ..ready(Vec::new(), true) };
    not_started(ask(&mut peer, empty).await, "unsupported_content_type");
    daemon.stop().await;
}

/// Rule: a malformed Reply is never answered, or two peers would answer each other forever.
#[tokio::test(flavor = "multi_thread")]
async fn replies_nobody_asked_for_are_passed_over_in_silence() {
    let daemon = World::with_hoot().await;
    let mut peer = raw(&daemon).await;
    let frame = Frame::new(Command::Reply, RequestId::random(), Body::Empty);
    peer.send_frame(frame.clone()).await.unwrap();
    let mut parts = parts_of(frame);
    parts[2] = Bytes::from_static(&[0, 9]);
    peer.send(&parts).await.unwrap();
    peer.send_frame(Frame::new(Command::Credit, RequestId::random(), Body::Credit(7)))
        .await
        .unwrap();
    assert_pings(&mut peer).await;
    daemon.stop().await;
}

/// Rule: a request as a positional array, or without its envelope, is a request.
#[tokio::test(flavor = "multi_thread")]
async fn a_bare_request_by_hand_is_understood() {
    let daemon = World::with_hoot().await;
    let mut peer = raw(&daemon).await;
    for body in [&b"\x81\xa4tool\xa4ping"[..], b"\x81\xa4type\xa4ping"] {
        let body = Body::MsgPack(Bytes::from_static(body));
        let reply = ask(&mut peer, Frame::new(Command::Request, RequestId::random(), body)).await;
        let ResponseEnvelope::Success { response: ToolResponse::Pong(_) } = reply else {
            panic!("no pong: {reply:?}")
        };
    }
    daemon.stop().await;
}

#[expect(clippy::print_stderr, reason = "a failed test has to print it")]
fn println_seed(seed: u64) {
    eprintln!("seed {seed}");
}
