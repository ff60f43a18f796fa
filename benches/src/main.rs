//! Measures the daemon against bare alternatives: `cargo xtask bench [NAME] [--json] [--quick]`.
//! `benches/README.md` has the method and the results.
//!
//! Main types: [`figure::Figure`], one row of the result; [`process::Server`], a process under
//! test; [`load::Load`], the only load generator.
//!
//! Invariants:
//! * The load generator and the process under test share one core, so that no figure depends on the
//!   number of cores.
//! * Both sides of a comparison take turns, and the result is the median of the rounds' ratios.
//! * Both sides use the same transport with the same security.

#![expect(clippy::print_stdout, reason = "a measurement is printed")]

mod bare;
mod bare_circle;
mod bare_mcp;
mod bare_store;
mod chunks;
mod circle;
mod content;
mod figure;
mod garden;
mod garden_seek;
mod graph_records;
mod http;
mod inside;
mod jobs;
mod lines;
mod load;
mod mcp;
mod memory;
mod party;
mod ping;
mod process;
mod queries;
mod relay;
mod sandboxed_session;
mod settings;
mod stored_records;
mod streams;
mod studio;

use anyhow::bail;
use figure::Figure;
use settings::Settings;

const HELP: &str = "\
Usage: cargo xtask bench [NAME] [--json] [--quick]

  ping     calls over HOOT01 against a bare echo
  jobs     durable jobs against the store alone
  content  content store ingest against `cp` and `sync`
  chunks   1 GiB of chunks from a worker to a caller that reads at 20 MiB/s
  memory   the size of the program, the idle daemon, and 2,000 peers against a bare ROUTER
  stored   the CPU of a call with 100,000 stored records against 10
  queries  the CPU of queries and graph tools with 100,000 artifacts against 1,000; calls beside the worst query
  mcp      `tools/call` over HTTP against a bare handler
  sessions memory of 1,000 MCP sessions
  circle   calls of a caller's tools, from agent to caller and back, against a bare relay
  crowd    memory of 1,000 sessions with sockets and callers, and the CPU of a call among them
  inside   the program inside: its start against a bare static echo, its size and memory
  boxed    a session in a sandbox, to its tools listed, against a bare `bwrap`
  lines    calls of client tools against a bare relay
  clients  memory of 10,000 clients, and the CPU of a call to one of them against 10
  tools    the CPU of a page, a lookup and a call with 100,000 registered tools against 100
  garden   playback under load, seeks, export, commands and monitors of the garden
  garden-long  ten minutes of that playback; not among all
  studio   tunes against abc2midi, renders against fluidsynth, beats against real time

  --quick  tiny sizes and few rounds: shows that it runs, measures nothing
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        // Roles of this program that run as processes of their own.
        [bare::ROUTER_ROLE] => bare::router().await,
        [bare::PEERS_ROLE, endpoint, token, count] => {
            bare::idle_peers(endpoint, token, count.parse()?).await
        }
        [relay::ROLE] => relay::run().await,
        [streams::ROLE, http, token, count] => streams::run(http, token, count.parse()?).await,
        [bare_mcp::ROLE] => bare_mcp::run().await,
        [bare_circle::ROLE, dir] => bare_circle::run(dir).await,
        [bare_circle::INSIDE_ROLE, "--socket", socket] => bare_circle::inside(socket).await,
        _ => measure(&arguments).await,
    }
}

async fn measure(arguments: &[&str]) -> anyhow::Result<()> {
    let (mut json, mut quick, mut name) = (false, false, None);
    for argument in arguments {
        match *argument {
            "--json" => json = true,
            "--quick" => quick = true,
            other if other.starts_with('-') => bail!("unknown option `{other}`\n\n{HELP}"),
            other => name = Some(other),
        }
    }
    let settings = Settings::prepare(quick)?;
    let figures = match name {
        Some("ping") => ping::run(&settings).await?,
        Some("jobs") => jobs::run(&settings).await?,
        Some("content") => content::run(&settings).await?,
        Some("chunks") => chunks::run(&settings).await?,
        Some("memory") => memory::run(&settings).await?,
        Some("stored") => stored_records::run(&settings).await?,
        Some("queries") => queries::run(&settings).await?,
        Some("mcp") => mcp::calls(&settings).await?,
        Some("sessions") => mcp::sessions(&settings).await?,
        Some("circle") => circle::calls(&settings).await?,
        Some("crowd") => circle::many(&settings).await?,
        Some("inside") => inside::run(&settings).await?,
        Some("boxed") => sandboxed_session::run(&settings).await?,
        Some("lines") => lines::calls(&settings).await?,
        Some("clients") => lines::clients(&settings).await?,
        Some("tools") => lines::registered(&settings).await?,
        Some("garden") => garden::run(&settings).await?,
        Some("garden-long") => garden::long(&settings).await?,
        Some("studio") => studio::run(&settings)?,
        Some(other) => bail!("unknown benchmark `{other}`\n\n{HELP}"),
        None => all(&settings).await?,
    };
    if json {
        println!("{:#}", figure::json(&figures));
    } else {
        print!("{}", figure::table(&figures));
    }
    Ok(())
}

async fn all(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let mut figures = ping::run(settings).await?;
    figures.extend(jobs::run(settings).await?);
    figures.extend(content::run(settings).await?);
    figures.extend(chunks::run(settings).await?);
    figures.extend(memory::run(settings).await?);
    figures.extend(stored_records::run(settings).await?);
    figures.extend(queries::run(settings).await?);
    figures.extend(mcp::calls(settings).await?);
    figures.extend(mcp::sessions(settings).await?);
    figures.extend(circle::calls(settings).await?);
    figures.extend(circle::many(settings).await?);
    figures.extend(inside::run(settings).await?);
    figures.extend(sandboxed_session::run(settings).await?);
    figures.extend(lines::calls(settings).await?);
    figures.extend(lines::clients(settings).await?);
    figures.extend(lines::registered(settings).await?);
    figures.extend(garden::run(settings).await?);
    figures.extend(studio::run(settings)?);
    Ok(figures)
}
