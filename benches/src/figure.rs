//! One row of the result, and how rows are shown.

use std::fmt::Write;

/// Where a figure has to lie.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Line {
    AtMost(f64),
    AtLeast(f64),
}

/// What was measured.
#[derive(Debug)]
pub(crate) struct Figure {
    name: &'static str,
    /// The unit of `bare` and `ours`.
    unit: &'static str,
    bare: Option<f64>,
    ours: f64,
    /// What the line is about: the ratio, or `ours` where there is nothing to compare it with.
    measured: f64,
    line: Line,
    /// Microseconds of the server's CPU per call.
    cpu_us: CpuUs,
    /// The measured value of each round.
    rounds: Vec<f64>,
}

/// Of each side, where there is a server to ask.
#[derive(Debug, Clone, Copy, Default)]
struct CpuUs {
    bare: Option<f64>,
    ours: Option<f64>,
}

/// Both sides of one round, in the same unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    pub(crate) bare: f64,
    pub(crate) ours: f64,
}

impl Figure {
    /// The ratio of ours to bare: the median over the rounds.
    pub(crate) fn ratio(
        name: &'static str,
        unit: &'static str,
        rounds: &[Round],
        line: Line,
    ) -> Self {
        let ratios: Vec<f64> = rounds.iter().map(|round| round.ours / round.bare).collect();
        Self {
            name,
            unit,
            bare: Some(median(rounds.iter().map(|round| round.bare))),
            ours: median(rounds.iter().map(|round| round.ours)),
            measured: median(ratios.iter().copied()),
            line,
            cpu_us: CpuUs::default(),
            rounds: ratios,
        }
    }

    /// A value that has a line of its own.
    pub(crate) fn value(name: &'static str, unit: &'static str, ours: f64, line: Line) -> Self {
        Self {
            name,
            unit,
            bare: None,
            ours,
            measured: ours,
            line,
            cpu_us: CpuUs::default(),
            rounds: vec![ours],
        }
    }

    /// The same with the server's CPU per call beside it.
    pub(crate) fn with_cpu(mut self, rounds: &[Round]) -> Self {
        self.cpu_us.bare = Some(median(rounds.iter().map(|round| round.bare)));
        self.with_own_cpu(rounds.iter().map(|round| round.ours))
    }

    /// The same where the bare side is no server.
    pub(crate) fn with_own_cpu(mut self, rounds: impl Iterator<Item = f64>) -> Self {
        self.cpu_us.ours = Some(median(rounds));
        self
    }

    fn is_met(&self) -> bool {
        match self.line {
            Line::AtMost(most) => self.measured <= most,
            Line::AtLeast(least) => self.measured >= least,
        }
    }

    fn line(&self) -> String {
        match self.line {
            Line::AtMost(most) => format!("<= {most}"),
            Line::AtLeast(least) => format!(">= {least}"),
        }
    }
}

/// The rows as a table that is also Markdown.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut text =
        "| benchmark | bare | ours | ratio | line | met | CPU µs per call, bare | ours |\n\
                    |---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for figure in figures {
        let value = |value: f64| format!("{} {}", rounded(value), figure.unit);
        let bare = figure.bare.map_or_else(|| "-".to_owned(), value);
        let ratio = figure.bare.map_or_else(|| "-".to_owned(), |_| rounded(figure.measured));
        let cpu = |cpu: Option<f64>| cpu.map_or_else(|| "-".to_owned(), rounded);
        let written = writeln!(
            text,
            "| {} | {bare} | {} | {ratio} | {} | {} | {} | {} |",
            figure.name,
            value(figure.ours),
            figure.line(),
            if figure.is_met() { "yes" } else { "NO" },
            cpu(figure.cpu_us.bare),
            cpu(figure.cpu_us.ours),
        );
        written.expect("a string takes everything");
    }
    text
}

/// The rows for programs.
pub(crate) fn json(figures: &[Figure]) -> serde_json::Value {
    let row = |figure: &Figure| {
        serde_json::json!({
            "benchmark": figure.name,
            "unit": figure.unit,
            "bare": figure.bare,
            "ours": figure.ours,
            "measured": figure.measured,
            "line": figure.line(),
            "met": figure.is_met(),
            "cpu_us_bare": figure.cpu_us.bare,
            "cpu_us_ours": figure.cpu_us.ours,
            "rounds": figure.rounds,
        })
    };
    figures.iter().map(row).collect()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Three digits or more: nothing here is more exact than that.
fn rounded(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2}")
    } else if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}
