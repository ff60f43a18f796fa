//! The broker's time and random bytes, both replaceable by a simulation.

use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_core::Now;
use ringback_core::time::MonoMs;
use tokio::time::Instant;

use crate::sync::lock;

/// The clock. Its monotonic part is tokio's, which tests may pause.
#[derive(Debug)]
pub struct Clock {
    started: Instant,
    /// A fixed wall-clock start for simulations; the system's clock otherwise.
    unix_base_ms: Option<u64>,
}

impl Clock {
    /// Returns the system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self { started: Instant::now(), unix_base_ms: None }
    }

    /// Returns a wall clock that starts at a fixed time and moves with tokio's clock.
    #[must_use]
    pub fn simulated(unix_base_ms: u64) -> Self {
        Self { started: Instant::now(), unix_base_ms: Some(unix_base_ms) }
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Now {
        let mono = millis(self.started.elapsed());
        let unix = match self.unix_base_ms {
            Some(base) => base.saturating_add(mono),
            None => millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        };
        Now { mono, unix }
    }

    /// Converts a monotonic time to an instant of tokio's clock.
    #[must_use]
    pub fn instant(&self, mono: MonoMs) -> Instant {
        self.started + Duration::from_millis(mono)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A source of random bytes for ids and tokens.
pub struct Entropy(Option<Mutex<StdRng>>);

impl Entropy {
    /// Returns the operating system's source.
    #[must_use]
    pub const fn system() -> Self {
        Self(None)
    }

    /// Returns a source with the same bytes for the same seed. For simulations only: ids become
    /// guessable.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Some(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// Returns random bytes.
    #[must_use]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        match &self.0 {
            None => rand::rng().fill(&mut bytes),
            Some(rng) => lock(rng).fill(&mut bytes),
        }
        bytes
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}
