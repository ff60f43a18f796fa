//! Calls a music service, and reports its progress.

use std::time::Duration;

use ringback_music_services::predict::{Predict, decode, encode};
use ringback_music_services::{RequestProgress, Service, ServicePart, ServiceRequest};
use ringback_proto::chunk::MidiEvent;
use ringback_proto::data::Data;
use ringback_proto::{Result, StreamChunk};
use tokio::sync::{mpsc, watch};

use crate::{Context, failure};

/// Parts of an answer that wait for the caller's stream; a service that sends more waits.
const PARTS_MAX: usize = 4;

/// Calls a service. Its large texts are written and read on threads that may block.
pub(crate) async fn predict<P>(ctx: &Context, request: P) -> Result<P::Answer>
where
    P: Predict<Answer: Send + 'static> + Send + 'static,
{
    let service = request.service();
    let job = ctx.broker.job_id().map(|job| job.to_string());
    let body = ctx.broker.blocking(move |_| Ok(encode(&request, job.as_deref()))).await?;
    let studio = &ctx.studio;
    // Only the newest report is kept: it includes all that an older one did.
    let (sender, mut told) = watch::channel(None);
    let tell = move |what: RequestProgress| {
        sender.send_replace(Some(what));
    };
    let (parts, mut streamed) = mpsc::channel(PARTS_MAX);
    let traceparent = (studio.settings.traceparent)(&tracing::Span::current());
    let request = ServiceRequest { service, body, traceparent, tell: &tell, parts };
    let asked = studio.services.ask(request);
    tokio::pin!(asked);
    // A service that reports its progress knows more than the clock does.
    let mut reports = false;
    let answer = loop {
        tokio::select! {
            biased;
            Some(part) = streamed.recv() => {
                reports |= matches!(part, ServicePart::Progress { .. });
                ctx.broker.send(chunk(part)).await;
            }
            answer = &mut asked => break answer,
            Ok(()) = told.changed() => {
                let what = *told.borrow_and_update();
                if let Some(what) = what.filter(|_| !reports) {
                    ctx.broker.send(progress(service, what)).await;
                }
            }
        }
    };
    while let Ok(part) = streamed.try_recv() {
        ctx.broker.send(chunk(part)).await;
    }
    let answer = answer.map_err(|error| failure::ask(&error))?;
    let read = move || decode::<P>(service, &answer).map_err(|error| failure::ask(&error));
    ctx.broker.blocking(move |_| read()).await
}

/// A part of a service's answer, as everyone gets it who follows the call.
fn chunk(part: ServicePart) -> StreamChunk {
    match part {
        ServicePart::Progress { percent, message } => StreamChunk::Progress { percent, message },
        ServicePart::Audio { samples, sample_rate, channels } => {
            StreamChunk::PartialAudio { samples: Data(samples), sample_rate, channels }
        }
        ServicePart::Midi(events) => {
            let event = |(tick, data)| MidiEvent { tick, data: Data(data) };
            StreamChunk::PartialMidi { events: events.into_iter().map(event).collect() }
        }
    }
}

/// The progress of a service that reports none is unknown; the time it has worked is known.
fn progress(service: Service, told: RequestProgress) -> StreamChunk {
    let seconds = |duration: Duration| duration.as_secs();
    let message = match told {
        RequestProgress::Working(elapsed) => {
            format!("{service} has been working for {} s", seconds(elapsed))
        }
        RequestProgress::Waiting(pause) => {
            format!("{service} is busy; trying again in {} s", seconds(pause))
        }
    };
    StreamChunk::Progress { percent: 0.0, message }
}

/// Returns the name of a service in answers.
pub(crate) fn backend(service: Service) -> String {
    format!("service: {service}")
}
