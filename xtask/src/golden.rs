//! `cargo xtask golden`: writes the golden vectors anew; the ordinary tests compare them.

use crate::Subcommand;
use crate::steps::{Outcome, Steps};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "golden",
    about: "Write the golden vectors in schemas/ anew; look at the diff before committing",
    run,
};

fn run(steps: &mut Steps) -> Outcome {
    let mut update = steps.cargo("test --release --package ringback-proto --test golden");
    update.env("RINGBACK_UPDATE_GOLDEN", "1");
    steps.command("golden", update)
}
