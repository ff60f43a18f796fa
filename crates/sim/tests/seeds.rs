//! Seeds that are simulated in every test run.

use ringback_proto::ErrorKind;
use ringback_sim::crowd::{CrowdEvent, Outcome};
use ringback_sim::history::{HistoryEvent, Reply};
use ringback_sim::{run, run_crowd};

/// Rule: one outcome per call, nothing acknowledged lost, no effect after a refusal, repeats never
/// run twice, events after they are durable, numbers without gaps, tables empty in the end; a call
/// on a line is answered by its party, even if parties come and go.
#[test]
fn fifty_seeds_break_no_promise() {
    let (mut n_crashes, mut n_taken, mut n_lost) = (0, 0, 0);
    for seed in 1..=50 {
        let run = run(seed);
        assert_eq!(run.violations, [], "cargo xtask sim --seed {seed}");
        n_crashes += run.history.count(|what| matches!(what, HistoryEvent::Crashed));
        n_taken += run.history.count(|what| matches!(what, HistoryEvent::Took(_)));
        let gone = |what: &HistoryEvent| {
            matches!(what, HistoryEvent::Replied(_, Reply::Failed(ErrorKind::Gone, _)))
        };
        n_lost += run.history.count(gone);
    }
    assert!(n_taken > 300, "the simulated parties get too few calls to test anything: {n_taken}");
    assert!(n_lost > 30, "the simulated parties vanish too rarely to test anything: {n_lost}");
    assert!(n_crashes > 40, "the simulated disk crashes too rarely to test anything");
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in [1, 2, 3, 4, 5] {
        assert_eq!(run(seed).history.digest(), run(seed).history.digest(), "seed {seed}");
    }
}

/// Rule: whatever hundreds of callers and agents do, every call of every agent has exactly one
/// outcome, it is true, and it comes in time.
#[test]
fn a_crowd_of_sessions_breaks_no_promise() {
    for seed in 1..=2 {
        let (crowd, violations) = run_crowd(seed, 200);
        assert_eq!(violations, [], "seed {seed}");
        let n_asked = crowd.count(|seen| matches!(seen, CrowdEvent::Asked { .. }));
        let n_answered =
            crowd.count(|seen| matches!(seen, CrowdEvent::Told(_, Outcome::Result(_))));
        let n_failed = crowd.count(|seen| matches!(seen, CrowdEvent::Told(_, Outcome::Failed(..))));
        let n_ended = crowd.count(|seen| matches!(seen, CrowdEvent::Ended { .. }));
        let refused = |seen: &CrowdEvent| matches!(seen, CrowdEvent::Answered { taken: false, .. });
        let n_refused = crowd.count(refused);
        assert!(n_asked > 1000 && n_answered > 200 && n_failed > 200, "too few calls are made");
        assert!(n_ended > 200 && n_refused > 100, "too little goes wrong: {n_ended} {n_refused}");
    }
}

#[test]
fn the_same_crowd_does_the_same() {
    assert_eq!(run_crowd(7, 20), run_crowd(7, 20));
}
