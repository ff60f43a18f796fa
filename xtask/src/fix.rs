//! `cargo xtask fix`: fixes what a program can fix.

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand, tidy};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "fix",
    about: "Apply clippy's suggestions, format the sources, draw the picture of the crates",
    run: Run::Alone(run),
};

fn run(steps: &mut Steps) -> Outcome {
    steps.command(
        "lints",
        steps
            .cargo("clippy --fix --allow-dirty --allow-staged --release --workspace --all-targets"),
    )?;
    steps.command("format", steps.cargo("fmt --all"))?;
    tidy::draw(steps)
}
