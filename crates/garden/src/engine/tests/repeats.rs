//! Loops, promises and what was heard, with the ring and the callback on a clock of frames.

use ringback_proto::garden::{
    GardenContent, GardenHeard, GardenPromise, IfLate, LoopRange, RegionState,
};
use ringback_proto::ids::{JobId, RegionId};

use super::*;

fn beats(n_beats: u64) -> Ticks {
    Ticks(n_beats * Ticks::PER_BEAT)
}

fn range(start: u64, end: u64) -> Option<LoopRange> {
    Some(LoopRange { start: beats(start), end: beats(end) })
}

/// A second region of a loop.
fn long_late() -> GardenRegion {
    region(3, 2.0, Some(1.0), "audio/wav")
}

/// A region whose content is still being made.
fn promised(position: f64, if_late: IfLate) -> GardenRegion {
    let job_id = JobId::from_random([7; 16]);
    GardenRegion {
        state: RegionState::Pending,
        content: None,
        promise: Some(GardenPromise { job_id, if_late }),
        ..region(2, position, Some(8.0), "")
    }
}

/// What the job of [`promised`] made.
fn kept() -> GardenContent {
    region(2, 0.0, None, "audio/wav").content.unwrap()
}

impl Rig {
    /// Sets the state of the promised region, with its sound.
    fn settle(&mut self, state: RegionState, revision: u64) {
        let sound = Arc::new(Sound::new(1, vec![0.5; 1_000_000]));
        let region_id = promised(0.0, IfLate::Vamp).region_id;
        let set = move |engine: &mut Engine| {
            engine.set_region_state(region_id, state, Some(kept()), Some(sound), revision)
        };
        self.order(set).unwrap();
    }

    fn causes(&self) -> Vec<TransportCause> {
        let told = self.told.lock().unwrap();
        let causes = told.events.iter().filter_map(|event| match event {
            GardenEvent::Transport(event) => Some(event.cause),
            GardenEvent::Region(_)
            | GardenEvent::Trouble(_)
            | GardenEvent::Position(_)
            | GardenEvent::Heard(_) => None,
        });
        causes.collect()
    }

    fn heard(&self) -> Vec<(f64, f64)> {
        let told = self.told.lock().unwrap();
        let parts = told.events.iter().filter_map(|event| match event {
            GardenEvent::Heard(GardenHeard { from, to, .. }) => Some((from.beats(), to.beats())),
            GardenEvent::Region(_)
            | GardenEvent::Trouble(_)
            | GardenEvent::Position(_)
            | GardenEvent::Transport(_) => None,
        });
        parts.collect()
    }

    fn waiting_for(&self) -> Option<RegionId> {
        let device = crate::device::OutputState::new(crate::device::Format {
            sample_rate: RATE,
            buffer_frames: BUFFER as u32,
        });
        let engine = self.renderer.engine();
        engine.status(device.get(), self.renderer.shared()).waiting_for
    }
}

/// Rule: a loop during playback is heard at its exact frames, also if it is set or ended while the
/// music it changes is already in the ring.
#[test]
fn a_loop_that_is_set_and_ended_while_it_plays_is_heard_at_its_exact_frames() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    let n_before = 2 * BEAT as usize - 2 * BUFFER;
    rig.play(n_before);
    rig.order(|engine| engine.set_loop(range(1, 2), 1)).unwrap();
    let n_played = rig.left.len();
    rig.play(3 * BEAT as usize);
    rig.order(|engine| engine.set_loop(None, 2)).unwrap();
    rig.play(2 * BEAT as usize);
    assert!(n_played < 2 * BEAT as usize, "the end of the loop was in the ring");
    let expected = |idx: usize| {
        let (beat, last) = (BEAT as usize, n_played + 3 * BEAT as usize);
        let rounds = |idx: usize| if idx < 2 * beat { idx } else { beat + (idx - 2 * beat) % beat };
        if idx < last { rounds(idx) } else { rounds(last) + idx - last }
    };
    let mut n_differences = 0;
    for (idx, sample) in rig.left.iter().enumerate() {
        n_differences += usize::from(step_of(*sample) != expected(idx));
    }
    // Only the fades of the three jumps differ, and that of the fourth, which was in the ring.
    assert!(n_differences <= 4 * FADE, "{n_differences}");
    assert_eq!(rig.status().1 as usize, expected(rig.left.len()));
    assert_eq!(rig.underruns(), 0);
    let loops = rig.causes().into_iter().filter(|cause| *cause == TransportCause::Loop).count();
    assert_eq!(loops, 1, "a short loop does not fill the events");
}

#[test]
fn a_loop_over_nothing_but_silence_goes_on() {
    let mut rig = Rig::ready(&[region(1, 0.0, Some(1.0), "audio/wav")], whole);
    rig.order(|engine| engine.set_loop(range(2, 4), 1)).unwrap();
    rig.transport(Action::Play, GardenAt::Beat(2.0));
    rig.play(5 * BEAT as usize);
    assert_eq!(rig.status().0, TransportState::Playing);
    assert!(rig.left.iter().all(|sample| *sample == 0.0));
}

/// Rule: playback repeats the bar before a region until that is ready, then goes on at the bar line.
#[test]
fn a_promise_that_vamps_is_heard_from_its_first_frame_at_a_bar_line() {
    let mut rig = Rig::ready(&[long()], |_| Sound::new(1, vec![0.25; 1_000_000]));
    rig.order(|engine| engine.create_region(promised(8.0, IfLate::Vamp), None, 1)).unwrap();
    rig.transport(Action::Play, GardenAt::Now);
    let (beat, bar) = (BEAT as usize, 4 * BEAT as usize);
    // Two bars, and the second once more and a half.
    rig.play(3 * bar + bar / 2);
    assert_eq!(rig.waiting_for(), Some(promised(0.0, IfLate::Vamp).region_id));
    assert!(rig.left.iter().all(|sample| *sample < 0.26), "it is not heard before it is there");
    let n_settled = rig.left.len();
    rig.settle(RegionState::Ready, 2);
    assert_eq!(rig.waiting_for(), None);
    rig.play(2 * bar);
    let first = rig.left.iter().position(|sample| *sample > 0.6).unwrap();
    assert_eq!(first, 4 * bar, "at the next bar line");
    assert!(first > n_settled && (rig.left[first] - 0.75).abs() < 1e-6);
    let position = 8 * beat + (rig.left.len() - first);
    assert_eq!(rig.status().1 as usize, position);
    assert_eq!(rig.underruns(), 0);
    let vamps = rig.causes().into_iter().filter(|cause| *cause == TransportCause::Vamp).count();
    assert_eq!(vamps, 1);
}

#[test]
fn a_promise_that_does_not_vamp_is_silent_until_it_is_there() {
    let mut rig = Rig::ready(&[long()], |_| Sound::new(1, vec![0.25; 1_000_000]));
    rig.order(|engine| engine.create_region(promised(1.0, IfLate::Silence), None, 1)).unwrap();
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(2 * BEAT as usize);
    assert!(rig.left.iter().all(|sample| (sample - 0.25).abs() < 1e-6));
    rig.settle(RegionState::Ready, 2);
    let n_settled = rig.left.len();
    rig.play(1024);
    assert!(rig.left[n_settled + FADE..].iter().all(|sample| (sample - 0.75).abs() < 1e-6));
    assert_eq!((rig.status().1 as usize, rig.underruns()), (rig.left.len(), 0));
}

/// Rule: rejected content is never heard, not even from the ring.
#[test]
fn a_region_is_heard_only_after_approval_and_not_after_a_rejection() {
    let mut rig = Rig::ready(&[long()], |_| Sound::new(1, vec![0.25; 1_000_000]));
    rig.order(|engine| engine.create_region(promised(0.0, IfLate::Silence), None, 1)).unwrap();
    rig.settle(RegionState::AwaitingApproval, 2);
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(4096);
    assert!(rig.left.iter().all(|sample| (sample - 0.25).abs() < 1e-6), "it is not approved");
    let region_id = promised(0.0, IfLate::Silence).region_id;
    let state = |state, revision| {
        move |engine: &mut Engine| engine.set_region_state(region_id, state, None, None, revision)
    };
    rig.order(state(RegionState::Ready, 3)).unwrap();
    let n_approved = rig.left.len();
    rig.play(4096);
    let heard = &rig.left[n_approved + FADE..];
    assert!(heard.iter().all(|sample| (sample - 0.75).abs() < 1e-6), "it was prepared before");
    rig.order(state(RegionState::Rejected, 4)).unwrap();
    let n_rejected = rig.left.len();
    rig.play(4096);
    let after = &rig.left[n_rejected + FADE..];
    assert!(after.iter().all(|sample| (sample - 0.25).abs() < 1e-6), "it is rejected");
    assert_eq!(rig.renderer.engine().n_late, 0);
}

#[test]
fn only_what_may_still_sound_can_be_played() {
    let mut rig = Rig::new(vec![promised(0.0, IfLate::Silence)]);
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(BEAT as usize);
    assert_eq!(rig.status().0, TransportState::Playing, "it may come any moment");
    rig.settle(RegionState::Failed, 1);
    rig.play(1024);
    assert_eq!(rig.status().0, TransportState::Stopped, "nothing is left");
    let refused = rig.order(|engine| engine.transport(Action::Play, None, None)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
}

#[test]
fn what_was_heard_is_reported_without_breaks_and_without_what_was_silent() {
    let repeated = GardenRegion { repeat: 2, ..region(1, 1.0, Some(1.0), "audio/wav") };
    let mut rig = Rig::ready(&[repeated], whole);
    let silent = region(2, 0.0, Some(8.0), "audio/wav");
    rig.order(move |engine| engine.create_region(silent, None, 1)).unwrap();
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(4 * BEAT as usize);
    assert_eq!(rig.heard(), [(1.0, 3.0)], "two passes without a break");
    rig.transport(Action::Seek(Ticks(960)), GardenAt::Now);
    let n_frames = BEAT as usize / 2;
    rig.play(n_frames);
    rig.transport(Action::Stop, GardenAt::Now);
    let (from, to) = rig.heard()[1];
    assert!(from == 1.0 && (to - 1.5).abs() < 0.02, "cut short at beat {to}");
}

/// Rule: a loop asks once more for what is missing, not at every pass.
#[test]
fn what_is_missing_in_a_loop_is_late_once_and_reported_once() {
    let mut rig = Rig::ready(&[long()], whole);
    let broken = region(2, 1.0, Some(1.0), "audio/wav");
    let placed = broken.clone();
    rig.order(move |engine| engine.create_region(placed, None, 1)).unwrap();
    rig.order(|engine| engine.set_loop(range(0, 2), 2)).unwrap();
    rig.transport(Action::Play, GardenAt::Now);
    let key = crate::sound::key_of(&broken, rig.renderer.engine().tempo()).unwrap();
    let mut n_failed = 0;
    for _ in 0..10 {
        rig.play(2 * BEAT as usize);
        // The reader fails each time it is asked.
        let n_requests = rig.told.lock().unwrap().requests.len();
        for _ in n_failed..n_requests {
            rig.orders.deliver(Delivery::Failed(key.clone(), "damaged".to_owned()));
        }
        n_failed = n_requests;
    }
    assert_eq!((n_failed, rig.renderer.engine().n_late), (1, 1));
    rig.transport(Action::Seek(Ticks(480)), GardenAt::Now);
    rig.play(4 * BEAT as usize);
    assert_eq!(rig.renderer.engine().n_late, 2, "a command lets it be tried again");
}

#[test]
fn a_loop_is_heard_as_one_part_a_minute() {
    let mut rig = Rig::ready(&[region(1, 0.0, Some(1.0), "audio/wav"), long_late()], whole);
    rig.order(|engine| engine.set_loop(range(0, 4), 1)).unwrap();
    rig.transport(Action::Play, GardenAt::Now);
    // Two minutes and a half: 75 passes.
    rig.play(75 * 4 * BEAT as usize);
    assert_eq!(rig.heard().len(), 2 * 3, "the first pass, and two minutes of the others");
    rig.transport(Action::Stop, GardenAt::Now);
    let heard = rig.heard();
    assert_eq!(heard.len(), 2 * 4, "and the rest");
    assert!(heard.chunks(2).all(|parts| parts == [(0.0, 1.0), (2.0, 3.0)]), "{heard:?}");
}

/// Rule: what was heard keeps its beats, whatever tempo comes later.
#[test]
fn a_tempo_change_behind_the_play_head_moves_nothing_that_was_heard() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    let n_frames = 4 * BEAT as usize / BUFFER * BUFFER;
    rig.play(n_frames);
    let arguments = SetTempoArguments {
        bpm: 60.0,
        position: Some(Ticks(0)),
        time_signature: None,
        at: None,
        revision: 1,
    };
    rig.order(move |engine| engine.set_tempo(&arguments)).unwrap();
    rig.transport(Action::Stop, GardenAt::Now);
    let heard = rig.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].0 == 0.0 && (heard[0].1 - 4.0).abs() < 0.02, "{heard:?}");
}
