//! Captures the logs of this process for searching.

use std::io;
use std::sync::{Arc, Mutex};

use ringback_sync::lock;
use tracing::Subscriber;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Everything logged since the capture began, at every level, by every crate.
#[derive(Debug, Clone, Default)]
pub struct Logs(Arc<Mutex<Vec<u8>>>);

impl Logs {
    /// Starts capturing. Once per process.
    ///
    /// # Panics
    /// If a subscriber is already set.
    #[must_use]
    pub fn capture() -> Self {
        let logs = Self::default();
        tracing::subscriber::set_global_default(logs.subscriber())
            .expect("one capture per process");
        logs
    }

    /// Captures what this thread logs, until the guard is dropped.
    #[must_use]
    pub fn capture_here() -> (Self, DefaultGuard) {
        let logs = Self::default();
        let guard = tracing::subscriber::set_default(logs.subscriber());
        (logs, guard)
    }

    fn subscriber(&self) -> impl Subscriber + Send + Sync + 'static {
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(self.clone())
            .finish()
    }

    /// Returns all of it.
    #[must_use]
    pub fn text(&self) -> String {
        let bytes = lock(&self.0);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl io::Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logs {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
