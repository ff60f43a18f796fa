//! Seeds that are simulated with every run of the tests.

use ringback_proto::ErrorKind;
use ringback_sim::history::{Reply, What};
use ringback_sim::run;

/// Rule: one outcome per call, nothing acknowledged lost, no effect after a refusal, repeats never
/// run twice, events after what they tell, numbers without gaps, tables empty in the end; a call on
/// a line is answered by its party, whoever comes and goes.
#[test]
fn fifty_seeds_break_no_promise() {
    let (mut n_crashes, mut n_taken, mut n_lost) = (0, 0, 0);
    for seed in 1..=50 {
        let run = run(seed);
        assert_eq!(run.violations, [], "cargo xtask sim --seed {seed}");
        n_crashes += run.history.count(|what| matches!(what, What::Crashed));
        n_taken += run.history.count(|what| matches!(what, What::Took(_)));
        let gone =
            |what: &What| matches!(what, What::Replied(_, Reply::Failed(ErrorKind::Gone, _)));
        n_lost += run.history.count(gone);
    }
    assert!(n_taken > 300, "the simulated parties get too few calls to try anything: {n_taken}");
    assert!(n_lost > 30, "the simulated parties vanish too rarely to try anything: {n_lost}");
    assert!(n_crashes > 40, "the simulated disk crashes too rarely to try anything");
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in [1, 2, 3, 4, 5] {
        assert_eq!(run(seed).history.digest(), run(seed).history.digest(), "seed {seed}");
    }
}
