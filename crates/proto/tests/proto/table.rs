//! Walks the tool table: every rule for tools on the wire holds for every row.

use std::collections::BTreeSet;

use bytes::Bytes;
use ringback_proto::ids::SessionId;
use ringback_proto::raw::Raw;
use ringback_proto::request::{
    CallerMessageType, CallerToolRequestInfo, CallerToolRequestsResponse, CallerToolResponseRequest,
};
use ringback_proto::tool::TOOLS;
use ringback_proto::value::Value;
use ringback_proto::{
    CallOptions, ErrorKind, RequestEnvelope, ResponseEnvelope, ToolCall, ToolRequest, ToolResponse,
    ToolTiming,
};

use crate::samples::{LABELS, SampleRow, positional, rows};

/// Every request sample with its row.
fn each_request(check: impl Fn(&SampleRow, &ToolRequest, &str)) {
    for row in rows() {
        for (request, label) in row.requests.iter().zip(LABELS) {
            check(&row, request, &format!("{} {label}", row.row.name));
        }
    }
}

/// Every response sample with its row.
fn each_response(check: impl Fn(&SampleRow, &ToolResponse, &str)) {
    for row in rows() {
        for (response, label) in row.responses.iter().zip(LABELS) {
            check(&row, response, &format!("the response of {} {label}", row.row.name));
        }
    }
}

fn success(response: &ToolResponse) -> ResponseEnvelope {
    ResponseEnvelope::Success { response: response.clone() }
}

#[track_caller]
fn assert_reads_as(body: Vec<u8>, request: &ToolRequest, about: &str) {
    let decoded = RequestEnvelope::decode(&Bytes::from(body))
        .unwrap_or_else(|error| panic!("{about}: {error}"));
    assert_eq!(decoded, RequestEnvelope::plain(request.clone()), "{about}");
}

#[track_caller]
fn assert_reply_reads_as(body: &[u8], response: &ToolResponse, about: &str) {
    let decoded = ResponseEnvelope::decode(body).unwrap_or_else(|error| panic!("{about}: {error}"));
    assert_eq!(decoded, success(response), "{about}");
}

/// Returns the message as a map, changed by `change`, encoded again.
fn edited(named: &[u8], change: impl FnOnce(&mut Vec<(String, Value)>)) -> Vec<u8> {
    let Ok(Value::Map(mut fields)) = rmp_serde::from_slice(named) else { panic!("not a map") };
    change(&mut fields);
    rmp_serde::to_vec_named(&Value::Map(fields)).expect("values can be encoded")
}

fn optional_fields(fields: &[&'static str], schema: &schemars::Schema) -> Vec<&'static str> {
    let required: Vec<_> = schema
        .get("required")
        .and_then(|required| required.as_array())
        .map(|names| names.iter().filter_map(|name| name.as_str()).collect())
        .unwrap_or_default();
    fields.iter().copied().filter(|field| !required.contains(field)).collect()
}

/// Replaces a field with nil, or removes it.
fn set_absent(fields: &mut Vec<(String, Value)>, name: &str, as_nil: bool) {
    fields.retain(|(key, _)| key != name);
    if as_nil {
        fields.push((name.to_owned(), Value::Null));
    }
}

#[test]
fn every_row_has_a_sample_and_every_response_a_row() {
    let sampled: Vec<_> = rows().iter().map(|row| row.row.name).collect();
    let table: Vec<_> = TOOLS.iter().map(|row| row.name).collect();
    assert_eq!(sampled, table);

    macro_rules! tags {
        ($($(#[$doc:meta])* $variant:ident($response:ident) = $name:literal;)*) => {
            BTreeSet::from([$($name),*])
        };
    }
    let given: BTreeSet<_> = rows().iter().map(|row| row.responses[0].type_name()).collect();
    assert_eq!(given, ringback_proto::response_table!(tags));
}

#[test]
fn a_request_survives_named_maps_bare_and_in_an_envelope() {
    each_request(|row, request, about| {
        assert_eq!(request.row().name, row.row.name);
        let plain = RequestEnvelope::plain(request.clone());
        assert_reads_as(plain.encode(), request, about);

        let options = CallOptions {
            timing_hint: Some(ToolTiming::AsyncLong),
            wait_ms: Some(u64::MAX),
            deadline_ms: std::num::NonZeroU64::new(1),
            stream: true,
        };
        let enveloped = RequestEnvelope { options, ..plain };
        let body = Bytes::from(enveloped.encode());
        assert_eq!(RequestEnvelope::decode(&body).unwrap(), enveloped, "{about}");
    });
}

#[test]
fn a_request_survives_positional_arrays_bare_and_in_an_envelope() {
    each_request(|row, request, about| {
        let named = RequestEnvelope::plain(request.clone()).encode();
        let array = positional(row.row.name, row.request_fields, &named);
        let enveloped = [&[0x95][..], &array, &[0xc0, 0x07, 0xc0, 0xc3]].concat();
        assert_reads_as(array, request, about);

        let decoded = RequestEnvelope::decode(&Bytes::from(enveloped)).unwrap();
        assert_eq!(decoded.request, ToolCall::Native(request.clone()), "{about}");
        let options = CallOptions { wait_ms: Some(7), stream: true, ..CallOptions::default() };
        assert_eq!(decoded.options, options, "{about}");
    });
    for row in rows() {
        let compact = rmp_serde::to_vec(&row.requests[1]).unwrap();
        assert_reads_as(compact, &row.requests[1], row.row.name);
    }
}

#[test]
fn a_request_survives_json() {
    each_request(|row, request, about| {
        let json = serde_json::to_string(request).unwrap();
        let mut decoder = serde_json::Deserializer::from_str(&json);
        let decoded = ToolRequest::deserialize_named(row.row.name, &mut decoder).unwrap();
        assert_eq!(&decoded.unwrap(), request, "{about}");
    });
}

#[test]
fn a_response_survives_named_maps_positional_arrays_and_json() {
    each_response(|row, response, about| {
        let reply = success(response);
        assert_reply_reads_as(&reply.encode(), response, about);

        let named = rmp_serde::to_vec_named(response).unwrap();
        let array = positional(response.type_name(), row.response_fields, &named);
        let body = [b"\x92\xa7success", &array[..]].concat();
        assert_reply_reads_as(&body, response, about);

        let json = serde_json::to_string(&reply).unwrap();
        assert_eq!(serde_json::from_str::<ResponseEnvelope>(&json).unwrap(), reply, "{about}");
    });
    for row in rows() {
        let compact = rmp_serde::to_vec(&success(&row.responses[1])).unwrap();
        assert_reply_reads_as(&compact, &row.responses[1], row.row.name);
    }
}

/// Rule: a number that cannot be kept is refused, not rounded, and nothing else breaks.
#[test]
fn a_payload_that_msgpack_cannot_hold_is_an_error_and_stays_whole_in_json() {
    let arguments: Raw = serde_json::from_str("{\"n\":123456789012345678901}").unwrap();
    let session_id = SessionId::from_random([1; 16]);
    let answer = CallerToolResponseRequest {
        session_id,
        request_id: "r".into(),
        result: Some(arguments.clone()),
        error: None,
    };
    let refused = RequestEnvelope::plain(answer.clone()).try_encode().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.message().contains("64 bits"), "{refused}");
    let json = serde_json::to_string(&ToolRequest::from(answer)).unwrap();
    assert!(json.contains("123456789012345678901"), "{json}");

    let response = CallerToolRequestsResponse {
        requests: vec![CallerToolRequestInfo {
            kind: CallerMessageType::default(),
            session_id,
            root_session_id: session_id,
            request_id: "r".into(),
            caller_id: "ant".into(),
            tool: "t".into(),
            arguments,
            deadline_ms: 1,
        }],
    };
    let reply = success(&response.into());
    let json = serde_json::to_string(&reply).unwrap();
    assert!(json.contains("\"arguments\":{\"n\":123456789012345678901}"), "{json}");
    let told = ResponseEnvelope::decode(&reply.encode()).unwrap();
    let ResponseEnvelope::Error(error) = told else { panic!("{told:?}") };
    assert!(error.message.contains("64 bits"), "{error:?}");
}

#[test]
fn an_optional_field_may_be_absent_or_nil() {
    for row in rows() {
        let about = row.row.name;
        let full = RequestEnvelope::plain(row.requests[1].clone()).encode();
        for field in optional_fields(row.request_fields, &(row.row.request_schema)()) {
            let [absent, nil] = [false, true].map(|as_nil| {
                let body = edited(&full, |fields| set_absent(fields, field, as_nil));
                RequestEnvelope::decode(&Bytes::from(body))
                    .unwrap_or_else(|error| panic!("{about} {field}: {error}"))
            });
            assert_eq!(absent, nil, "{about} {field}");
            assert_ne!(absent, RequestEnvelope::plain(row.requests[1].clone()), "{about} {field}");
        }
        let full = rmp_serde::to_vec_named(&row.responses[1]).unwrap();
        for field in optional_fields(row.response_fields, &(row.row.response_schema)()) {
            let [absent, nil] = [false, true].map(|as_nil| {
                let body = edited(&full, |fields| set_absent(fields, field, as_nil));
                rmp_serde::from_slice::<ToolResponse>(&body)
                    .unwrap_or_else(|error| panic!("the response of {about}, {field}: {error}"))
            });
            assert_eq!(absent, nil, "the response of {about}, {field}");
        }
    }
}

#[test]
fn a_required_field_must_be_there() {
    for row in rows() {
        let full = RequestEnvelope::plain(row.requests[1].clone()).encode();
        let optional = optional_fields(row.request_fields, &(row.row.request_schema)());
        for field in row.request_fields.iter().filter(|field| !optional.contains(field)) {
            let body = edited(&full, |fields| set_absent(fields, field, false));
            let error = RequestEnvelope::decode(&Bytes::from(body)).unwrap_err();
            assert!(error.message().contains(field), "{}: {error}", row.row.name);
        }
    }
}

#[test]
fn the_tool_may_be_named_by_type_and_in_any_place() {
    each_request(|_, request, about| {
        let body = edited(&RequestEnvelope::plain(request.clone()).encode(), |fields| {
            assert_eq!(fields[0].0, "tool");
            fields[0].0 = "type".to_owned();
            fields.rotate_left(1);
        });
        assert_reads_as(body, request, about);
    });
}

#[test]
fn a_field_of_a_newer_peer_is_passed_over() {
    let newer = || ("of_a_newer_peer".to_owned(), Value::List(vec![Value::Map(vec![])]));
    each_request(|_, request, about| {
        let body = edited(&RequestEnvelope::plain(request.clone()).encode(), |fields| {
            fields.insert(0, newer());
        });
        assert_reads_as(body, request, about);
    });
    each_response(|_, response, about| {
        let body = edited(&rmp_serde::to_vec_named(response).unwrap(), |fields| {
            fields.push(newer());
        });
        assert_eq!(&rmp_serde::from_slice::<ToolResponse>(&body).unwrap(), response, "{about}");
    });
}

/// Some clients reject `default`, and no client should have to fetch a schema from elsewhere.
#[test]
fn a_schema_is_whole_and_plain() {
    for row in TOOLS {
        for schema in [(row.request_schema)(), (row.response_schema)()] {
            let schema = serde_json::to_value(schema).unwrap();
            assert_eq!(schema["type"], "object", "{}", row.name);
            assert_plain(&schema, row.name);
        }
    }
}

fn assert_plain(schema: &serde_json::Value, tool: &str) {
    if let Some(object) = schema.as_object() {
        assert!(!object.contains_key("default"), "{tool}: {schema}");
        assert!(!object.contains_key("$ref"), "{tool}: {schema}");
        for property in object.get("properties").and_then(|it| it.as_object()).into_iter().flatten()
        {
            let is_tag = property.1.get("const").is_some();
            assert!(
                is_tag || property.1["description"].is_string(),
                "{tool}: `{}` has no doc",
                property.0
            );
        }
        object.values().for_each(|part| assert_plain(part, tool));
    }
    if let Some(list) = schema.as_array() {
        list.iter().for_each(|part| assert_plain(part, tool));
    }
}

#[test]
fn a_name_is_unique_and_fits_every_edge() {
    let mut seen = BTreeSet::new();
    for row in TOOLS {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!((1..=64).contains(&row.name.len()) && row.name.bytes().all(fits), "{}", row.name);
        assert!(seen.insert(row.name), "duplicate tool {}", row.name);
    }
}

#[test]
fn every_row_is_in_the_documentation() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md");
    let page = std::fs::read_to_string(path).unwrap();
    for row in TOOLS {
        assert!(page.contains(&format!("\n## `{}`\n", row.name)), "{}", row.name);
        assert!(page.contains(row.description), "{}", row.name);
    }
}
