//! `ringback tools`: the tools that can be called.

mod watch;

use clap::Args;
use ringback_client::Client;
use ringback_proto::request::{ListToolsRequest, ToolInfo, ToolsListResponse};
use ringback_proto::tool::tools::ListTools;
use ringback_proto::value::Value;

use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::screen::{Screen, json_text};

/// `ringback tools`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback tools\n  ringback tools cas_\n  ringback tools job_sleep    one \
                  tool, with its input\n  ringback tools --watch      the list, then changes as they happen"
)]
pub struct ToolsArgs {
    /// Only tools whose names start with this; a full name also shows the tool's input
    pub prefix: Option<String>,
    /// Keep showing tools that are added and removed, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// Print JSON: one document, or one object per tool and change when watching
    #[arg(long)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

pub(crate) async fn run(args: ToolsArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let target = args.connect.target(environment)?;
    target
        .run(async |client| {
            if args.watch {
                return watch::run(client, screen, args.prefix.as_deref()).await;
            }
            let listed = all(client, args.prefix.clone()).await?;
            let whole = |tool: &&ToolInfo| Some(&tool.name) == args.prefix.as_ref();
            if !screen.is_json()
                && let Some(tool) = listed.tools.iter().find(whole)
            {
                return screen.text(one(screen, tool)?);
            }
            screen.answer(&listed, |listed| table(screen, &listed.tools))
        })
        .await
}

/// Fetches all pages.
async fn all(client: &Client, prefix: Option<String>) -> Result<ToolsListResponse, Failure> {
    let mut tools = Vec::new();
    let mut cursor = None;
    loop {
        let request = ListToolsRequest { cursor, prefix: prefix.clone() };
        let page = client.call::<ListTools>(request).await?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(ToolsListResponse { tools, next_cursor: None });
        }
    }
}

fn table(screen: Screen, tools: &[ToolInfo]) -> String {
    let rows = tools.iter().map(|tool| {
        let (timing, scope) = (tool.timing.as_str().to_owned(), tool.scope.to_string());
        [tool.name.clone(), timing, scope, first_sentence(tool).to_owned()]
    });
    screen.table(["TOOL", "TIMING", "SCOPE", "DESCRIPTION"], rows, "no matching tools")
}

fn first_sentence(tool: &ToolInfo) -> &str {
    tool.description.split_inclusive(". ").next().unwrap_or_default().trim_end()
}

fn one(screen: Screen, tool: &ToolInfo) -> Result<String, Failure> {
    let mut text = screen.pairs(&[
        ("tool", tool.name.clone()),
        ("description", tool.description.clone()),
        ("timing", tool.timing.as_str().to_owned()),
        ("scope", tool.scope.to_string()),
    ]);
    if let Some(Value::Map(fields)) = tool.input_schema.get("properties") {
        let rows = fields
            .iter()
            .map(|(name, schema)| {
                let needed = list(&tool.input_schema, "required")
                    .any(|needed| matches!(needed, Value::Text(needed) if needed == name));
                let needed = if needed { "yes" } else { "" }.to_owned();
                Ok([name.clone(), kind(schema)?, needed, described(schema)])
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        text.push_str("\n\n");
        text.push_str(&screen.table(
            ["FIELD", "TYPE", "REQUIRED", "DESCRIPTION"],
            rows,
            "no fields",
        ));
    }
    Ok(text)
}

fn kind(schema: &Value) -> Result<String, Failure> {
    match schema.get("type") {
        Some(Value::Text(kind)) => Ok(kind.clone()),
        Some(kinds) => json_text(kinds, false),
        None => {
            let choices = choices(schema);
            Ok(if choices.is_empty() { "any".to_owned() } else { choices.join("|") })
        }
    }
}

/// Returns the values that a schema enumerates.
fn choices(schema: &Value) -> Vec<String> {
    if let Some(Value::Text(choice)) = schema.get("const") {
        return vec![choice.clone()];
    }
    let named = list(schema, "enum").filter_map(|choice| {
        if let Value::Text(choice) = choice { Some(choice.clone()) } else { None }
    });
    let nested = ["anyOf", "oneOf"].into_iter().flat_map(|name| list(schema, name));
    named.chain(nested.flat_map(choices)).collect()
}

fn list<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    let items = if let Some(Value::List(items)) = schema.get(name) { items } else { [].as_slice() };
    items.iter()
}

fn described(schema: &Value) -> String {
    match schema.get("description") {
        Some(Value::Text(text)) => text.replace('\n', " "),
        Some(_) | None => String::new(),
    }
}
