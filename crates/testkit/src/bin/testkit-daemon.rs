//! A daemon in a process of its own, to be killed. Its data directory is its only argument. It
//! prints its addresses and, on a new directory, its first token, and runs until its standard input
//! ends, which also happens when its parent is gone.

use std::io::{Read as _, Write as _};

use camino::Utf8PathBuf;
use ringback_testkit::{Daemon, Options};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let data_dir = std::env::args().nth(1).map(Utf8PathBuf::from);
    let data_dir =
        data_dir.ok_or_else(|| std::io::Error::other("the data directory is missing"))?;
    let (daemon, token) = Daemon::start_in(&data_dir, Options::default()).await;
    let token = token.as_ref().map_or("-", |token| token.expose());
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{} {token}", daemon.calls())?;
    stdout.flush()?;
    drop(stdout);
    let wait = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(wait).await.map_err(std::io::Error::other)??;
    daemon.stop().await;
    Ok(())
}
