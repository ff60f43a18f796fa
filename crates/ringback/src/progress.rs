//! Progress bars on standard error, only on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

use crate::screen::{Screen, one_line};

const TRANSFER: &str = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}";
const UNSIZED: &str = "{spinner} {msg} {bytes} {bytes_per_sec}";
const JOB: &str = "{spinner} {prefix} {wide_bar} {pos:>3}% {msg}";
const TICK: Duration = Duration::from_millis(100);

/// Creates a bar for a transfer; `total` if it is known.
pub(crate) fn transfer(screen: Screen, what: &str, total: Option<u64>) -> ProgressBar {
    let bar = match total {
        Some(total) => ProgressBar::new(total).with_style(style(TRANSFER)),
        None => ProgressBar::no_length().with_style(style(UNSIZED)),
    };
    shown(screen, bar).with_message(one_line(what))
}

/// Creates a bar for a job, 0 to 100.
pub(crate) fn job(screen: Screen, tool: &str) -> ProgressBar {
    let bar = ProgressBar::new(100).with_style(style(JOB));
    shown(screen, bar).with_prefix(one_line(tool))
}

/// Moves a job's bar.
pub(crate) fn job_at(bar: &ProgressBar, percent: f32, message: &str) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=100"
    )]
    bar.set_position(percent.clamp(0.0, 100.0) as u64);
    bar.set_message(one_line(message));
}

fn shown(screen: Screen, bar: ProgressBar) -> ProgressBar {
    if !screen.is_watched() {
        return ProgressBar::hidden();
    }
    bar.enable_steady_tick(TICK);
    // A bar that is dropped, as by Ctrl-C, leaves nothing on the screen.
    bar.with_finish(ProgressFinish::AndClear)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use indicatif::ProgressStyle;

    use super::{JOB, TRANSFER, UNSIZED};

    #[test]
    fn every_template_is_one() {
        for template in [JOB, TRANSFER, UNSIZED] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
