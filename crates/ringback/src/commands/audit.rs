//! `ringback audit`: past calls, who made them and how they ended.

use clap::Args;
use ringback_client::line::{AuditCall, AuditEntry, LineCaller};
use serde::Serialize;

use super::token::Lifetime;
use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::pick::{IdArg, SessionArg};
use crate::screen::{Screen, moment};

/// Records per page.
const PAGE: u32 = 500;
/// Records searched before giving up: a day of a busy daemon.
const LOOKED_AT_MAX: usize = 1_000_000;

/// `ringback audit`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ringback audit\n  ringback audit --since 1h --by tok_…\n  \
                  ringback audit --session gogol_… --limit 1000 --json\n  ringback audit --tool \
                  token_create --since 30d\n\nNewest first. Shows who called what and how it ended, \
                  never input or results;\n`ringback why CALL` explains a single call. Needs an \
                  admin token.")]
pub struct AuditArgs {
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Only calls made with this token, by its public id; `local` is the daemon's own user
    #[arg(long = "by", value_name = "ID")]
    pub token: Option<String>,
    /// Only calls by this session's agent: its id, the start of it, or `last`
    #[arg(long, value_name = "ID")]
    pub session: Option<SessionArg>,
    /// Only calls that ended within this time, such as 90s, 15m, 12h, 30d or 2w
    #[arg(long, value_name = "TIME")]
    pub since: Option<Lifetime>,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
    /// HTTP listener of the daemon, `HOST:PORT` on this machine [default: `http.listen`]
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// The answer in JSON.
#[derive(Debug, Serialize)]
struct AuditReport {
    entries: Vec<AuditEntry>,
}

pub(crate) async fn run(mut args: AuditArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    if let Some(session @ (IdArg::Start(_) | IdArg::Last)) = &args.session {
        let session = session.find_at(&args.connect.target(environment)?).await?;
        args.session = Some(IdArg::Whole(session));
    }
    let target = args.connect.http(environment, args.http.as_deref())?;
    let caller = LineCaller::new(target.address.clone(), target.token.as_ref());
    let caller = caller.map_err(|error| target.explain(error))?;
    let not_before = args.since.map_or(0, |since| now_ms().saturating_sub(since.0 * 1000));
    let (mut found, mut n_looked_at, mut cursor) = (Vec::new(), 0, None);
    while found.len() < args.limit && n_looked_at < LOOKED_AT_MAX {
        let page = caller.audit(cursor.as_deref(), PAGE).await;
        let page = page.map_err(|error| target.explain(error))?;
        n_looked_at += page.entries.len();
        let is_old = page.entries.last().is_none_or(|last| last.at_ms() < not_before);
        let wanted = page
            .entries
            .into_iter()
            .filter(|entry| args.wants(entry) && entry.at_ms() >= not_before);
        found.extend(wanted.take(args.limit - found.len()));
        cursor = page.next_cursor;
        if is_old || cursor.is_none() {
            break;
        }
    }
    screen.answer(&AuditReport { entries: found }, |found| table(screen, &found.entries))
}

impl AuditArgs {
    /// Gaps are shown unless a filter is set.
    fn wants(&self, entry: &AuditEntry) -> bool {
        match entry {
            AuditEntry::Dropped { .. } => {
                self.tool.is_none() && self.token.is_none() && self.session.is_none()
            }
            AuditEntry::Call(call) => {
                let session = match &self.session {
                    Some(IdArg::Whole(session)) => Some(session.to_string()),
                    Some(IdArg::Start(_) | IdArg::Last) | None => None,
                };
                self.tool.as_ref().is_none_or(|tool| *tool == call.tool)
                    && self.token.as_ref().is_none_or(|token| *token == call.principal)
                    && session.is_none_or(|session| Some(session) == call.session_id)
            }
        }
    }
}

fn table(screen: Screen, entries: &[AuditEntry]) -> String {
    let rows = entries.iter().map(|entry| match entry {
        AuditEntry::Call(call) => [
            moment(call.at_ms),
            call.tool.clone(),
            call.principal.clone(),
            call.session_id.clone().unwrap_or_else(|| "-".to_owned()),
            call.edge.clone(),
            call.outcome.clone(),
            format!("{}.{:03} ms", call.duration_us / 1000, call.duration_us % 1000),
            passed(call),
            call.call_id.clone(),
        ],
        AuditEntry::Dropped { at_ms, dropped } => {
            let missing = format!("{dropped} calls are missing");
            let none = || "-".to_owned();
            [moment(*at_ms), missing, none(), none(), none(), none(), none(), none(), none()]
        }
    });
    let head = ["ended", "tool", "token", "session", "edge", "outcome", "took", "bytes", "call"];
    screen.table(head, rows, "no matching calls in the audit")
}

/// Bytes through a proxy of a session, out of the sandbox and back.
fn passed(call: &AuditCall) -> String {
    match (call.bytes_up, call.bytes_down) {
        (Some(up), Some(down)) => format!("{up} / {down}"),
        (Some(_) | None, _) => "-".to_owned(),
    }
}

fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default()
}
