//! `ringback tools --watch`: the list, then changes.

use std::collections::BTreeSet;

use ringback_client::Client;
use ringback_proto::Event;
use ringback_proto::request::{ListToolsRequest, ToolInfo};
use ringback_proto::tool::tools::ListTools;
use serde::Serialize;

use super::{all, first_sentence, table};
use crate::failure::Failure;
use crate::feed::Feed;
use crate::screen::Screen;

const TOPIC: &str = "tools.changed";

/// An event in JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
enum Change<'a> {
    /// It was offered at the start.
    Listed {
        tool: &'a ToolInfo,
    },
    Added {
        tool: &'a ToolInfo,
    },
    /// Its party described it again.
    Replaced {
        tool: &'a ToolInfo,
    },
    Removed {
        name: &'a str,
    },
}

/// The tools shown so far.
struct Watch<'a> {
    client: &'a Client,
    screen: Screen,
    prefix: &'a str,
    known: BTreeSet<String>,
}

pub(super) async fn run(
    client: &Client,
    screen: Screen,
    prefix: Option<&str>,
) -> Result<(), Failure> {
    // Before the list, so that no change falls between the two.
    let mut feed = Feed::from_now(client, &[TOPIC.to_owned()]).await?;
    let prefix = prefix.unwrap_or_default();
    let mut watch = Watch { client, screen, prefix, known: BTreeSet::new() };
    watch.list().await?;
    screen.remark("watching for changes; stop with Ctrl-C");
    loop {
        let page = feed.next().await?;
        if page.missed.is_some() {
            watch.compare().await?;
        }
        for event in page.events {
            if let Event::ToolsChanged { added, removed, .. } = event.event {
                watch.changed(added, removed).await?;
            }
        }
    }
}

impl Watch<'_> {
    async fn list(&mut self) -> Result<(), Failure> {
        let tools = self.all().await?;
        if self.screen.is_json() {
            for tool in &tools {
                self.screen.item(&Change::Listed { tool }, text)?;
            }
        } else {
            self.screen.text(table(self.screen, &tools))?;
        }
        self.known = tools.into_iter().map(|tool| tool.name).collect();
        Ok(())
    }

    async fn changed(&mut self, added: Vec<String>, removed: Vec<String>) -> Result<(), Failure> {
        for name in removed {
            self.removed(&name)?;
        }
        let prefix = self.prefix;
        for name in added.into_iter().filter(|name| name.starts_with(prefix)) {
            // A tool that is already gone has an event of its own.
            if let Some(tool) = self.find(&name).await? {
                self.added(&tool)?;
            }
        }
        Ok(())
    }

    /// Compares the list with what was shown, because some events are no longer kept.
    async fn compare(&mut self) -> Result<(), Failure> {
        let tools = self.all().await?;
        let gone = |name: &&String| !tools.iter().any(|tool| tool.name == **name);
        for name in self.known.iter().filter(gone).cloned().collect::<Vec<_>>() {
            self.removed(&name)?;
        }
        for tool in tools.iter().filter(|tool| !self.known.contains(&tool.name)).collect::<Vec<_>>()
        {
            self.added(tool)?;
        }
        Ok(())
    }

    fn added(&mut self, tool: &ToolInfo) -> Result<(), Failure> {
        let is_new = self.known.insert(tool.name.clone());
        let change = if is_new { Change::Added { tool } } else { Change::Replaced { tool } };
        self.screen.item(&change, text)
    }

    fn removed(&mut self, name: &str) -> Result<(), Failure> {
        if self.known.remove(name) {
            self.screen.item(&Change::Removed { name }, text)
        } else {
            Ok(())
        }
    }

    async fn find(&self, name: &str) -> Result<Option<ToolInfo>, Failure> {
        let request = ListToolsRequest { cursor: None, prefix: Some(name.to_owned()) };
        let page = self.client.call::<ListTools>(request).await?;
        Ok(page.tools.into_iter().find(|tool| tool.name == name))
    }

    async fn all(&self) -> Result<Vec<ToolInfo>, Failure> {
        Ok(all(self.client, Some(self.prefix.to_owned())).await?.tools)
    }
}

fn text(change: &Change<'_>) -> String {
    let described = |tool: &ToolInfo| format!("{}  {}", tool.name, first_sentence(tool));
    match change {
        Change::Listed { tool } => described(tool),
        Change::Added { tool } => format!("+ {}", described(tool)),
        Change::Replaced { tool } => format!("~ {}", described(tool)),
        Change::Removed { name } => format!("- {name}"),
    }
    .trim_end()
    .to_owned()
}
