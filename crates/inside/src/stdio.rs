//! Standard input and output, without a thread in between where possible: agents start their
//! servers with pipes or with sockets.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream as StdUnixStream;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// Reopened, a pipe can be made non-blocking for this program alone: other processes with this end
/// of it do not notice.
const INPUT_PATH: &str = "/proc/self/fd/0";
const OUTPUT_PATH: &str = "/proc/self/fd/1";

enum Kind {
    Pipe,
    Socket,
    Other,
}

/// Standard input.
pub(crate) fn input() -> Box<dyn AsyncRead + Unpin> {
    match owned(io::stdin().as_fd().try_clone_to_owned()).and_then(quick_input) {
        Ok(input) => input,
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

/// Standard output.
pub(crate) fn output() -> Box<dyn AsyncWrite + Unpin> {
    match owned(io::stdout().as_fd().try_clone_to_owned()).and_then(quick_output) {
        Ok(output) => output,
        Err(_) => Box::new(tokio::io::stdout()),
    }
}

fn quick_input((kind, file): (Kind, File)) -> io::Result<Box<dyn AsyncRead + Unpin>> {
    match kind {
        Kind::Pipe => {
            let opened = pipe::OpenOptions::new().open_receiver(INPUT_PATH);
            Ok(Box::new(opened.or_else(|_| pipe::Receiver::from_file(file))?))
        }
        Kind::Socket => Ok(Box::new(socket(file)?)),
        Kind::Other => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn quick_output((kind, file): (Kind, File)) -> io::Result<Box<dyn AsyncWrite + Unpin>> {
    match kind {
        Kind::Pipe => {
            let opened = pipe::OpenOptions::new().open_sender(OUTPUT_PATH);
            Ok(Box::new(opened.or_else(|_| pipe::Sender::from_file(file))?))
        }
        Kind::Socket => Ok(Box::new(socket(file)?)),
        Kind::Other => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn owned(fd: io::Result<OwnedFd>) -> io::Result<(Kind, File)> {
    let file = File::from(fd?);
    let kind = file.metadata()?.file_type();
    let kind = match (kind.is_fifo(), kind.is_socket()) {
        (true, _) => Kind::Pipe,
        (false, true) => Kind::Socket,
        (false, false) => Kind::Other,
    };
    Ok((kind, file))
}

fn socket(file: File) -> io::Result<UnixStream> {
    let stream = StdUnixStream::from(OwnedFd::from(file));
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
