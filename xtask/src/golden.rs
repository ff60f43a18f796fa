//! `cargo xtask golden`: rewrites the golden vectors; the ordinary tests compare them.

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "golden",
    about: "Rewrite the golden vectors in schemas/; check the diff before committing",
    run: Run::Alone(run),
};

fn run(steps: &mut Steps) -> Outcome {
    let tests = [
        ("golden", "test --release --package ringback-proto --test proto -- golden::"),
        (
            "openapi",
            "test --release --package ringback-edge-http --test http -- openapi::the_document",
        ),
    ];
    for (name, test) in tests {
        let mut update = steps.cargo(test);
        update.env("RINGBACK_UPDATE_GOLDEN", "1");
        steps.command(name, update)?;
    }
    Ok(())
}
