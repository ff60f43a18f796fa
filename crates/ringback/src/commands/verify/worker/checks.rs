//! The checks for a worker.

use std::time::Duration;

use bytes::Bytes;
use ringback_proto::StreamChunk;
use ringback_proto::data::Data;
use ringback_proto::frame::{Body, Command, Frame};
use ringback_proto::ids::RequestId;
use ringback_proto::value::Value;

use super::played::{Played, parts};
use super::said::OfCall;
use crate::commands::verify::check::{Report, Verdict};
use crate::failure::Failure;

/// Reached only when a candidate does not do what it should.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than a length byte can express, and than a default buffer.
const LARGE_BYTES: usize = 1 << 20;
/// Long enough for the kit to act while it runs.
const SLOW_MS: i64 = 1500;
/// Longer than the one above.
const SLOWER_MS: i64 = 3000;
/// An unassigned command number: a later version may add commands.
const UNKNOWN_COMMAND: u16 = 99;
/// The index of the part with the command.
const COMMAND_PART: usize = 1;

/// Runs every check, in order, and reports each result as soon as it is known.
pub(super) async fn run(
    played: &Played,
    silence: Duration,
    report: &mut Report,
) -> Result<(), Failure> {
    report.tell("skips frames that are not for it", skips_noise(played).await)?;
    report.tell("returns every kind of value as it came", returns_values(played).await)?;
    report.tell("takes arguments of 1 MiB", takes_large(played).await)?;
    report.tell("runs two calls at once", two_at_once(played).await)?;
    report.tell("reports progress before it answers", tells_progress(played).await)?;
    report.tell("answers a failure with an error", fails(played).await)?;
    report.tell("heeds Cancel", heeds_cancel(played).await)?;
    report.tell("gives a sign of life when idle", lives(played, silence).await)?;
    report.tell("offers its tools again after a cut", survives_cut(played).await)?;
    report.tell("sends only complete frames", sends_frames(played))
}

async fn skips_noise(played: &Played) -> Verdict {
    let to_nobody = |command, body| parts(Frame::new(command, RequestId::random(), body));
    let ack = Body::MsgPack(Bytes::from_static(b"\x82\xa4kind\xa3ack\xa7message\xa2ok"));
    let mut unknown = to_nobody(Command::Heartbeat, Body::Empty);
    unknown[COMMAND_PART] = Bytes::copy_from_slice(&UNKNOWN_COMMAND.to_be_bytes());
    for skipped in [
        to_nobody(Command::Reply, ack),
        to_nobody(Command::Cancel, Body::Empty),
        to_nobody(Command::Heartbeat, Body::Empty),
        unknown,
    ] {
        played.send(skipped).await?;
    }
    echoed(played, &Value::Map(Vec::new())).await.map_err(|why| {
        format!(
            "a Reply and a Cancel to unknown calls, a Heartbeat and a frame with an unknown command are \
             all to be skipped; then the call of `echo` failed: {why}"
        )
    })
}

async fn returns_values(played: &Played) -> Verdict {
    let text = |text: &str| Value::Text(text.to_owned());
    let numbers = [Value::Int(i64::MIN), Value::Int(-1), Value::Int(0), Value::UInt(u64::MAX)];
    let fractions = [Value::Float(0.1), Value::Float(-1.5e300), Value::Float(2.0)];
    let bytes = Value::Bytes(Data((0..=u8::MAX).collect::<Vec<_>>().into()));
    let nested = Value::Map(vec![
        ("z".to_owned(), Value::List(vec![Value::Null, Value::List(Vec::new())])),
        ("a".to_owned(), Value::Map(vec![(String::new(), Value::Bool(false))])),
    ]);
    for (what, value) in [
        ("no arguments", Value::Null),
        ("text", text("Grüße, 世界, 🎵, \0 \"quoted\"")),
        ("integers of 64 bits", Value::List(numbers.to_vec())),
        ("numbers with a fraction", Value::List(fractions.to_vec())),
        ("bytes, which are not text", bytes),
        ("nested maps and lists", nested),
    ] {
        let is_given = value != Value::Null;
        let entry = is_given.then_some(("value".to_owned(), value));
        let arguments = Value::Map(entry.into_iter().collect());
        echoed(played, &arguments).await.map_err(|why| format!("{what}: {why}"))?;
    }
    Ok(())
}

async fn takes_large(played: &Played) -> Verdict {
    let bytes = Bytes::from(vec![0xa5; LARGE_BYTES]);
    let arguments = Value::Map(vec![("value".to_owned(), Value::Bytes(Data(bytes)))]);
    echoed(played, &arguments).await.map_err(|_| "the arguments were not returned whole".to_owned())
}

async fn two_at_once(played: &Played) -> Verdict {
    let slow = played.call("slow", &ms(SLOW_MS)).await?;
    echoed(played, &Value::Map(Vec::new())).await?;
    let has_ended = played.said_of(slow).iter().any(|said| matches!(said, OfCall::End(_)));
    if has_ended {
        return Err(format!(
            "`echo` was answered only after an earlier call of `slow`, which takes {SLOW_MS} ms"
        ));
    }
    succeeded(played, slow).await.map(drop)
}

async fn tells_progress(played: &Played) -> Verdict {
    let slow = played.call("slow", &ms(100)).await?;
    succeeded(played, slow).await?;
    match played.said_of(slow).as_slice() {
        [OfCall::Chunk(StreamChunk::Progress { .. }), .., OfCall::End(_)] => Ok(()),
        [OfCall::End(_)] => Err("`slow` reported no progress before its answer".to_owned()),
        said => Err(format!("expected progress first and one answer last, found {said:?}")),
    }
}

async fn fails(played: &Played) -> Verdict {
    let call = played.call("fail", &Value::Map(Vec::new())).await?;
    match played.end(call, PATIENCE).await {
        Some(OfCall::End(Err(error))) if !error.message.is_empty() => Ok(()),
        Some(OfCall::End(Err(_))) => Err("an error needs a message for people".to_owned()),
        Some(said) => Err(format!("`fail` must answer with an `error`, not with {said:?}")),
        None => Err(unanswered("fail")),
    }
}

async fn heeds_cancel(played: &Played) -> Verdict {
    let slow = played.call("slow", &ms(SLOW_MS)).await?;
    // Progress shows that it has started.
    played.first(slow, PATIENCE).await.ok_or_else(|| unanswered("slow"))?;
    played.cancel(slow).await?;
    // Once a longer call has ended, this one would have too.
    let longer = played.call("slow", &ms(SLOWER_MS)).await?;
    succeeded(played, longer).await?;
    let end = played.said_of(slow).into_iter().find(|said| matches!(said, OfCall::End(_)));
    match end {
        // A worker may report the cancellation, though it need not.
        None | Some(OfCall::End(Err(_))) => Ok(()),
        Some(_) => Err("a call that was cancelled with Cancel ran to its end".to_owned()),
    }
}

async fn lives(played: &Played, silence: Duration) -> Verdict {
    if played.sign_of_life(silence).await {
        return Ok(());
    }
    Err(format!("no frame came for {silence:?}; send a Heartbeat more often than that"))
}

async fn survives_cut(played: &Played) -> Verdict {
    let slow = played.call("slow", &ms(SLOWER_MS)).await?;
    played.first(slow, PATIENCE).await.ok_or_else(|| unanswered("slow"))?;
    let number = played.cut();
    played.offered(PATIENCE, number).await.map_err(|_| {
        format!(
            "it did not reconnect and send Ready within {PATIENCE:?} after the connection was cut; the \
             transport may reconnect automatically, but each connection needs a Ready"
        )
    })?;
    echoed(played, &Value::Map(vec![("still".to_owned(), Value::Text("here".to_owned()))])).await
}

fn sends_frames(played: &Played) -> Verdict {
    let misfits = played.misfits();
    if misfits.is_empty() { Ok(()) } else { Err(misfits.join("; ")) }
}

/// Checks that `echo` returns its arguments.
async fn echoed(played: &Played, arguments: &Value) -> Verdict {
    let call = played.call("echo", arguments).await?;
    let answer = succeeded(played, call).await?;
    if is_same(arguments, &answer) {
        return Ok(());
    }
    Err(format!("`echo` got {arguments:?} and answered {answer:?}"))
}

async fn succeeded(played: &Played, call: RequestId) -> Result<Value, String> {
    match played.end(call, PATIENCE).await {
        Some(OfCall::End(Ok(value))) => Ok(value),
        Some(OfCall::End(Err(error))) => {
            Err(format!("the call failed with `{}`: {}", error.code, error.message))
        }
        Some(OfCall::Chunk(_)) | None => {
            let misfits = played.misfits().join("; ");
            Err(format!("no answer came within {PATIENCE:?} {misfits}").trim_end().to_owned())
        }
    }
}

/// Whether two values are equal; the order of a map's keys means nothing.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Map(one), Value::Map(other)) => {
            let has_same = |(name, value): &(String, Value)| {
                other.iter().any(|(key, theirs)| key == name && is_same(value, theirs))
            };
            one.len() == other.len() && one.iter().all(has_same)
        }
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| is_same(a, b))
        }
        (one, other) => one == other,
    }
}

fn ms(ms: i64) -> Value {
    Value::Map(vec![("ms".to_owned(), Value::Int(ms))])
}

fn unanswered(tool: &str) -> String {
    format!("no reply to a call of `{tool}` within {PATIENCE:?}")
}
