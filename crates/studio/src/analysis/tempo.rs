//! The tempo at every half second: how well the attacks repeat at each period, and the path through
//! all periods that fits best and changes least.

use realfft::RealFftPlanner;

use super::novelty::FPS;

/// The range of tempos, in beats per minute.
const SLOWEST_BPM: f64 = 50.0;
const FASTEST_BPM: f64 = 220.0;

/// The number of tempos: steps of about 1.5 %.
const N_TEMPOS: usize = 100;

/// The stretch for estimating a tempo, in seconds: shorter than four bars of a slow piece, so that
/// a change of tempo does not drown in what came before.
const WINDOW_SECONDS: f64 = 8.0;

/// How often the tempo is estimated, in seconds.
const STEP_SECONDS: f64 = 0.5;

/// The tempo that people prefer among several, and how far they deviate from it, in octaves.
const PREFERRED_BPM: f64 = 118.0;
const PREFERENCE_OCTAVES: f64 = 0.75;

/// The cost of a step to the next tempo, and the most that any leap costs.
const RUNG_COST: f64 = 0.06;
const LEAP_COST: f64 = 4.0;

/// The tempo over time.
#[derive(Debug, Clone)]
pub(crate) struct TempoPath {
    /// Moments per beat, at each step.
    periods: Vec<f64>,
}

impl TempoPath {
    pub(crate) fn of(novelty: &[f32]) -> Self {
        let fits = fits(novelty);
        let path = cheapest_path(&fits);
        Self { periods: path.into_iter().map(|rung| FPS * 60.0 / bpm(rung)).collect() }
    }

    /// Returns the moments per beat around a moment.
    pub(crate) fn period(&self, moment: usize) -> f64 {
        let step = (moment as f64 / (STEP_SECONDS * FPS)).round() as usize;
        let last = self.periods.len().saturating_sub(1);
        self.periods.get(step.min(last)).copied().unwrap_or(FPS / 2.0)
    }
}

fn bpm(rung: usize) -> f64 {
    SLOWEST_BPM * (FASTEST_BPM / SLOWEST_BPM).powf(rung as f64 / (N_TEMPOS - 1) as f64)
}

/// Returns how well each tempo fits at each step.
fn fits(novelty: &[f32]) -> Vec<Vec<f64>> {
    let window = (WINDOW_SECONDS * FPS) as usize;
    let step = STEP_SECONDS * FPS;
    let n_steps = (novelty.len() as f64 / step).ceil() as usize;
    let mut correlator = Correlator::new(window);
    (0..n_steps)
        .map(|idx| {
            let centre = (idx as f64 * step) as usize;
            let correlation = correlator.run(novelty, centre);
            (0..N_TEMPOS).map(|rung| fit(&correlation, bpm(rung))).collect()
        })
        .collect()
}

/// Returns how well the attacks repeat after one to four beats, and less well in between, times the
/// prior of the tempo.
fn fit(correlation: &[f64], bpm: f64) -> f64 {
    let period = FPS * 60.0 / bpm;
    let at = |lag: f64| {
        let (below, part) = (lag.floor() as usize, lag.fract());
        let get = |idx: usize| correlation.get(idx).copied().unwrap_or(0.0);
        get(below) * (1.0 - part) + get(below + 1) * part
    };
    let comb = (1..=4).map(|beats| at(period * f64::from(beats))).sum::<f64>() / 4.0;
    let octaves = (bpm / PREFERRED_BPM).log2() / PREFERENCE_OCTAVES;
    comb.max(0.0) * (-0.5 * octaves * octaves).exp()
}

/// Returns the path through the tempos with the best sum of fits, less the cost of its steps.
fn cheapest_path(fits: &[Vec<f64>]) -> Vec<usize> {
    let mut scores = vec![0.0; N_TEMPOS];
    let mut came_from = Vec::with_capacity(fits.len());
    for fits in fits {
        let (leap_from, leap_score) = best(&scores);
        let mut next = Vec::with_capacity(N_TEMPOS);
        let mut from = Vec::with_capacity(N_TEMPOS);
        let largest = fits.iter().copied().fold(1e-9, f64::max);
        for (rung, fit) in fits.iter().enumerate() {
            let mut reached = (leap_from, leap_score - LEAP_COST);
            let near = rung.saturating_sub(8)..(rung + 9).min(N_TEMPOS);
            for other in near {
                let score = scores[other] - RUNG_COST * rung.abs_diff(other) as f64;
                if score > reached.1 {
                    reached = (other, score);
                }
            }
            next.push(reached.1 + fit / largest);
            from.push(reached.0);
        }
        scores = next;
        came_from.push(from);
    }
    let mut rung = best(&scores).0;
    let mut path = Vec::with_capacity(fits.len());
    for from in came_from.iter().rev() {
        path.push(rung);
        rung = from[rung];
    }
    path.reverse();
    path
}

fn best(scores: &[f64]) -> (usize, f64) {
    let better = |best: (usize, f64), (idx, score): (usize, &f64)| {
        if *score > best.1 { (idx, *score) } else { best }
    };
    scores.iter().enumerate().fold((0, f64::NEG_INFINITY), better)
}

/// The autocorrelation of the attacks around a place.
struct Correlator {
    window: Vec<f32>,
    planner: RealFftPlanner<f32>,
}

impl Correlator {
    fn new(window: usize) -> Self {
        let turn = std::f32::consts::TAU / window as f32;
        let window = (0..window).map(|idx| 0.5 - 0.5 * (idx as f32 * turn).cos()).collect();
        Self { window, planner: RealFftPlanner::new() }
    }

    /// Returns it by lag, 1 at lag 0, corrected for the shape of the window.
    fn run(&mut self, novelty: &[f32], centre: usize) -> Vec<f64> {
        let size = (self.window.len() * 2).next_power_of_two();
        let (forward, inverse) =
            (self.planner.plan_fft_forward(size), self.planner.plan_fft_inverse(size));
        let mut piece = forward.make_input_vec();
        let start = centre as isize - self.window.len() as isize / 2;
        for (idx, (out, weight)) in piece.iter_mut().zip(&self.window).enumerate() {
            let at = usize::try_from(start + idx as isize).ok();
            *out = at.and_then(|at| novelty.get(at)).map_or(0.0, |value| value * weight);
        }
        let mut spectrum = forward.make_output_vec();
        forward.process(&mut piece, &mut spectrum).expect("the buffers are made by the plan");
        for bin in &mut spectrum {
            *bin = (bin.norm_sqr()).into();
        }
        inverse.process(&mut spectrum, &mut piece).expect("the buffers are made by the plan");
        let whole = f64::from(piece[0]).max(1e-9);
        let half = self.window.len() / 2;
        piece[..=half]
            .iter()
            .enumerate()
            .map(|(lag, value)| {
                let overlap = 1.0 - lag as f64 / self.window.len() as f64;
                f64::from(*value) / whole / overlap
            })
            .collect()
    }
}
