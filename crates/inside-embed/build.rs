//! Builds `ringback-inside` as a static program, with its own profile, so that the daemon's binary
//! can embed it.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "ringback-inside";
const PROFILE: &str = "inside";
/// The sources of the program; other changes do not rebuild it.
const SOURCES: [&str; 10] = [
    "Cargo.lock",
    "Cargo.toml",
    "crates/inside/Cargo.toml",
    "crates/inside/src",
    "crates/mcp-bridge/Cargo.toml",
    "crates/mcp-bridge/src",
    "crates/mcp-wire/Cargo.toml",
    "crates/mcp-wire/src",
    "crates/sse/Cargo.toml",
    "crates/sse/src",
];
/// Variables that the outer cargo sets for its own compiler: the inner one has other flags, and no
/// lints.
const NOT_PASSED_ON: [&str; 6] = [
    "CLIPPY_ARGS",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
    "RUSTFLAGS",
    "RUSTDOCFLAGS",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    for source in SOURCES {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
    }
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    let target = env::var("TARGET")?;
    let target_dir = target_dir(&out_dir);
    build(&root, &target, &target_dir)?;
    let built = target_dir.join(&target).join(PROFILE).join(PACKAGE);
    std::fs::copy(&built, out_dir.join(PACKAGE))
        .map_err(|error| format!("cannot copy {}: {error}", built.display()))?;
    Ok(())
}

/// The target directory of the inner build: the outer cargo holds the lock of its own while this
/// runs. All profiles of the outer build share it, so that checks, tests and releases build it
/// once.
fn target_dir(out_dir: &Path) -> PathBuf {
    let profile_dir =
        out_dir.ancestors().find(|path| path.ends_with("build")).and_then(Path::parent);
    profile_dir.and_then(Path::parent).unwrap_or(out_dir).join("inside-static")
}

fn build(root: &Path, target: &str, target_dir: &Path) -> Result<(), Box<dyn Error>> {
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo
        .args(["build", "--locked", "--quiet", "--profile", PROFILE])
        .args(["--package", PACKAGE, "--bin", PACKAGE, "--target", target])
        .arg("--manifest-path")
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static");
    for name in NOT_PASSED_ON {
        cargo.env_remove(name);
    }
    let status = cargo.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !status.success() {
        return Err(format!("cannot build {PACKAGE} for {target}: {status}").into());
    }
    Ok(())
}
