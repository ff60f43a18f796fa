//! The parser on arbitrary input.

use proptest::prelude::*;
use ringback_sse::{BadEvent, Event, Parser};

const BYTES_MAX: usize = 40;

/// Fields, line ends and garbage.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            &b"data:"[..],
            b"data: ",
            b"event: ",
            b"id: ",
            b": ",
            b"retry",
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
        ])
        .prop_map(<[u8]>::to_vec),
        prop::collection::vec(prop::sample::select(b"ab: \xc3\xa4\xff".to_vec()), 0..12),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// The events, the last id and how it ended.
fn read<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Event>, Option<String>, Option<BadEvent>) {
    let mut parser = Parser::new(BYTES_MAX);
    let mut events = Vec::new();
    for piece in pieces {
        parser.push(piece);
        loop {
            match parser.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(bad) => return (events, parser.last_id().map(str::to_owned), Some(bad)),
            }
        }
    }
    (events, parser.last_id().map(str::to_owned), None)
}

proptest! {
    /// Rule: events do not depend on how their bytes were cut, and every size has a limit.
    #[test]
    fn any_bytes_give_the_same_events_however_they_are_cut(
        bytes in stream(), step in 1_usize..20,
    ) {
        let whole = read([&bytes[..]]);
        prop_assert_eq!(&read(bytes.chunks(step)), &whole, "pieces of {}", step);
        prop_assert_eq!(&read(bytes.chunks(1)), &whole);
        for event in &whole.0 {
            prop_assert!(event.name.len() <= BYTES_MAX && event.data.len() <= BYTES_MAX);
        }
    }
}
