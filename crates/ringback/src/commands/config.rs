//! `ringback config`: the settings in effect, without a daemon.

use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::PathBuf;

use crate::commands::local::LocalArgs;
use crate::config::{Config, Environment, config_path};
use crate::daemon::Daemon;
use crate::failure::Failure;
use crate::screen::Screen;

/// `ringback config`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback config show\n  ringback config check --config staging.toml\n  \
                  ringback config path\n\ndocs/configuration.md lists all keys."
)]
pub struct ConfigArgs {
    /// What to do
    #[command(subcommand)]
    pub action: ConfigAction,
    /// Where the configuration is
    #[command(flatten)]
    pub local: LocalArgs,
}

/// Actions on the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Print the settings in effect as TOML, secrets masked
    Show,
    /// Check whether a daemon would start with them
    Check,
    /// Print the path of the configuration file
    Path,
}

#[derive(Debug, Serialize)]
struct CheckReport {
    ok: bool,
    file: Option<PathBuf>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ConfigLocation {
    file: Option<PathBuf>,
    exists: bool,
}

pub(crate) fn run(args: &ConfigArgs, environment: &Environment) -> Result<(), Failure> {
    let (screen, flags) = (args.local.screen(), args.local.flags());
    let file = config_path(&flags, environment);
    match args.action {
        ConfigAction::Show => {
            let config = Config::load(&flags, environment)?;
            warn(screen, &config);
            if screen.is_json() {
                let whole = config.lookup(None, None).ok().flatten();
                return screen.json_document(&whole);
            }
            screen.text(config.to_toml_masked().trim_end())
        }
        ConfigAction::Check => {
            let config = Config::load(&flags, environment)?;
            Daemon::check(&config)?;
            warn(screen, &config);
            let warnings = config.old_names().iter().map(ToString::to_string).collect();
            let checked = CheckReport { ok: true, file, warnings };
            screen.answer(&checked, |_| "the configuration is valid".to_owned())
        }
        ConfigAction::Path => {
            let exists = file.as_deref().is_some_and(std::path::Path::exists);
            screen.answer(&ConfigLocation { file, exists }, |located| match &located.file {
                Some(file) if located.exists => file.display().to_string(),
                Some(file) => format!("{} (not found: defaults apply)", file.display()),
                None => {
                    "no configuration file: neither `XDG_CONFIG_HOME` nor `HOME` is set".to_owned()
                }
            })
        }
    }
}

fn warn(screen: Screen, config: &Config) {
    for old_name in config.old_names() {
        screen.remark(format_args!("warning: {old_name}"));
    }
}
