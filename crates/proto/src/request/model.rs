//! Music generation: `orpheus_*`, `musicgen_generate`, `yue_generate`.

use super::wire_struct;
use crate::ids::BlobHash;

/// Requests to Orpheus: their own fields, how to sample, and the lineage. The sampling fields are
/// spelled out in each, because positional arrays cannot nest structs.
macro_rules! orpheus_requests {
    ($(
        $(#[$meta:meta])*
        $name:ident { $($own:tt)* }
        max_tokens = $max_tokens:literal
        $(, num_variations = $num_variations:literal)?
        $(, model = $model:literal)?;
    )+) => { wire_struct! {$(
        $(#[$meta])*
        $name with_lineage {
            $($own)*
            #[doc = $max_tokens]
            #[serde(default, skip_serializing_if = "Option::is_none")]
            max_tokens: Option<u32>,
            $(
                #[doc = $num_variations]
                #[serde(default, skip_serializing_if = "Option::is_none")]
                num_variations: Option<u32>,
            )?
            /// The sampling temperature: 0 to 2, default 1.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            temperature: Option<f32>,
            /// The top-p sampling threshold: 0 to 1, default 0.95.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            top_p: Option<f32>,
            $(
                #[doc = $model]
                #[serde(default, skip_serializing_if = "Option::is_none")]
                model: Option<String>,
            )?
            /// The random seed: the same seed produces the same music. If absent, one is drawn and
            /// reported. Music services do not support seeds.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            seed: Option<u64>,
        }
    )+} };
}

orpheus_requests! {
    /// New music to generate.
    #[derive(Default)]
    OrpheusGenerateRequest {}
    max_tokens = "The maximum length in tokens, about three per note: 1 to 8192, default 1024.",
    num_variations = "The number of variations: 1 to 16, default 1.",
    model = "The model that the music service runs; `base` if absent.";

    /// New music that starts like an existing piece.
    OrpheusGenerateSeededRequest {
        /// The hash of the MIDI file whose start and style it takes.
        seed_hash: BlobHash,
    }
    max_tokens = "The maximum length in tokens, about three per note: 1 to 8192, default 1024.",
    num_variations = "The number of variations: 1 to 16, default 1.",
    model = "The model that the music service runs; `base` if absent.";

    /// A piece to continue.
    OrpheusContinueRequest {
        /// The hash of the MIDI file to continue.
        input_hash: BlobHash,
    }
    max_tokens = "The maximum length to add in tokens, about three per note: 1 to 8192, default 1024.",
    num_variations = "The number of variations: 1 to 16, default 1.",
    model = "The model that the music service runs; `base` if absent.";

    /// A bridge between two pieces.
    OrpheusBridgeRequest {
        /// The hash of the MIDI file it leads from.
        section_a_hash: BlobHash,
        /// The hash of the MIDI file it leads to; open-ended if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        section_b_hash: Option<BlobHash>,
    }
    max_tokens = "The maximum length in tokens, about three per note: 1 to 8192, default 1024.",
    model = "The model that the music service runs; the service chooses if absent.";

    /// Music to generate whose end leads back to its start.
    #[derive(Default)]
    OrpheusLoopsRequest {
        /// The hash of a MIDI file whose style it takes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed_hash: Option<BlobHash>,
    }
    max_tokens = "The maximum length in tokens, about three per note: 1 to 8192, default 1024.",
    num_variations = "The number of variations: 1 to 16, default 1.";
}

wire_struct! {
    /// Music to classify.
    OrpheusClassifyRequest {
        /// The hash of the MIDI file.
        midi_hash: BlobHash,
    }

    /// The classification of a piece. A music service distinguishes `human` from `ai`; the embedded
    /// method cannot, and distinguishes `performed` from `programmed`.
    OrpheusClassifiedResponse {
        /// The labels, most likely first.
        classifications: Vec<Classification>,
        /// The backend: a music service, or the embedded method.
        backend: String,
    }

    /// A label and its confidence.
    Classification {
        /// The label.
        label: String,
        /// The confidence from 0 to 1; all labels add up to 1.
        confidence: f32,
    }

    /// Audio to generate from a text description.
    #[derive(Default)]
    MusicgenGenerateRequest with_lineage {
        /// The description of the audio.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
        /// The duration in seconds: 0.5 to 120, default 10.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration: Option<f32>,
        /// The sampling temperature: 0 to 2, default 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temperature: Option<f32>,
        /// The number of most likely choices to sample from; 250 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        top_k: Option<u32>,
        /// The top-p sampling threshold: 0 to 1, default 0.9.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        top_p: Option<f32>,
        /// How closely the audio follows the description: 0 to 20, default 3.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guidance_scale: Option<f32>,
        /// Whether to sample at random; true if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        do_sample: Option<bool>,
    }

    /// A song to generate.
    YueGenerateRequest with_lineage {
        /// The lyrics.
        lyrics: String,
        /// The genre; `Pop` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        genre: Option<String>,
        /// The maximum number of tokens for each section; 3000 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_new_tokens: Option<u32>,
        /// The number of sections of the lyrics to use; 2 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_n_segments: Option<u32>,
        /// The random seed: the same seed produces the same song; 42 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
    }
}
