//! One row of the result, and its output formats.

use std::fmt::Write;

/// The target for a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Line {
    AtMost(f64),
    AtLeast(f64),
}

/// A measurement.
#[derive(Debug)]
pub(crate) struct Figure {
    name: &'static str,
    /// The unit of `bare` and `ours`.
    unit: &'static str,
    bare: Option<f64>,
    ours: f64,
    /// The value that the target applies to: the ratio, or `ours` if there is nothing to compare
    /// with.
    measured: f64,
    line: Line,
    /// Microseconds of the server's CPU per call.
    cpu_us: CpuUs,
    /// The measured value of each round.
    rounds: Vec<f64>,
}

/// For each side that has a server.
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
    /// Returns the ratio of ours to bare: the median over the rounds.
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

    /// Returns a value with a target of its own.
    pub(crate) fn value(name: &'static str, unit: &'static str, ours: f64, line: Line) -> Self {
        Self::values(name, unit, &[ours], line)
    }

    /// Returns the median of the rounds' values.
    pub(crate) fn values(
        name: &'static str,
        unit: &'static str,
        rounds: &[f64],
        line: Line,
    ) -> Self {
        let ours = median(rounds.iter().copied());
        Self {
            name,
            unit,
            bare: None,
            ours,
            measured: ours,
            line,
            cpu_us: CpuUs::default(),
            rounds: rounds.to_vec(),
        }
    }

    /// Adds the server's CPU per call.
    pub(crate) fn with_cpu(mut self, rounds: &[Round]) -> Self {
        self.cpu_us.bare = Some(median(rounds.iter().map(|round| round.bare)));
        self.cpu_us.ours = Some(median(rounds.iter().map(|round| round.ours)));
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

/// Returns the rows as a Markdown table.
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
        written.expect("writing to a string cannot fail");
    }
    text
}

/// Returns the rows for programs.
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

/// Shows at least three digits: nothing here is more exact than that.
fn rounded(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2}")
    } else if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}
