//! From a call to its job: a new one, or the one that an earlier call with the same id started.

use std::sync::Arc;

use ringback_core::repeats::{Occurrence, same_body};
use ringback_proto::error::ToolError;
use ringback_proto::ids::{BlobHash, JobId};
use ringback_proto::record::{JobRecord, JobState, RepeatKey};
use ringback_proto::{Certainty, Error, ErrorKind, Result, ToolRequest, ToolResponse};
use ringback_store::Store;
use tokio::time::Instant;

use super::{Interest, Jobs, Submission, SubmitOutcome};
use crate::failure;
use crate::native_call::NativeCall;
use crate::repeats::{FirstAnswer, OwedAnswer};
use crate::replies::CallJob;
use crate::stream::Stream;

impl Jobs {
    /// Starts the job of a call, or finds the one that an earlier call with the same id started.
    pub(crate) async fn begin_job(
        self: &Arc<Self>,
        call: NativeCall,
        request: ToolRequest,
        stream: Option<Arc<Stream>>,
    ) -> Result<CallJob> {
        let Some(key) = call.repeat else {
            return match self.new_job(&call, request, stream.clone()).await? {
                SubmitOutcome::New(interest) => Ok(CallJob::Live(interest)),
                SubmitOutcome::Repeated(id) => self.attach(id, stream).await,
            };
        };
        let owed = OwedAnswer::new();
        let owner = call.principal.id;
        match self.calls.repeats.begin(
            self.kernel.now(),
            owner,
            key,
            FirstAnswer::Job(owed.place()),
        )? {
            Occurrence::Again(FirstAnswer::Job(first)) => {
                let id = first.wait().await.clone()?;
                self.kernel.auditor.repeated(self.kernel.now(), &call, Some(id));
                self.attach(id, stream).await
            }
            Occurrence::Again(FirstAnswer::Plain(_)) => {
                Err(Error::internal("repeat", "one request id is used for two kinds of call"))
            }
            Occurrence::First => {
                let result = self.first_job(&call, key, request, stream).await;
                if let Err(error) = &result {
                    self.calls.repeats.reconsider(owner, key.request_id, error);
                }
                owed.answer(result.as_ref().map(CallJob::id).map_err(Clone::clone));
                result
            }
        }
    }

    /// Handles the first call with this id in this run of the daemon; an earlier run may have seen
    /// it too. The store finds that out when it writes the new job, so nothing is read before.
    async fn first_job(
        self: &Arc<Self>,
        call: &NativeCall,
        key: RepeatKey,
        request: ToolRequest,
        stream: Option<Arc<Stream>>,
    ) -> Result<CallJob> {
        match self.new_job(call, request, stream.clone()).await? {
            SubmitOutcome::New(interest) => Ok(CallJob::Live(interest)),
            SubmitOutcome::Repeated(id) => {
                let record = self.kernel.read(move |store| store.job(id)).await?;
                let first = record.and_then(|record| record.repeat);
                same_body(&first.ok_or_else(|| Error::not_found("job", id))?, &key)?;
                self.kernel.auditor.repeated(self.kernel.now(), call, Some(id));
                self.attach(id, stream).await
            }
        }
    }

    async fn new_job(
        self: &Arc<Self>,
        call: &NativeCall,
        request: ToolRequest,
        stream: Option<Arc<Stream>>,
    ) -> Result<SubmitOutcome> {
        let started = Instant::now();
        // Not for a repeat: it has been sent before.
        let rooms = self.rooms.upgrade();
        let sent = rooms.as_ref().and_then(|rooms| rooms.garden.send_early(&request));
        let provenance = rooms.map(|rooms| rooms.provenance(&call.principal));
        let was_sent = sent.is_some();
        let submission = Submission {
            request,
            owner: call.principal.id,
            provenance: provenance.unwrap_or_default(),
            held: call.held.clone(),
            repeat: call.repeat,
            deadline: Some(call.deadline),
            stream,
            sent,
            trace: call.trace.clone(),
        };
        let mut result = self.submit(submission).await;
        // There is no room for a new job, but a repeat needs none.
        if let (Err(error), Some(key)) = (&result, call.repeat)
            && error.kind() == ErrorKind::Busy
        {
            let owner = call.principal.id;
            let read = move |store: &Store| store.job_by_repeat(owner, key.request_id);
            if let Some(existing) = self.kernel.read(read).await? {
                result = Ok(SubmitOutcome::Repeated(existing.id));
            }
        }
        let job = match &result {
            Ok(SubmitOutcome::New(interest)) => Ok(interest.id),
            Ok(SubmitOutcome::Repeated(_)) => return result,
            Err(error) => Err(error),
        };
        self.kernel.auditor.began(self.kernel.now(), call, job, started);
        // Without a job, a command that was sent has still been sent.
        result.map_err(
            |error| {
                if was_sent { error.with_certainty(Certainty::MayHaveRun) } else { error }
            },
        )
    }

    async fn attach(self: &Arc<Self>, id: JobId, stream: Option<Arc<Stream>>) -> Result<CallJob> {
        if let Some(live) = self.live(id) {
            if let Some(stream) = stream {
                live.attach(stream);
            }
            return Ok(CallJob::Live(Interest::new(self, live)));
        }
        let record = self.kernel.read(move |store| store.job(id)).await?;
        let record = record.ok_or_else(|| Error::not_found("job", id))?;
        let outcome = self.stored_outcome(&record).await?;
        Ok(CallJob::Ended(id, Arc::new(outcome)))
    }

    /// Returns the outcome of an ended job.
    pub(crate) async fn stored_outcome(
        self: &Arc<Self>,
        record: &JobRecord,
    ) -> Result<Result<ToolResponse>> {
        if record.state == JobState::Complete {
            return self.stored_result(record).await.map(Ok);
        }
        let error = record.error.as_deref().and_then(ToolError::decode);
        Ok(Err(error.map_or_else(|| Error::not_found("outcome of job", record.id), Error::from)))
    }

    /// Returns the result of a complete job, from its row or its blob.
    pub(crate) async fn stored_result(
        self: &Arc<Self>,
        record: &JobRecord,
    ) -> Result<ToolResponse> {
        let bytes = match (&record.result, record.result_blob) {
            (Some(bytes), _) => bytes.clone(),
            (None, Some(hash)) => self.read_blob(hash).await?,
            (None, None) => return Err(Error::not_found("result of job", record.id)),
        };
        rmp_serde::from_slice(&bytes).map_err(failure::internal)
    }

    async fn read_blob(&self, hash: BlobHash) -> Result<bytes::Bytes> {
        let blobs = self.kernel.blobs.clone();
        let read = move || blobs.read_range(hash, 0, u64::MAX).map_err(failure::read_blob);
        self.kernel.blocking(read).await
    }

    pub(crate) async fn jobs_ended(&self) {
        loop {
            let rung = self.kernel.events.rung();
            if self.n_running() == 0 {
                return;
            }
            rung.await;
        }
    }
}
