//! The offsets of some of a file's events, so that a read need not scan from the start.

/// The distance between marks: few enough events to skip, many enough that marks stay small.
const STRIDE: u64 = 64;

/// The offsets of every 64th event.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<u64>);

impl Marks {
    /// Adds the next event, which is the `nth` of the file.
    pub(super) fn add(&mut self, nth: u64, offset: u64) {
        if nth.is_multiple_of(STRIDE) {
            self.0.push(offset);
        }
    }

    /// Returns the nearest marked event that is not after the `nth`: its number and its offset.
    pub(super) fn before(&self, nth: u64) -> Option<(u64, u64)> {
        let idx = usize::try_from(nth / STRIDE).ok()?.min(self.0.len().checked_sub(1)?);
        Some((idx as u64 * STRIDE, self.0[idx]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mark_before_an_event_is_found() {
        let mut marks = Marks::default();
        assert_eq!(marks.before(0), None);
        (0..200).for_each(|nth| marks.add(nth, nth * 10));
        for (nth, marked) in [(0, 0), (63, 0), (64, 64), (130, 128), (199, 192), (u64::MAX, 192)] {
            assert_eq!(marks.before(nth), Some((marked, marked * 10)), "{nth}");
        }
    }
}
