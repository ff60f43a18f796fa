//! The only load generator: HOOT01 frames on a DEALER, a number of them in flight.

use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use omq_tokio::{Message, Options, Payload, Socket, SocketType};
use ringback_proto::frame::{Body, Command, Frame};
use ringback_proto::ids::RequestId;
use ringback_proto::request::PingRequest;
use ringback_proto::{RequestEnvelope, ResponseEnvelope};

use crate::process::Server;

/// One part in this many is a warm-up, which is not measured: caches, routes and buffers reach
/// their size.
const WARM_UP: usize = 10;
/// The index of the body among a frame's parts.
const BODY_PART: usize = 6;

/// A connection that keeps calls in flight.
#[derive(Debug)]
pub(crate) struct Load {
    dealer: Socket,
}

/// The result of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measurement {
    /// Microseconds of wall time per call.
    pub(crate) us: f64,
    /// Microseconds of the server's CPU per call.
    pub(crate) cpu_us: f64,
}

impl Load {
    pub(crate) async fn connect(endpoint: &str, token: &str) -> anyhow::Result<Self> {
        let options = Options::default().plain_client("bench", token);
        let dealer = Socket::try_new(SocketType::Dealer, options)?;
        dealer.connect(endpoint).await?;
        dealer
            .wait_connected(1, Duration::from_secs(10))
            .await
            .context("cannot connect to the server")?;
        Ok(Self { dealer })
    }

    /// Makes `count` calls with `in_flight` of them pending, after a warm-up.
    pub(crate) async fn measure(
        &mut self,
        server: &Server,
        in_flight: usize,
        count: usize,
        body: impl Fn(usize) -> Bytes,
        check: fn(&Message) -> anyhow::Result<()>,
    ) -> anyhow::Result<Measurement> {
        self.exchange(in_flight, count.div_ceil(WARM_UP), &body, check).await?;
        let (start, cpu_us) = (Instant::now(), server.cpu_us()?);
        self.exchange(in_flight, count, &body, check).await?;
        let us = start.elapsed().as_secs_f64() * 1e6 / count as f64;
        Ok(Measurement { us, cpu_us: (server.cpu_us()? - cpu_us) / count as f64 })
    }

    /// Makes `count` calls with `in_flight` of them pending.
    pub(crate) async fn exchange(
        &mut self,
        in_flight: usize,
        count: usize,
        body: impl Fn(usize) -> Bytes,
        check: fn(&Message) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut n_sent = in_flight.min(count);
        for call_idx in 0..n_sent {
            self.dealer.send(request(body(call_idx))).await?;
        }
        for _ in 0..count {
            check(&self.dealer.recv().await?)?;
            if n_sent < count {
                self.dealer.send(request(body(n_sent))).await?;
                n_sent += 1;
            }
        }
        Ok(())
    }
}

/// Returns the body of a `ping`.
pub(crate) fn ping() -> Bytes {
    RequestEnvelope::plain(PingRequest::default()).encode().into()
}

/// Accepts any reply: reading it would be work that the bare side does not have.
pub(crate) const fn ignore(_: &Message) -> anyhow::Result<()> {
    Ok(())
}

/// Accepts only the tool's result.
pub(crate) fn succeeded(reply: &Message) -> anyhow::Result<()> {
    let body = reply.part_slice(BODY_PART).context("the reply has no body")?;
    let reply = ResponseEnvelope::decode(body)?;
    let success = matches!(reply, ResponseEnvelope::Success { .. });
    anyhow::ensure!(success, "the call did not succeed: {reply:?}");
    Ok(())
}

fn request(body: Bytes) -> Message {
    let mut parts = Vec::with_capacity(8);
    Frame::new(Command::Request, RequestId::random(), Body::MsgPack(body)).encode(&mut parts);
    Message::multipart_payloads(parts.into_iter().map(Payload::from_bytes))
}
