//! The scripted agent: a program that runs a script and speaks real MCP to its server. It replaces
//! an agent with a model where only the path of a call matters.

mod acp;
mod mcp;
mod output;
mod runner;
mod script;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use ringback_mcp_wire::{Era, Line, Lines};
use tokio::io::AsyncReadExt as _;

use self::mcp::Mcp;
use self::output::Output;
use self::runner::{Runner, ScriptEnd};
use crate::event::{AgentEvent, Message};

/// The usage error of `sysexits.h`.
const EXIT_USAGE: u8 = 64;
/// The longest message that is read.
const LINE_BYTES_MAX: usize = 1024 * 1024;

const HELP: &str = "\
An agent that runs a script, for trying out sessions and for tests.

Usage: ringback-scripted-agent [--script FILE] [--modern] [-- SERVER [ARGS...]]
       ringback-scripted-agent --acp [--modern]

  --script FILE   run this script for each message; without it, a message is a script itself
  --modern        speak MCP 2026-07-28 to the server; without it, 2025-11-25
  SERVER          the MCP server to start, which has the agent's tools
  --acp           speak the Agent Client Protocol: the client names the server, and a message is
                  a script

Messages come on standard input and events go to standard output, as JSON lines.";

/// The command line.
#[derive(Debug)]
struct Options {
    script: Option<PathBuf>,
    is_acp: bool,
    era: Era,
    server: Vec<OsString>,
}

/// Runs the whole program: takes messages until its standard input ends, or a script ends it. The
/// arguments exclude the program's own name.
pub fn main_entry(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = match options(args) {
        Ok(Some(options)) => options,
        Ok(None) => {
            drop(writeln!(std::io::stdout(), "{HELP}"));
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            log(&format!("{error}; run with `--help` for usage"));
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let code = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(run(options));
            // A thread may still be reading standard input.
            runtime.shutdown_background();
            code
        }
        Err(error) => Err(error.to_string()),
    };
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            log(&error);
            // The driver of the agent reads this event.
            drop(Output::default().tell(&AgentEvent::Error { text: error }));
            ExitCode::FAILURE
        }
    }
}

fn options(args: impl IntoIterator<Item = OsString>) -> Result<Option<Options>, lexopt::Error> {
    use lexopt::Arg::{Long, Short, Value};
    let mut parser = lexopt::Parser::from_args(args);
    let mut options = Options { script: None, is_acp: false, era: Era::Legacy, server: Vec::new() };
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(None),
            Long("script") => options.script = Some(parser.value()?.into()),
            Long("acp") => options.is_acp = true,
            Long("modern") => options.era = Era::Modern,
            Value(program) => {
                options.server.push(program);
                options.server.extend(parser.raw_args()?);
            }
            Long(_) | Short(_) => return Err(arg.unexpected()),
        }
    }
    Ok(Some(options))
}

async fn run(options: Options) -> Result<u8, String> {
    if options.is_acp {
        return acp::serve(options.era).await;
    }
    let script = match &options.script {
        None => None,
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read the script {}: {error}", path.display()))?;
            Some(text)
        }
    };
    let mcp = match options.server.split_first() {
        None => None,
        Some((program, args)) => Some(Mcp::start(program, args, &[], options.era).await?),
    };
    let mut runner = Runner::new(mcp, Output::default());
    let mut lines = Lines::new(LINE_BYTES_MAX);
    let mut input = tokio::io::stdin();
    loop {
        while let Some(line) = lines.pop() {
            let Some(Message::Message { text }) = message(&line) else {
                runner.output.log("an input line is not a message")?;
                continue;
            };
            let steps = match script::parse(script.as_deref().unwrap_or(&text), &text) {
                Ok(steps) => steps,
                Err(wrong) => {
                    runner.output.tell(&AgentEvent::Error { text: wrong.to_string() })?;
                    runner.output.tell(&AgentEvent::Done)?;
                    continue;
                }
            };
            match runner.run(steps).await? {
                ScriptEnd::Done => {}
                ScriptEnd::Exit(code) => return Ok(code),
            }
        }
        let n = input.read_buf(lines.room()).await.map_err(|error| error.to_string())?;
        if n == 0 {
            return Ok(0);
        }
    }
}

fn message(line: &Line<'_>) -> Option<Message> {
    match line {
        Line::Whole(line) => Message::decode(line),
        Line::TooLong(_) => None,
    }
}

fn log(line: &str) {
    // A closed standard error is no reason to stop.
    drop(writeln!(std::io::stderr(), "ringback-scripted-agent: {line}"));
}
