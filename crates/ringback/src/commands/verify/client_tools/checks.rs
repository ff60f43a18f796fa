//! The checks for a program that offers tools over `/client-tools`.

use std::time::Duration;

use ringback_client::line::{ClientAnswer, LineError};
use ringback_proto::chain;

use super::stage::{Stage, Tools};
use crate::commands::verify::check::{Report, Verdict};
use crate::failure::Failure;

/// Inputs that programs corrupt when they parse numbers, sort keys or escape again.
const INPUTS: [&str; 8] = [
    "{}",
    r#"{"text":"hello"}"#,
    r#"{"z":1,"a":2,"m":{"y":1,"b":2}}"#,
    r#"{"n":18446744073709551615,"m":-9223372036854775808,"big":12345678901234567890123}"#,
    r#"{"f":1.0,"e":1e3,"small":0.1,"zero":-0.0}"#,
    r#"{"nothing":null,"list":[null,[],{}],"yes":true}"#,
    r#"{"text":"Grüße, 世界, 🎵, \u0041 \"quoted\" \\ / \n\t","":"empty name"}"#,
    r#"{ "spaced" : [ 1 ,  2 ] , "data":"event: tool-cancel" }"#,
];
/// Larger than any default buffer of a reader.
const LARGE_CHARS: usize = 256 << 10;
/// Long enough for the kit to act while it runs.
const SLOW_INPUT: &str = r#"{"ms":1500}"#;
/// Longer than the one above.
const SLOWER_INPUT: &str = r#"{"ms":3000}"#;

/// Enough for a reader that pauses for some seconds before it connects again.
const RETURN_LIMIT: Duration = Duration::from_secs(10);

/// Runs every check, in order, and reports each result as soon as it is known.
pub(super) async fn run(stage: &Stage, tools: &Tools, report: &mut Report) -> Result<(), Failure> {
    report.tell("skips pings, comments and unknown events", skips_noise(stage, tools).await)?;
    report.tell("returns the input byte for byte", byte_for_byte(stage, tools).await)?;
    report.tell("takes an input of 256 KiB", takes_large(stage, tools).await)?;
    report.tell("runs two calls at once", two_at_once(stage, tools).await)?;
    report.tell("answers a failure with an error", fails(stage, tools).await)?;
    report.tell("heeds tool-cancel", heeds_cancel(stage, tools).await)?;
    report.tell("reconnects after a cut and answers once", survives_cut(stage, tools).await)?;
    report.tell("still serves calls afterwards", serves_on(stage, tools).await)
}

async fn skips_noise(stage: &Stage, tools: &Tools) -> Verdict {
    stage.call(&tools.echo, "verify-noise", "{}").await.map(drop).map_err(|error| {
        format!(
            "the stream starts with a comment, unknown fields and events, and a cancel of an unknown \
             call, all to be skipped; then the call of `echo` failed: {}",
            chain(&error)
        )
    })
}

async fn byte_for_byte(stage: &Stage, tools: &Tools) -> Verdict {
    for (number, input) in INPUTS.iter().enumerate() {
        let request_id = format!("verify-echo-{number}");
        let ClientAnswer { output, .. } =
            called(stage.call(&tools.echo, &request_id, input).await)?;
        if output != *input {
            return Err(format!(
                "`echo` got {input} and answered {output}; take `input` from the event as text, without \
                 parsing it"
            ));
        }
    }
    Ok(())
}

async fn takes_large(stage: &Stage, tools: &Tools) -> Verdict {
    let input = format!(r#"{{"text":"{}"}}"#, "ä".repeat(LARGE_CHARS / 2));
    let ClientAnswer { output, .. } =
        called(stage.call(&tools.echo, "verify-large", &input).await)?;
    if output == input {
        return Ok(());
    }
    Err(format!("sent {} bytes, got {} bytes back, which differ", input.len(), output.len()))
}

async fn two_at_once(stage: &Stage, tools: &Tools) -> Verdict {
    let slow = stage.call(&tools.slow, "verify-first", SLOW_INPUT);
    let second = async {
        stage.delivered("verify-first", 1).await?;
        called(stage.call(&tools.echo, "verify-second", "{}").await).map(drop)
    };
    tokio::pin!(slow, second);
    tokio::select! {
        slow = &mut slow => {
            called(slow)?;
            Err("`echo` was answered only after an earlier call of `slow`".to_owned())
        }
        second = &mut second => {
            second?;
            called(slow.await).map(drop)
        }
    }
}

async fn fails(stage: &Stage, tools: &Tools) -> Verdict {
    match stage.call(&tools.fail, "verify-fail", "{}").await {
        Err(LineError::Refused { status: 502, message, .. }) if !message.is_empty() => Ok(()),
        Err(error) => Err(format!(
            "`fail` must answer `{{\"status\": \"error\", \"error\": …}}` with a text, not: {}",
            chain(&error)
        )),
        Ok(ClientAnswer { output, .. }) => {
            Err(format!("`fail` must answer with status `error`, but succeeded with {output}"))
        }
    }
}

async fn heeds_cancel(stage: &Stage, tools: &Tools) -> Verdict {
    let request_id = "verify-cancel";
    let slow = stage.call(&tools.slow, request_id, SLOW_INPUT);
    tokio::select! {
        slow = slow => {
            called(slow)?;
            return Err("`slow` must wait for `ms` milliseconds before it answers".to_owned());
        }
        delivered = stage.delivered(request_id, 1) => delivered?,
    }
    // The caller has hung up. Once a longer call has ended, this one would have too.
    called(stage.call(&tools.slow, "verify-after-cancel", SLOWER_INPUT).await)?;
    match stage.proxy.n_results(request_id) {
        0 => Ok(()),
        n => Err(format!(
            "{n} results were posted for a call that was cancelled with `tool-cancel`; its work must \
             stop"
        )),
    }
}

async fn survives_cut(stage: &Stage, tools: &Tools) -> Verdict {
    let request_id = "verify-cut";
    let slow = stage.call(&tools.slow, request_id, SLOW_INPUT);
    let cutting = async {
        stage.delivered(request_id, 1).await?;
        stage.proxy.cut();
        stage.delivered(request_id, 2).await
    };
    tokio::pin!(slow, cutting);
    let slow = tokio::select! {
        cut = &mut cutting => {
            cut?;
            slow.await
        }
        slow = &mut slow => slow,
    };
    match slow {
        Ok(_) => {}
        Err(LineError::Refused { status: 503, .. }) => {
            return Err(
                "the call failed when the connection was cut: register with `graceMs`, at \
                        least 5000, and open the stream again"
                    .to_owned(),
            );
        }
        Err(error) => return Err(chain(&error)),
    }
    // Once a longer call has ended, a second run of the first one would have too.
    called(stage.call(&tools.slow, "verify-after-cut", SLOWER_INPUT).await)?;
    match stage.proxy.n_results(request_id) {
        1 => Ok(()),
        n => Err(format!(
            "{n} results were posted for one call; a call repeated under the same requestID is the \
             same call"
        )),
    }
}

async fn serves_on(stage: &Stage, tools: &Tools) -> Verdict {
    // A client without grace is dropped by the cut, and has to register again.
    stage.candidate(RETURN_LIMIT).await.map_err(|failure| failure.to_string())?;
    let input = r#"{"still":"here"}"#;
    let ClientAnswer { output, .. } = called(stage.call(&tools.echo, "verify-last", input).await)?;
    if output == input { Ok(()) } else { Err(format!("`echo` answered {output} to {input}")) }
}

fn called(called: Result<ClientAnswer, LineError>) -> Result<ClientAnswer, String> {
    called.map_err(|error| chain(&error))
}
