//! Valid frames round-trip; everything else is an error.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;

const ID: RequestId = RequestId::from_bytes(*b"0123456789abcdef");

fn encoded(frame: Frame) -> Vec<Bytes> {
    let mut parts = Vec::new();
    frame.encode(&mut parts);
    parts
}

fn request() -> Frame {
    Frame {
        command: Command::Request,
        request_id: ID,
        service: Text::try_from("garden").unwrap(),
        traceparent: Text::try_from("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
            .unwrap(),
        body: Body::MsgPack(Bytes::from_static(b"\x80")),
    }
}

fn behind(prefix: &[&'static [u8]], frame: Frame) -> Vec<Bytes> {
    let mut parts: Vec<Bytes> = prefix.iter().map(|part| Bytes::from_static(part)).collect();
    frame.encode(&mut parts);
    parts
}

/// A request frame with one part replaced.
fn with_part(index: usize, part: &'static [u8]) -> Vec<Bytes> {
    let mut parts = behind(&[b"peer"], request());
    parts[1 + index] = Bytes::from_static(part);
    parts
}

fn problem_of(parts: &[Bytes]) -> FrameError {
    Frame::decode_routed(parts).unwrap_err()
}

#[test]
fn a_request_is_these_seven_parts() {
    let parts = encoded(request());
    let expected: [&[u8]; 7] = [
        b"HOOT01",
        &[0, 2],
        &[0, 1],
        b"0123456789abcdef",
        b"garden",
        b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        &[0x80],
    ];
    assert_eq!(parts, expected);
}

#[test]
fn the_numbers_of_commands_and_content_types_are_the_wire_s() {
    assert_eq!(Command::ALL.map(Command::number), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(ContentType::ALL.map(ContentType::number), [0, 1, 2]);
    for number in [0, 8, 255, 256, u16::MAX] {
        assert_eq!(Command::from_number(number), None);
    }
}

#[test]
fn raw_bytes_travel_in_part_six_and_their_header_in_part_seven() {
    let data: Bytes = (0..=255).collect::<Vec<u8>>().into();
    let body = Body::RawBinary { data: data.clone(), header: Bytes::from_static(b"\x81") };
    let parts = encoded(Frame::new(Command::Request, ID, body));
    assert_eq!((parts.len(), &parts[6], &parts[7][..]), (8, &data, &b"\x81"[..]));
}

#[test]
fn a_body_is_shared_with_the_message_it_came_in() {
    let parts = encoded(Frame::new(Command::Reply, ID, Body::MsgPack(vec![1; 4096].into())));
    let Body::MsgPack(body) = Frame::decode(&parts[..]).unwrap().body else {
        panic!("a MsgPack body")
    };
    assert_eq!(body.as_ptr(), parts[6].as_ptr());
}

#[test]
fn a_reply_keeps_id_and_traceparent_and_names_no_service() {
    let reply = request().reply(Body::Empty);
    assert_eq!(reply.command, Command::Reply);
    assert_eq!(reply.request_id, ID);
    assert_eq!(reply.traceparent, request().traceparent);
    assert_eq!(reply.service, Text::EMPTY);
}

#[test]
fn a_credit_is_eight_bytes_big_endian() {
    let parts = encoded(Frame::new(Command::Credit, ID, Body::Credit(0x0102)));
    assert_eq!(&parts[6][..], [0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(Frame::decode(&parts[..]).unwrap().body, Body::Credit(0x0102));
}

#[test]
fn a_dealer_s_prefix_is_its_identity() {
    let (prefix, frame) = Frame::decode_routed(&behind(&[b"peer"], request())[..]).unwrap();
    assert_eq!(prefix, Prefix::of_identity(Bytes::from_static(b"peer")));
    assert_eq!(frame, request());
}

/// Rule: the magic is never searched for.
#[test]
fn a_peer_may_call_itself_hoot01() {
    for prefix in [&[b"HOOT01" as &[u8]][..], &[b"HOOT01", b""], &[b"HOOT01", b"hop", b""]] {
        let (read, frame) = Frame::decode_routed(&behind(prefix, request())[..]).unwrap();
        assert_eq!(read.identity(), "HOOT01");
        assert_eq!(frame, request());
    }
}

#[test]
fn a_prefix_goes_on_to_the_first_empty_part_and_comes_back_verbatim() {
    let hops: &[&[u8]] = &[b"peer", b"proxy", b"HOOT01x", b""];
    let (prefix, _) = Frame::decode_routed(&behind(hops, request())[..]).unwrap();
    let mut parts = vec![prefix.identity().clone()];
    prefix.encode_rest(&mut parts);
    assert_eq!(parts, hops);
}

#[test]
fn a_frame_whose_magic_is_behind_something_else_is_none() {
    let error = problem_of(&behind(&[b"peer", b"hop"], request()));
    assert_eq!(error.problem, FrameProblem::Prefix);
    let error = problem_of(&behind(&[b"peer", b"", b"x"], request()));
    assert_eq!((error.problem, error.request_id), (FrameProblem::Magic, None));
    assert!(error.prefix.is_some());
}

#[test]
fn a_prefix_has_a_limit() {
    let mut hops = vec![b"hop" as &[u8]; PREFIX_PARTS_MAX - 1];
    hops.push(b"");
    assert!(Frame::decode_routed(&behind(&hops, request())[..]).is_ok());
    hops.insert(0, b"hop");
    assert_eq!(problem_of(&behind(&hops, request())).problem, FrameProblem::Prefix);
}

#[test]
fn no_parts_and_few_parts_are_no_frame() {
    assert_eq!(problem_of(&[]).problem, FrameProblem::Prefix);
    let whole = behind(&[b"peer"], request());
    for n_parts in 1..whole.len() {
        let error = problem_of(&whole[..n_parts]);
        assert_eq!(error.request_id.is_some(), n_parts > 4, "{n_parts} parts: {error:?}");
    }
}

#[test]
fn an_eighth_part_needs_raw_binary_and_raw_binary_an_eighth_part() {
    let mut parts = behind(&[b"peer"], request());
    parts.push(Bytes::new());
    let error = problem_of(&parts);
    assert_eq!(error.problem, FrameProblem::PartCount { found: 8, expected: 7 });
    assert_eq!((error.request_id, error.command), (Some(ID), Some(Command::Request)));
    let error = problem_of(&with_part(2, &[0, 2]));
    assert_eq!(error.problem, FrameProblem::PartCount { found: 7, expected: 8 });
}

#[test]
fn fixed_sizes_are_exact() {
    for (index, part) in [(1, &[2][..]), (1, &[0, 0, 2]), (2, &[]), (2, &[1]), (3, b"short")] {
        let error = problem_of(&with_part(index, part));
        assert!(matches!(error.problem, FrameProblem::PartSize { .. }), "{error:?}");
        assert_eq!(error.request_id.is_some(), index != 3);
    }
}

#[test]
fn unknown_numbers_can_still_be_answered() {
    let error = problem_of(&with_part(1, &[0, 99]));
    assert_eq!((error.problem, error.request_id), (FrameProblem::Command(99), Some(ID)));
    let error = problem_of(&with_part(2, &[0, 3]));
    assert_eq!(error.problem.kind(), ErrorKind::UnsupportedContentType);
    assert_eq!((error.request_id, error.command), (Some(ID), Some(Command::Request)));
}

#[test]
fn services_and_traceparents_are_short_utf8() {
    static LONG: [u8; TEXT_BYTES_MAX + 1] = [b'x'; TEXT_BYTES_MAX + 1];
    let error = problem_of(&with_part(4, b"\xff"));
    assert_eq!(error.problem, FrameProblem::Service(TextError::NotUtf8));
    let error = problem_of(&with_part(5, &LONG));
    let too_long = TextError::TooLong { n_bytes: LONG.len() };
    assert_eq!(error.problem, FrameProblem::Traceparent(too_long));
}

#[test]
fn empty_means_empty() {
    let error = problem_of(&with_part(2, &[0, 0]));
    assert_eq!(error.problem, FrameProblem::BodyNotEmpty);
}

fn any_text() -> impl Strategy<Value = Text> {
    prop_oneof![Just(Text::EMPTY), "\\PC{0,60}".prop_map(|text| Text::try_from(&*text).unwrap())]
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from);
    let body = prop_oneof![
        Just(Body::Empty),
        bytes().prop_map(Body::MsgPack),
        (bytes(), bytes()).prop_map(|(data, header)| Body::RawBinary { data, header }),
    ];
    let command_and_body = prop_oneof![
        (prop::sample::select(&Command::ALL[..6]), body),
        any::<u64>().prop_map(|n_bytes| (Command::Credit, Body::Credit(n_bytes))),
    ];
    (command_and_body, any::<[u8; 16]>(), any_text(), any_text()).prop_map(
        |((command, body), id, service, traceparent)| Frame {
            command,
            request_id: RequestId::from_bytes(id),
            service,
            traceparent,
            body,
        },
    )
}

/// Parts that look like frames often enough to reach every branch.
fn any_part() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        Just(Bytes::from_static(MAGIC)),
        Just(Bytes::new()),
        (0..9_u8).prop_map(|number| Bytes::copy_from_slice(&[0, number])),
        any::<[u8; 16]>().prop_map(|id| Bytes::copy_from_slice(&id)),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from),
    ]
}

proptest! {
    #[test]
    fn any_frame_behind_any_prefix_reads_back(
        frame in any_frame(),
        identity in prop::collection::vec(any::<u8>(), 0..20),
        hops in prop::option::of(prop::collection::vec("[a-z]{1,8}", 0..4)),
    ) {
        let mut parts = vec![Bytes::from(identity)];
        if let Some(hops) = hops {
            parts.extend(hops.into_iter().map(Bytes::from));
            parts.push(Bytes::new());
        }
        let prefix_parts = parts.clone();
        frame.clone().encode(&mut parts);
        let (prefix, read) = Frame::decode_routed(&parts[..]).unwrap();
        prop_assert_eq!(read, frame);
        let mut returned = vec![prefix.identity().clone()];
        prefix.encode_rest(&mut returned);
        prop_assert_eq!(returned, prefix_parts);
    }

    /// Rule: no message from an untrusted peer causes more than an error.
    #[test]
    fn any_parts_are_a_frame_or_an_error(parts in prop::collection::vec(any_part(), 0..24)) {
        if let Ok((_, frame)) = Frame::decode_routed(&parts[..]) {
            let n_parts = frame.body.content_type().n_parts();
            prop_assert!(parts.len() > n_parts || frame.command == Command::Credit);
        }
        if let Err(error) = Frame::decode(&parts[..]) {
            prop_assert_eq!(error.prefix, None);
        }
    }
}
