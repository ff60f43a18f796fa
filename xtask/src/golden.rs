//! `cargo xtask golden`: writes the golden vectors anew; the ordinary tests compare them.

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "golden",
    about: "Write the golden vectors in schemas/ anew; look at the diff before committing",
    run: Run::Alone(run),
};

fn run(steps: &mut Steps) -> Outcome {
    let mut update = steps.cargo("test --release --package ringback-proto --test golden");
    update.env("RINGBACK_UPDATE_GOLDEN", "1");
    steps.command("golden", update)
}
