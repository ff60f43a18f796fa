//! Lines of text, ids, the greeting, and the first message.

use ringback_broker::Credential;
use serde_json::{Value, json};

use crate::support::{Peer, World, refused, tool};

/// REQ: design "The sandbox socket": immediately after connect, `caller_id: null` without callers.
#[tokio::test]
async fn without_callers_the_peer_is_told_so_at_once() {
    let world = World::start().await;
    let session = world.session(&Credential::local(), json!([])).await;
    let line = world.connect(session).await.next_line().await.unwrap();
    assert_eq!(
        line,
        r#"{"jsonrpc":"2.0","method":"caller_tools_config","type":"caller_tools_config","params":{"caller_id":null,"tools":[]}}"#
    );
    world.stop().await;
}

/// REQ: design "The sandbox socket": `jsonrpc` is optional, any id is echoed as it came, a request
/// without id is answered with null.
/// Rule: an odd id does no harm.
#[tokio::test]
async fn any_id_is_echoed_as_it_came() {
    let world = World::start().await;
    let session = world.session(&Credential::local(), json!([])).await;
    let mut peer = world.settled(session).await;
    for id in [
        "0",
        "\"\"",
        "null",
        "true",
        "-1.50e3",
        "[1, {\"a\":[]}]",
        "{\"x\":null}",
        "12345678901234567890123",
        "\"\\u0000\\n\"",
    ] {
        peer.send(&format!(r#"{{"id":{id},"method":"nothing"}}"#)).await;
        let line = peer.next_line().await.unwrap();
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"#);
        assert!(line.starts_with(&start), "{line}");
    }
    peer.send(r#"{"method":"nothing"}"#).await;
    let answer = peer.next().await;
    assert_eq!(answer["id"], Value::Null);
    assert_eq!(refused(&answer), "-32601 not_found not_started");
    world.stop().await;
}

/// REQ: design "The sandbox socket": -32700, -32600, -32601, -32602 as JSON-RPC says.
/// Rule: garbage gets its sender an answer, and has no other effect.
#[tokio::test]
async fn garbage_is_answered_and_the_connection_goes_on() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut peer = world.settled(session).await;
    for (line, expected) in [
        ("garbage", "-32700 invalid not_started"),
        ("\u{1}\u{2}", "-32700 invalid not_started"),
        ("{\"id\":1", "-32700 invalid not_started"),
        ("[]", "-32600 invalid not_started"),
        ("{}", "-32600 invalid not_started"),
        (r#"{"method":"caller_tool"}"#, "-32602 invalid not_started"),
        (r#"{"method":"caller_tool","params":[]}"#, "-32602 invalid not_started"),
        (r#"{"method":"caller_tool","params":{"tool":5}}"#, "-32602 invalid not_started"),
        (r#"{"method":"caller_tool","params":{"tool":""}}"#, "-32602 invalid not_started"),
        (r#"{"method":"oubliette_tools"}"#, "-32602 invalid not_started"),
        (r#"{"method":"oubliette_tools","params":{"api_key":1}}"#, "-32602 invalid not_started"),
        (r#"{"method":"session_message","params":{}}"#, "-32602 invalid not_started"),
        (
            r#"{"method":"session_events","params":{"session_id":"x"}}"#,
            "-32602 invalid not_started",
        ),
        ("OUBLIETTE-DOWNSTREAM x", "-32700 invalid not_started"),
    ] {
        peer.send(line).await;
        assert_eq!(refused(&peer.next().await), expected, "{line}");
    }
    peer.writer_all(b"\n  \n\r\n\xff\xfe\n").await;
    assert_eq!(refused(&peer.next().await), "-32700 invalid not_started");
    world.works(&who, session, &mut peer).await;
    world.stop().await;
}

/// Rule: a line torn in pieces is a line; an unfinished one when its sender leaves is discarded.
#[tokio::test]
async fn torn_lines_are_put_together_and_half_ones_are_not_carried_out() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    for byte in br#"{"id":1,"method":"caller_tool","params":{"tool":"x"}}"# {
        peer.writer_all(&[*byte]).await;
    }
    peer.writer_all(b"\n").await;
    let call = caller.next_call().await;
    world.answer(&caller, &call, "1").await.unwrap();
    assert_eq!(peer.answer(1).await["result"], 1);

    peer.writer_all(br#"{"id":2,"method":"caller_tool","params":{"tool":"x"}}"#).await;
    drop(peer);
    let mut other = world.settled(session).await;
    other.ask(3, "caller_tool", json!({ "tool": "x", "arguments": { "n": 3 } })).await;
    assert_eq!(&caller.next_call().await.arguments.bytes[..], br#"{"n":3}"#);
    drop(other);
    world.stop().await;
}

/// REQ: design "The sandbox socket": a first line `OUBLIETTE-DOWNSTREAM <project_id>` is accepted,
/// a wrong project closes with an error line.
#[tokio::test]
async fn a_greeting_is_accepted_for_the_session_s_project_alone() {
    let world = World::start().await;
    let who = Credential::local();
    let project = world.project(&who, None).await;
    let session = world.session_in(&who, project, json!([tool("x")])).await;
    let mut peer = world.settled(session).await;
    peer.send(&format!("OUBLIETTE-DOWNSTREAM {project}")).await;
    world.works(&who, session, &mut peer).await;

    let other = world.project(&who, None).await;
    for wrong in [other.to_string(), "unknown".to_owned(), String::new(), "\u{e9}".to_owned()] {
        let mut peer = world.settled(session).await;
        peer.send(&format!("OUBLIETTE-DOWNSTREAM {wrong}")).await;
        let answer = peer.next().await;
        assert_eq!(answer["id"], Value::Null);
        assert_eq!(refused(&answer), "-32000 conflict not_started");
        peer.closed().await;
    }
    world.stop().await;
}

/// REQ: design "The sandbox socket": `cancel` is the one notification.
#[tokio::test]
async fn a_cancel_of_nothing_is_no_mistake_and_is_not_answered() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut peer = world.settled(session).await;
    for line in [
        r#"{"method":"cancel","params":{"id":99}}"#,
        r#"{"method":"cancel","params":{"id":null}}"#,
        r#"{"method":"cancel"}"#,
        r#"{"method":"cancel","params":{}}"#,
    ] {
        peer.send(line).await;
    }
    peer.send(r#"{"id":"c","method":"cancel","params":{"id":99}}"#).await;
    assert_eq!(peer.next_line().await.unwrap(), r#"{"jsonrpc":"2.0","id":"c","result":null}"#);
    world.works(&who, session, &mut peer).await;
    world.stop().await;
}

impl Peer {
    pub(crate) async fn writer_all(&mut self, bytes: &[u8]) {
        use tokio::io::AsyncWriteExt as _;
        self.writer.write_all(bytes).await.unwrap();
    }
}

impl World {
    /// A call of the session's tool `x` goes there and back.
    pub(crate) async fn works(
        &self,
        who: &Credential,
        session: ringback_proto::ids::SessionId,
        peer: &mut Peer,
    ) {
        let mut caller = self.caller(who, session);
        peer.ask(777, "caller_tool", json!({ "tool": "x" })).await;
        let call = caller.next_call().await;
        self.answer(&caller, &call, "true").await.unwrap();
        assert_eq!(peer.answer(777).await["result"], true);
    }
}
