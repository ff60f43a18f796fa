//! The line that shows what the agent is doing: redrawn in place, on a terminal only.

use std::io::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use console::Term;
use ringback_proto::record::SessionState;
use ringback_proto::request::{SessionEventInfo, SessionResponse};

use crate::screen::{cut, span};

/// Back to the start of the row, and clears it.
const CLEAR: &str = "\r\u{1b}[2K";

/// The status line.
#[derive(Debug)]
pub(super) struct StatusLine {
    is_watched: bool,
    is_drawn: bool,
    is_held: bool,
    /// When the agent started to work, while it does.
    working_since_ms: Option<u64>,
    used: Option<String>,
}

impl StatusLine {
    pub(super) const fn new(is_watched: bool) -> Self {
        Self { is_watched, is_drawn: false, is_held: false, working_since_ms: None, used: None }
    }

    /// Notes what an event says about the work.
    pub(super) fn note(&mut self, event: &SessionEventInfo) {
        match event.status {
            Some(SessionState::Starting | SessionState::Running) => {
                self.working_since_ms.get_or_insert(event.at_ms);
            }
            Some(
                SessionState::Idle
                | SessionState::Ended
                | SessionState::Failed
                | SessionState::Interrupted,
            ) => {
                self.working_since_ms = None;
                self.clear();
            }
            None => {}
        }
    }

    pub(super) fn used(&mut self, session: &SessionResponse) {
        self.used = session.model_usage.as_ref().map(ToString::to_string);
        self.draw();
    }

    /// Leaves the row to a question.
    pub(super) fn hold(&mut self) {
        self.is_held = true;
        self.clear();
    }

    pub(super) fn go_on(&mut self) {
        self.is_held = false;
        self.draw();
    }

    pub(super) fn draw(&mut self) {
        let (true, false, Some(since)) = (self.is_watched, self.is_held, self.working_since_ms)
        else {
            return;
        };
        let (_, columns) = Term::stderr().size();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let took = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_sub(since);
        let line = shown(took, self.used.as_deref());
        // A full row would make the terminal begin another.
        let line = cut(&line, usize::from(columns).saturating_sub(1));
        write(&format!("{CLEAR}{line}"));
        self.is_drawn = true;
    }

    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            write(CLEAR);
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A closed terminal does not matter.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    drop(stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()));
}

fn shown(took_ms: u64, used: Option<&str>) -> String {
    let used = used.map(|used| format!(" · {used}"));
    let took = span(took_ms / 1000 * 1000);
    format!("· working, {took}{}", used.unwrap_or_default())
}

/// Returns the line of a model request that the provider did not serve; those that it did are only
/// counted.
pub(super) fn refused(text: &str) -> Option<String> {
    let (_, outcome) = text.split_once(": ")?;
    (!outcome.starts_with('2')).then(|| format!("model: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_that_failed_is_a_line() {
        assert_eq!(refused("POST /v1/messages: 200, 4 ms, 1 bytes sent, 2 received"), None);
        let line = refused("POST /v1/messages: 401, 4 ms, 1 bytes sent, 2 received").unwrap();
        assert!(line.starts_with("model: POST /v1/messages: 401"), "{line}");
        assert!(refused("POST /v1/messages: given up, 4 ms").is_some());
    }

    #[test]
    fn the_line_has_time_tokens_and_cost() {
        let line = shown(4_321, Some("3 requests, 127 tokens read, 3 written, 0.000142 USD"));
        assert_eq!(line, "· working, 4.0 s · 3 requests, 127 tokens read, 3 written, 0.000142 USD");
        assert_eq!(shown(0, None), "· working, 0 ms");
    }
}
