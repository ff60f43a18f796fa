//! The decoder on arbitrary input: it never panics, and keeps what it accepts.

use proptest::prelude::*;
use ringback_mcp_wire::{Limits, Message, Object, RawValue, compact};

/// JSON text with awkward tokens, whitespace and unknown shapes.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?[1-9][0-9]{0,30}",
        "[1-9]\\.[0-9]{1,20}(e[1-9])?",
        Just("\"\\u00e9\\ud83d\\ude00 \\\" \\\\\"".to_owned()),
        "\"[a-z {}\\[\\],:]{0,12}\"",
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6)
                .prop_map(|items| format!("[ {} ]", items.join(" ,\n"))),
            prop::collection::vec(inner, 0..6).prop_map(|items| {
                let fields: Vec<_> = items
                    .iter()
                    .enumerate()
                    .map(|(place, value)| format!("\"k{}\" :\t{value}", 9 - place))
                    .collect();
                format!("{{{}}}", fields.join(" , "))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        drop(Message::decode(&bytes, Limits::default()));
    }

    #[test]
    fn near_misses_are_read_or_refused(
        id in json(), method in json(), params in json(), cut in 0_usize..400,
    ) {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#);
        let bytes = &text.as_bytes()[..text.len().saturating_sub(cut)];
        drop(Message::decode(bytes, Limits::default()));
    }

    /// Rule: key order, unknown fields, big integers and null pass through unchanged.
    #[test]
    fn arguments_stay_the_bytes_they_were(arguments in json()) {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"arguments":{arguments}}}}}"#
        );
        let message = Message::decode(text.as_bytes(), Limits::default()).unwrap();
        let Message::Request(request) = message else { panic!("a request") };
        prop_assert_eq!(request.params.get("arguments").unwrap().get(), arguments);
    }

    #[test]
    fn compacting_keeps_every_token(text in json()) {
        let raw: &RawValue = serde_json::from_str(&text).unwrap();
        let packed = compact(raw);
        prop_assert!(!packed.get().contains(['\n', '\r', '\t']));
        let twice = compact(&packed);
        prop_assert_eq!(twice.get(), packed.get());
        if let Ok(object) = Object::of(raw) {
            let names: Vec<_> = object.fields().map(|(name, _)| name.to_owned()).collect();
            let again = Object::of(&packed).unwrap();
            prop_assert!(again.fields().map(|(name, _)| name).eq(names.iter().map(String::as_str)));
        }
    }
}
