//! Music that models make: `orpheus_*`, `musicgen_generate`, `yue_generate`.

use super::wire_struct;
use crate::ids::BlobHash;

wire_struct! {
    /// New music.
    #[derive(Default)]
    OrpheusGenerateRequest with_lineage {
        /// How much, about three tokens for a note: 1 to 8192, 1024 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u32>,
        /// How many different ones: 1 to 16, 1 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        num_variations: Option<u32>,
        /// How daring: 0 to 2, 1 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temperature: Option<f32>,
        /// Only the likeliest choices that together have this probability: 0 to 1, 0.95 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        top_p: Option<f32>,
        /// The model of the service; `base` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The same seed gives the same music, and one is drawn and told if absent; services know none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
    }

    /// New music that starts as some other does.
    OrpheusGenerateSeededRequest with_lineage {
        /// The content of the MIDI file whose beginning and manner it takes.
        seed_hash: BlobHash,
        /// How much, about three tokens for a note: 1 to 8192, 1024 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u32>,
        /// How many different ones: 1 to 16, 1 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        num_variations: Option<u32>,
        /// How daring: 0 to 2, 1 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temperature: Option<f32>,
        /// Only the likeliest choices that together have this probability: 0 to 1, 0.95 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        top_p: Option<f32>,
        /// The model of the service; `base` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The same seed gives the same music, and one is drawn and told if absent; services know none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
    }

    /// Music that goes on.
    OrpheusContinueRequest with_lineage {
        /// The content of the MIDI file that goes on.
        input_hash: BlobHash,
        /// How much more, about three tokens for a note: 1 to 8192, 1024 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u32>,
        /// How many different ones: 1 to 16, 1 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        num_variations: Option<u32>,
        /// How daring: 0 to 2, 1 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temperature: Option<f32>,
        /// Only the likeliest choices that together have this probability: 0 to 1, 0.95 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        top_p: Option<f32>,
        /// The model of the service; `base` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The same seed gives the same music, and one is drawn and told if absent; services know none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
    }

    /// Music that leads from one piece to another.
    OrpheusBridgeRequest with_lineage {
        /// The content of the MIDI file that it comes from.
        section_a_hash: BlobHash,
        /// The content of the MIDI file that it leads to; anywhere if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        section_b_hash: Option<BlobHash>,
        /// How much, about three tokens for a note: 1 to 8192, 1024 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u32>,
        /// How daring: 0 to 2, 1 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temperature: Option<f32>,
        /// Only the likeliest choices that together have this probability: 0 to 1, 0.95 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        top_p: Option<f32>,
        /// The model of the service; the service chooses if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The same seed gives the same music, and one is drawn and told if absent; services know none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
    }

    /// Music whose end leads to its start.
    #[derive(Default)]
    OrpheusLoopsRequest with_lineage {
        /// The content of a MIDI file whose manner it takes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed_hash: Option<BlobHash>,
        /// How much, about three tokens for a note: 1 to 8192, 1024 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u32>,
        /// How many different ones: 1 to 16, 1 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        num_variations: Option<u32>,
        /// How daring: 0 to 2, 1 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temperature: Option<f32>,
        /// Only the likeliest choices that together have this probability: 0 to 1, 0.95 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        top_p: Option<f32>,
        /// The same seed gives the same music, and one is drawn and told if absent; services know none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
    }

    /// Music to be judged.
    OrpheusClassifyRequest {
        /// The content of the MIDI file.
        midi_hash: BlobHash,
    }

    /// What music seems to be. A service tells `human` from `ai`; the embedded method, which cannot,
    /// tells `performed` from `programmed`.
    OrpheusClassifiedResponse {
        /// The labels, the likeliest first.
        classifications: Vec<Classification>,
        /// What judged it: a model service, or the embedded method.
        backend: String,
    }

    /// A label and how sure it is.
    Classification {
        /// The label.
        label: String,
        /// 0 to 1; all together make 1.
        confidence: f32,
    }

    /// Sound described in words.
    #[derive(Default)]
    MusicgenGenerateRequest with_lineage {
        /// What it should sound like.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
        /// Seconds: 0.5 to 120, 10 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration: Option<f32>,
        /// How daring: 0 to 2, 1 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temperature: Option<f32>,
        /// Only so many of the likeliest choices; 250 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        top_k: Option<u32>,
        /// Only the likeliest choices that together have this probability: 0 to 1, 0.9 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        top_p: Option<f32>,
        /// How closely it keeps to the words: 0 to 20, 3 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guidance_scale: Option<f32>,
        /// Whether it chooses at random; yes if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        do_sample: Option<bool>,
    }

    /// A song.
    YueGenerateRequest with_lineage {
        /// What is sung.
        lyrics: String,
        /// The genre; `Pop` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        genre: Option<String>,
        /// How much for each section; 3000 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_new_tokens: Option<u32>,
        /// How many sections of the lyrics; 2 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_n_segments: Option<u32>,
        /// The same seed gives the same song; 42 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
    }
}
