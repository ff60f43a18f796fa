//! `ringback why`: what happened to a call.

use clap::Args;
use ringback_proto::Certainty;
use ringback_proto::request::{CallExplainedResponse, CallWhyRequest};
use ringback_proto::tool::tools::CallWhy;

use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::screen::{Screen, moment, span};

/// `ringback why`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ringback why job_…\n  ringback why call_…\n  ringback why \
                  6f0c…              the request id chosen by its caller\n\nShows who called, what \
                  admitted the call, where its deadline came from and how it ended;\nnever its input.")]
pub struct WhyArgs {
    /// Id of a call, of its job or of its request
    pub id: String,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

pub(crate) async fn run(args: WhyArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let target = args.connect.target(environment)?;
    target
        .run(async |client| {
            let call = client.call::<CallWhy>(CallWhyRequest { id: args.id }).await?;
            screen.answer(&call, |call| explained(screen, call))
        })
        .await
}

fn explained(screen: Screen, call: &CallExplainedResponse) -> String {
    let mut pairs = vec![
        ("call", call.call_id.to_string()),
        ("tool", call.tool.clone()),
        ("caller", format!("{}, through {}", call.caller, call.edge)),
        ("admitted", format!("{}: {}", moment(call.admitted_at), call.admitted)),
        ("deadline", format!("{}, set by the {}", span(call.deadline_ms), call.deadline_from)),
    ];
    pairs.extend(call.request_id.clone().map(|id| ("request", id)));
    pairs.extend(call.job_id.map(|id| {
        let status = call.job_status.map_or("no longer kept", |status| status.as_str());
        ("job", format!("{id}, {status}"))
    }));
    if call.repeat {
        pairs
            .push(("repeat", "this call repeated an earlier one and did not run again".to_owned()));
    }
    pairs.push(match (call.took_ms, &call.outcome) {
        (Some(took_ms), Some(outcome)) => {
            ("answered", format!("{outcome} after {}{}", span(took_ms), ran(call.certainty)))
        }
        _ => ("answered", "not yet".to_owned()),
    });
    screen.pairs(&pairs)
}

const fn ran(certainty: Option<Certainty>) -> &'static str {
    match certainty {
        None => "",
        Some(Certainty::NotStarted) => "; nothing was done",
        Some(Certainty::MayHaveRun) => "; it may have run",
        Some(Certainty::Ran) => "; it ran",
    }
}
