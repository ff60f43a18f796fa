//! Bytes that earlier HOOT01 peers really sent, and their meaning here.

use bytes::Bytes;
use ringback_proto::ids::JobId;
use ringback_proto::request::{AckResponse, PingRequest};
use ringback_proto::{ErrorKind, RequestEnvelope, ResponseEnvelope, ToolResponse, ToolTiming};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| {
        std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok())
    };
    digits.chunks(2).map(|pair| byte(pair).expect("hex")).collect()
}

fn request(hex: &str) -> Result<RequestEnvelope, ringback_proto::Error> {
    RequestEnvelope::decode(&Bytes::from(bytes(hex)))
}

#[test]
fn ping_has_its_three_old_forms() {
    for hex in ["91a470696e67", "81a4746f6f6ca470696e67", "81a474797065a470696e67"] {
        assert_eq!(request(hex).unwrap(), RequestEnvelope::plain(PingRequest {}), "{hex}");
    }
    assert_eq!(
        RequestEnvelope::plain(PingRequest {}).encode(),
        bytes("81a4746f6f6ca470696e67"),
        "maps out"
    );
}

#[test]
fn ack_has_its_two_old_forms() {
    let ack = ToolResponse::Ack(AckResponse { message: "ok".into() });
    let [array, map] =
        [bytes("92a361636ba26f6b"), bytes("82a474797065a361636ba76d657373616765a26f6b")];
    assert_eq!(rmp_serde::from_slice::<ToolResponse>(&array).unwrap(), ack);
    assert_eq!(rmp_serde::from_slice::<ToolResponse>(&map).unwrap(), ack);
    assert_eq!(rmp_serde::to_vec_named(&ack).unwrap(), map);
    assert_eq!(rmp_serde::to_vec(&ack).unwrap(), array);
}

#[test]
fn replies_have_their_old_forms() {
    let success =
        ResponseEnvelope::Success { response: AckResponse { message: "ok".into() }.into() };
    for hex in [
        "92a773756363657373 92a361636ba26f6b",
        "82a46b696e64a773756363657373a8726573706f6e736582a474797065a361636ba76d657373616765a26f6b",
    ] {
        assert_eq!(ResponseEnvelope::decode(&bytes(hex)).unwrap(), success, "{hex}");
    }
    let ack = ResponseEnvelope::Ack { message: "pong".into(), job_id: None };
    assert_eq!(ResponseEnvelope::decode(&bytes("92a361636ba4706f6e67")).unwrap(), ack);

    let job_id = JobId::from_random([0; 16]);
    let started = [
        &bytes("94ab6a6f625f73746172746564")[..],
        &rmp_serde::to_vec(&job_id).unwrap(),
        &bytes("ab67617264656e5f706c6179af666972655f616e645f666f72676574"),
    ]
    .concat();
    assert_eq!(
        ResponseEnvelope::decode(&started).unwrap(),
        ResponseEnvelope::JobStarted {
            job_id,
            tool: "garden_play".into(),
            expected_timing: ToolTiming::FireAndForget,
        }
    );
}

/// Rule: binary with all 256 byte values never changes on the way, so only `bin` is accepted for
/// it.
#[test]
fn bytes_as_a_list_of_integers_or_as_text_are_refused() {
    for hex in ["93a96361735f73746f7265 930001ccff a178", "93a96361735f73746f7265 a461626364 a178"]
    {
        assert_eq!(request(hex).unwrap_err().kind(), ErrorKind::Invalid, "{hex}");
    }
    assert!(request("93a96361735f73746f7265 c4030001ff a178").is_ok());
}

#[test]
fn a_hash_of_another_length_is_invalid() {
    let error = request("92ab6361735f696e7370656374a26162").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("64 hex digits"), "{error}");
}
