//! Samples of the tools that generate music.

use super::*;

sample!(
    OrpheusGenerateRequest,
    Self {
        max_tokens: None,
        num_variations: None,
        temperature: None,
        top_p: None,
        model: None,
        seed: None,
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    },
    Self {
        max_tokens: Some(u32::MAX),
        num_variations: Some(1),
        temperature: Some(0.5),
        top_p: Some(1.0),
        model: Some(awkward()),
        seed: Some(TWO_TO_THE_63),
        tags: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
    }
);
sample!(
    OrpheusGenerateSeededRequest,
    Self {
        seed_hash: hash(),
        max_tokens: None,
        num_variations: None,
        temperature: None,
        top_p: None,
        model: None,
        seed: None,
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    },
    Self {
        seed_hash: hash(),
        max_tokens: Some(u32::MAX),
        num_variations: Some(1),
        temperature: Some(0.5),
        top_p: Some(1.0),
        model: Some(awkward()),
        seed: Some(TWO_TO_THE_63),
        tags: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
    }
);
sample!(
    OrpheusContinueRequest,
    Self {
        input_hash: hash(),
        max_tokens: None,
        num_variations: None,
        temperature: None,
        top_p: None,
        model: None,
        seed: None,
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    },
    Self {
        input_hash: hash(),
        max_tokens: Some(u32::MAX),
        num_variations: Some(1),
        temperature: Some(0.5),
        top_p: Some(1.0),
        model: Some(awkward()),
        seed: Some(TWO_TO_THE_63),
        tags: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
    }
);
sample!(
    OrpheusBridgeRequest,
    Self {
        section_a_hash: hash(),
        section_b_hash: None,
        max_tokens: None,
        temperature: None,
        top_p: None,
        model: None,
        seed: None,
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    },
    Self {
        section_a_hash: hash(),
        section_b_hash: Some(hash()),
        max_tokens: Some(u32::MAX),
        temperature: Some(0.5),
        top_p: Some(1.0),
        model: Some(awkward()),
        seed: Some(TWO_TO_THE_63),
        tags: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
    }
);
sample!(
    OrpheusLoopsRequest,
    Self {
        seed_hash: None,
        max_tokens: None,
        num_variations: None,
        temperature: None,
        top_p: None,
        seed: None,
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    },
    Self {
        seed_hash: Some(hash()),
        max_tokens: Some(u32::MAX),
        num_variations: Some(1),
        temperature: Some(0.5),
        top_p: Some(1.0),
        seed: Some(TWO_TO_THE_63),
        tags: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
    }
);
sample!(OrpheusClassifyRequest, Self { midi_hash: hash() });
sample!(
    OrpheusClassifiedResponse,
    Self { classifications: vec![], backend: String::new() },
    Self {
        classifications: vec![Classification { label: awkward(), confidence: 0.75 }],
        backend: awkward(),
    }
);
sample!(
    MusicgenGenerateRequest,
    Self {
        prompt: None,
        duration: None,
        temperature: None,
        top_k: None,
        top_p: None,
        guidance_scale: None,
        do_sample: None,
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    },
    Self {
        prompt: Some(awkward()),
        duration: Some(0.5),
        temperature: Some(2.0),
        top_k: Some(u32::MAX),
        top_p: Some(0.0),
        guidance_scale: Some(3.5),
        do_sample: Some(false),
        tags: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
    }
);
sample!(
    YueGenerateRequest,
    Self {
        lyrics: String::new(),
        genre: None,
        max_new_tokens: None,
        run_n_segments: None,
        seed: None,
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    },
    Self {
        lyrics: awkward(),
        genre: Some(awkward()),
        max_new_tokens: Some(0),
        run_n_segments: Some(u32::MAX),
        seed: Some(u64::MAX),
        tags: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
    }
);
