//! The task that takes calls off the line and gives them to the peer.

use std::sync::Arc;

use ringback_broker::{
    Broker, Credential, LineCall, LineName, LineStream, PartyMessage, ToolOffer,
};
use ringback_proto::any::{Any, Format};
use ringback_proto::frame::{Body, Command, Frame, Text};
use ringback_proto::ids::{CallId, RequestId};
use ringback_proto::ready::OfferedTool;
use ringback_proto::{Error, ResponseEnvelope, Result};
use tokio::sync::mpsc;

use super::open_calls::{OpenCall, OpenCalls};
use super::{Link, Offer};
use crate::backlog::Room;
use crate::call::CallMessage;
use crate::wire::ReplyAddress;

/// Takes calls off the line and gives them to the peer.
pub(super) struct WorkerTask {
    pub(super) broker: Broker,
    pub(super) credential: Credential,
    pub(super) link: Link,
    pub(super) given: OpenCalls,
    pub(super) inbox: mpsc::Receiver<Offer>,
}

impl WorkerTask {
    pub(super) async fn run(mut self, service: Text, first: Offer) {
        let name = LineName::Worker(service.as_str().into());
        let Offer { tools, reply_to } = first;
        let reply_to = Arc::new(reply_to);
        let opened = self.broker.lines().open(&self.credential, &name);
        let opened = opened.and_then(|line| offer(&line, tools).map(|told| (line, told)));
        let (mut line, told) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.reply(&reply_to, error.into()).await;
                return;
            }
        };
        let mut is_there = self.reply(&reply_to, told).await;
        while is_there {
            is_there = tokio::select! {
                biased;
                Some(offer) = self.inbox.recv() => self.on_offer(&line, offer).await,
                post = next(&self.link.room, &mut line) => match post {
                    None => false,
                    Some(PartyMessage::Call(call)) => self.give(&service, &reply_to, &call).await,
                    Some(PartyMessage::Cancel { call, .. }) => self.take_back(&reply_to, call).await,
                },
            };
        }
    }

    async fn on_offer(&self, line: &LineStream, next: Offer) -> bool {
        let told = offer(line, next.tools).unwrap_or_else(Into::into);
        self.reply(&Arc::new(next.reply_to), told).await
    }

    async fn give(
        &self,
        service: &Text,
        reply_to: &Arc<ReplyAddress>,
        call: &Arc<LineCall>,
    ) -> bool {
        let request_id = RequestId::from_bytes(*call.id.as_bytes());
        let given =
            OpenCall { id: Arc::clone(&call.request_id), job_id: call.job_id, chunks: None };
        self.given.lock().open.insert(request_id, given);
        let body = Body::MsgPack(request(call, self.broker.now().mono).into());
        let frame =
            Frame { service: service.clone(), ..Frame::new(Command::Request, request_id, body) };
        self.send(reply_to, frame).await
    }

    async fn take_back(&self, reply_to: &Arc<ReplyAddress>, call: CallId) -> bool {
        let request_id = RequestId::from_bytes(*call.as_bytes());
        self.given.take_back(request_id);
        self.send(reply_to, Frame::new(Command::Cancel, request_id, Body::Empty)).await
    }

    async fn reply(&self, reply_to: &Arc<ReplyAddress>, reply: ResponseEnvelope) -> bool {
        self.send(reply_to, reply_to.reply(reply)).await
    }

    /// Sends a frame; returns whether the peer is still connected.
    async fn send(&self, reply_to: &Arc<ReplyAddress>, frame: Frame) -> bool {
        let Link { to, room, patience, router } = &self.link;
        let (to, reply_to) = (*to, Arc::clone(reply_to));
        let told = match room.admit(frame, *patience).await {
            Some(frame) => CallMessage::Reply { to, reply_to, frame },
            None => CallMessage::Stalled { to },
        };
        let is_there = matches!(told, CallMessage::Reply { .. });
        router.send(told).await.is_ok() && is_there
    }
}

/// Returns the next message once the peer has read most of the earlier ones: a call that would only
/// wait here can still move to another worker.
///
/// # Cancel safety
/// Dropping it loses nothing: nothing is taken before it returns.
async fn next(room: &Room, line: &mut LineStream) -> Option<PartyMessage<Arc<LineCall>>> {
    room.wait().await;
    line.next().await
}

fn offer(line: &LineStream, tools: Vec<OfferedTool>) -> Result<ResponseEnvelope> {
    let offered = line.offer(tools.into_iter().map(tool_offer).collect::<Result<_>>()?)?;
    let message = format!("serving {}", offered.join(", "));
    Ok(ResponseEnvelope::Ack { message, job_id: None })
}

fn tool_offer(tool: OfferedTool) -> Result<ToolOffer> {
    match tool {
        OfferedTool::Name(name) => Ok(ToolOffer { name, ..ToolOffer::default() }),
        OfferedTool::Described {
            name,
            description,
            input_schema,
            timing,
            idempotent,
            timeout_ms,
        } => {
            let encode = |schema| {
                rmp_serde::to_vec_named(&schema)
                    .map(|bytes| Any { format: Format::MsgPack, bytes: bytes.into() })
                    .map_err(|error| Error::invalid_field("input_schema", error.to_string()))
            };
            Ok(ToolOffer {
                name,
                description,
                input_schema: input_schema.map(encode).transpose()?,
                timing,
                timeout_ms,
                idempotent,
                ..ToolOffer::default()
            })
        }
    }
}

/// Builds the body of a Request to a worker. The arguments are the caller's own bytes.
fn request(call: &LineCall, now: u64) -> Vec<u8> {
    let session_id = call.context.session_id.as_deref();
    let arguments = &call.arguments.bytes;
    let mut body = Vec::with_capacity(arguments.len() + 128);
    let n_fields = 3 + u32::from(session_id.is_some()) + u32::from(call.job_id.is_some());
    rmp::encode::write_map_len(&mut body, n_fields).expect(TAKES_ALL);
    text(&mut body, "tool");
    text(&mut body, &call.tool.name);
    text(&mut body, "arguments");
    body.extend_from_slice(arguments);
    if let Some(job_id) = call.job_id {
        text(&mut body, "job_id");
        text(&mut body, &job_id.to_string());
    }
    if let Some(session_id) = session_id {
        text(&mut body, "session_id");
        text(&mut body, session_id);
    }
    text(&mut body, "deadline_ms");
    let left_ms = call.deadline.at.saturating_sub(now);
    rmp::encode::write_uint(&mut body, left_ms).expect(TAKES_ALL);
    body
}

const TAKES_ALL: &str = "a Vec takes everything";

fn text(body: &mut Vec<u8>, text: &str) {
    rmp::encode::write_str(body, text).expect(TAKES_ALL);
}
