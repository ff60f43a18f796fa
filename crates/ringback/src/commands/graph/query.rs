//! `ringback graph query`: SQL over what the caller may see.

use clap::Args;
use ringback_client::Client;
use ringback_proto::request::{GraphQueryRequest, GraphQueryResponse};
use ringback_proto::tool::tools::GraphQuery;
use ringback_proto::value::Value;

use crate::failure::Failure;
use crate::screen::{Screen, json_text};

/// The most characters of a value in a table.
const CHARS_MAX: usize = 60;

/// `ringback graph query`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback graph query \"SELECT * FROM help WHERE view = 'artifacts'\"\n  ringback graph \
                  query \"SELECT id, tool FROM artifacts WHERE created_at > :since\" --var since=0\n\n\
                  docs/graph-query.md describes the views."
)]
pub struct QueryArgs {
    /// One SELECT
    #[arg(value_name = "SQL")]
    pub query: String,
    /// The value of a variable: a number, true, false, null, or text
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<(String, Value)>,
    /// Maximum number of rows, at most 1000
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: u32,
}

pub(super) async fn run(client: &Client, screen: Screen, args: QueryArgs) -> Result<(), Failure> {
    let request = GraphQueryRequest {
        query: args.query,
        variables: Some(args.variables.into_iter().collect()),
        limit: Some(args.limit),
    };
    let answer = client.call::<GraphQuery>(request).await?;
    let text = if screen.is_json() { String::new() } else { table(screen, &answer)? };
    screen.answer(&answer, |_| text)
}

fn table(screen: Screen, answer: &GraphQueryResponse) -> Result<String, Failure> {
    let mut lines = Vec::with_capacity(answer.results.len() + 1);
    for row in &answer.results {
        let Value::Map(entries) = row else { continue };
        if lines.is_empty() {
            lines.push(entries.iter().map(|(name, _)| screen.printable(name)).collect());
        }
        let cells = entries.iter().map(|(_, value)| cell(screen, value));
        lines.push(cells.collect::<Result<Vec<_>, _>>()?);
    }
    let more = if answer.truncated {
        "\n… more rows; select fewer columns, or raise `--limit`"
    } else {
        ""
    };
    Ok(screen.columns(lines, "no rows") + more)
}

fn cell(screen: Screen, value: &Value) -> Result<String, Failure> {
    let text = match value {
        Value::Null => String::new(),
        Value::Text(text) => text.clone(),
        Value::Bool(_)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::Bytes(_)
        | Value::List(_)
        | Value::Map(_) => json_text(value, false)?,
    };
    let text = screen.printable(&text).replace('\n', " ");
    if text.chars().count() <= CHARS_MAX {
        return Ok(text);
    }
    Ok(text.chars().take(CHARS_MAX - 1).chain(['…']).collect())
}

/// Reads `name=value`. A value that is a number, true, false, null or a text in double quotes is that;
/// everything else is text.
fn variable(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    let value = match serde_json::from_str(value) {
        Ok(Value::List(_) | Value::Map(_)) | Err(_) => Value::Text(value.to_owned()),
        Ok(value) => value,
    };
    Ok((name.trim_start_matches(':').to_owned(), value))
}
