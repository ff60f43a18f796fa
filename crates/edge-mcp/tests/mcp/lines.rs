//! Tools on lines, as MCP lists and calls them: payloads pass unchanged.

use bytes::Bytes;
use ringback_broker::{Credential, LineName, LineOffer, LineStream, PartyMessage, ToolOffer};
use ringback_proto::Error;
use ringback_proto::any::{Any, Format};
use ringback_testkit::within;
use serde_json::{Value, json};

use crate::support::{Client, OpenAnswer, World, modern};

const SCHEMA: &str = r#"{"properties":{"zeta":{"type":"integer","maximum":12345678901234567890},"alpha":{"x-own":1e2}},"type":"object","x-unknown":null}"#;
const ARGUMENTS: &str = r#"{"zeta":12345678901234567,"alpha":null,"other":{"b":1e2,"a":[1,-0.0]},"huge":12345678901234567890123}"#;

/// A client that holds a line with one tool.
struct Party<'a> {
    world: &'a World,
    stream: LineStream,
}

fn any(text: &str) -> Any {
    Any { format: Format::Json, bytes: Bytes::copy_from_slice(text.as_bytes()) }
}

impl<'a> Party<'a> {
    fn new(world: &'a World, tool: &str) -> Self {
        let line = LineName::Client("tab".into());
        let who = &Credential::local();
        let stream = world.broker.lines().open(who, &line).unwrap();
        let tool = ToolOffer {
            name: tool.to_owned(),
            description: "Echoes.".to_owned(),
            input_schema: Some(any(SCHEMA)),
            ..ToolOffer::default()
        };
        let offer = LineOffer { line, grace_ms: None, tools: vec![tool] };
        world.broker.lines().offer(who, offer).unwrap();
        Self { world, stream }
    }

    /// Waits for the next call and answers it; returns the call's input.
    async fn answer(&mut self, outcome: Result<&str, Error>) -> Bytes {
        match within("a call", self.stream.next()).await {
            Some(PartyMessage::Call(call)) => {
                let outcome = outcome.map(any);
                let (broker, who) = (&self.world.broker, Credential::local());
                broker.lines().answer(&who, &call.request_id, outcome).unwrap();
                call.arguments.bytes.clone()
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A call in either era, by its text.
async fn call(client: &Client, is_modern: bool, tool: &str, progress: Option<u64>) -> OpenAnswer {
    let meta = progress.map_or_else(|| json!({}), |token| json!({"progressToken": token}));
    let (headers, mut body) = modern(&json!(1), "tools/call", json!({"name": tool, "_meta": meta}));
    let mut headers: Vec<_> = headers.iter().map(String::as_str).collect();
    if !is_modern {
        headers.clear();
        body["params"]["_meta"] = meta;
    }
    body["params"]["arguments"] = json!("ARGUMENTS");
    let text = body.to_string().replace("\"ARGUMENTS\"", ARGUMENTS);
    client.send("POST /mcp", &headers, &text).await
}

/// The text of the result in an answer.
async fn result_text(answered: OpenAnswer) -> String {
    let mut answered = answered;
    let text = loop {
        let (_, data) = answered.event().await.unwrap();
        if data.contains("\"id\"") {
            break data;
        }
    };
    let start = text.find("\"result\":").unwrap() + "\"result\":".len();
    text[start..text.len() - 1].to_owned()
}

/// Rule: no field of a relayed payload is lost; an integer of 20 digits does not change.
#[tokio::test]
async fn schemas_arguments_and_results_pass_unchanged_in_both_eras() {
    let world = World::start().await;
    let mut party = Party::new(&world, "echo");
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    let listed = client.ask(1, "tools/list", json!({})).await.text().await;
    assert!(listed.contains(&format!("\"inputSchema\":{SCHEMA}")), "{listed}");
    let told = concat!(
        r#"{"content":[{"type":"hologram","b":1e2,"a":null}],"zeta":12345678901234567890,"#,
        r#""structuredContent":{"n":12345678901234567890123},"_meta":{"own":[1]}}"#
    );
    for is_modern in [false, true] {
        let asked = call(&client, is_modern, "client_tab_echo", None);
        let (answered, input) = tokio::join!(asked, party.answer(Ok(told)));
        assert_eq!(input, ARGUMENTS, "the party gets the caller's own bytes");
        let result = result_text(answered).await;
        if is_modern {
            for part in [
                r#"{"type":"hologram","b":1e2,"a":null}"#,
                r#""zeta":12345678901234567890"#,
                r#"{"n":12345678901234567890123}"#,
                r#""own":[1]"#,
                r#""resultType":"complete""#,
            ] {
                assert!(result.contains(part), "{part} in {result}");
            }
        } else {
            assert_eq!(result, told);
        }
    }
}

#[tokio::test]
async fn any_other_value_is_text_and_itself_as_far_as_the_era_allows() {
    let world = World::start().await;
    let mut party = Party::new(&world, "echo");
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    for (answer, text) in [
        ("{\"b\": 1,\r\n \"a\": 12345678901234567890}", r#"{"b":1,"a":12345678901234567890}"#),
        ("null", "null"),
        ("[1, 2]", "[1, 2]"),
        (r#""plain \u00e9""#, "plain é"),
    ] {
        for is_modern in [false, true] {
            let asked = call(&client, is_modern, "client_tab_echo", None);
            let (answered, _) = tokio::join!(asked, party.answer(Ok(answer)));
            let result = result_text(answered).await;
            let value: Value = serde_json::from_str(&result).unwrap();
            assert_eq!(value["content"][0]["text"], text, "{result}");
            let is_object = answer.starts_with('{');
            let has = result.contains("\"structuredContent\":");
            assert_eq!(has, is_modern || is_object, "{result}");
        }
    }
}

#[tokio::test]
async fn a_line_s_failure_is_a_tool_error_and_its_progress_is_progress() {
    let world = World::start().await;
    let mut party = Party::new(&world, "echo");
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    for is_modern in [false, true] {
        let asked = call(&client, is_modern, "client_tab_echo", Some(1));
        let played = async {
            let Some(PartyMessage::Call(call)) = party.stream.next().await else {
                panic!("no call")
            };
            let (broker, who) = (&world.broker, Credential::local());
            let half = broker.lines().progress(&who, &call.request_id, 50.0, "half".to_owned());
            half.await.unwrap();
            let failed = Error::new(ringback_proto::ErrorKind::ToolFailed, "it broke");
            broker.lines().answer(&who, &call.request_id, Err(failed)).unwrap();
        };
        let (mut answered, ()) = tokio::join!(asked, played);
        let told = answered.message().await.unwrap();
        assert_eq!(told["params"]["progress"], 50.0, "{told}");
        let end = answered.message().await.unwrap();
        assert_eq!(end["result"]["isError"], true, "{end}");
        let text = end["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("it broke"), "{text}");
    }
}

/// Rule: a cancelled call is cancelled at the client that runs it.
#[tokio::test]
async fn a_cancel_reaches_the_party() {
    let world = World::start().await;
    let mut party = Party::new(&world, "echo");
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    for (is_modern, progress) in [(true, None), (true, Some(1)), (false, Some(1))] {
        let answered = call(&client.clone(), is_modern, "client_tab_echo", progress).await;
        let Some(PartyMessage::Call(_)) = party.stream.next().await else { panic!("no call") };
        if is_modern {
            drop(answered);
        } else {
            let cancel = json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1},
            });
            client.post(&cancel).await;
            drop(answered);
        }
        let next = within("a cancel", party.stream.next()).await;
        assert!(matches!(next, Some(PartyMessage::Cancel { .. })), "{next:?}");
    }
}

#[tokio::test]
async fn a_name_that_clients_would_refuse_is_offered_under_another_and_found_again() {
    let world = World::start().await;
    let mut party = Party::new(&world, &"long".repeat(16));
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    let listed = client.ask(1, "tools/list", json!({})).await.json().await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let mut names = tools.iter().filter_map(|tool| tool["name"].as_str());
    let name = names.find(|name| name.starts_with("client_tab_long")).unwrap().to_owned();
    assert_eq!(name.len(), 64);
    let asked = call(&client, false, &name, None);
    let (answered, _) = tokio::join!(asked, party.answer(Ok("{}")));
    assert!(result_text(answered).await.contains("content"));
}

/// Rule: no client learns of tools it may not see, not even that they changed.
#[tokio::test]
async fn another_principal_neither_sees_nor_calls_nor_hears_of_a_line_s_tools() {
    let world = World::start().await;
    let mut stranger = world.client_as(&world.token("write").await.0);
    stranger.initialize("2025-11-25").await;
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = stranger.modern(json!(1), "subscriptions/listen", listen).await;
    listening.message().await.unwrap();
    let _party = Party::new(&world, "echo");
    let listed = stranger.ask(1, "tools/list", json!({})).await.text().await;
    assert!(!listed.contains("client_tab_echo"));
    let call = stranger.call(2, "client_tab_echo", json!({})).await;
    assert_eq!(call["error"]["code"], -32602, "{call}");
    world.stopping().cancel();
    let next = listening.message().await.unwrap();
    assert!(next.get("result").is_some(), "nothing was sent before the end: {next}");
}
