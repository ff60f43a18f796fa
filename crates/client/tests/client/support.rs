//! A simulated daemon: sockets of the ZeroMQ library, driven by the test.

use bytes::Bytes;
use omq_tokio::{
    AuthenticationResult, Authenticator, CurveKeypair, CurveSecretKey, CurveServerOptions,
    Identity, IdentitySocket, MechanismSetup, Message, Options, Socket, SocketType,
};
use ringback_client::{Client, Config, Credentials};
use ringback_proto::ResponseEnvelope;
use ringback_proto::frame::{Body, Command, Frame};
use ringback_proto::secret::Secret;

/// The token the test daemons accept.
pub(crate) fn token() -> Secret {
    Secret::new(format!("oub_{}", "5a".repeat(32)))
}

/// Accepts [`token`] as a PLAIN password.
pub(crate) fn plain() -> MechanismSetup {
    let authenticator = Authenticator::new_with_result(|peer| {
        if peer.password.as_deref() == Some(token().expose()) {
            AuthenticationResult::allow().with_user_id("tok_1")
        } else {
            AuthenticationResult::deny()
        }
    });
    MechanismSetup::PlainServer { authenticator }
}

/// Accepts the key that belongs to [`token`]; also returns the server's public key.
pub(crate) fn curve() -> (MechanismSetup, String) {
    let expected = CurveSecretKey::from_bytes([0x5a; 32]).derive_public();
    let our_keypair = CurveKeypair::generate();
    let server_key = our_keypair.public.to_z85();
    let mut options = CurveServerOptions::default();
    options.authenticator = Some(Authenticator::new_with_result(move |peer| {
        if peer.public_key == *expected.as_bytes() {
            AuthenticationResult::allow().with_user_id("tok_1")
        } else {
            AuthenticationResult::deny()
        }
    }));
    (MechanismSetup::CurveServer { our_keypair, options }, server_key)
}

/// A ROUTER that the test answers on.
pub(crate) struct Daemon {
    router: IdentitySocket,
    pub(crate) endpoint: String,
}

/// A frame, and its sender.
#[derive(Debug)]
pub(crate) struct ReceivedFrame {
    pub(crate) identity: Identity,
    pub(crate) frame: Frame,
}

impl Daemon {
    pub(crate) async fn start(mechanism: MechanismSetup) -> Self {
        Self::start_at("tcp://127.0.0.1:0", mechanism).await
    }

    pub(crate) async fn start_at(endpoint: &str, mechanism: MechanismSetup) -> Self {
        let mut options = Options::default().router_mandatory(true);
        options.mechanism = mechanism;
        let socket = Socket::new(SocketType::Router, options);
        let endpoint = socket.bind(endpoint).await.unwrap().to_string();
        Self { router: socket.identity_routing().unwrap(), endpoint }
    }

    pub(crate) async fn stop(self) {
        self.router.into_inner().close().await.unwrap();
    }

    /// Stops after queued frames have been sent.
    pub(crate) async fn finish(self) {
        let linger = Some(std::time::Duration::from_secs(10));
        self.router.into_inner().close_with_linger(linger).await.unwrap();
    }

    /// Returns the next frame of any kind.
    pub(crate) async fn recv_any(&self) -> ReceivedFrame {
        let (identity, message) = self.router.recv_from().await.unwrap();
        let parts: Vec<Bytes> = message.iter().collect();
        ReceivedFrame { identity, frame: Frame::decode(&parts[..]).unwrap() }
    }

    /// Returns the next frame that is neither Ready nor Heartbeat; those are answered.
    pub(crate) async fn recv(&self) -> ReceivedFrame {
        loop {
            let received = self.recv_any().await;
            match received.frame.command {
                Command::Ready => {
                    let message = "ready".to_owned();
                    self.reply(&received, ResponseEnvelope::Ack { message, job_id: None });
                }
                Command::Heartbeat => self.send(&received.identity, received.frame),
                Command::Request
                | Command::Reply
                | Command::Disconnect
                | Command::Cancel
                | Command::Credit => return received,
            }
        }
    }

    pub(crate) fn reply(&self, to: &ReceivedFrame, mut envelope: ResponseEnvelope) {
        let data = envelope.take_data();
        let encoded = Bytes::from(envelope.encode());
        let body = match data {
            Some(data) => Body::RawBinary { data, header: encoded },
            None => Body::MsgPack(encoded),
        };
        self.send(&to.identity, to.frame.reply(body));
    }

    pub(crate) fn send(&self, identity: &Identity, frame: Frame) {
        let mut parts = Vec::new();
        frame.encode(&mut parts);
        self.send_parts(identity, parts);
    }

    pub(crate) fn send_parts(&self, identity: &Identity, parts: Vec<Bytes>) {
        self.router.try_send_to(identity, Message::multipart(parts)).unwrap();
    }

    /// Makes a client of this daemon.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.config()).await.unwrap()
    }

    pub(crate) fn config(&self) -> Config {
        Config::new(&self.endpoint, Credentials::Token(token()))
    }
}
