//! Calls a music service, and reports its progress.

use std::time::Duration;

use ringback_music_services::predict::{Predict, decode, encode};
use ringback_music_services::{RequestProgress, Service, ServiceRequest};
use ringback_proto::{Result, StreamChunk};
use tokio::sync::watch;

use crate::{Context, failure};

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
    let traceparent = (studio.settings.traceparent)(&tracing::Span::current());
    let asked = studio.services.ask(ServiceRequest { service, body, traceparent, tell: &tell });
    tokio::pin!(asked);
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut asked => break answer.map_err(|error| failure::ask(&error))?,
            Ok(()) = told.changed() => {
                let what = *told.borrow_and_update();
                if let Some(what) = what {
                    ctx.broker.send(progress(service, what)).await;
                }
            }
        }
    };
    let read = move || decode::<P>(service, &answer).map_err(|error| failure::ask(&error));
    ctx.broker.blocking(move |_| read()).await
}

/// The progress of a service is unknown; the time it has worked is known.
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
