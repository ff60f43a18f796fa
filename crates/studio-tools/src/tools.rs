//! Which function runs which tool.

use std::sync::Arc;

use ringback_broker::studio::{AsyncTool, StudioContext, SyncTool, ToolFuture};
use ringback_proto::Result;
use ringback_proto::tool::{Tool, tools};

use crate::{Context, Studio, abc, analysis, compose, font, generate, render};

macro_rules! sync_tools {
    ($($tool:ident: $function:path,)*) => {
        $(impl SyncTool<tools::$tool> for Studio {
            fn answer(
                &self,
                request: <tools::$tool as Tool>::Request,
            ) -> Result<<tools::$tool as Tool>::Response> {
                $function(request)
            }
        })*
    };
}

macro_rules! async_tools {
    ($($tool:ident: $function:path,)*) => {
        $(impl AsyncTool<tools::$tool> for Studio {
            fn work(
                self: Arc<Self>,
                broker: StudioContext,
                request: <tools::$tool as Tool>::Request,
            ) -> ToolFuture<tools::$tool> {
                Box::pin($function(Context { broker, studio: self }, request))
            }
        })*
    };
}

sync_tools! {
    AbcParse: abc::describe,
    AbcValidate: abc::validate,
    AbcTranspose: abc::transpose,
}

async_tools! {
    AbcToMidi: abc::to_midi,
    SoundfontInspect: font::inspect,
    SoundfontPresetInspect: font::inspect_preset,
    MidiToWav: render::to_wav,
    BeatthisAnalyze: analysis::beats,
    ClapAnalyze: analysis::describe,
    OrpheusGenerate: compose::generate,
    OrpheusGenerateSeeded: compose::generate_seeded,
    OrpheusContinue: compose::go_on,
    OrpheusBridge: compose::bridge,
    OrpheusLoops: compose::loops,
    OrpheusClassify: compose::classify,
    MusicgenGenerate: generate::musicgen,
    YueGenerate: generate::yue,
}
