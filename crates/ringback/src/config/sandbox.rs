//! `[sandbox]`: what keeps agents from the rest of this machine.

#![expect(non_snake_case, reason = "keys are spelled as their users know them")]

use std::path::PathBuf;

use ringback_broker::{DiskLimits, KeepFree};

use super::section::{Raw, section};
use super::value::{Value, mismatch, text};

section! {
    /// What keeps agents from the rest of this machine.
    pub struct Sandbox = "sandbox" {
        /// What confines agents. `auto` takes the best there is and refuses to start an agent if a layer is missing; `none` runs agents unconfined.
        pub backend: SandboxBackend = SandboxBackend::Auto,
        /// The program `bwrap`, if it is not where it usually is.
        pub bwrap: Option<PathBuf> = None,
        /// What of this machine agents can read besides the system, such as where an agent is installed. The program of an agent itself need not be named.
        pub readOnly: Vec<PathBuf> = Vec::new(),
        /// Memory of one agent with all it starts, in bytes, or `none` for no limit.
        pub memory: Bound = bound(limits().memory_bytes),
        /// Processes and threads of one agent at a time, or `none`.
        pub processes: Bound = bound(limits().processes.map(u64::from)),
        /// Processor time of one agent in percent of one processor, or `none`.
        pub cpu: Bound = bound(limits().cpu_percent.map(u64::from)),
        /// The longest file an agent can write, in bytes, or `none`.
        pub file: Bound = bound(limits().file_bytes),
        /// Files that one process of an agent has open, or `none`.
        pub openFiles: Bound = bound(limits().open_files),
        /// The size of an agent's `/tmp`, in bytes. What is in it counts as memory.
        pub tmp: u64 = limits().tmp_bytes,
        /// What a workspace and the home beside it may have on the disk, in bytes, or `none`. An agent that goes beyond is ended.
        pub workspace: Bound = bound(disk().workspace_bytes),
        /// What of the disk of `data_dir` is kept free, in bytes; `auto` is a gigabyte, or a twentieth of the disk if that is less. With less no agent is started, and the one whose workspace grows fastest is ended.
        pub keepFree: Kept = Kept(disk().keep_free),
    }
}

/// What confines agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxBackend {
    /// The best there is.
    Auto,
    /// The program `bwrap`.
    Bubblewrap,
    /// Nothing.
    None,
}

/// A limit, or that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound(pub Option<u64>);

/// What of the disk is kept free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept(pub KeepFree);

impl Sandbox {
    /// How much room agents have on the disk.
    #[must_use]
    pub fn disk(&self) -> DiskLimits {
        let (workspace_bytes, keep_free) = (self.workspace.0, self.keepFree.0);
        DiskLimits { workspace_bytes, keep_free, ..disk() }
    }

    /// How far an agent may go.
    #[must_use]
    pub fn limits(&self) -> ringback_sandbox::Limits {
        let small = |bound: Bound| bound.0.map(|bound| u32::try_from(bound).unwrap_or(u32::MAX));
        ringback_sandbox::Limits {
            memory_bytes: self.memory.0,
            processes: small(self.processes),
            cpu_percent: small(self.cpu),
            file_bytes: self.file.0,
            open_files: self.openFiles.0,
            tmp_bytes: self.tmp,
        }
    }
}

impl SandboxBackend {
    const ALL: [Self; 3] = [Self::Auto, Self::Bubblewrap, Self::None];

    /// Its name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => AUTO,
            Self::Bubblewrap => "bubblewrap",
            Self::None => NONE,
        }
    }
}

const NONE: &str = "none";
const AUTO: &str = "auto";

fn limits() -> ringback_sandbox::Limits {
    ringback_sandbox::Limits::default()
}

fn disk() -> DiskLimits {
    DiskLimits::default()
}

const fn bound(limit: Option<u64>) -> Bound {
    Bound(limit)
}

impl Value for SandboxBackend {
    const KIND: &'static str = "`auto`, `bubblewrap` or `none`";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let mut known = Self::ALL.into_iter();
        known
            .find(|backend| text(raw) == Some(backend.name()))
            .ok_or_else(|| mismatch(Self::KIND, raw))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.name().into())
    }
}

impl Value for Kept {
    const KIND: &'static str = "whole number or `auto`";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        if text(raw) == Some(AUTO) {
            return Ok(Self(KeepFree::Usual));
        }
        let bytes = u64::parse(raw).map_err(|_| mismatch(Self::KIND, raw))?;
        Ok(Self(KeepFree::Bytes(bytes)))
    }

    fn show(&self) -> Option<toml::Value> {
        match self.0 {
            KeepFree::Usual => Some(AUTO.into()),
            KeepFree::Bytes(bytes) => u64::show(&bytes),
        }
    }
}

impl Value for Bound {
    const KIND: &'static str = "whole number or `none`";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        if text(raw) == Some(NONE) {
            return Ok(Self(None));
        }
        let number = u64::parse(raw).ok().filter(|number| *number > 0);
        number.map(|number| Self(Some(number))).ok_or_else(|| mismatch(Self::KIND, raw))
    }

    fn show(&self) -> Option<toml::Value> {
        match self.0 {
            Some(number) => u64::show(&number),
            None => Some(NONE.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a limit is given up only by saying so.
    #[test]
    fn a_limit_is_a_number_or_none_in_words() {
        for (text, expected) in
            [("none", Some(None)), ("7", Some(Some(7))), ("0", None), ("", None)]
        {
            let parsed = Bound::parse(Raw::Text(text)).ok().map(|bound| bound.0);
            assert_eq!(parsed, expected, "{text}");
        }
        for (text, expected) in
            [("auto", Some(KeepFree::Usual)), ("0", Some(KeepFree::Bytes(0))), ("none", None)]
        {
            assert_eq!(Kept::parse(Raw::Text(text)).ok().map(|kept| kept.0), expected, "{text}");
        }
        let sandbox =
            Sandbox { memory: Bound(None), processes: Bound(Some(9)), ..Sandbox::default() };
        assert_eq!((sandbox.limits().memory_bytes, sandbox.limits().processes), (None, Some(9)));
    }

    /// Rule: agents are confined unless the configuration says otherwise in so many words.
    #[test]
    fn agents_are_confined_by_default() {
        assert_eq!(Sandbox::default().backend, SandboxBackend::Auto);
        assert_eq!(Sandbox::default().limits(), ringback_sandbox::Limits::default());
        assert!(SandboxBackend::parse(Raw::Text("")).is_err());
    }
}
