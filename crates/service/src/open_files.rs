//! Open files: the limit of this process, and the share for connections. The rest is for the daemon
//! itself: its records, content and agents continue however many strangers connect.

use std::fs::File;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for thousands of agents. Some programs that the daemon starts scan every descriptor up to
/// the limit, so more would cost them time.
const RAISED_MAX: u64 = 1 << 17;

/// What the daemon keeps for itself at most: its records and content, and thousands of agents.
const OWN_MAX: usize = 4096;

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

    /// The number of HTTP connections: what is wanted, but at most three quarters of what is for
    /// connections.
    #[must_use]
    pub fn http(self, wanted: usize) -> usize {
        let connections = self.connections();
        wanted.min(connections - connections / 4).max(1)
    }

    /// The number of HOOT01 peers: the rest.
    #[must_use]
    pub fn hoot(self, http: usize) -> usize {
        self.connections().saturating_sub(http).max(8)
    }

    fn connections(self) -> usize {
        self.limit - (self.limit / 2).min(OWN_MAX)
    }
}

/// A spare descriptor, given up when none is left, so that the next connection can be accepted and
/// answered.
#[derive(Debug, Default)]
pub(crate) struct SpareDescriptor(Option<File>);

impl SpareDescriptor {
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
    use super::{OWN_MAX, OpenFiles};

    #[test]
    fn the_daemon_keeps_open_files_for_itself() {
        for limit in [128, 256, 1024, 4096, 65_536, 1 << 20] {
            let files = OpenFiles::of(limit);
            let http = files.http(usize::MAX);
            let own = (limit / 2).min(OWN_MAX);
            assert_eq!(http + files.hoot(http), limit - own, "{limit}");
            assert!(files.hoot(http) >= limit / 8, "{limit}");
        }
        assert_eq!(OpenFiles::of(4096).http(1024), 1024);
        assert!(OpenFiles::of(20_000).http(11_000) == 11_000, "ten thousand clients");
        assert_eq!(OpenFiles::of(0).http(1024), 1);
    }

    #[test]
    fn the_limit_is_raised_and_stays_raised() {
        let raised = OpenFiles::raise();
        assert_eq!((raised, OpenFiles::raise()), (OpenFiles::current(), raised));
    }
}
