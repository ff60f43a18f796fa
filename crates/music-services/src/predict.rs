//! The requests and answers of each service.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::RequestError;
use crate::service::Service;

/// A request to a service.
pub trait Predict: Serialize {
    /// Its answer.
    type Answer: DeserializeOwned;

    /// Returns the service that accepts it.
    fn service(&self) -> Service;
}

/// Returns the body of a request, with the caller's name for the job.
#[must_use]
pub fn encode(request: &impl Predict, client_job_id: Option<&str>) -> Bytes {
    #[derive(Serialize)]
    struct Body<'a, T> {
        #[serde(flatten)]
        request: &'a T,
        #[serde(skip_serializing_if = "Option::is_none")]
        client_job_id: Option<&'a str>,
    }
    let body = Body { request, client_job_id };
    // Names, numbers and texts can always be serialized.
    serde_json::to_vec(&body).unwrap_or_default().into()
}

/// Reads an answer. An answer `{"error": ..}` is an error.
///
/// # Errors
/// If it is not an answer of this service.
pub fn decode<P: Predict>(service: Service, answer: &[u8]) -> Result<P::Answer, RequestError> {
    #[derive(Deserialize)]
    struct ErrorBody {
        error: Option<String>,
    }
    serde_json::from_slice(answer).map_err(|error| {
        let said = serde_json::from_slice(answer).ok().and_then(|ErrorBody { error }| error);
        match said {
            Some(message) => RequestError::Failed { service, status: 200, message },
            None => RequestError::Malformed { service, reason: error.to_string() },
        }
    })
}

/// Bytes that are transferred as base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base64(pub Bytes);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text.as_bytes()).map_err(serde::de::Error::custom)?;
        Ok(Self(bytes.into()))
    }
}

/// Sampling parameters of a note model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sampling {
    /// 0 to 2.
    pub temperature: f32,
    /// 0 to 1.
    pub top_p: f32,
    /// The length of the output.
    pub max_tokens: u32,
}

/// Music as MIDI: new, or a continuation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrpheusPredict {
    /// The service's model.
    pub model: String,
    /// `generate`, `generate_seeded` or `continue`.
    pub task: &'static str,
    /// Sampling parameters.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// The number of variations.
    pub num_variations: u32,
    /// The input to start from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub midi_input: Option<Base64>,
}

/// A MIDI bridge between two sections.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BridgePredict {
    /// The service's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The first section.
    pub section_a: Base64,
    /// The second section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_b: Option<Base64>,
    /// Sampling parameters.
    #[serde(flatten)]
    pub sampling: Sampling,
}

/// A MIDI loop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoopsPredict {
    /// The input to start from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Base64>,
    /// Sampling parameters.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// The number of variations.
    pub num_variations: u32,
}

/// The answer of a note service.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Variations {
    /// At least one.
    pub variations: Vec<Variation>,
}

/// A MIDI file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Variation {
    /// The file.
    pub midi_base64: Base64,
    /// The length of the output.
    #[serde(default)]
    pub num_tokens: Option<u64>,
}

/// MIDI to classify.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassifyPredict {
    /// The file.
    pub midi_input: Base64,
}

/// A classification.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Classification {
    /// The result.
    pub classification: HumanLikelihood,
}

/// Whether a human made it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct HumanLikelihood {
    /// Whether it seems so.
    pub is_human: bool,
    /// The confidence.
    pub confidence: f32,
    /// By label, if the service reports it.
    #[serde(default)]
    pub probabilities: std::collections::BTreeMap<String, f32>,
}

/// Sound from a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MusicgenPredict {
    /// The prompt.
    pub prompt: String,
    /// Seconds.
    pub duration: f32,
    /// 0 to 2.
    pub temperature: f32,
    /// The number of candidates for sampling.
    pub top_k: u32,
    /// 0 to 1.
    pub top_p: f32,
    /// How closely to follow the prompt.
    pub guidance_scale: f32,
    /// Whether to sample.
    pub do_sample: bool,
}

/// Songs from lyrics.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct YuePredict {
    /// The lyrics.
    pub lyrics: String,
    /// The genre.
    pub genre: String,
    /// The length of each section.
    pub max_new_tokens: u32,
    /// The number of sections.
    pub run_n_segments: u32,
    /// The same seed should produce the same song.
    pub seed: u64,
}

/// The answer of a sound service.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Audio {
    /// A file.
    pub audio_base64: Base64,
    /// `wav` or `mp3`; `wav` if absent.
    #[serde(default)]
    pub format: Option<String>,
}

/// Sound to analyze.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClapPredict {
    /// A WAV file.
    pub audio: Base64,
    /// The requested tasks.
    pub tasks: Vec<String>,
    /// Another WAV file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_b: Option<Base64>,
    /// The labels to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text_candidates: Vec<String>,
}

/// The analysis of a sound.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SoundAnalysis {
    /// An embedding.
    pub embeddings: Option<Vec<f32>>,
    /// Its genres.
    pub genre: Option<Labels>,
    /// Its moods.
    pub mood: Option<Labels>,
    /// How well the candidates fit.
    pub zero_shot: Option<Labels>,
    /// The similarity of two sounds.
    pub similarity: Option<Likeness>,
}

/// Labels, in the formats that services use.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Labels {
    /// A list.
    List(Vec<Label>),
    /// The best, and all with their scores.
    Best {
        /// The best.
        top_label: String,
        /// Its score.
        #[serde(default, alias = "confidence")]
        top_score: Option<f32>,
        /// All of them.
        #[serde(default, alias = "scores")]
        predictions: Option<LabelMap>,
    },
    /// By name.
    Map(std::collections::BTreeMap<String, f32>),
}

/// Scores, as a map or a list.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum LabelMap {
    /// By name.
    Map(std::collections::BTreeMap<String, f32>),
    /// As a list.
    List(Vec<Label>),
}

/// A label.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Label {
    /// Its name.
    pub label: String,
    /// How well it fits.
    pub score: f32,
}

impl Labels {
    /// Returns the labels, the best first.
    #[must_use]
    pub fn ranked(self) -> Vec<Label> {
        let of_map = |map: std::collections::BTreeMap<String, f32>| {
            map.into_iter().map(|(label, score)| Label { label, score }).collect()
        };
        let mut labels: Vec<Label> = match self {
            Self::List(labels) | Self::Best { predictions: Some(LabelMap::List(labels)), .. } => {
                labels
            }
            Self::Map(map) | Self::Best { predictions: Some(LabelMap::Map(map)), .. } => {
                of_map(map)
            }
            Self::Best { top_label, top_score, predictions: None } => {
                vec![Label { label: top_label, score: top_score.unwrap_or(1.0) }]
            }
        };
        labels.sort_by(|a, b| b.score.total_cmp(&a.score));
        labels
    }
}

/// The similarity of two sounds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Likeness {
    /// In an object.
    Scored {
        /// 1 for identical sounds.
        score: f32,
    },
    /// A bare number.
    Plain(f32),
}

impl Likeness {
    /// Returns it; 1 for identical sounds.
    #[must_use]
    pub const fn score(self) -> f32 {
        match self {
            Self::Scored { score } | Self::Plain(score) => score,
        }
    }
}

/// Sound for beat tracking.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeatthisPredict {
    /// A WAV file: 22,050 frames a second, one channel, at most 30 seconds.
    pub audio: Base64,
}

/// Beats.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Beats {
    /// In seconds.
    pub beats: Vec<f64>,
    /// The first beats of bars.
    pub downbeats: Vec<f64>,
    /// The tempo.
    pub bpm: f64,
    /// How likely a beat is at each moment.
    #[serde(default)]
    pub frames: Option<BeatFrames>,
}

/// How likely a beat is at each moment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BeatFrames {
    /// 0 to 1.
    pub beat_probs: Vec<f32>,
}

macro_rules! predict {
    ($($Request:ident => $Service:ident -> $Answer:ident;)*) => {$(
        impl Predict for $Request {
            type Answer = $Answer;

            fn service(&self) -> Service {
                Service::$Service
            }
        }
    )*};
}

predict! {
    OrpheusPredict => Orpheus -> Variations;
    BridgePredict => OrpheusBridge -> Variations;
    LoopsPredict => OrpheusLoops -> Variations;
    ClassifyPredict => OrpheusClassifier -> Classification;
    MusicgenPredict => Musicgen -> Audio;
    YuePredict => Yue -> Audio;
    ClapPredict => Clap -> SoundAnalysis;
    BeatthisPredict => Beatthis -> Beats;
}
