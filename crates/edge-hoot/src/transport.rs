//! The only file that names the ZeroMQ library: sockets as the rest of the crate wants them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use omq_tokio::{
    AuthenticationResult, Authenticator, CurveKeypair, CurveSecretKey, CurveServerOptions,
    Identity, MechanismSetup, Message, MonitorEvent, MonitorRecvError, MonitorStream, Options,
    Payload, Socket, SocketType, TrySendError,
};
use ringback_broker::{Broker, Credential};
use ringback_proto::frame::{Frame, FrameError, PartSink, Parts, Prefix};
use ringback_proto::principal::PrincipalId;
use ringback_proto::secret::Secret;

/// Why a socket could not be opened.
pub(crate) type TransportError = Box<dyn std::error::Error + Send + Sync>;

/// Messages that wait in the library for one peer before its backlog begins to count here.
const SEND_QUEUE: u32 = 256;
/// Messages that wait to be looked at.
const RECV_QUEUE: u32 = 1000;
/// Strangers who have not yet shown a token.
const HANDSHAKES_MAX: usize = 256;
/// Enough for a handshake over a slow link, short for a stranger who says nothing.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// What is queued at the end has this long to leave.
const LINGER: Duration = Duration::from_millis(500);
/// Parts of a frame take some room beside its bytes.
const PARTS_BYTES: usize = 1 << 20;

/// How peers show who they are.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId(u64);

/// A peer as a message names it: cannot be forged by the peer.
#[derive(Debug, Clone)]
pub(crate) struct Sender(Identity);

impl Sender {
    pub(crate) fn connection(&self) -> ConnectionId {
        ConnectionId(self.0.peer_info().connection_id)
    }

    fn user_id(&self) -> Option<PrincipalId> {
        principal_id(self.0.peer_info().authentication.user_id.as_deref())
    }
}

/// A message for a peer that has yet to leave.
#[derive(Debug)]
pub(crate) struct Unsent(Message);

/// Why a message did not leave.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The peer does not read.
    Full(Unsent),
    /// The peer has gone.
    Gone,
}

/// What a ROUTER receives.
pub(crate) type Received = (Sender, Result<(Prefix, Frame), FrameError>);

/// The socket that calls come in on.
#[derive(Debug)]
pub(crate) struct Router {
    socket: Socket,
    door: Door,
}

/// What happens to connections.
#[derive(Debug)]
pub(crate) enum ConnectionEvent {
    /// One ended.
    Ended(ConnectionId),
    /// Some may have ended; the list says which are left.
    Left(Vec<ConnectionId>),
    /// The socket was closed.
    Closed,
}

/// Tells what happens to connections.
#[derive(Debug)]
pub(crate) struct Connections {
    monitor: MonitorStream,
    socket: Socket,
}

impl Router {
    /// Binds and says where.
    pub(crate) async fn bind(
        endpoint: &str,
        door: Door,
        message_bytes_max: usize,
        idle: Duration,
    ) -> Result<(Self, String), TransportError> {
        let mut options = options(&door, message_bytes_max, idle).router_mandatory(true);
        options = options.send_hwm(SEND_QUEUE).recv_hwm(RECV_QUEUE);
        let socket = Socket::try_new(SocketType::Router, options)?;
        let bound = socket.bind(endpoint).await?;
        Ok((Self { socket, door }, bound.to_string()))
    }

    /// The next message. `None` once closed.
    ///
    /// # Cancel safety
    /// A wait that is dropped loses no message.
    pub(crate) async fn recv(&self) -> Option<Received> {
        loop {
            let message = self.socket.recv().await.ok()?;
            if let Some(received) = received(&message) {
                return Some(received);
            }
        }
    }

    /// The next message if it is already here.
    pub(crate) fn try_recv(&self) -> Option<Received> {
        received(&self.socket.try_recv().ok()?)
    }

    /// Who a peer is, by its handshake.
    pub(crate) fn credential(&self, sender: &Sender) -> Option<Credential> {
        match &self.door {
            Door::Local => Some(Credential::local()),
            Door::Token(broker) | Door::Curve(broker, _) => broker.credential(sender.user_id()?),
        }
    }

    /// A frame ready to leave, behind what stands between the identity and it.
    pub(crate) fn pack(prefix: &Prefix, frame: Frame) -> Unsent {
        let mut parts = Outgoing(Vec::with_capacity(8));
        prefix.encode_rest(&mut parts);
        frame.encode(&mut parts);
        Unsent(Message::multipart_payloads(parts.0))
    }

    /// Sends a message, or says why not. Never waits.
    pub(crate) fn try_send(&self, to: &Sender, unsent: Unsent) -> Result<(), SendError> {
        match self.socket.try_send_to(&to.0, unsent.0) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(message)) => Err(SendError::Full(Unsent(message))),
            Err(TrySendError::Closed | TrySendError::Error(_)) => Err(SendError::Gone),
        }
    }

    /// Ends one connection.
    pub(crate) async fn disconnect(&self, connection: ConnectionId) {
        if let Err(error) = self.socket.disconnect_peer(connection.0).await {
            tracing::debug!(%error, "the connection had ended by itself");
        }
    }

    /// What happens to connections.
    pub(crate) fn connections(&self) -> Connections {
        Connections { monitor: self.socket.monitor(), socket: self.socket.clone() }
    }

    /// Lets go of the socket after what is queued has left.
    pub(crate) async fn close(self) {
        if let Err(error) = self.socket.close().await {
            tracing::debug!(%error, "the socket did not close cleanly");
        }
    }
}

impl Connections {
    /// The next thing that happens.
    ///
    /// # Cancel safety
    /// A wait that is dropped loses no event.
    pub(crate) async fn next(&mut self) -> ConnectionEvent {
        loop {
            match self.monitor.recv().await {
                Ok(MonitorEvent::Disconnected { peer, .. }) => {
                    return ConnectionEvent::Ended(ConnectionId(peer.connection_id));
                }
                Ok(_) => {}
                Err(MonitorRecvError::Lagged(_)) => return self.left().await,
                Err(_) => return ConnectionEvent::Closed,
            }
        }
    }

    async fn left(&self) -> ConnectionEvent {
        match self.socket.connections().await {
            Ok(left) => ConnectionEvent::Left(
                left.iter().map(|status| ConnectionId(status.connection_id)).collect(),
            ),
            Err(_) => ConnectionEvent::Closed,
        }
    }
}

/// The socket that events go out on.
#[derive(Debug)]
pub(crate) struct Publisher {
    socket: Socket,
}

/// Decides whether a subscriber may have the topics that start with a prefix.
pub(crate) type Admission = Arc<dyn Fn(Option<PrincipalId>, &[u8]) -> bool + Send + Sync>;

impl Publisher {
    /// Binds and says where.
    pub(crate) async fn bind(
        endpoint: &str,
        door: &Door,
        message_bytes_max: usize,
        idle: Duration,
        admission: Admission,
    ) -> Result<(Self, String), TransportError> {
        let options = options(door, message_bytes_max, idle).send_hwm(RECV_QUEUE);
        let options = options.subscription_admission(move |request| {
            let user_id = request.peer.authentication.user_id.as_deref();
            admission(principal_id(user_id), request.prefix)
        });
        let socket = Socket::try_new(SocketType::Pub, options)?;
        let bound = socket.bind(endpoint).await?;
        Ok((Self { socket }, bound.to_string()))
    }

    /// Publishes. A subscriber that does not read misses it; nobody else does.
    pub(crate) async fn publish(&self, topic: Bytes, body: Bytes) {
        if let Err(error) = self.socket.send(Message::multipart([topic, body])).await {
            tracing::debug!(%error, "an event could not be published");
        }
    }

    /// Ends the connections of those whose token is no longer valid.
    pub(crate) async fn disconnect_unless(&self, is_valid: impl Fn(Option<PrincipalId>) -> bool) {
        let Ok(connections) = self.socket.connections().await else { return };
        for status in connections {
            let Some(peer) = status.peer_info else { continue };
            if !is_valid(principal_id(peer.authentication.user_id.as_deref())) {
                let ended = self.socket.disconnect_peer(status.connection_id).await;
                tracing::debug!(?ended, "a subscriber's token is no longer valid");
            }
        }
    }

    /// Lets go of the socket.
    pub(crate) async fn close(self) {
        if let Err(error) = self.socket.close().await {
            tracing::debug!(%error, "the socket did not close cleanly");
        }
    }
}

impl Door {
    /// A door that only keys open. `None` if the secret key is not one.
    pub(crate) fn curve(broker: Broker, secret_key: &Secret) -> Option<Self> {
        let secret = CurveSecretKey::from_z85(secret_key.expose().trim()).ok()?;
        let public = secret.derive_public();
        Some(Self::Curve(broker, Arc::new(CurveKeypair { public, secret })))
    }

    /// The key by which peers know the daemon (Z85).
    pub(crate) fn server_key(&self) -> Option<String> {
        match self {
            Self::Curve(_, keypair) => Some(keypair.public.to_z85()),
            Self::Token(_) | Self::Local => None,
        }
    }
}

fn options(door: &Door, message_bytes_max: usize, idle: Duration) -> Options {
    let mut options = Options::default()
        .max_message_size(message_bytes_max + PARTS_BYTES)
        .heartbeat_interval(idle / 3)
        .heartbeat_timeout(idle)
        .handshake_timeout(HANDSHAKE_TIMEOUT)
        .max_pending_handshakes(HANDSHAKES_MAX)
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

fn received(message: &Message) -> Option<Received> {
    let sender = Sender(message.sender_identity()?.clone());
    Some((sender, Frame::decode_routed(&Incoming(message))))
}

/// A message as the codec reads it.
struct Incoming<'a>(&'a Message);

impl Parts for Incoming<'_> {
    fn n_parts(&self) -> usize {
        self.0.len()
    }

    fn slice(&self, index: usize) -> &[u8] {
        self.0.part_slice(index).unwrap_or_default()
    }

    fn shared(&self, index: usize) -> Bytes {
        self.0.part_bytes(index).unwrap_or_default()
    }
}

/// A message as the codec writes it.
struct Outgoing(Vec<Payload>);

impl PartSink for Outgoing {
    fn small(&mut self, part: &[u8]) {
        self.0.push(Payload::from_slice(part));
    }

    fn shared(&mut self, part: Bytes) {
        self.0.push(Payload::from_bytes(part));
    }
}
