//! What each service takes and gives.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::AskError;
use crate::service::Service;

/// A request that a service understands.
pub trait Predict: Serialize {
    /// What it gives.
    type Answer: DeserializeOwned;

    /// Who understands it.
    fn service(&self) -> Service;
}

/// The body of a request, with the caller's name for the work.
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
    // Names, numbers and texts: there is nothing in them that JSON cannot say.
    serde_json::to_vec(&body).unwrap_or_default().into()
}

/// Reads an answer. One that is `{"error": ..}` is an error.
///
/// # Errors
/// It is not what the service answers.
pub fn decode<P: Predict>(service: Service, answer: &[u8]) -> Result<P::Answer, AskError> {
    #[derive(Deserialize)]
    struct Said {
        error: Option<String>,
    }
    serde_json::from_slice(answer).map_err(|error| {
        let said = serde_json::from_slice(answer).ok().and_then(|Said { error }| error);
        match said {
            Some(message) => AskError::Failed { service, status: 200, message },
            None => AskError::Malformed { service, reason: error.to_string() },
        }
    })
}

/// Bytes that travel as base64.
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

/// How daring a model of notes is, and how much it writes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sampling {
    /// 0 to 2.
    pub temperature: f32,
    /// 0 to 1.
    pub top_p: f32,
    /// How much.
    pub max_tokens: u32,
}

/// Music as MIDI: new, or after some other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrpheusPredict {
    /// Which of the service's models.
    pub model: String,
    /// `generate`, `generate_seeded` or `continue`.
    pub task: &'static str,
    /// How.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// How many.
    pub num_variations: u32,
    /// What it starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub midi_input: Option<Base64>,
}

/// MIDI between MIDI.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BridgePredict {
    /// Which of the service's models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it comes from.
    pub section_a: Base64,
    /// What it leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_b: Option<Base64>,
    /// How.
    #[serde(flatten)]
    pub sampling: Sampling,
}

/// MIDI that can be repeated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoopsPredict {
    /// What it starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Base64>,
    /// How.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// How many.
    pub num_variations: u32,
}

/// What the services of notes give.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Variations {
    /// At least one.
    pub variations: Vec<Variation>,
}

/// A MIDI file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Variation {
    /// It.
    pub midi_base64: Base64,
    /// How much was written.
    #[serde(default)]
    pub num_tokens: Option<u64>,
}

/// MIDI to be judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassifyPredict {
    /// It.
    pub midi_input: Base64,
}

/// A judgement.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Classified {
    /// It.
    pub classification: HumanOrNot,
}

/// Whether a human made it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct HumanOrNot {
    /// Whether it seems so.
    pub is_human: bool,
    /// How sure that is.
    pub confidence: f32,
    /// By label, if the service tells.
    #[serde(default)]
    pub probabilities: std::collections::BTreeMap<String, f32>,
}

/// Sound from words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MusicgenPredict {
    /// The words.
    pub prompt: String,
    /// Seconds.
    pub duration: f32,
    /// 0 to 2.
    pub temperature: f32,
    /// Of how many choices.
    pub top_k: u32,
    /// 0 to 1.
    pub top_p: f32,
    /// How closely to the words.
    pub guidance_scale: f32,
    /// Whether by chance.
    pub do_sample: bool,
}

/// Songs from lyrics.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct YuePredict {
    /// The lyrics.
    pub lyrics: String,
    /// The genre.
    pub genre: String,
    /// How much for each section.
    pub max_new_tokens: u32,
    /// How many sections.
    pub run_n_segments: u32,
    /// The same seed should give the same song.
    pub seed: u64,
}

/// What the services of sound give.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Audio {
    /// A file.
    pub audio_base64: Base64,
    /// `wav` or `mp3`; `wav` if it does not say.
    #[serde(default)]
    pub format: Option<String>,
}

/// Sound to be described.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClapPredict {
    /// A WAV file.
    pub audio: Base64,
    /// What is wanted.
    pub tasks: Vec<String>,
    /// Another WAV file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_b: Option<Base64>,
    /// The labels to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text_candidates: Vec<String>,
}

/// Sound described.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Described {
    /// As a vector.
    pub embeddings: Option<Vec<f32>>,
    /// Its genres.
    pub genre: Option<Labels>,
    /// Its moods.
    pub mood: Option<Labels>,
    /// How well the candidates fit.
    pub zero_shot: Option<Labels>,
    /// How alike two sounds are.
    pub similarity: Option<Likeness>,
}

/// Labels, as the services write them.
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
    /// The labels, the best first.
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

/// How alike two sounds are.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Likeness {
    /// In a map.
    Scored {
        /// 1 for the same.
        score: f32,
    },
    /// By itself.
    Plain(f32),
}

impl Likeness {
    /// 1 for the same.
    #[must_use]
    pub const fn score(self) -> f32 {
        match self {
            Self::Scored { score } | Self::Plain(score) => score,
        }
    }
}

/// Sound whose beats are wanted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeatthisPredict {
    /// A WAV file: 22,050 frames a second, one channel, at most 30 seconds.
    pub audio: Base64,
}

/// Beats.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Beats {
    /// When.
    pub beats: Vec<f64>,
    /// Those that begin a bar.
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
    ClassifyPredict => OrpheusClassifier -> Classified;
    MusicgenPredict => Musicgen -> Audio;
    YuePredict => Yue -> Audio;
    ClapPredict => Clap -> Described;
    BeatthisPredict => Beatthis -> Beats;
}
