//! Open files: how many this process may have, and how many of them are for connections. The rest is
//! the daemon's own: its records, content and agents go on however many strangers connect.

use std::fs::File;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for thousands of agents. Some programs that the daemon starts look at every number up to the
/// limit, so more would cost them time.
const RAISED_MAX: u64 = 1 << 17;

/// How many open files there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    limit: usize,
}

impl OpenFiles {
    /// Raises the limit of this process as far as it may.
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

    /// As it is.
    #[must_use]
    pub fn current() -> Self {
        let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::of(usize::try_from(current).unwrap_or(usize::MAX))
    }

    /// Another limit than this process has.
    #[must_use]
    pub const fn of(limit: usize) -> Self {
        Self { limit }
    }

    /// The limit itself.
    #[must_use]
    pub const fn limit(self) -> usize {
        self.limit
    }

    /// What HTTP connections may use, a quarter, of the number that is wanted.
    #[must_use]
    pub fn http(self, wanted: usize) -> usize {
        wanted.min(self.limit / 4).max(1)
    }

    /// What HOOT01 peers may use: what is left of one half.
    #[must_use]
    pub fn hoot(self, http: usize) -> usize {
        (self.limit / 2).saturating_sub(http).max(8)
    }
}

/// A descriptor that is given up when there is none left, so that the next connection can be accepted
/// and told so.
#[derive(Debug, Default)]
pub(crate) struct Spare(Option<File>);

impl Spare {
    pub(crate) fn new() -> Self {
        let mut spare = Self(None);
        spare.take();
        spare
    }

    /// Gives it up; `false` if there is none.
    pub(crate) fn give_up(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// Takes one again, if there is one.
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
