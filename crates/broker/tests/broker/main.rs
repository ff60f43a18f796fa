//! The broker through its own entry point, without an edge.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects and fails on everything else"
)]

mod acp;
mod callers;
mod calls;
mod choice;
mod common;
mod confinement;
mod containers;
mod content;
mod costs;
mod disk;
mod files;
mod flood;
mod full_disk;
mod graph;
mod homes;
mod jobs;
mod keys;
mod lines;
mod matrix;
mod models;
mod network;
mod payloads;
mod permissions;
mod provenance;
mod queries;
mod reach;
mod servers;
mod sessions;
mod spending;
