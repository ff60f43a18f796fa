//! The native tools, one file per area.

pub(crate) mod artifact;
mod call;
mod caller;
pub(crate) mod cas;
mod container;
mod garden;
mod graph;
mod job;
mod meta;
mod project;
mod query;
mod session;
mod token;
mod workspace;

use std::sync::Arc;

use ringback_core::Now;
use ringback_proto::request::ToolInfo;
use ringback_proto::{Error, Result};

use crate::config::{Config, ConfigView};
use crate::studio::StudioTools;

pub(crate) use token::first_token;

/// Runs every native tool. The music tools are handed over to [`StudioTools`].
#[derive(Debug)]
pub(crate) struct Native;

/// The data that `Sync` tools answer from, all of it in memory.
#[derive(Debug)]
pub(crate) struct Facts {
    started: Now,
    version: String,
    view: Arc<dyn ConfigView>,
    pub(crate) studio: Arc<dyn StudioTools>,
    /// In the order of their names.
    tools: Vec<ToolInfo>,
}

impl Facts {
    pub(crate) fn new(config: &Config, started: Now) -> Self {
        Self {
            started,
            version: config.version.clone(),
            view: Arc::clone(&config.view),
            studio: Arc::clone(&config.studio),
            tools: meta::tool_infos(),
        }
    }
}

/// The default length of a list.
const LIST_LIMIT: u32 = 50;
/// The maximum length of a list.
const LIST_LIMIT_MAX: u32 = 500;

fn list_limit(limit: Option<u32>) -> Result<usize> {
    match limit.unwrap_or(LIST_LIMIT) {
        0 => Err(Error::invalid_field("limit", "`limit` must be at least 1")),
        limit => Ok(limit.min(LIST_LIMIT_MAX) as usize),
    }
}

/// Refuses a text that is empty or too long.
///
/// # Errors
/// `invalid`, with the field.
pub fn check_text(field: &str, text: &str, chars_max: usize) -> Result<()> {
    if text.is_empty() || text.chars().count() > chars_max {
        return Err(Error::invalid_field(
            field,
            format!("`{field}` must have 1 to {chars_max} characters"),
        ));
    }
    Ok(())
}
