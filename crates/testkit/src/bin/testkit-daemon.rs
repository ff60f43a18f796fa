//! A daemon in a process of its own, to be killed. Its directory is its only argument. It prints its
//! addresses and, on a new directory, its first token, and runs until its standard input ends, which
//! also happens when its parent is gone.

use std::io::{Read as _, Write as _};

use camino::Utf8PathBuf;
use ringback_testkit::Setup;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let dir = std::env::args().nth(1).map(Utf8PathBuf::from);
    let dir = dir.ok_or_else(|| std::io::Error::other("the directory is missing"))?;
    let world = Setup::in_dir(&dir).hoot().start().await;
    let token = world.first_token().map_or("-", |token| token.expose());
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{} {token}", world.calls())?;
    stdout.flush()?;
    drop(stdout);
    let wait = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(wait).await.map_err(std::io::Error::other)??;
    drop(world.stop().await);
    Ok(())
}
