//! Answers of providers, cut at every possible place.

use proptest::prelude::*;

use super::*;

const EVENTS: Option<&[u8]> = Some(b"text/event-stream; charset=utf-8");
const JSON: Option<&[u8]> = Some(b"application/json");

/// What is found in a text, in one piece and cut at every byte.
#[track_caller]
fn said(kind: Option<&[u8]>, text: &str) -> AnswerReport {
    let whole = scan(kind, &[text.as_bytes()]);
    for at in 0..text.len() {
        let (before, after) = text.as_bytes().split_at(at);
        assert_eq!(scan(kind, &[before, after]), whole, "cut at {at}");
    }
    let single: Vec<_> = text.as_bytes().chunks(1).collect();
    assert_eq!(scan(kind, &single), whole, "byte by byte");
    whole
}

fn scan(kind: Option<&[u8]>, pieces: &[&[u8]]) -> AnswerReport {
    let mut scanner = Scanner::new(kind);
    pieces.iter().for_each(|piece| scanner.look(piece));
    scanner.said()
}

fn tokens(input: u64, output: u64) -> Tokens {
    Tokens { input, output, ..Tokens::default() }
}

/// REQ: "counts requests and tokens": OpenAI, with `stream_options.include_usage`.
#[test]
fn a_stream_of_chat_completions_says_its_tokens_at_its_end() {
    let text = concat!(
        "data: {\"id\":\"c1\",\"model\":\"gpt-5-mini\",\"choices\":[{\"delta\":{\"content\":",
        "\"\\\"usage\\\":{\\\"prompt_tokens\\\":9999}\"}}],\"usage\":null}\n\n",
        "data: {\"model\":\"gpt-5-mini\",\"choices\":[],\"usage\":{\"prompt_tokens\":19,",
        "\"completion_tokens\":10,\"total_tokens\":29,\"prompt_tokens_details\":{\"cached_tokens\":7}}}\n\n",
        "data: [DONE]\n\n"
    );
    let found = said(EVENTS, text);
    assert_eq!(found.tokens, Some(tokens(19, 10)));
    assert_eq!(found.model.as_deref(), Some("gpt-5-mini"));
    let without = "data: {\"model\":\"m\",\"choices\":[]}\r\n\r\ndata: [DONE]\r\n\r\n";
    assert_eq!(said(EVENTS, without).tokens, None);
}

#[test]
fn an_answer_in_one_piece_says_its_tokens() {
    let chat = r#"{
      "id": "x", "model": "gpt-5", "choices": [{"message": {"content": "hi", "usage": {"prompt_tokens": 99}}}],
      "usage": { "prompt_tokens": 12 , "completion_tokens":3
      }
    }"#;
    assert_eq!(said(JSON, chat).tokens, Some(tokens(12, 3)));
    let responses = r#"{"model":"gpt-5","output":[],"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":0},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":1}}}"#;
    assert_eq!(said(None, responses).tokens, Some(tokens(36, 87)));
}

#[test]
fn a_stream_of_responses_says_its_tokens_inside_the_last() {
    let text = concat!(
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":\"gpt-5\",\"usage\":null}}\n\n",
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":\"gpt-5\",",
        "\"usage\":{\"input_tokens\":37,\"output_tokens\":11,\"total_tokens\":48}}}\n\n"
    );
    let found = said(EVENTS, text);
    assert_eq!((found.tokens, found.model.as_deref()), (Some(tokens(37, 11)), Some("gpt-5")));
}

/// REQ: "counts requests and tokens": Anthropic, with what was kept of the prompt.
#[test]
fn a_stream_of_messages_says_first_what_was_read_and_then_what_was_written() {
    let text = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-opus-4\",\"usage\":",
        "{\"input_tokens\":25,\"cache_creation_input_tokens\":100,\"cache_read_input_tokens\":2000,\"output_tokens\":1}}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"{\\\"usage\\\"\"}}\n\n",
        ": a comment\n\nevent: ping\ndata:{\"type\": \"ping\"}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":15}}\n\n"
    );
    let found = said(EVENTS, text);
    let expected = Tokens { input: 25, cache_read: 2000, cache_write: 100, output: 15 };
    assert_eq!(found.tokens, Some(expected));
    assert_eq!(found.model.as_deref(), Some("claude-opus-4"));
    assert_eq!(expected.read(), 2125);
    assert!(found.is_final);
    let cut = text.split("event: message_delta").next().unwrap();
    assert!(!said(EVENTS, cut).is_final, "what was written is not known yet");
}

/// REQ: "counts requests and tokens": Gemini, as a stream of events and as a list.
#[test]
fn gemini_says_sums_that_grow() {
    let one = r#"{"candidates":[],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2,"totalTokenCount":10},"modelVersion":"gemini-3-pro"}"#;
    let two = r#"{"candidates":[],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":20,"thoughtsTokenCount":5,"toolUsePromptTokenCount":3},"modelVersion":"gemini-3-pro"}"#;
    for (kind, text) in [
        (EVENTS, format!("data: {one}\r\n\r\ndata: {two}\r\n\r\n")),
        (JSON, format!("[{one}\n,\r\n{two}\n]")),
    ] {
        let found = said(kind, &text);
        assert_eq!(found.tokens, Some(tokens(11, 25)), "{text}");
        assert_eq!(found.model.as_deref(), Some("gemini-3-pro"));
    }
}

/// Rule: text that a model wrote never counts, even where it looks like a count.
#[test]
fn a_count_inside_what_a_model_says_is_none() {
    for text in [
        r#"{"content":[{"input":{"usage":{"input_tokens":5}}}]}"#,
        r#"{"content":{"usage":{"input_tokens":5}}}"#,
        r#"{"message":{"message":{"usage":{"input_tokens":5}}}}"#,
        r#"{"usage":[{"input_tokens":5}]}"#,
        r#"{"usage":{"deep":{"input_tokens":5}}}"#,
        r#"{"usage":{"input_tokens":"5"}}"#,
        r#"{"usage":{"input_tokens":-5}}"#,
        r#"{"usage":{"input_tokens":5.5}}"#,
        r#"{"usage":{"input_tokens":null}}"#,
        r#"{"usage":{"input_tokens":99999999999999999999999}}"#,
        r#"{"text":"\",\"usage\":{\"input_tokens\":5}"}"#,
        r#"{"text":"usage","x":{"input_tokens":5}}"#,
        r#"["usage",{"x":{"usage":{"input_tokens":5}}}]"#,
        r#"{"a":[[[[[[{"usage":{"input_tokens":5}}]]]]]]}"#,
        r#"}}}{"a":{"usage":{"input_tokens":5}}}"#,
    ] {
        assert_eq!(said(JSON, text).tokens, None, "{text}");
        assert_eq!(said(EVENTS, &format!("data: {text}\n\n")).tokens, None, "{text}");
    }
    let deep = r#"{"a":[[[[[[{"b":1}]]]]]],"usage":{"input_tokens":5}}"#;
    assert_eq!(said(JSON, deep).tokens, Some(tokens(5, 0)));
}

/// Rule: the name of a model is bounded, and a string or absent.
#[test]
fn a_model_with_a_strange_name_has_none() {
    let long = format!(r#"{{"model":"{}"}}"#, "m".repeat(97));
    for text in [&long, r#"{"model":"a\"b"}"#, r#"{"model":7}"#, r#"{"x":{"model":"m"}}"#] {
        assert_eq!(said(JSON, text).model, None, "{text}");
    }
    let longest = "m".repeat(96);
    assert_eq!(said(JSON, &format!(r#"{{"model":"{longest}"}}"#)).model, Some(longest));
}

/// Rule: an event that was cut off does not hide the next.
#[test]
fn each_event_is_read_for_itself() {
    let text =
        "data: {\"a\":\"never ends\ndata: {\"usage\":{\"input_tokens\":5}}\n\nid: 3\ndata\n\n";
    assert_eq!(said(EVENTS, text).tokens, Some(tokens(5, 0)));
}

proptest! {
    /// Rule: however bytes are cut, the result is the same; whatever they are, nothing breaks.
    #[test]
    fn cuts_change_nothing(
        bytes in prop::collection::vec(
            prop_oneof![
                Just(b"{\"usage\":{\"input_tokens\":12,".to_vec()),
                Just(b"data: ".to_vec()),
                Just(b"\n\n".to_vec()),
                Just(b"\"output_tokens\":3}}".to_vec()),
                Just(b"\"model\":\"m\",".to_vec()),
                prop::collection::vec(any::<u8>(), 0..8),
                prop::collection::vec(prop::sample::select(b"{}[]\":,\\\n0a".to_vec()), 0..8),
            ],
            0..12,
        ),
        cuts in prop::collection::vec(0_usize..64, 0..8),
        is_stream in any::<bool>(),
    ) {
        let kind = if is_stream { EVENTS } else { JSON };
        let text = bytes.concat();
        let whole = scan(kind, &[&text]);
        let mut pieces = Vec::new();
        let mut rest = &text[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        prop_assert_eq!(scan(kind, &pieces), whole);
    }
}
