//! `ringback offer`: offers a local command as a tool.

mod calls;
pub(super) mod child;
pub(super) mod schema;

use std::ffi::OsString;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ringback_client::line::{Line, LineConfig, LineEvent, LineTool};
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::calls::Calls;
use self::child::Program;
use crate::config::Environment;
use crate::connection::{ConnectArgs, HttpTarget};
use crate::failure::Failure;
use crate::screen::Screen;

/// Short, because the daemon also notices the end of the stream.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// `ringback offer`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback offer shout -- tr a-z A-Z\n  ringback offer resize --schema resize.json \
                  --timeout 60000 --concurrency 2 -- ./resize.sh\n\nEach call runs COMMAND once, with the input as one line of \
                  JSON on standard input. Its standard\noutput (UTF-8, up to 8 MiB, without the last newline) \
                  is the result. A nonzero exit code is an\nerror, reported with the end of its standard error. \
                  A line `progress: 40 text` on standard error\nreports progress to the caller. When the caller \
                  stops waiting, the whole process group is ended."
)]
pub struct OfferArgs {
    /// Name of the tool; it is called as `client_ID_NAME`
    pub name: String,
    /// Command to run for each call
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// File with the JSON Schema of the input [default: any object, preferably with a `text`]
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// What the tool does, for agents and people who choose a tool
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Client id of the tool; running offers of different tools need different ids [default: NAME]
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
    /// Time limit of a call, in milliseconds; progress restarts it [default: the daemon's, 30000]
    #[arg(long, value_name = "MS")]
    pub timeout: Option<NonZeroU64>,
    /// How long calls wait for a lost connection to return, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    pub grace: u64,
    /// Maximum number of concurrent calls; others wait
    #[arg(long, value_name = "N", default_value = "4")]
    pub concurrency: NonZeroUsize,
    /// HTTP listener of the daemon, on this machine [default: `http.listen`]
    #[arg(long, value_name = "ADDR", help_heading = "Connection")]
    pub http: Option<String>,
    /// File with the token [default: `RINGBACK_TOKEN`, else `token` in the data directory]
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    pub token_file: Option<PathBuf>,
    /// Configuration file with the daemon's addresses
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    pub config: Option<PathBuf>,
    /// Data directory of the daemon
    #[arg(long, value_name = "DIR", help_heading = "Connection")]
    pub data_dir: Option<String>,
    /// Print one JSON object per event
    #[arg(long)]
    pub json: bool,
}

/// An event in JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum OfferEvent<'a> {
    Offered { tool: &'a str, call: String },
    Lost { reason: &'a str },
    Back,
}

/// The signals that end an offer.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl OfferArgs {
    fn target(&self, environment: &Environment) -> Result<HttpTarget, Failure> {
        let connect = ConnectArgs {
            token_file: self.token_file.clone(),
            config: self.config.clone(),
            data_dir: self.data_dir.clone(),
            ..ConnectArgs::default()
        };
        connect.http(environment, self.http.as_deref())
    }

    fn line(&self, target: &HttpTarget) -> Result<LineConfig, Failure> {
        let parameters = Some(schema::of(self.schema.as_deref())?);
        // Only its name: the arguments may hold secrets.
        let program = self.command.first().map(|program| program.to_string_lossy());
        let runs = || format!("Runs `{}`.", program.unwrap_or_default());
        let tool = LineTool {
            id: self.name.clone(),
            description: self.description.clone().unwrap_or_else(runs),
            parameters,
            timeout_ms: self.timeout.map(NonZeroU64::get),
        };
        let client_id = self.client_id.clone().unwrap_or_else(|| self.name.clone());
        let mut config = LineConfig::new(target.address.clone(), client_id);
        config.token = target.token.clone();
        config.grace = Duration::from_millis(self.grace);
        config.tools = vec![tool];
        Ok(config)
    }

    fn program(&self) -> Result<Program, Failure> {
        let mut words = self.command.iter().cloned();
        let name = words.next().ok_or_else(|| Failure::Usage("no COMMAND given".to_owned()))?;
        Ok(Program { name, arguments: words.collect() })
    }
}

pub(crate) async fn run(args: OfferArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let target = args.target(environment)?;
    let config = args.line(&target)?;
    let mut signals = Signals::new()?;
    let schema = config.tools.first().and_then(|tool| tool.parameters.as_deref());
    let sample = schema.map(schema::sample).unwrap_or_default();
    let grace = config.grace;
    let mut line = tokio::select! {
        line = Line::open(config) => line.map_err(|error| target.explain(error))?,
        () = signals.next() => return Err(Failure::Interrupted),
    };
    for tool in line.full_names() {
        let call = format!("ringback call {tool}{sample}");
        announce(screen, &OfferEvent::Offered { tool, call })?;
    }
    let mut calls =
        Calls::new(args.program()?, args.name, line.party(), args.concurrency, grace, screen);
    let ended = tokio::select! {
        () = signals.next() => Ok(()),
        error = serve(&mut line, &mut calls, screen) => error,
    };
    if let Ok(Err(error)) = tokio::time::timeout(CLOSE_LIMIT, line.close()).await {
        tracing::debug!(%error, "cannot withdraw the tool");
    }
    calls.end().await;
    ended
}

/// Serves calls until the daemon refuses the line.
async fn serve(line: &mut Line, calls: &mut Calls, screen: Screen) -> Result<(), Failure> {
    loop {
        let event = tokio::select! {
            biased;
            () = calls.done(), if !calls.is_idle() => continue,
            event = line.next() => event?,
        };
        match event {
            LineEvent::Call(call) => calls.begin(call).await,
            LineEvent::Cancel { request_id, reason } => calls.cancel(&request_id, &reason),
            LineEvent::Lost { reason } => announce(screen, &OfferEvent::Lost { reason: &reason })?,
            LineEvent::Back { registered_again } => {
                if registered_again {
                    calls.cancel_all();
                }
                announce(screen, &OfferEvent::Back)?;
            }
        }
    }
}

fn announce(screen: Screen, told: &OfferEvent<'_>) -> Result<(), Failure> {
    if screen.is_json() {
        return screen.item(told, |_| String::new());
    }
    match told {
        OfferEvent::Offered { tool, call } => screen.text(format_args!(
            "`{tool}` is available; stop with Ctrl-C. To call it from another terminal:\n  {call}"
        )),
        OfferEvent::Lost { reason } => {
            screen.remark(format_args!("connection lost ({reason}); reconnecting"));
            Ok(())
        }
        OfferEvent::Back => {
            screen.remark("reconnected");
            Ok(())
        }
    }
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|source| Failure::System { action: "listen for signals", source })
        };
        let interrupt = listen(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: listen(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
