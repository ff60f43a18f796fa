//! Images that boxes are made of.

use std::path::PathBuf;

/// What to build an image of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSpec {
    /// A directory with a `Dockerfile`; all of it is handed to the engine.
    pub dir: PathBuf,
    /// What the image is called afterwards, such as `ringback/project:latest`.
    pub tag: String,
    /// What its steps reach.
    pub network: BuildNetwork,
}

/// What the steps of a build reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BuildNetwork {
    /// Nothing.
    #[default]
    None,
    /// Whatever this machine does.
    Host,
}

/// An image that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltImage {
    /// The hash that it has whatever it is called.
    pub id: String,
}
