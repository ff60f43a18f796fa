//! `ringback completions`: shell completion scripts.

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::screen::Screen;

/// `ringback completions`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback completions bash > ~/.local/share/bash-completion/completions/ringback\n  \
                  ringback completions zsh > ~/.zfunc/_ringback\n  ringback completions fish > \
                  ~/.config/fish/completions/ringback.fish"
)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: KnownShell,
}

/// The supported shells.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum KnownShell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let shell = match args.shell {
        KnownShell::Bash => Shell::Bash,
        KnownShell::Zsh => Shell::Zsh,
        KnownShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ringback", &mut script);
    Screen::new(false).text(String::from_utf8_lossy(&script).trim_end())
}
