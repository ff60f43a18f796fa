//! The three pipes of a container.
//!
//! The output and the error output have separate connections, so that reading only one of them does
//! not block on the other.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error;
use bollard::query_parameters::AttachContainerOptions;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::io::AsyncWrite;
use tokio_util::io::StreamReader;

use super::engine::Engine;
use crate::confined_program::{Output, Pipes};
use crate::error::EngineError;

/// A program's input. Dropping it sends end of file to the engine.
struct Stdin(Pin<Box<dyn AsyncWrite + Send>>);

/// Opens the pipes of a container that is not running yet, so that nothing is lost.
pub(super) async fn attach(engine: &Engine, name: &str) -> Result<Pipes, EngineError> {
    let both = AttachContainerOptions {
        stream: true,
        stdin: true,
        stdout: true,
        ..AttachContainerOptions::default()
    };
    let errors =
        AttachContainerOptions { stream: true, stderr: true, ..AttachContainerOptions::default() };
    let AttachContainerResults { output, input } = open(engine, name, both).await?;
    let complaints = open(engine, name, errors).await?.output;
    Ok(Pipes { stdin: Box::new(Stdin(input)), stdout: read(output), stderr: read(complaints) })
}

async fn open(
    engine: &Engine,
    name: &str,
    options: AttachContainerOptions,
) -> Result<AttachContainerResults, EngineError> {
    let attached = engine.client().attach_container(name, Some(options)).await;
    attached.map_err(engine.told("connect the pipes of a container"))
}

fn read(said: Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>) -> Output {
    let bytes = said.map(|said| -> io::Result<Bytes> {
        said.map(LogOutput::into_bytes).map_err(io::Error::other)
    });
    Box::new(StreamReader::new(bytes))
}

impl AsyncWrite for Stdin {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_shutdown(cx)
    }
}

impl Drop for Stdin {
    fn drop(&mut self) {
        // The socket below never blocks here; one that is already closed is fine.
        let told = self.0.as_mut().poll_shutdown(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Err(error)) = told {
            tracing::debug!(%error, "the input of a container was already closed");
        }
    }
}
