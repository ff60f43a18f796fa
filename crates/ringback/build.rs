//! Makes the linker keep one copy of functions that compile to the same code.
//!
//! Every crate and codegen unit has its own copies of the generic functions it uses. Nothing here
//! compares the addresses of functions.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    // The linker that rustc brings along for this target. Another one, chosen by the user, may not
    // know the option.
    let is_lld = var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu");
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_chosen = flags.contains("linker") || flags.contains("fuse-ld");
    if is_lld && !is_chosen {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
