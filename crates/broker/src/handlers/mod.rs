//! The native tools, one file per area.

mod abc;
mod artifact;
mod call;
mod caller;
pub(crate) mod cas;
mod container;
mod job;
mod meta;
mod project;
mod session;
mod studio;
mod token;
mod workspace;

use ringback_core::Now;
use ringback_music_services::Services;
use ringback_proto::request::ToolInfo;
use ringback_proto::{Error, Result};

use crate::config::Config;

pub(crate) use studio::Studio;
pub(crate) use token::first_token;

/// Runs every native tool.
#[derive(Debug)]
pub(crate) struct Native;

/// The data that `Sync` tools answer from, all of it in memory.
#[derive(Debug)]
pub(crate) struct Facts {
    started: Now,
    version: String,
    view: std::sync::Arc<dyn crate::config::ConfigView>,
    models: std::sync::Arc<Services>,
    /// In the order of their names.
    tools: Vec<ToolInfo>,
}

impl Facts {
    pub(crate) fn new(config: &Config, models: std::sync::Arc<Services>, started: Now) -> Self {
        Self {
            started,
            version: config.version.clone(),
            view: std::sync::Arc::clone(&config.view),
            models,
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
fn check_text(field: &str, text: &str, chars_max: usize) -> Result<()> {
    if text.is_empty() || text.chars().count() > chars_max {
        return Err(Error::invalid_field(
            field,
            format!("`{field}` must have 1 to {chars_max} characters"),
        ));
    }
    Ok(())
}
