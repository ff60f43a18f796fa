//! ZMTP as a ROUTER speaks it to one peer. Written by hand, because the kit has to see and send
//! what a library would hide.

use std::io;

use bytes::{Bytes, BytesMut};
use ringback_proto::secret::Secret;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const FLAG_MORE: u8 = 1;
const FLAG_LONG: u8 = 2;
const FLAG_COMMAND: u8 = 4;
const GREETING_BYTES: usize = 64;
const MECHANISM: std::ops::Range<usize> = 12..32;
/// The largest message, as in the daemon.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// A message or command from a peer.
#[derive(Debug)]
pub(super) enum PeerMessage {
    Message(Vec<Bytes>),
    /// To be answered with the same context.
    Ping(Bytes),
}

/// Why a peer is rejected.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error("the connection ended during the handshake")]
    Ended(#[from] io::Error),
    #[error("the candidate uses the mechanism `{0}`; use PLAIN")]
    Mechanism(String),
    #[error("the candidate sent `{0}` instead of `{1}` in the PLAIN handshake")]
    Command(String, &'static str),
    #[error("the candidate does not send the token in RINGBACK_TOKEN as its password")]
    Token,
}

/// Performs the handshake and accepts a peer that has the token.
pub(super) async fn welcome<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    token: &Secret,
) -> Result<(), HandshakeError> {
    let mut greeting = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
    greeting.extend(b"PLAIN");
    greeting.resize(GREETING_BYTES, 0);
    // This side is the server, which asks for the password.
    greeting[MECHANISM.end] = 1;
    stream.write_all(&greeting).await?;
    let mut theirs = [0; GREETING_BYTES];
    stream.read_exact(&mut theirs).await?;
    let mechanism = String::from_utf8_lossy(&theirs[MECHANISM]);
    let mechanism = mechanism.trim_end_matches('\0');
    if mechanism != "PLAIN" {
        return Err(HandshakeError::Mechanism(mechanism.to_owned()));
    }
    let hello = expect(stream, "HELLO").await?;
    if password(&hello) != Some(token.expose().as_bytes()) {
        stream.write_all(&command("ERROR", b"\x0dInvalid token")).await?;
        return Err(HandshakeError::Token);
    }
    stream.write_all(&command("WELCOME", &[])).await?;
    expect(stream, "INITIATE").await?;
    stream.write_all(&command("READY", b"\x0bSocket-Type\0\0\0\x06ROUTER")).await?;
    Ok(())
}

/// Receives the next message or ping.
pub(super) async fn receive<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<PeerMessage> {
    let (mut parts, mut n_bytes) = (Vec::new(), 0);
    loop {
        let (flags, body) = part(stream, MESSAGE_BYTES_MAX - n_bytes).await?;
        if flags & FLAG_COMMAND != 0 {
            match named(&body) {
                // The context to echo follows the time to live, which does not matter here.
                (b"PING", rest) => {
                    return Ok(PeerMessage::Ping(
                        body.slice_ref(rest.get(2..).unwrap_or_default()),
                    ));
                }
                _ => continue,
            }
        }
        n_bytes += body.len();
        parts.push(body);
        if flags & FLAG_MORE == 0 {
            return Ok(PeerMessage::Message(parts));
        }
    }
}

/// Encodes a message.
pub(super) fn message(parts: &[Bytes]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let more = if index + 1 < parts.len() { FLAG_MORE } else { 0 };
        put(&mut bytes, more, part);
    }
    bytes
}

/// Encodes a command.
pub(super) fn command(name: &str, body: &[u8]) -> Vec<u8> {
    let mut command = vec![u8::try_from(name.len()).unwrap_or(u8::MAX)];
    command.extend(name.bytes());
    command.extend(body);
    let mut bytes = Vec::new();
    put(&mut bytes, FLAG_COMMAND, &command);
    bytes
}

async fn expect<S: AsyncRead + Unpin>(
    stream: &mut S,
    expected: &'static str,
) -> Result<Bytes, HandshakeError> {
    let (_, body) = part(stream, MESSAGE_BYTES_MAX).await?;
    let (name, rest) = named(&body);
    if name == expected.as_bytes() {
        return Ok(body.slice_ref(rest));
    }
    Err(HandshakeError::Command(String::from_utf8_lossy(name).into_owned(), expected))
}

async fn part<S: AsyncRead + Unpin>(stream: &mut S, bytes_max: usize) -> io::Result<(u8, Bytes)> {
    let flags = stream.read_u8().await?;
    let length = if flags & FLAG_LONG == 0 {
        u64::from(stream.read_u8().await?)
    } else {
        stream.read_u64().await?
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= bytes_max);
    let length = length.ok_or_else(|| io::Error::other("a message is larger than 64 MiB"))?;
    let mut body = BytesMut::zeroed(length);
    stream.read_exact(&mut body).await?;
    Ok((flags, body.freeze()))
}

fn put(bytes: &mut Vec<u8>, flags: u8, part: &[u8]) {
    match u8::try_from(part.len()) {
        Ok(length) => bytes.extend([flags, length]),
        Err(_) => {
            bytes.push(flags | FLAG_LONG);
            bytes.extend((part.len() as u64).to_be_bytes());
        }
    }
    bytes.extend(part);
}

/// Splits a command into its name and the rest.
fn named(body: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = body.split_first() else { return (&[], &[]) };
    rest.split_at_checked(usize::from(*length)).unwrap_or((&[], rest))
}

/// Returns the password, which follows the user name.
fn password(hello: &[u8]) -> Option<&[u8]> {
    let (length, rest) = hello.split_first()?;
    let (_, rest) = rest.split_at_checked(usize::from(*length))?;
    let (length, rest) = rest.split_first()?;
    rest.get(..usize::from(*length))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ringback_proto::secret::Secret;
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn a_peer_is_let_in_with_the_token_and_with_nothing_else() {
        for (password, is_let_in) in [("oub_right", true), ("oub_wrong", false)] {
            let (mut ours, mut theirs) = tokio::io::duplex(4096);
            let mut said = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
            said.extend(b"PLAIN");
            said.resize(GREETING_BYTES, 0);
            let mut hello = b"\x04user\x09".to_vec();
            hello.extend(password.bytes());
            said.extend(command("HELLO", &hello));
            said.extend(command("INITIATE", b"\x0bSocket-Type\0\0\0\x06DEALER"));
            theirs.write_all(&said).await.unwrap();
            let token = Secret::new("oub_right".to_owned());
            assert_eq!(welcome(&mut ours, &token).await.is_ok(), is_let_in);
        }
    }

    #[tokio::test]
    async fn a_message_reads_back_and_pings_are_told_apart() {
        let parts = [Bytes::from_static(b"short"), Bytes::from(vec![7; 300]), Bytes::new()];
        let mut bytes = command("PING", b"\0\x0acontext");
        bytes.extend(message(&parts));
        let mut bytes = &bytes[..];
        let ping = receive(&mut bytes).await.unwrap();
        assert!(matches!(ping, PeerMessage::Ping(context) if context == "context"));
        let read = receive(&mut bytes).await.unwrap();
        assert!(matches!(read, PeerMessage::Message(read) if read == parts));
    }
}
