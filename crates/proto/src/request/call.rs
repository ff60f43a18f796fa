//! Calls themselves: `call_why`.

use super::wire_struct;
use crate::error::Certainty;
use crate::ids::{CallId, JobId};
use crate::record::JobState;

wire_struct! {
    /// The call to explain.
    CallWhyRequest {
        /// The call id, the request id (a UUID) or the job id of the call.
        id: String,
    }

    /// What the daemon knows about a call, without its input and its result.
    CallExplainedResponse {
        /// The id of the call.
        call_id: CallId,
        /// The id its caller gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
        /// The job it created, or repeated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job_id: Option<JobId>,
        /// The state of that job.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job_status: Option<JobState>,
        /// The tool.
        tool: String,
        /// The edge it came in on.
        edge: String,
        /// The caller: a token's public id, or `local`.
        caller: String,
        /// The rule that admitted it.
        admitted: String,
        /// When it was admitted.
        admitted_at: u64,
        /// How long it was allowed to take.
        deadline_ms: u64,
        /// The origin of that limit: the caller, the tool or the daemon.
        deadline_from: String,
        /// Whether it repeated an earlier call, and so did not run.
        repeat: bool,
        /// The time from admission to answer; absent while the call is running.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u64>,
        /// Its outcome: `success`, `job_started` or an error code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<String>,
        /// Whether the tool ran, if the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        certainty: Option<Certainty>,
        /// The line that offers the tool, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<String>,
        /// The times at which it was sent on that line; more than one if it was redelivered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivered_at: Option<Vec<u64>>,
        /// The number of answers that arrived after the call had ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        late_answers: Option<u32>,
    }
}
