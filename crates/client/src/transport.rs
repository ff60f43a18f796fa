//! The only file that names the ZeroMQ library: sockets as the rest of the crate needs them.

use bytes::Bytes;
use omq_tokio::{
    CurveKeypair, CurvePublicKey, CurveSecretKey, DisconnectReason, Message, MonitorEvent,
    MonitorRecvError, MonitorStream, Options, ReconnectPolicy, Socket, SocketType, TrySendError,
};
use ringback_hoot_wire as hoot_wire;
use ringback_proto::frame::{Frame, FrameError};
use ringback_proto::secret::Secret;
use std::time::Duration;

use crate::config::Credentials;
use crate::error::{ConnectError, TransportError};

/// The daemon accepts messages of 64 MiB; replies may be as large, plus their envelope.
const MESSAGE_BYTES_MAX: usize = 65 << 20;
/// Fast enough that a restart is hardly noticed, slow enough not to hammer a dead machine.
const RECONNECT: ReconnectPolicy =
    ReconnectPolicy::Exponential { min: Duration::from_millis(100), max: Duration::from_secs(5) };
/// Longer than a frame takes to be sent, short enough that a close is not noticed.
const LINGER: Duration = Duration::from_millis(200);
/// PLAIN needs a user name; the daemon ignores it.
const USER: &str = "ringback";

/// The state of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// Connected.
    Up,
    /// Lost; reconnecting.
    Down,
    /// The daemon refused the token; the client does not try again.
    Refused,
}

/// A change of the connection.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// Connected.
    Up { connection_id: u64 },
    /// Lost, with the reason.
    Down { reason: String },
    /// The daemon refuses the token.
    Refused { reason: String },
    /// Some changes were missed; the connection may be a different one.
    Unclear,
    /// The socket was closed.
    Closed,
}

/// A frame that has not been sent yet.
#[derive(Debug)]
pub(crate) struct UnsentFrame(Message);

/// The socket for calls.
#[derive(Debug)]
pub(crate) struct Dealer {
    socket: Socket,
}

/// The connection events of a socket.
#[derive(Debug)]
pub(crate) struct Link {
    monitor: MonitorStream,
}

/// The socket for events.
#[derive(Debug)]
pub(crate) struct SubSocket {
    socket: Socket,
}

impl Dealer {
    /// Starts to connect; the link reports when it is done.
    pub(crate) async fn open(
        endpoint: &str,
        credentials: &Credentials,
    ) -> Result<(Self, Link), ConnectError> {
        // Random, so that it is unique: a name in use is taken over or refused.
        let identity = format!("client-{}", uuid::Uuid::new_v4());
        let options = options(credentials)?.identity(identity).linger(LINGER);
        let (socket, link) = open(SocketType::Dealer, options, endpoint, &[]).await?;
        Ok((Self { socket }, link))
    }

    /// Receives the next frame, or what is known of a message that is not a frame. `None` once
    /// closed.
    ///
    /// # Cancel safety
    /// A wait that is dropped loses no message.
    pub(crate) async fn recv(&self) -> Option<Result<Frame, FrameError>> {
        let message = self.socket.recv().await.ok()?;
        Some(hoot_wire::decode(&message))
    }

    /// Returns the next frame if it has already arrived.
    pub(crate) fn try_recv(&self) -> Option<Result<Frame, FrameError>> {
        let message = self.socket.try_recv().ok()?;
        Some(hoot_wire::decode(&message))
    }

    /// Prepares a frame for sending.
    pub(crate) fn pack(frame: Frame) -> UnsentFrame {
        UnsentFrame(hoot_wire::encode(frame))
    }

    /// Sends a frame, or returns it while there is no room. A closed socket accepts everything: the
    /// link reports that.
    pub(crate) fn try_send(&self, unsent: UnsentFrame) -> Result<(), UnsentFrame> {
        match self.socket.try_send(unsent.0) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(message)) => Err(UnsentFrame(message)),
            Err(TrySendError::Closed) => Ok(()),
            Err(TrySendError::Error(error)) => {
                tracing::debug!(%error, "cannot send a frame");
                Ok(())
            }
        }
    }

    /// Waits until there may be room.
    pub(crate) async fn writable(&self) {
        self.socket.wait_send_ready().await;
    }

    /// Ends a connection that does not answer, so that another is made.
    pub(crate) async fn drop_connection(&self, connection_id: u64) {
        if let Err(error) = self.socket.disconnect_peer(connection_id).await {
            tracing::debug!(%error, "the dead connection had already ended");
        }
    }

    /// Returns the current connection, if any, for when changes were missed.
    pub(crate) async fn connection(&self) -> Option<u64> {
        let connections = self.socket.connections().await.ok()?;
        connections.first().map(|connection| connection.connection_id)
    }

    /// Closes the socket after queued frames have been sent.
    pub(crate) async fn close(self) {
        if let Err(error) = self.socket.close().await {
            tracing::debug!(%error, "the socket did not close cleanly");
        }
    }
}

impl Link {
    /// Waits for the next change of the connection.
    ///
    /// # Cancel safety
    /// A wait that is dropped loses no event.
    pub(crate) async fn changed(&mut self) -> LinkEvent {
        loop {
            match self.monitor.recv().await {
                Ok(event) => {
                    if let Some(event) = link_event(event) {
                        return event;
                    }
                }
                Err(MonitorRecvError::Lagged(_)) => return LinkEvent::Unclear,
                Err(_) => return LinkEvent::Closed,
            }
        }
    }

    /// Waits until the connection is up.
    pub(crate) async fn up(
        &mut self,
        endpoint: &str,
        timeout: Duration,
    ) -> Result<u64, ConnectError> {
        let unreachable = || ConnectError::Unreachable { endpoint: endpoint.to_owned(), timeout };
        let up = async {
            loop {
                match self.changed().await {
                    LinkEvent::Up { connection_id } => return Ok(connection_id),
                    LinkEvent::Down { .. } | LinkEvent::Unclear => {}
                    LinkEvent::Closed => return Err(unreachable()),
                    LinkEvent::Refused { reason } => {
                        let endpoint = endpoint.to_owned();
                        return Err(ConnectError::Refused { endpoint, reason });
                    }
                }
            }
        };
        tokio::time::timeout(timeout, up).await.unwrap_or_else(|_| Err(unreachable()))
    }
}

impl SubSocket {
    /// Starts to connect and subscribes to topics that start with `prefixes`.
    pub(crate) async fn open(
        endpoint: &str,
        credentials: &Credentials,
        prefixes: &[String],
    ) -> Result<(Self, Link), ConnectError> {
        let options = options(credentials)?;
        let (socket, link) = open(SocketType::Sub, options, endpoint, prefixes).await?;
        Ok((Self { socket }, link))
    }

    /// Receives the next topic and body. `None` once closed.
    ///
    /// # Cancel safety
    /// A wait that is dropped loses no message.
    pub(crate) async fn recv(&self) -> Option<(Bytes, Bytes)> {
        let message = self.socket.recv().await.ok()?;
        let part = |index| message.part_bytes(index).unwrap_or_default();
        Some((part(0), part(1)))
    }
}

async fn open(
    socket_type: SocketType,
    options: Options,
    endpoint: &str,
    prefixes: &[String],
) -> Result<(Socket, Link), ConnectError> {
    let failed =
        |source: TransportError| ConnectError::Open { endpoint: endpoint.to_owned(), source };
    let options = options.reconnect(RECONNECT).max_message_size(MESSAGE_BYTES_MAX);
    let socket = Socket::try_new(socket_type, options).map_err(|error| failed(Box::new(error)))?;
    let link = Link { monitor: socket.monitor() };
    for prefix in prefixes {
        let prefix = Bytes::copy_from_slice(prefix.as_bytes());
        socket.subscribe(prefix).await.map_err(|error| failed(Box::new(error)))?;
    }
    socket.connect(endpoint).await.map_err(|error| failed(Box::new(error)))?;
    Ok((socket, link))
}

fn options(credentials: &Credentials) -> Result<Options, ConnectError> {
    let options = Options::default();
    match credentials {
        Credentials::None => Ok(options),
        Credentials::Token(token) => Ok(options.plain_client(USER, token.expose())),
        Credentials::Curve { token, server_key } => {
            let secret = CurveSecretKey::from_bytes(token_bytes(token)?);
            let keypair = CurveKeypair { public: secret.derive_public(), secret };
            let server_key =
                CurvePublicKey::from_z85(server_key).map_err(|_| ConnectError::ServerKey)?;
            Ok(options.curve_client(keypair, server_key))
        }
    }
}

/// Returns the 32 bytes of a token's hex digits.
fn token_bytes(token: &Secret) -> Result<[u8; 32], ConnectError> {
    let digits = token.expose().strip_prefix("oub_").ok_or(ConnectError::Token)?;
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(ConnectError::Token);
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| ConnectError::Token)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| ConnectError::Token)?;
    }
    Ok(bytes)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum that grows")]
fn link_event(event: MonitorEvent) -> Option<LinkEvent> {
    match event {
        MonitorEvent::HandshakeSucceeded { peer, .. } => {
            Some(LinkEvent::Up { connection_id: peer.connection_id })
        }
        MonitorEvent::Disconnected { reason, .. } => {
            Some(LinkEvent::Down { reason: reason_text(&reason) })
        }
        MonitorEvent::ConnectStopped { reason, .. } => {
            Some(LinkEvent::Refused { reason: reason_text(&reason) })
        }
        MonitorEvent::Closed => Some(LinkEvent::Closed),
        _ => None,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum that grows")]
fn reason_text(reason: &DisconnectReason) -> String {
    match reason {
        DisconnectReason::PeerClosed => "the daemon closed it".to_owned(),
        DisconnectReason::Error(error) => error.clone(),
        DisconnectReason::HandshakeRefused(refusal) => refusal.to_string(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: reconnecting backs off, with a limit; that the pauses grow is a test over sockets.
    #[test]
    fn attempts_to_connect_are_never_further_apart_than_a_few_seconds() {
        let ReconnectPolicy::Exponential { min, max } = RECONNECT else {
            panic!("the pauses do not grow: {RECONNECT:?}")
        };
        assert!(min < max && max <= Duration::from_secs(10), "{min:?} to {max:?}");
    }

    #[test]
    fn a_token_is_a_key_of_32_bytes() {
        let token = |text: &str| token_bytes(&Secret::new(text.to_owned()));
        assert_eq!(token(&format!("oub_{}", "0f".repeat(32))).unwrap(), [15; 32]);
        for text in ["", "oub_", &"0f".repeat(32), &format!("oub_{}", "0g".repeat(32))] {
            assert!(matches!(token(text), Err(ConnectError::Token)), "{text}");
        }
    }
}
