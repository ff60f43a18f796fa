//! A peer that speaks ZMTP 3.1 by hand: it does what a library would not.

use bytes::{Bytes, BytesMut};
use ringback_proto::ResponseEnvelope;
use ringback_proto::frame::{Body, Frame};
use ringback_proto::secret::Secret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::proxy::address;

const FLAG_MORE: u8 = 1;
const FLAG_LONG: u8 = 2;
const FLAG_COMMAND: u8 = 4;
const GREETING_BYTES: usize = 64;
/// The kernel takes it as a hint and doubles it.
const SMALL_BUFFER_BYTES: u32 = 2048;

/// How a raw peer introduces itself.
#[derive(Debug, Clone)]
pub struct Hello<'a> {
    /// Its token; `None` for an open daemon.
    pub token: Option<&'a Secret>,
    /// Its routing ID; without one it is given one.
    pub identity: Option<&'a [u8]>,
    /// `DEALER`, `REQ` or `SUB`.
    pub socket_type: &'a str,
}

impl<'a> Hello<'a> {
    /// Returns a DEALER with a token.
    #[must_use]
    pub const fn dealer(token: &'a Secret) -> Self {
        Self { token: Some(token), identity: None, socket_type: "DEALER" }
    }

    /// Adds a routing ID.
    #[must_use]
    pub const fn named(self, identity: &'a [u8]) -> Self {
        Self { identity: Some(identity), ..self }
    }
}

/// Why connecting failed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The daemon refused.
    #[error("the daemon refuses the handshake: {0}")]
    Refused(String),
    /// The daemon hung up.
    #[error("the connection ended in the handshake")]
    Ended(#[from] std::io::Error),
}

/// A peer on a bare TCP connection. It reads only on request.
#[derive(Debug)]
pub struct RawPeer {
    stream: TcpStream,
}

impl RawPeer {
    /// Connects and shakes hands.
    ///
    /// # Errors
    /// If the daemon refuses or hangs up.
    pub async fn connect(endpoint: &str, hello: Hello<'_>) -> Result<Self, HandshakeError> {
        Self::stranger(endpoint).await?.shake_hands(hello).await
    }

    async fn shake_hands(mut self, hello: Hello<'_>) -> Result<Self, HandshakeError> {
        let peer = &mut self;
        let mechanism = if hello.token.is_some() { "PLAIN" } else { "NULL" };
        peer.greet(mechanism).await?;
        let mut properties = property("Socket-Type", hello.socket_type.as_bytes());
        if let Some(identity) = hello.identity {
            properties.extend(property("Identity", identity));
        }
        match hello.token {
            None => peer.send_command("READY", &properties).await?,
            Some(token) => {
                let (user, password) = (b"raw", token.expose().as_bytes());
                let mut body = vec![u8::try_from(user.len()).expect("short")];
                body.extend(user);
                body.push(u8::try_from(password.len()).expect("short"));
                body.extend(password);
                peer.send_command("HELLO", &body).await?;
                peer.expect_command("WELCOME").await?;
                peer.send_command("INITIATE", &properties).await?;
            }
        }
        peer.expect_command("READY").await?;
        Ok(self)
    }

    /// Does the same with the smallest possible receive buffer, so that not reading shows soon.
    ///
    /// # Errors
    /// If the daemon refuses or hangs up.
    pub async fn connect_small(endpoint: &str, hello: Hello<'_>) -> Result<Self, HandshakeError> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(SMALL_BUFFER_BYTES)?;
        let stream = socket.connect(address(endpoint)).await?;
        Self { stream }.shake_hands(hello).await
    }

    /// Opens a TCP connection that has sent nothing yet.
    ///
    /// # Errors
    /// If the daemon does not listen.
    pub async fn stranger(endpoint: &str) -> std::io::Result<Self> {
        Ok(Self { stream: TcpStream::connect(address(endpoint)).await? })
    }

    /// Sends bytes unchanged.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Sends a message of parts.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn send(&mut self, parts: &[impl AsRef<[u8]>]) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let more = if index + 1 < parts.len() { FLAG_MORE } else { 0 };
            put_part(&mut bytes, more, part.as_ref());
        }
        self.send_bytes(&bytes).await
    }

    /// Sends a frame as a DEALER.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn send_frame(&mut self, frame: Frame) -> std::io::Result<()> {
        self.send(&parts_of(frame)).await
    }

    /// Subscribes to topics that start with `prefix`.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn subscribe(&mut self, prefix: &[u8]) -> std::io::Result<()> {
        self.send_command("SUBSCRIBE", prefix).await
    }

    /// Returns the next message, and answers pings on the way. `None` when the daemon hung up.
    pub async fn recv(&mut self) -> Option<Vec<Bytes>> {
        let mut parts = Vec::new();
        loop {
            let (flags, body) = self.read_part().await.ok()?;
            if flags & FLAG_COMMAND != 0 {
                self.on_command(&body).await?;
                continue;
            }
            parts.push(body);
            if flags & FLAG_MORE == 0 {
                return Some(parts);
            }
        }
    }

    /// Returns the next message as a frame.
    ///
    /// # Panics
    /// If it is not a frame, or the daemon hung up.
    pub async fn recv_frame(&mut self) -> Frame {
        let parts = self.recv().await.expect("the daemon answers");
        Frame::decode(&parts[..]).expect("a frame")
    }

    /// Returns the next reply: the ID of its request, and its content.
    ///
    /// # Panics
    /// If it is not a reply, or the daemon hung up.
    pub async fn recv_reply(&mut self) -> (ringback_proto::ids::RequestId, ResponseEnvelope) {
        let frame = self.recv_frame().await;
        (frame.request_id, envelope(&frame))
    }

    async fn greet(&mut self, mechanism: &str) -> Result<(), HandshakeError> {
        let mut greeting = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
        greeting.extend(mechanism.bytes());
        greeting.resize(GREETING_BYTES, 0);
        self.stream.write_all(&greeting).await?;
        let mut theirs = [0; GREETING_BYTES];
        self.stream.read_exact(&mut theirs).await?;
        Ok(())
    }

    async fn send_command(&mut self, name: &str, body: &[u8]) -> std::io::Result<()> {
        let mut command = vec![u8::try_from(name.len()).expect("short")];
        command.extend(name.bytes());
        command.extend(body);
        let mut bytes = Vec::new();
        put_part(&mut bytes, FLAG_COMMAND, &command);
        self.send_bytes(&bytes).await
    }

    async fn expect_command(&mut self, expected: &str) -> Result<(), HandshakeError> {
        let (_, body) = self.read_part().await?;
        let (name, rest) = command(&body);
        if name == expected.as_bytes() {
            return Ok(());
        }
        Err(HandshakeError::Refused(String::from_utf8_lossy(rest).into_owned()))
    }

    async fn on_command(&mut self, body: &[u8]) -> Option<()> {
        let (name, rest) = command(body);
        if name == b"PING" {
            // The time to live, which only concerns the daemon, is followed by the bytes to echo.
            let context = rest.get(2..).unwrap_or_default().to_vec();
            self.send_command("PONG", &context).await.ok()?;
        }
        Some(())
    }

    async fn read_part(&mut self) -> std::io::Result<(u8, Bytes)> {
        let flags = self.stream.read_u8().await?;
        let length = if flags & FLAG_LONG == 0 {
            u64::from(self.stream.read_u8().await?)
        } else {
            self.stream.read_u64().await?
        };
        let length = usize::try_from(length).map_err(std::io::Error::other)?;
        let mut body = BytesMut::zeroed(length);
        self.stream.read_exact(&mut body).await?;
        Ok((flags, body.freeze()))
    }
}

/// Returns the parts of a frame, as a DEALER sends them.
#[must_use]
pub fn parts_of(frame: Frame) -> Vec<Bytes> {
    let mut parts = Vec::new();
    frame.encode(&mut parts);
    parts
}

/// Returns the content of a reply.
///
/// # Panics
/// If the frame has no envelope.
#[must_use]
pub fn envelope(frame: &Frame) -> ResponseEnvelope {
    let (encoded, data) = match &frame.body {
        Body::MsgPack(encoded) => (encoded, None),
        Body::RawBinary { data, header } => (header, Some(data.clone())),
        Body::Empty | Body::Credit(_) => panic!("no envelope in {frame:?}"),
    };
    let mut envelope = ResponseEnvelope::decode(encoded).expect("an envelope");
    if let Some(data) = data {
        envelope.put_data(data);
    }
    envelope
}

fn put_part(bytes: &mut Vec<u8>, flags: u8, part: &[u8]) {
    match u8::try_from(part.len()) {
        Ok(length) => bytes.extend([flags, length]),
        Err(_) => {
            bytes.push(flags | FLAG_LONG);
            bytes.extend((part.len() as u64).to_be_bytes());
        }
    }
    bytes.extend(part);
}

fn property(name: &str, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(name.len()).expect("short")];
    bytes.extend(name.bytes());
    bytes.extend(u32::try_from(value.len()).expect("short").to_be_bytes());
    bytes.extend(value);
    bytes
}

/// Returns the name of a command, and its data.
fn command(body: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = body.split_first() else { return (&[], &[]) };
    rest.split_at_checked(usize::from(*length)).unwrap_or((&[], rest))
}
