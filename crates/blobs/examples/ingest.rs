//! Measures ingest of a file against `cp` and `sync`, in turn, and prints the ratio of each round:
//! `cargo run --release -p ringback-blobs --example ingest -- DIR [MIB] [ROUNDS]`.
#![expect(clippy::print_stdout, reason = "a measurement is for the screen")]

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::process::Command;
use std::time::Instant;

use camino::Utf8PathBuf;
use ringback_blobs::Blobs;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = Utf8PathBuf::from(args.next().ok_or("usage: ingest DIR [MIB] [ROUNDS]")?);
    let n_mib: u64 = args.next().map_or(Ok(1024), |text| text.parse())?;
    let n_rounds: usize = args.next().map_or(Ok(7), |text| text.parse())?;
    let source = dir.join("source");
    make_source(&source, n_mib)?;

    // One store for all rounds: the location of a new directory on the disk can decide the write
    // speed, and `cp` also writes to the same place each time.
    let root = dir.join("blobs");
    let blobs = Blobs::open(&root)?;
    let mut ratios = Vec::new();
    for round in 0..n_rounds {
        let copy_seconds = copy_and_sync(&source, &dir.join("copy"))?;
        let start = Instant::now();
        let stored = blobs.ingest_file(&source, "application/octet-stream")?;
        let ingest_seconds = start.elapsed().as_secs_f64();
        let name = stored.hash.to_string();
        fs::remove_file(root.join(&name[..2]).join(&name[2..4]).join(&name))?;
        let ratio = copy_seconds / ingest_seconds;
        println!(
            "round {round}: cp+sync {copy_seconds:.3} s, ingest {ingest_seconds:.3} s, {ratio:.2}"
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median speed against cp+sync: {:.2}", ratios[ratios.len() / 2]);
    println!("peak resident: {}", peak_resident()?);
    fs::remove_dir_all(&root)?;
    fs::remove_file(&source)?;
    Ok(())
}

fn make_source(path: &Utf8PathBuf, n_mib: u64) -> Result<(), Box<dyn Error>> {
    let mut file = File::create(path)?;
    let mut content = blake3::Hasher::new().finalize_xof();
    let mut buffer = vec![0; 1 << 20];
    for _ in 0..n_mib {
        content.fill(&mut buffer);
        file.write_all(&buffer)?;
    }
    file.sync_all()?;
    Ok(())
}

fn copy_and_sync(source: &Utf8PathBuf, copy: &Utf8PathBuf) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let copied = Command::new("cp").arg(source).arg(copy).status()?;
    let synced = Command::new("sync").arg(copy).status()?;
    let seconds = start.elapsed().as_secs_f64();
    if !copied.success() || !synced.success() {
        return Err("cp or sync failed".into());
    }
    fs::remove_file(copy)?;
    Ok(seconds)
}

fn peak_resident() -> Result<String, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim_start_matches("VmHWM:").trim().to_owned())
}
