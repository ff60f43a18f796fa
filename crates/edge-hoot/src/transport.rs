//! Sockets as the rest of the crate needs them. The only file that names the ZeroMQ library.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use omq_tokio::{
    AuthenticationResult, Authenticator, ConnectionStatus, CurveKeypair, CurveSecretKey,
    CurveServerOptions, MechanismSetup, Message, MonitorEvent, MonitorRecvError, MonitorStream,
    Options, PeerInfo, Socket, SocketType, TrySendError,
};
use ringback_broker::{Broker, Credential};
use ringback_hoot_wire as hoot_wire;
use ringback_proto::frame::{Frame, FrameError, Prefix};
use ringback_proto::principal::PrincipalId;
use ringback_proto::secret::Secret;

use crate::lobby::WAITING_MAX;

/// Why a socket cannot be opened.
pub(crate) type TransportError = Box<dyn std::error::Error + Send + Sync>;

/// Messages that wait in the library for one peer before its backlog here starts to count.
const SEND_QUEUE: u32 = 256;
/// Received messages waiting to be read.
const RECV_QUEUE: u32 = 1000;
/// Connections that have not authenticated: somewhat more than the lobby keeps, because the lobby
/// must learn of one before it can send another away. Beyond that, they wait to be accepted, and
/// take no open file.
const HANDSHAKES_MAX: usize = 4 * WAITING_MAX;
/// Connection events that the lobby has yet to receive. The library reserves a third of a KiB for
/// each, on four sockets; a lobby that missed some looks at all connections.
const MONITOR_QUEUE: usize = 256;
/// Enough for a handshake over a slow link, short for a silent stranger.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long queued messages have to leave at the end.
const LINGER: Duration = Duration::from_millis(500);
/// The overhead of a frame's parts.
const PARTS_BYTES: usize = 1 << 20;

/// How peers authenticate.
#[derive(Debug, Clone)]
pub(crate) enum Door {
    /// By a token, sent in the handshake.
    Token(Broker),
    /// By a token, proved in the handshake.
    Curve(Broker, Arc<CurveKeypair>),
    /// By being able to reach the socket.
    Local,
}

/// One connection of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectionId(u64);

#[cfg(test)]
impl ConnectionId {
    pub(crate) const fn of_test(number: u64) -> Self {
        Self(number)
    }
}

/// The connection events of a socket.
#[derive(Debug)]
pub(crate) struct Monitor(MonitorStream);

/// An event of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEvent {
    /// Accepted, but not authenticated yet.
    Came(ConnectionId),
    /// Authenticated.
    In(ConnectionId),
    /// Ended.
    Left(ConnectionId),
    /// Events were lost.
    Missed,
}

impl Monitor {
    /// Returns the next event; never resolves once the socket is closed.
    ///
    /// # Cancel safety
    /// A dropped wait loses nothing.
    pub(crate) async fn next(&mut self) -> ConnectionEvent {
        loop {
            return match self.0.recv().await {
                Ok(MonitorEvent::Accepted { connection_id, .. }) => {
                    ConnectionEvent::Came(ConnectionId(connection_id))
                }
                Ok(MonitorEvent::HandshakeSucceeded { peer, .. }) => {
                    ConnectionEvent::In(ConnectionId(peer.connection_id))
                }
                Ok(MonitorEvent::Disconnected { peer, .. }) => {
                    ConnectionEvent::Left(ConnectionId(peer.connection_id))
                }
                Err(MonitorRecvError::Lagged(_)) => ConnectionEvent::Missed,
                Err(_) => std::future::pending().await,
                Ok(_) => continue,
            };
        }
    }
}

/// Changes with every connection that comes or goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// A connection that has completed its handshake.
#[derive(Debug)]
pub(crate) struct AuthenticatedPeer {
    pub(crate) id: ConnectionId,
    /// Its routing id while it is connected.
    pub(crate) name: Bytes,
    user_id: Option<PrincipalId>,
}

/// A message for a peer that has yet to leave.
#[derive(Debug)]
pub(crate) struct UnsentMessage(Message);

/// Why a message did not leave.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The peer does not read.
    Full(UnsentMessage),
    /// The peer has gone.
    Gone,
}

/// A message that a ROUTER received, with its connection, which cannot be forged.
pub(crate) type ReceivedMessage = (ConnectionId, Result<(Prefix, Frame), FrameError>);

/// The limits of one socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketLimits {
    pub(crate) message_bytes_max: usize,
    /// How long a peer may be silent.
    pub(crate) idle: Duration,
    /// The connections that it may have.
    pub(crate) peers_max: usize,
}

/// The socket for calls.
#[derive(Debug)]
pub(crate) struct Router {
    socket: Socket,
    door: Door,
}

impl Router {
    /// Binds the socket and returns its address.
    pub(crate) async fn bind(
        endpoint: &str,
        door: Door,
        limits: SocketLimits,
    ) -> Result<(Self, String), TransportError> {
        let mut options = options(&door, limits).router_mandatory(true);
        options = options.send_hwm(SEND_QUEUE).recv_hwm(RECV_QUEUE);
        let socket = Socket::try_new(SocketType::Router, options)?;
        let bound = socket.bind(endpoint).await?;
        Ok((Self { socket, door }, bound.to_string()))
    }

    /// Receives the next message. `None` once closed.
    ///
    /// # Cancel safety
    /// A dropped wait loses no message.
    pub(crate) async fn recv(&self) -> Option<ReceivedMessage> {
        loop {
            let message = self.socket.recv().await.ok()?;
            if let Some(received) = received(&message) {
                return Some(received);
            }
        }
    }

    /// Returns the next message if it has already arrived.
    pub(crate) fn try_recv(&self) -> Option<ReceivedMessage> {
        received(&self.socket.try_recv().ok()?)
    }

    /// A number that identifies the current set of connections.
    pub(crate) fn generation(&self) -> Generation {
        Generation(self.socket.connections_generation())
    }

    /// Starts to monitor connections.
    pub(crate) fn monitor(&self) -> Monitor {
        Monitor(self.socket.monitor())
    }

    /// Ends a connection that has not authenticated yet.
    pub(crate) async fn turn_away(&self, connection: ConnectionId) {
        turn_away(&self.socket, connection).await;
    }

    /// The peer of a connection, if it is open and authenticated.
    pub(crate) async fn connected(&self, connection: ConnectionId) -> Option<AuthenticatedPeer> {
        let status = self.socket.connection_info(connection.0).await.ok()??;
        let user_id = status.peer_info?.authentication.user_id.clone();
        Some(AuthenticatedPeer {
            id: ConnectionId(status.connection_id),
            name: status.identity,
            user_id: principal_id(user_id.as_deref()),
        })
    }

    /// All connections that are open and authenticated.
    pub(crate) async fn all_connected(&self) -> HashSet<ConnectionId> {
        let connections = self.socket.connections().await.unwrap_or_default();
        let authenticated = connections.into_iter().filter(|status| status.peer_info.is_some());
        authenticated.map(|status| ConnectionId(status.connection_id)).collect()
    }

    /// The identity of a peer, from its handshake.
    pub(crate) fn credential(&self, connected: &AuthenticatedPeer) -> Option<Credential> {
        match &self.door {
            Door::Local => Some(Credential::local()),
            Door::Token(broker) | Door::Curve(broker, _) => broker.credential(connected.user_id?),
        }
    }

    /// Packs a frame for sending, with the prefix that stands between it and the identity.
    pub(crate) fn pack(prefix: &Prefix, frame: Frame) -> UnsentMessage {
        UnsentMessage(hoot_wire::encode_routed(prefix, frame))
    }

    /// Sends a message to the current owner of a routing id, or returns why not. Never waits.
    pub(crate) fn try_send(&self, to: &Bytes, unsent: UnsentMessage) -> Result<(), SendError> {
        match self.socket.try_send_to(to, unsent.0) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(message)) => Err(SendError::Full(UnsentMessage(message))),
            Err(TrySendError::Closed | TrySendError::Error(_)) => Err(SendError::Gone),
        }
    }

    /// Ends one connection.
    pub(crate) async fn disconnect(&self, connection: ConnectionId) {
        if let Err(error) = self.socket.disconnect_peer(connection.0).await {
            tracing::debug!(%error, "the connection had already ended");
        }
    }

    /// Closes the socket after queued messages have left.
    pub(crate) async fn close(self) {
        if let Err(error) = self.socket.close().await {
            tracing::debug!(%error, "the socket did not close cleanly");
        }
    }
}

/// The socket for events.
#[derive(Debug)]
pub(crate) struct Publisher {
    socket: Socket,
}

/// Decides whether a subscriber may have the topics with a prefix.
pub(crate) type Admission = Arc<dyn Fn(Option<PrincipalId>, &[u8]) -> bool + Send + Sync>;

impl Publisher {
    /// Binds the socket and returns its address.
    pub(crate) async fn bind(
        endpoint: &str,
        door: &Door,
        limits: SocketLimits,
        admission: Admission,
    ) -> Result<(Self, String), TransportError> {
        let options = options(door, limits).send_hwm(RECV_QUEUE);
        let options = options.subscription_admission(move |request| {
            let user_id = request.peer.authentication.user_id.as_deref();
            admission(principal_id(user_id), request.prefix)
        });
        let socket = Socket::try_new(SocketType::Pub, options)?;
        let bound = socket.bind(endpoint).await?;
        Ok((Self { socket }, bound.to_string()))
    }

    /// A number that identifies the current set of connections.
    pub(crate) fn generation(&self) -> Generation {
        Generation(self.socket.connections_generation())
    }

    /// Resolves when the connections differ from those at `seen`; never once closed.
    ///
    /// # Cancel safety
    /// A dropped wait loses nothing.
    pub(crate) async fn changed(&self, seen: Generation) {
        if self.socket.connections_changed(seen.0).await.is_err() {
            std::future::pending().await
        }
    }

    /// Starts to monitor connections.
    pub(crate) fn monitor(&self) -> Monitor {
        Monitor(self.socket.monitor())
    }

    /// Ends a connection that has not authenticated yet.
    pub(crate) async fn turn_away(&self, connection: ConnectionId) {
        turn_away(&self.socket, connection).await;
    }

    /// The current connections.
    pub(crate) async fn connected(&self) -> Vec<ConnectionId> {
        let connections = self.socket.connections().await.unwrap_or_default();
        connections.into_iter().map(|status| ConnectionId(status.connection_id)).collect()
    }

    /// What each subscriber subscribes to: the prefixes that were admitted.
    pub(crate) async fn subscriptions(&self) -> Vec<(Option<PrincipalId>, Vec<Bytes>)> {
        let Ok((_, peers)) = self.socket.monitor_with_subscriptions().await else {
            return Vec::new();
        };
        let user = |peer: &PeerInfo| principal_id(peer.authentication.user_id.as_deref());
        peers.into_iter().map(|found| (user(&found.peer), found.prefixes)).collect()
    }

    /// Whether any subscriber is connected.
    pub(crate) async fn has_subscribers(&self) -> bool {
        self.socket.connections().await.is_ok_and(|connections| !connections.is_empty())
    }

    /// Publishes an event. Only a subscriber that does not read misses it.
    pub(crate) async fn publish(&self, topic: Bytes, body: Bytes) {
        if let Err(error) = self.socket.send(Message::multipart([topic, body])).await {
            tracing::debug!(%error, "an event could not be published");
        }
    }

    /// Ends the connections whose token is no longer valid.
    pub(crate) async fn disconnect_unless(&self, is_valid: impl Fn(Option<PrincipalId>) -> bool) {
        let Ok(connections) = self.socket.connections().await else { return };
        for status in connections {
            let Some(peer) = status.peer_info else { continue };
            if !is_valid(principal_id(peer.authentication.user_id.as_deref())) {
                let ended = self.socket.disconnect_peer(status.connection_id).await;
                tracing::debug!(?ended, "disconnecting a subscriber: its token is no longer valid");
            }
        }
    }

    /// Closes the socket.
    pub(crate) async fn close(self) {
        if let Err(error) = self.socket.close().await {
            tracing::debug!(%error, "the socket did not close cleanly");
        }
    }
}

impl Door {
    /// Authentication by CURVE keys. `None` if the secret key is invalid.
    pub(crate) fn curve(broker: Broker, secret_key: &Secret) -> Option<Self> {
        let secret = CurveSecretKey::from_z85(secret_key.expose().trim()).ok()?;
        let public = secret.derive_public();
        Some(Self::Curve(broker, Arc::new(CurveKeypair { public, secret })))
    }

    /// The key that identifies the daemon to peers (Z85).
    pub(crate) fn server_key(&self) -> Option<String> {
        match self {
            Self::Curve(_, keypair) => Some(keypair.public.to_z85()),
            Self::Token(_) | Self::Local => None,
        }
    }
}

async fn turn_away(socket: &Socket, connection: ConnectionId) {
    // It may have authenticated in the meantime, or be gone.
    let status = socket.connection_info(connection.0).await;
    if matches!(status, Ok(Some(ConnectionStatus { peer_info: None, .. })))
        && let Err(error) = socket.disconnect_peer(connection.0).await
    {
        tracing::debug!(%error, "a waiting connection had already ended");
    }
}

fn options(door: &Door, limits: SocketLimits) -> Options {
    let SocketLimits { message_bytes_max, idle, peers_max } = limits;
    let mut options = Options::default()
        .max_message_size(message_bytes_max + PARTS_BYTES)
        .heartbeat_interval(idle / 3)
        .heartbeat_timeout(idle)
        .handshake_timeout(HANDSHAKE_TIMEOUT)
        .max_pending_handshakes(peers_max.clamp(1, HANDSHAKES_MAX))
        .monitor_capacity(MONITOR_QUEUE)
        .linger(LINGER);
    match door {
        Door::Local => options,
        Door::Token(broker) => {
            let broker = broker.clone();
            let authenticator = Authenticator::new_with_result(move |peer| {
                let secret = peer.password.as_deref().unwrap_or_default();
                admit(broker.authenticate(secret))
            });
            options.mechanism = MechanismSetup::PlainServer { authenticator };
            options
        }
        Door::Curve(broker, keypair) => {
            let broker = broker.clone();
            let mut curve = CurveServerOptions::default();
            curve.authenticator = Some(Authenticator::new_with_result(move |peer| {
                admit(broker.authenticate_key(&peer.public_key))
            }));
            options.curve_server_with_options(keypair.as_ref().clone(), curve)
        }
    }
}

fn admit(credential: ringback_proto::Result<Credential>) -> AuthenticationResult {
    match credential {
        Ok(credential) => AuthenticationResult::allow().with_user_id(credential.id().to_string()),
        Err(_) => AuthenticationResult::deny(),
    }
}

fn principal_id(user_id: Option<&[u8]>) -> Option<PrincipalId> {
    std::str::from_utf8(user_id?).ok()?.parse().ok()
}

fn received(message: &Message) -> Option<ReceivedMessage> {
    let connection = ConnectionId(message.sender_identity()?.peer_info().connection_id);
    Some((connection, hoot_wire::decode_routed(message)))
}
