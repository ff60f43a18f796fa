//! Liveness of the other side. No clock: it is notified of each interval.

/// What to do at the end of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Send a heartbeat.
    Send,
    /// Nothing was received for too long: the link is dead.
    Dead,
}

/// Counts intervals in which nothing was received.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    heard: bool,
    n_misses: u32,
    misses_max: u32,
}

impl Heartbeat {
    pub(crate) const fn new(misses_max: u32) -> Self {
        Self { heard: true, n_misses: 0, misses_max }
    }

    /// Records a message; any message is a sign of life.
    pub(crate) const fn heard(&mut self) {
        self.heard = true;
    }

    /// Ends an interval.
    pub(crate) const fn interval_over(&mut self) -> Beat {
        if self.heard {
            self.heard = false;
            self.n_misses = 0;
            return Beat::Send;
        }
        self.n_misses += 1;
        if self.n_misses < self.misses_max {
            return Beat::Send;
        }
        *self = Self::new(self.misses_max);
        Beat::Dead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_silent_intervals_are_a_dead_link_and_any_sign_starts_over() {
        let mut heartbeat = Heartbeat::new(3);
        let mut over = |heard: bool| {
            if heard {
                heartbeat.heard();
            }
            heartbeat.interval_over()
        };
        for beat in [over(false), over(false), over(false), over(true), over(false), over(false)] {
            assert_eq!(beat, Beat::Send);
        }
        assert_eq!(over(false), Beat::Dead);
        assert_eq!(over(false), Beat::Send);
    }
}
