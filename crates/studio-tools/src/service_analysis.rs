//! `beatthis_analyze` and `clap_analyze` by their music services.

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use ringback_music_services::Service;
use ringback_music_services::predict::{
    Base64, Beats, BeatthisPredict, ClapPredict, Label, Labels,
};
use ringback_proto::Result;
use ringback_proto::request::{BeatsAnalyzedResponse, ClapAnalyzedResponse, LabelScore};
use ringback_studio::analysis::Sound;
use ringback_studio::render::{WavFormat, WavSink};

use crate::context::compute;
use crate::service::{backend, predict};
use crate::{Context, failure};

/// The longest piece that the beat service analyses in one request.
const PIECE_SECONDS: f64 = 30.0;
/// The overlap of two pieces, so that the beats at a cut are in the middle of one.
const OVERLAP_SECONDS: f64 = 6.0;
/// The length of the sample for the description service: its model listens to a few seconds.
const DESCRIBED_SECONDS: f64 = 120.0;

/// Finds the beats of a sound, piece by piece.
pub(crate) async fn beats(
    ctx: &Context,
    sound: Sound,
    include_frames: bool,
) -> Result<BeatsAnalyzedResponse> {
    let seconds = sound.seconds();
    let sound = Arc::new(sound);
    let mut joined = JoinedBeats::default();
    let mut start = 0.0;
    loop {
        let end = (start + PIECE_SECONDS).min(seconds);
        let piece = wav(ctx, &sound, start, end).await?;
        let found = predict(ctx, BeatthisPredict { audio: Base64(piece) }).await?;
        joined.add(&found, (start, end), seconds);
        if end >= seconds {
            break;
        }
        start = end - OVERLAP_SECONDS;
    }
    Ok(joined.response(seconds, include_frames))
}

/// Describes two sounds with what the service returns.
pub(crate) async fn describe(
    ctx: &Context,
    sound: Sound,
    other: Option<Sound>,
    tasks: Vec<String>,
    text_candidates: Vec<String>,
) -> Result<ClapAnalyzedResponse> {
    let audio = wav(ctx, &Arc::new(sound), 0.0, DESCRIBED_SECONDS).await?;
    let audio_b = match other {
        Some(other) => Some(Base64(wav(ctx, &Arc::new(other), 0.0, DESCRIBED_SECONDS).await?)),
        None => None,
    };
    let wanted = tasks.clone();
    let request = ClapPredict { audio: Base64(audio), tasks, audio_b, text_candidates };
    let told = predict(ctx, request).await?;
    let missing = |task: &str| match task {
        "embeddings" => told.embeddings.is_none(),
        "genre" => told.genre.is_none(),
        "mood" => told.mood.is_none(),
        "zero_shot" => told.zero_shot.is_none(),
        "similarity" => told.similarity.is_none(),
        _ => true,
    };
    Ok(ClapAnalyzedResponse {
        unavailable: wanted.into_iter().filter(|task| missing(task)).collect(),
        backend: backend(Service::Clap),
        embeddings: told.embeddings,
        features: None,
        genre: told.genre.map(scores),
        mood: told.mood.map(scores),
        zero_shot: told.zero_shot.map(scores),
        similarity: told.similarity.map(|likeness| likeness.score()),
        artifact_id: None,
    })
}

fn scores(labels: Labels) -> Vec<LabelScore> {
    let score = |Label { label, score }| LabelScore { label, score };
    labels.ranked().into_iter().map(score).collect()
}

/// Encodes a part of a sound as a WAV file of one channel.
async fn wav(ctx: &Context, sound: &Arc<Sound>, start: f64, end: f64) -> Result<Bytes> {
    let sound = Arc::clone(sound);
    compute(ctx, move |_, _| {
        let (samples, rate) = sound.mono();
        let at = |seconds: f64| ((seconds * f64::from(rate)) as usize).min(samples.len());
        let mut file = Cursor::new(Vec::new());
        let mut sink = WavSink::new(&mut file, WavFormat::Int16, 1, rate).map_err(failure::sink)?;
        sink.write(&samples[at(start)..at(end)]).map_err(failure::sink)?;
        sink.finish().map_err(failure::sink)?;
        Ok(file.into_inner().into())
    })
    .await
}

/// The beats of all pieces.
#[derive(Debug, Default)]
struct JoinedBeats {
    beats: Vec<f64>,
    downbeats: Vec<f64>,
    frames: Option<Vec<f32>>,
    frames_per_second: f64,
}

impl JoinedBeats {
    /// Takes the beats of a piece that are nearer to its middle than to that of its neighbours.
    fn add(&mut self, found: &Beats, (start, end): (f64, f64), seconds: f64) {
        let margin = OVERLAP_SECONDS / 2.0;
        let from = if start > 0.0 { start + margin } else { start };
        let to = if end < seconds { end - margin } else { f64::INFINITY };
        let within = |at: &f64| (from..to).contains(at);
        self.beats.extend(found.beats.iter().map(|at| at + start).filter(within));
        self.downbeats.extend(found.downbeats.iter().map(|at| at + start).filter(within));
        if let Some(frames) = &found.frames {
            let rate = frames.beat_probs.len() as f64 / (end - start).max(1e-3);
            let index = |at: f64| ((at - start) * rate).round().max(0.0) as usize;
            let until = if to.is_finite() { index(to) } else { usize::MAX };
            let part = frames.beat_probs.iter().take(until).skip(index(from));
            self.frames.get_or_insert_default().extend(part);
            self.frames_per_second = rate;
        }
    }

    fn response(self, seconds: f64, include_frames: bool) -> BeatsAnalyzedResponse {
        let mut gaps: Vec<f64> = self.beats.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(0.0);
        let confidence = self.confidence(usual);
        let mut lengths: Vec<usize> = self
            .downbeats
            .windows(2)
            .map(|bar| self.beats.iter().filter(|at| (bar[0]..bar[1]).contains(at)).count())
            .collect();
        lengths.sort_unstable();
        let beats_per_bar = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        let frames = self.frames.filter(|_| include_frames);
        BeatsAnalyzedResponse {
            estimated_bpm: if usual > 0.0 { 60.0 / usual } else { 0.0 },
            confidence,
            beats_per_bar: u32::try_from(beats_per_bar).unwrap_or(0),
            duration_seconds: seconds,
            backend: backend(Service::Beatthis),
            frames_per_second: frames.as_ref().map(|_| self.frames_per_second),
            frames,
            beats: self.beats,
            downbeats: self.downbeats,
            artifact_id: None,
        }
    }

    /// Returns the confidence that the service reported; if it reported none, how even the beats
    /// are.
    fn confidence(&self, usual: f64) -> f32 {
        if self.beats.len() < 2 {
            return 0.0;
        }
        if let Some(frames) = &self.frames {
            let likely = |at: &f64| {
                let index = (at * self.frames_per_second).round() as usize;
                let near = index.saturating_sub(1)..(index + 2).min(frames.len());
                frames.get(near).into_iter().flatten().copied().fold(0.0, f32::max)
            };
            let sum: f32 = self.beats.iter().map(likely).sum();
            return (sum / self.beats.len() as f32).clamp(0.0, 1.0);
        }
        let is_even = |pair: &&[f64]| ((pair[1] - pair[0]) / usual - 1.0).abs() < 0.1;
        let n_even = self.beats.windows(2).filter(is_even).count();
        n_even as f32 / (self.beats.len() - 1) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A click every half second, as a service would find it in a piece.
    fn found((start, end): (f64, f64)) -> Beats {
        let beats = (0..1000).map(|n| f64::from(n) * 0.5);
        let inside: Vec<f64> =
            beats.filter(|at| (start..end).contains(at)).map(|at| at - start).collect();
        let downbeats = inside.iter().copied().filter(|at| (at + start) % 2.0 == 0.0).collect();
        Beats { beats: inside, downbeats, bpm: 120.0, frames: None }
    }

    /// Rule: every beat of a long sound is reported once, whichever piece it was heard in.
    #[test]
    fn pieces_are_joined_without_gaps_and_doubles() {
        let mut joined = JoinedBeats::default();
        for piece in [(0.0, 30.0), (24.0, 54.0), (48.0, 70.0)] {
            joined.add(&found(piece), piece, 70.0);
        }
        let told = joined.response(70.0, true);
        assert_eq!(told.beats.len(), 140);
        assert!(told.beats.windows(2).all(|pair| (pair[1] - pair[0] - 0.5).abs() < 1e-9));
        assert_eq!((told.estimated_bpm, told.beats_per_bar), (120.0, 4));
        assert_eq!((told.confidence, told.frames), (1.0, None));
    }
}
