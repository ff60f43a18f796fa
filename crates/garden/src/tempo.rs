//! The tempo map: ticks, frames, seconds, beats and bars of one timeline.

use ringback_proto::garden::{TempoChange, Ticks};

/// The tempos that are played: beyond them a tick would be shorter than a frame, or a bar longer
/// than the 4 s that are kept in memory many times over.
pub const BPM_MIN: f64 = 5.0;
/// The fastest tempo.
pub const BPM_MAX: f64 = 960.0;

const SECONDS_PER_MINUTE: f64 = 60.0;

/// A whole note is four quarter notes.
const QUARTERS_PER_WHOLE: u64 = 4;

/// Converts between ticks and frames through all changes of tempo. Every conversion starts at a
/// change, never at the previous result, so that nothing adds up over hours.
#[derive(Debug, Clone, PartialEq)]
pub struct TempoMap {
    rate: u32,
    /// In order, the first at tick 0.
    spans: Vec<Span>,
}

/// A tempo and a time signature, from a tick on.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    change: TempoChange,
    /// The frame of its first tick.
    frame: f64,
    frames_per_tick: f64,
    /// Bars before it.
    bars: u64,
}

/// A place in the bars of a piece.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BarPosition {
    /// The bar, from 1.
    pub bar: u64,
    /// The beat of the bar, from 1, in units of the time signature.
    pub beat: f64,
}

impl TempoMap {
    /// Makes the map of a timeline for a sample rate. Of two changes at the same tick the later one
    /// counts.
    #[must_use]
    pub fn new(changes: &[TempoChange], rate: u32) -> Self {
        let mut changes = changes.to_vec();
        changes.sort_by_key(|change| change.at);
        if changes.first().is_none_or(|first| first.at > Ticks(0)) {
            changes.insert(0, TempoChange::DEFAULT);
        }
        let mut map = Self { rate, spans: Vec::with_capacity(changes.len()) };
        for change in changes {
            map.push(&change);
        }
        map
    }

    fn push(&mut self, change: &TempoChange) {
        let change = TempoChange {
            bpm: if change.bpm.is_finite() { change.bpm.clamp(BPM_MIN, BPM_MAX) } else { BPM_MAX },
            beats_per_bar: change.beats_per_bar.max(1),
            beat_unit: change.beat_unit.clamp(1, 64),
            ..change.clone()
        };
        if self.spans.last().is_some_and(|last| last.change.at == change.at) {
            self.spans.pop();
        }
        let (frame, bars) = self.spans.last().map_or((0.0, 0), |last| {
            let ticks = change.at.0 - last.change.at.0;
            let bars = ticks.div_ceil(last.ticks_per_bar());
            (last.frame + ticks as f64 * last.frames_per_tick, last.bars + bars)
        });
        let ticks_per_second = change.bpm * Ticks::PER_BEAT as f64 / SECONDS_PER_MINUTE;
        let frames_per_tick = f64::from(self.rate) / ticks_per_second;
        self.spans.push(Span { change, frame, frames_per_tick, bars });
    }

    /// Returns the map with one more change; it replaces one at the same tick.
    #[must_use]
    pub fn with(&self, change: TempoChange) -> Self {
        let mut changes = self.changes();
        changes.push(change);
        Self::new(&changes, self.rate)
    }

    /// Returns all changes.
    #[must_use]
    pub fn changes(&self) -> Vec<TempoChange> {
        self.spans.iter().map(|span| span.change.clone()).collect()
    }

    /// Returns the changes after a tick and before another.
    pub fn changes_between(&self, after: u64, before: u64) -> impl Iterator<Item = &TempoChange> {
        let first = self.spans.partition_point(|span| span.change.at.0 <= after);
        let changes = self.spans[first..].iter().map(|span| &span.change);
        changes.take_while(move |change| change.at.0 < before)
    }

    /// Returns the frame nearest to a tick.
    #[must_use]
    pub fn frame(&self, tick: Ticks) -> u64 {
        self.frame_exactly(tick.0 as f64).round() as u64
    }

    /// Returns the place of a tick in frames, which need not be whole.
    #[must_use]
    pub fn frame_exactly(&self, tick: f64) -> f64 {
        let span = self.span_at(tick);
        span.frame + (tick - span.change.at.0 as f64) * span.frames_per_tick
    }

    /// Returns the place of a frame in ticks. The frame nearest to a whole tick stands for it, so
    /// that a position survives any number of conversions.
    #[must_use]
    pub fn tick(&self, frame: u64) -> f64 {
        let place = frame as f64;
        let after = self.spans.partition_point(|span| span.frame <= place);
        let span = &self.spans[after.saturating_sub(1)];
        let tick = span.change.at.0 as f64 + (place - span.frame) / span.frames_per_tick;
        let whole = Ticks(tick.round() as u64);
        if self.frame(whole) == frame { whole.0 as f64 } else { tick }
    }

    /// Returns the nearest whole tick of a frame.
    #[must_use]
    pub fn whole_tick(&self, frame: u64) -> Ticks {
        Ticks(self.tick(frame).round() as u64)
    }

    /// Returns the seconds of a tick from the start of the timeline.
    #[must_use]
    pub fn seconds(&self, tick: f64) -> f64 {
        self.frame_exactly(tick) / f64::from(self.rate)
    }

    /// Returns the sample rate.
    #[must_use]
    pub const fn rate(&self) -> u32 {
        self.rate
    }

    /// Returns the tempo and the time signature that hold at a tick.
    #[must_use]
    pub fn at(&self, tick: f64) -> TempoChange {
        self.span_at(tick).change.clone()
    }

    /// Returns the bar and the beat of a tick. A change of the time signature starts a bar.
    #[must_use]
    pub fn bar(&self, tick: f64) -> BarPosition {
        let span = self.span_at(tick);
        let ticks = tick - span.change.at.0 as f64;
        let per_bar = span.ticks_per_bar() as f64;
        let bars = (ticks / per_bar).floor();
        let beat = (ticks - bars * per_bar) / span.ticks_per_beat() as f64;
        BarPosition { bar: span.bars + bars as u64 + 1, beat: beat + 1.0 }
    }

    /// Returns the first beat of the time signature after a tick.
    #[must_use]
    pub fn next_beat(&self, tick: f64) -> Ticks {
        self.next_line(tick, Span::ticks_per_beat)
    }

    /// Returns the first bar line after a tick.
    #[must_use]
    pub fn next_bar(&self, tick: f64) -> Ticks {
        self.next_line(tick, Span::ticks_per_bar)
    }

    /// Returns the bar before the one that a tick lies in, from its first tick to the bar line;
    /// `None` in the first bar.
    #[must_use]
    pub fn bar_before(&self, tick: Ticks) -> Option<(Ticks, Ticks)> {
        let line = self.bar_line(tick);
        let before = Ticks(line.0.checked_sub(1)?);
        Some((self.bar_line(before), line))
    }

    /// Returns the bar line at or before a tick.
    fn bar_line(&self, tick: Ticks) -> Ticks {
        let span = self.span_at(tick.0 as f64);
        let into_bar = (tick.0 - span.change.at.0) % span.ticks_per_bar();
        Ticks(tick.0 - into_bar)
    }

    /// Returns the tick from which two maps differ, if they do.
    #[must_use]
    pub fn differs_from(&self, other: &Self) -> Option<Ticks> {
        let same = self.spans.iter().zip(&other.spans).take_while(|(a, b)| a.change == b.change);
        let same = same.count();
        let next = |spans: &[Span]| spans.get(same).map(|span| span.change.at);
        match (next(&self.spans), next(&other.spans)) {
            (Some(here), Some(there)) => Some(here.min(there)),
            (here, there) => here.or(there),
        }
    }

    fn next_line(&self, tick: f64, ticks_per_line: fn(&Span) -> u64) -> Ticks {
        let idx = self.index_at(tick);
        let span = &self.spans[idx];
        let distance = ticks_per_line(span);
        let lines = ((tick - span.change.at.0 as f64) / distance as f64).floor() as u64 + 1;
        let next = span.change.at.0 + lines * distance;
        let limit = self.spans.get(idx + 1).map_or(u64::MAX, |following| following.change.at.0);
        Ticks(next.min(limit))
    }

    fn index_at(&self, tick: f64) -> usize {
        let after = self.spans.partition_point(|span| span.change.at.0 as f64 <= tick);
        after.saturating_sub(1)
    }

    fn span_at(&self, tick: f64) -> &Span {
        &self.spans[self.index_at(tick)]
    }
}

impl Span {
    fn ticks_per_beat(&self) -> u64 {
        (QUARTERS_PER_WHOLE * Ticks::PER_BEAT / u64::from(self.change.beat_unit)).max(1)
    }

    fn ticks_per_bar(&self) -> u64 {
        self.ticks_per_beat() * u64::from(self.change.beats_per_bar)
    }
}

#[cfg(test)]
mod tests;
