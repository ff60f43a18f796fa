//! The baseline for HOOT01 calls: a bare seven-part echo on the same ZeroMQ library, and one raw
//! load generator for both sides of the comparison.
//!
//! ```text
//! bare_echo serve ENDPOINT                            echoes; a JSON line at each Disconnect
//! bare_echo load ENDPOINT IN_FLIGHT COUNT [TOKEN_FILE] sends `ping`s; a JSON line at the end
//! ```
//!
//! Both lines are `{messages, seconds, cpu_us}`; CPU is that of the process that prints it.
#![expect(clippy::print_stdout, reason = "a program whose output is its result")]

use std::io::Write;
use std::time::{Duration, Instant};

use omq_tokio::{Message, Options, Payload, Socket, SocketType};
use ringback_proto::RequestEnvelope;
use ringback_proto::frame::{Body, Command, Frame};
use ringback_proto::ids::RequestId;
use ringback_proto::request::PingRequest;
use rustix::time::{ClockId, clock_gettime};

type Failure = Box<dyn std::error::Error>;

/// A part of the load that is not measured, while caches, routes and buffers warm up.
const WARM_UP: usize = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", endpoint] => serve(endpoint).await,
        ["load", endpoint, in_flight, count] => {
            load(endpoint, in_flight.parse()?, count.parse()?, None).await
        }
        ["load", endpoint, in_flight, count, token_file] => {
            let token = std::fs::read_to_string(token_file)?;
            load(endpoint, in_flight.parse()?, count.parse()?, Some(token.trim())).await
        }
        _ => {
            Err("usage: bare_echo serve ENDPOINT | load ENDPOINT IN_FLIGHT COUNT [TOKEN_FILE]"
                .into())
        }
    }
}

/// Sends everything back as received, with the identity that the ROUTER added.
async fn serve(endpoint: &str) -> Result<(), Failure> {
    let router = Socket::try_new(SocketType::Router, Options::default().router_mandatory(true))?;
    println!("{}", router.bind(endpoint).await?);
    std::io::stdout().flush()?;
    let disconnect = Command::Disconnect.number().to_be_bytes();
    let mut round = Round::start();
    loop {
        let message = router.recv().await?;
        if message.part_slice(2) == Some(&disconnect) {
            round.report();
            round = Round::start();
        } else {
            round.n_messages += 1;
            router.send(message).await?;
        }
    }
}

/// Keeps `in_flight` requests in flight until `count` are answered.
async fn load(
    endpoint: &str,
    in_flight: usize,
    count: usize,
    token: Option<&str>,
) -> Result<(), Failure> {
    let mut options = Options::default().linger(Duration::from_secs(1));
    if let Some(token) = token {
        options = options.plain_client("bench", token);
    }
    let dealer = Socket::try_new(SocketType::Dealer, options)?;
    dealer.connect(endpoint).await?;
    dealer.wait_connected(1, Duration::from_secs(10)).await?;
    let body = RequestEnvelope::plain(PingRequest::default()).encode();
    exchange(&dealer, &body, in_flight, count / WARM_UP).await?;
    let mut round = Round::start();
    exchange(&dealer, &body, in_flight, count).await?;
    round.n_messages = count;
    round.report();
    dealer.send(message(Command::Disconnect, Body::Empty)).await?;
    dealer.close().await?;
    Ok(())
}

async fn exchange(
    dealer: &Socket,
    body: &[u8],
    in_flight: usize,
    count: usize,
) -> Result<(), Failure> {
    let request = || message(Command::Request, Body::MsgPack(body.to_vec().into()));
    let mut n_sent = in_flight.min(count);
    for _ in 0..n_sent {
        dealer.send(request()).await?;
    }
    for _ in 0..count {
        dealer.recv().await?;
        if n_sent < count {
            dealer.send(request()).await?;
            n_sent += 1;
        }
    }
    Ok(())
}

fn message(command: Command, body: Body) -> Message {
    let mut parts = Vec::with_capacity(8);
    Frame::new(command, RequestId::random(), body).encode(&mut parts);
    Message::multipart_payloads(parts.into_iter().map(Payload::from_bytes))
}

/// The measurement between two reports.
struct Round {
    n_messages: usize,
    started: Instant,
    cpu: Duration,
}

impl Round {
    fn start() -> Self {
        Self { n_messages: 0, started: Instant::now(), cpu: cpu_time() }
    }

    fn report(&self) {
        let report = serde_json::json!({
            "messages": self.n_messages,
            "seconds": self.started.elapsed().as_secs_f64(),
            "cpu_us": (cpu_time() - self.cpu).as_micros() as u64,
        });
        println!("{report}");
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
