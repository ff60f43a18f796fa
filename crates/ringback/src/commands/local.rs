//! Options of commands that read the configuration without a daemon.

use clap::Args;
use std::path::PathBuf;

use crate::config::ServeFlags;
use crate::screen::Screen;

/// Where the configuration is, and how to print.
#[derive(Debug, Args)]
pub struct LocalArgs {
    /// Configuration file to read
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Data directory, as for `serve`
    #[arg(long, value_name = "DIR", global = true)]
    pub data_dir: Option<String>,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
}

impl LocalArgs {
    pub(crate) fn screen(&self) -> Screen {
        Screen::new(self.json)
    }

    pub(crate) fn flags(&self) -> ServeFlags {
        ServeFlags {
            config: self.config.clone(),
            data_dir: self.data_dir.clone(),
            ..ServeFlags::default()
        }
    }
}
