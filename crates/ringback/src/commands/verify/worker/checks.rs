//! The checks for a worker.

use std::time::Duration;

use bytes::Bytes;
use ringback_proto::StreamChunk;
use ringback_proto::chunk::FIRST_CREDIT;
use ringback_proto::data::Data;
use ringback_proto::frame::{Body, Command, Frame};
use ringback_proto::ids::{JobId, RequestId};
use ringback_proto::value::Value;

use super::message::CallMessage;
use super::mock_daemon::{MockDaemon, parts};
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
/// Enough for a candidate that does not wait for credit to send something.
const SHORT_MS: i64 = 300;
/// Far more than flows without credit.
const POURED_BYTES: u64 = 4 << 20;
/// The bytes of each Credit.
const CREDIT_STEP: u64 = 512 << 10;
/// An unassigned command number: a later version may add commands.
const UNKNOWN_COMMAND: u16 = 99;
/// The index of the part with the command.
const COMMAND_PART: usize = 1;

/// Runs every check, in order, and reports each result as soon as it is known.
pub(super) async fn run(
    daemon: &MockDaemon,
    silence: Duration,
    report: &mut Report,
) -> Result<(), Failure> {
    report.tell("skips frames that are not for it", skips_noise(daemon).await)?;
    report.tell("returns every kind of value as it came", returns_values(daemon).await)?;
    report.tell("takes arguments of 1 MiB", takes_large(daemon).await)?;
    report.tell("runs two calls at once", two_at_once(daemon).await)?;
    report.tell("reports progress before it answers", tells_progress(daemon).await)?;
    report.tell("answers a failure with an error", fails(daemon).await)?;
    report.tell("heeds Cancel", heeds_cancel(daemon).await)?;
    report.tell("returns the job_id of a call", returns_job_id(daemon).await)?;
    report.tell("waits for credit", waits_for_credit(daemon).await)?;
    report.tell("gives a sign of life when idle", lives(daemon, silence).await)?;
    report.tell("offers its tools again after a cut", survives_cut(daemon).await)?;
    report.tell("sends only complete frames", sends_frames(daemon))
}

async fn skips_noise(daemon: &MockDaemon) -> Verdict {
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
        daemon.send(skipped).await?;
    }
    echoed(daemon, &Value::Map(Vec::new())).await.map_err(|why| {
        format!(
            "a Reply and a Cancel to unknown calls, a Heartbeat and a frame with an unknown command are \
             all to be skipped; then the call of `echo` failed: {why}"
        )
    })
}

async fn returns_values(daemon: &MockDaemon) -> Verdict {
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
        echoed(daemon, &arguments).await.map_err(|why| format!("{what}: {why}"))?;
    }
    Ok(())
}

async fn takes_large(daemon: &MockDaemon) -> Verdict {
    let bytes = Bytes::from(vec![0xa5; LARGE_BYTES]);
    let arguments = Value::Map(vec![("value".to_owned(), Value::Bytes(Data(bytes)))]);
    echoed(daemon, &arguments).await.map_err(|_| "the arguments were not returned whole".to_owned())
}

async fn two_at_once(daemon: &MockDaemon) -> Verdict {
    let slow = daemon.call("slow", &ms(SLOW_MS)).await?;
    echoed(daemon, &Value::Map(Vec::new())).await?;
    let has_ended = daemon.said_of(slow).iter().any(|said| matches!(said, CallMessage::End(_)));
    if has_ended {
        return Err(format!(
            "`echo` was answered only after an earlier call of `slow`, which takes {SLOW_MS} ms"
        ));
    }
    succeeded(daemon, slow).await.map(drop)
}

async fn tells_progress(daemon: &MockDaemon) -> Verdict {
    let slow = daemon.call("slow", &ms(100)).await?;
    succeeded(daemon, slow).await?;
    match daemon.said_of(slow).as_slice() {
        [CallMessage::Chunk(StreamChunk::Progress { .. }), .., CallMessage::End(_)] => Ok(()),
        [CallMessage::End(_)] => Err("`slow` reported no progress before its answer".to_owned()),
        said => Err(format!("expected progress first and one answer last, found {said:?}")),
    }
}

async fn fails(daemon: &MockDaemon) -> Verdict {
    let call = daemon.call("fail", &Value::Map(Vec::new())).await?;
    match daemon.end(call, PATIENCE).await {
        Some(CallMessage::End(Err(error))) if !error.message.is_empty() => Ok(()),
        Some(CallMessage::End(Err(_))) => Err("an error needs a message for people".to_owned()),
        Some(said) => Err(format!("`fail` must answer with an `error`, not with {said:?}")),
        None => Err(unanswered("fail")),
    }
}

async fn heeds_cancel(daemon: &MockDaemon) -> Verdict {
    let slow = daemon.call("slow", &ms(SLOW_MS)).await?;
    // Progress shows that it has started.
    daemon.first(slow, PATIENCE).await.ok_or_else(|| unanswered("slow"))?;
    daemon.cancel(slow).await?;
    // Once a longer call has ended, this one would have too.
    let longer = daemon.call("slow", &ms(SLOWER_MS)).await?;
    succeeded(daemon, longer).await?;
    let end = daemon.said_of(slow).into_iter().find(|said| matches!(said, CallMessage::End(_)));
    match end {
        // A worker may report the cancellation, though it need not.
        None | Some(CallMessage::End(Err(_))) => Ok(()),
        Some(_) => Err("a call that was cancelled with Cancel ran to its end".to_owned()),
    }
}

async fn returns_job_id(daemon: &MockDaemon) -> Verdict {
    let job_id = JobId::from_random(*RequestId::random().as_bytes()).to_string();
    for tool in ["echo", "fail"] {
        let call = daemon.call_of_job(tool, &Value::Map(Vec::new()), Some(&job_id)).await?;
        daemon.end(call, PATIENCE).await.ok_or_else(|| unanswered(tool))?;
        match daemon.job_of(call) {
            Some(named) if named == job_id => {}
            named => {
                return Err(format!(
                    "a call of `{tool}` with the job_id `{job_id}` was answered with {named:?}; return \
                     it unchanged beside `kind`"
                ));
            }
        }
    }
    Ok(())
}

async fn waits_for_credit(daemon: &MockDaemon) -> Verdict {
    let size = i64::try_from(POURED_BYTES).map_err(|error| error.to_string())?;
    let arguments = Value::Map(vec![("bytes".to_owned(), Value::Int(size))]);
    let call = daemon.call("pour", &arguments).await?;
    let verdict = pours_on_credit(daemon, call).await;
    if verdict.is_err() {
        daemon.cancel(call).await?;
    }
    verdict
}

/// Grants credit step by step, and checks what was sent before each.
async fn pours_on_credit(daemon: &MockDaemon, call: RequestId) -> Verdict {
    let mut granted = FIRST_CREDIT;
    while granted < POURED_BYTES {
        if !daemon.poured(call, granted, PATIENCE).await {
            return Err(format!(
                "`pour` sent less than the {granted} bytes that may flow within {PATIENCE:?}; a Credit \
                 carries the id of its call"
            ));
        }
        // Once another call has taken its time, what does not wait has been sent too.
        let slow = daemon.call("slow", &ms(SHORT_MS)).await?;
        succeeded(daemon, slow).await?;
        let said = daemon.said_of(call);
        let mut sent = 0;
        for weight in said.iter().map(CallMessage::lossless_weight).filter(|weight| *weight > 0) {
            if sent >= granted {
                return Err(format!(
                    "`pour` sent a chunk after {sent} bytes, with credit for {granted}; the first \
                     {FIRST_CREDIT} need none"
                ));
            }
            sent += weight;
        }
        daemon.grant(call, CREDIT_STEP).await?;
        granted += CREDIT_STEP;
    }
    succeeded(daemon, call).await?;
    let sent: u64 = daemon.said_of(call).iter().map(CallMessage::lossless_weight).sum();
    if sent == POURED_BYTES {
        return Ok(());
    }
    Err(format!("`pour` was to send {POURED_BYTES} bytes and sent {sent}"))
}

async fn lives(daemon: &MockDaemon, silence: Duration) -> Verdict {
    if daemon.sign_of_life(silence).await {
        return Ok(());
    }
    Err(format!("no frame came for {silence:?}; send a Heartbeat more often than that"))
}

async fn survives_cut(daemon: &MockDaemon) -> Verdict {
    let slow = daemon.call("slow", &ms(SLOWER_MS)).await?;
    daemon.first(slow, PATIENCE).await.ok_or_else(|| unanswered("slow"))?;
    let number = daemon.cut();
    daemon.offered(PATIENCE, number).await.map_err(|_| {
        format!(
            "it did not reconnect and send Ready within {PATIENCE:?} after the connection was cut; the \
             transport may reconnect automatically, but each connection needs a Ready"
        )
    })?;
    echoed(daemon, &Value::Map(vec![("still".to_owned(), Value::Text("here".to_owned()))])).await
}

fn sends_frames(daemon: &MockDaemon) -> Verdict {
    let misfits = daemon.misfits();
    if misfits.is_empty() { Ok(()) } else { Err(misfits.join("; ")) }
}

/// Checks that `echo` returns its arguments.
async fn echoed(daemon: &MockDaemon, arguments: &Value) -> Verdict {
    let call = daemon.call("echo", arguments).await?;
    let answer = succeeded(daemon, call).await?;
    if is_same(arguments, &answer) {
        return Ok(());
    }
    Err(format!("`echo` got {arguments:?} and answered {answer:?}"))
}

async fn succeeded(daemon: &MockDaemon, call: RequestId) -> Result<Value, String> {
    match daemon.end(call, PATIENCE).await {
        Some(CallMessage::End(Ok(value))) => Ok(value),
        Some(CallMessage::End(Err(error))) => {
            Err(format!("the call failed with `{}`: {}", error.code, error.message))
        }
        Some(CallMessage::Chunk(_)) | None => {
            let misfits = daemon.misfits().join("; ");
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
