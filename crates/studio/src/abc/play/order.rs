//! The order of a voice's stretches: repeats, endings, parts.

use super::super::model::BarStyle;
use super::PlayError;
use super::parts;
use super::score::{Score, Step, StepKind, Voice};

/// The most steps visited while repeats are expanded: a tune of the largest size with all of it
/// repeated, many times over.
const STEPS_MAX: usize = 20_000_000;

/// Steps that are played consecutively.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: usize,
    /// Exclusive.
    pub(super) to: usize,
    /// The number of this pass through the section, from 1.
    pub(super) pass: u32,
}

/// Returns the stretches of a voice in playing order.
pub(super) fn stretches(score: &Score, voice: &Voice) -> Result<Vec<Stretch>, PlayError> {
    let steps = &voice.steps;
    let mut walk = Walk { steps, out: Vec::new(), n_seen: 0 };
    let marks: Vec<(usize, char)> = steps
        .iter()
        .enumerate()
        .filter_map(|(step_idx, step)| match &step.kind {
            StepKind::Part(label) => Some((step_idx, *label)),
            StepKind::Sound(_)
            | StepKind::Bar { .. }
            | StepKind::Ending(_)
            | StepKind::Symbol(_)
            | StepKind::Control(_) => None,
        })
        .collect();
    let Some(order) = score.parts.as_deref().filter(|_| !marks.is_empty()) else {
        walk.range(0, steps.len())?;
        return Ok(walk.out);
    };
    let order = parts::written_out(order).ok_or(PlayError::TooManyNotes)?;
    walk.range(0, marks[0].0)?;
    for label in order {
        let Some(mark_idx) = marks.iter().position(|(_, known)| *known == label) else { continue };
        let to = marks.get(mark_idx + 1).map_or(steps.len(), |(step_idx, _)| *step_idx);
        walk.range(marks[mark_idx].0, to)?;
    }
    Ok(walk.out)
}

struct Walk<'a> {
    steps: &'a [Step],
    out: Vec<Stretch>,
    n_seen: usize,
}

/// The state of a walk through a range.
struct State {
    /// The next step.
    at: usize,
    /// The start of the current stretch.
    from: usize,
    /// Where a repeat goes back to.
    repeat_from: usize,
    /// How many repeats the start of the section requests.
    start_repeats: u32,
    pass: u32,
    /// Whether the last ending of the section is being played.
    in_last_ending: bool,
}

impl Walk<'_> {
    /// Plays a range with its repeats.
    fn range(&mut self, from: usize, to: usize) -> Result<(), PlayError> {
        let mut state = State {
            at: from,
            from,
            repeat_from: from,
            start_repeats: 0,
            pass: 1,
            in_last_ending: false,
        };
        while state.at < to {
            self.count(1)?;
            match &self.steps[state.at].kind {
                StepKind::Bar { repeats_before, repeats_after, style } => {
                    self.bar(&mut state, to, (*repeats_before, *repeats_after), *style)?;
                }
                StepKind::Ending(numbers) => self.ending(&mut state, to, numbers)?,
                StepKind::Sound(_)
                | StepKind::Part(_)
                | StepKind::Symbol(_)
                | StepKind::Control(_) => state.at += 1,
            }
        }
        self.push(&state, to);
        Ok(())
    }

    fn bar(
        &mut self,
        state: &mut State,
        to: usize,
        (before, after): (u32, u32),
        style: BarStyle,
    ) -> Result<(), PlayError> {
        if before > 0 {
            let last = self.last_ending(state.repeat_from, to)?;
            let total = match last {
                Some(last) => last.max(2),
                None => before.max(state.start_repeats) + 1,
            };
            if state.pass < total {
                self.push(state, state.at);
                state.pass += 1;
                (state.from, state.at) = (state.repeat_from, state.repeat_from);
                return Ok(());
            }
            self.section_ends(state, state.at + 1);
        } else if state.in_last_ending && style != BarStyle::Single && style != BarStyle::Dotted {
            self.section_ends(state, state.at + 1);
        }
        if after > 0 {
            self.section_ends(state, state.at + 1);
            state.start_repeats = after;
        }
        state.at += 1;
        Ok(())
    }

    /// Starts a new section.
    fn section_ends(&mut self, state: &mut State, next: usize) {
        // The stretch is cut where the pass changes, because lyrics depend on it.
        if state.pass > 1 {
            self.push(state, next);
            state.from = next;
        }
        state.pass = 1;
        state.repeat_from = next;
        state.start_repeats = 0;
        state.in_last_ending = false;
    }

    fn ending(&mut self, state: &mut State, to: usize, numbers: &[u32]) -> Result<(), PlayError> {
        // An ending that starts at 1 after the last one belongs to a new section.
        let last = self.last_ending(state.repeat_from, to)?.unwrap_or(1);
        if numbers.contains(&state.pass) {
            state.in_last_ending = state.pass >= last;
            state.at += 1;
            return Ok(());
        }
        let next = self.find(state.at + 1, to, |kind| match kind {
            StepKind::Ending(numbers) => numbers.contains(&state.pass),
            StepKind::Bar { repeats_after, .. } => *repeats_after > 0,
            StepKind::Sound(_) | StepKind::Part(_) | StepKind::Symbol(_) | StepKind::Control(_) => {
                false
            }
        })?;
        let next = next.filter(|next| matches!(self.steps[*next].kind, StepKind::Ending(_)));
        // Without an ending for this pass, it continues after the repeat.
        let target = match next {
            Some(next) => Some(next),
            None => self
                .find(state.at + 1, to, |kind| {
                    matches!(kind, StepKind::Bar { repeats_before: 1.., .. })
                })?
                .filter(|_| state.pass > 1),
        };
        let Some(target) = target else {
            state.at += 1;
            return Ok(());
        };
        self.push(state, state.at);
        (state.from, state.at) = (target, target);
        if next.is_none() {
            self.section_ends(state, target);
            state.at = target + 1;
            state.from = target;
            if let StepKind::Bar { repeats_after, .. } = self.steps[target].kind {
                state.repeat_from = target + 1;
                state.start_repeats = repeats_after;
            }
        }
        Ok(())
    }

    /// Returns the highest ending of the section that starts here; `None` without endings.
    fn last_ending(&mut self, from: usize, to: usize) -> Result<Option<u32>, PlayError> {
        let mut last: Option<u32> = None;
        for step_idx in from..to {
            self.count(1)?;
            match &self.steps[step_idx].kind {
                StepKind::Ending(numbers) => {
                    if last.is_some() && numbers.contains(&1) {
                        break;
                    }
                    last = last.max(numbers.iter().copied().max());
                }
                StepKind::Bar { repeats_before, repeats_after, .. } => {
                    let plain_end = last.is_none() && *repeats_before > 0;
                    if plain_end || *repeats_after > 0 {
                        break;
                    }
                }
                StepKind::Sound(_)
                | StepKind::Part(_)
                | StepKind::Symbol(_)
                | StepKind::Control(_) => {}
            }
        }
        Ok(last)
    }

    fn find(
        &mut self,
        from: usize,
        to: usize,
        wanted: impl Fn(&StepKind) -> bool,
    ) -> Result<Option<usize>, PlayError> {
        let found = (from..to).find(|step_idx| wanted(&self.steps[*step_idx].kind));
        self.count(found.unwrap_or(to).saturating_sub(from))?;
        Ok(found)
    }

    fn count(&mut self, n_steps: usize) -> Result<(), PlayError> {
        self.n_seen += n_steps;
        if self.n_seen > STEPS_MAX { Err(PlayError::TooManyNotes) } else { Ok(()) }
    }

    fn push(&mut self, state: &State, to: usize) {
        let (from, pass) = (state.from, state.pass);
        if from < to {
            self.out.push(Stretch { from, to, pass });
        }
    }
}
