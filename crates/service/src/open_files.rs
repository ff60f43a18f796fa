//! Open files: the limit of this process, and the share for connections. The rest is for the daemon
//! itself: its records, content and agents continue however many strangers connect.

use std::fs::File;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for thousands of agents. Some programs that the daemon starts scan every descriptor up to
/// the limit, so more would cost them time.
const RAISED_MAX: u64 = 1 << 17;

/// The limit of open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    limit: usize,
}

impl OpenFiles {
    /// Raises the limit of this process as much as allowed.
    #[must_use]
    pub fn raise() -> Self {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let wanted = maximum.unwrap_or(RAISED_MAX).min(RAISED_MAX);
        if current.is_some_and(|current| current < wanted) {
            let raised = Rlimit { current: Some(wanted), maximum };
            if let Err(error) = setrlimit(Resource::Nofile, raised) {
                tracing::warn!(%error, wanted, "cannot raise the limit of open files");
            }
        }
        Self::current()
    }

    /// The current limit.
    #[must_use]
    pub fn current() -> Self {
        let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::of(usize::try_from(current).unwrap_or(usize::MAX))
    }

    /// A limit other than that of this process.
    #[must_use]
    pub const fn of(limit: usize) -> Self {
        Self { limit }
    }

    /// The limit itself.
    #[must_use]
    pub const fn limit(self) -> usize {
        self.limit
    }

    /// The number of HTTP connections: what is wanted, but at most a quarter.
    #[must_use]
    pub fn http(self, wanted: usize) -> usize {
        wanted.min(self.limit / 4).max(1)
    }

    /// The number of HOOT01 peers: the rest of one half.
    #[must_use]
    pub fn hoot(self, http: usize) -> usize {
        (self.limit / 2).saturating_sub(http).max(8)
    }
}

/// A spare descriptor, given up when none is left, so that the next connection can be accepted and
/// answered.
#[derive(Debug, Default)]
pub(crate) struct Spare(Option<File>);

impl Spare {
    pub(crate) fn new() -> Self {
        let mut spare = Self(None);
        spare.take();
        spare
    }

    /// Gives it up; `false` if it is already gone.
    pub(crate) fn give_up(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// Takes one again, if one is free.
    pub(crate) fn take(&mut self) {
        self.0 = File::open("/dev/null").ok();
    }
}

#[cfg(test)]
mod tests {
    use super::OpenFiles;

    #[test]
    fn half_of_all_open_files_stay_for_the_daemon() {
        for limit in [128, 256, 1024, 4096, 65_536, 1 << 20] {
            let files = OpenFiles::of(limit);
            let http = files.http(1024);
            assert!(http <= 1024 && http + files.hoot(http) <= limit / 2, "{limit}");
            assert!(files.hoot(http) >= limit / 4, "{limit}");
        }
        assert_eq!(OpenFiles::of(4096).http(1024), 1024);
        assert_eq!(OpenFiles::of(1 << 20).http(50_000), 50_000);
        assert_eq!(OpenFiles::of(0).http(1024), 1);
    }

    #[test]
    fn the_limit_is_raised_and_stays_raised() {
        let raised = OpenFiles::raise();
        assert_eq!((raised, OpenFiles::raise()), (OpenFiles::current(), raised));
    }
}
