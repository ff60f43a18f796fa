//! The music tools, which run in a crate of their own: what that crate implements for each of them,
//! and what it gets of the broker.
//!
//! The broker names no library for music or sound. It gets the tools when it starts
//! ([`Config::studio`](crate::Config::studio)). Each tool is a trait with the types of its row of
//! the table, so that an implementation that lacks one, or that returns another tool's response, does
//! not compile.

mod context;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

pub use ringback_blobs::{Reader, StoredContent, hash_of};
use ringback_proto::tool::{Tool, tools};
use ringback_proto::{Error, ErrorKind, Result};

pub use self::context::{Content, StudioContext};
pub use crate::failure::internal;
use crate::handler::{Context, Handler, SyncContext, SyncHandler};
use crate::handlers::Native;
pub use crate::handlers::check_text;

/// The work of a tool.
pub type ToolFuture<T> = Pin<Box<dyn Future<Output = Result<<T as Tool>::Response>> + Send>>;

/// A music tool that answers immediately: a plain function that gets nothing it could wait for.
pub trait SyncTool<T: Tool> {
    /// Answers.
    ///
    /// # Errors
    /// When the caller made a mistake.
    fn answer(&self, request: T::Request) -> Result<T::Response>;
}

/// A music tool that may wait.
pub trait AsyncTool<T: Tool> {
    /// Returns the work. Dropping it stops the work, except what it handed to
    /// [`StudioContext::blocking`].
    fn work(self: Arc<Self>, ctx: StudioContext, request: T::Request) -> ToolFuture<T>;
}

/// Defines [`StudioTools`] as the tools of two lists, and hands their calls over to it.
macro_rules! studio_tools {
    (sync: $($sync:ident)*; async: $($tool:ident)*;) => {
        /// All music tools. The broker shares one instance between all calls.
        pub trait StudioTools:
            fmt::Debug + Send + Sync $(+ SyncTool<tools::$sync>)* $(+ AsyncTool<tools::$tool>)*
        {
            /// Returns the configured music services by name, with the known state of each.
            fn services(&self) -> Vec<(&'static str, &'static str)>;
        }

        $(impl SyncHandler<tools::$sync> for Native {
            fn handle(
                ctx: &SyncContext<'_>,
                request: <tools::$sync as Tool>::Request,
            ) -> Result<<tools::$sync as Tool>::Response> {
                SyncTool::<tools::$sync>::answer(&*ctx.facts.studio, request)
            }
        })*

        $(impl Handler<tools::$tool> for Native {
            async fn handle(
                ctx: Context,
                request: <tools::$tool as Tool>::Request,
            ) -> Result<<tools::$tool as Tool>::Response> {
                let studio = Arc::clone(&ctx.rooms.facts.studio);
                AsyncTool::<tools::$tool>::work(studio, StudioContext::new(ctx), request).await
            }
        })*
    };
}

studio_tools! {
    sync: AbcParse AbcValidate AbcTranspose;
    async:
        AbcToMidi
        SoundfontInspect SoundfontPresetInspect
        MidiToWav
        BeatthisAnalyze ClapAnalyze
        OrpheusGenerate OrpheusGenerateSeeded OrpheusContinue OrpheusBridge OrpheusLoops
        OrpheusClassify
        MusicgenGenerate YueGenerate;
}

/// No music tools: each answers that this broker runs without them.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStudio;

impl<T: Tool> SyncTool<T> for NoStudio {
    fn answer(&self, _: T::Request) -> Result<T::Response> {
        Err(missing(T::NAME))
    }
}

impl<T: Tool + 'static> AsyncTool<T> for NoStudio {
    fn work(self: Arc<Self>, _: StudioContext, _: T::Request) -> ToolFuture<T> {
        Box::pin(async { Err(missing(T::NAME)) })
    }
}

impl StudioTools for NoStudio {
    fn services(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
}

fn missing(tool: &str) -> Error {
    let message = format!("`{tool}` is a music tool, and this broker runs without them");
    Error::new(ErrorKind::NotFound, message)
}
