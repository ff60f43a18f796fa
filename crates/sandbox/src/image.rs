//! Images for sandboxes.

use std::path::PathBuf;

/// How to build an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSpec {
    /// A directory with a `Dockerfile`; all of it is sent to the engine.
    pub dir: PathBuf,
    /// The name of the built image, such as `ringback/project:latest`.
    pub tag: String,
    /// What its build steps can reach.
    pub network: BuildNetwork,
}

/// What the steps of a build can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BuildNetwork {
    /// Nothing.
    #[default]
    None,
    /// Everything that this machine can reach.
    Host,
}

/// A built image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltImage {
    /// Its hash, which does not depend on its name.
    pub id: String,
}
