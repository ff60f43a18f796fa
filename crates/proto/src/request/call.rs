//! Calls themselves: `call_why`.

use super::wire_struct;
use crate::error::Certainty;
use crate::ids::{CallId, JobId};
use crate::record::JobState;

wire_struct! {
    /// Which call.
    CallWhyRequest {
        /// Its call id, its request id (a UUID) or the id of its job.
        id: String,
    }

    /// What is known of a call; never its input or its result.
    CallExplainedResponse {
        /// Its id.
        call_id: CallId,
        /// The id its caller gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
        /// The job it made, or repeated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job_id: Option<JobId>,
        /// Where that job stands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job_status: Option<JobState>,
        /// The tool.
        tool: String,
        /// The edge it came in through.
        edge: String,
        /// Who called: a token's public id, or `local`.
        caller: String,
        /// The rule that admitted it.
        admitted: String,
        /// When it was admitted.
        admitted_at: u64,
        /// How long it could take.
        deadline_ms: u64,
        /// Whose limit that was: the caller's, the tool's or the daemon's.
        deadline_from: String,
        /// Whether it repeated an earlier call and so did not run.
        repeat: bool,
        /// How long it took until it was answered; absent while it is under way.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u64>,
        /// How it ended: `success`, `job_started` or the code of its error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<String>,
        /// Whether the tool ran, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        certainty: Option<Certainty>,
        /// The line its tool is on, if it is on one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<String>,
        /// When it went out on that line: more than once if it was delivered again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivered_at: Option<Vec<u64>>,
        /// Answers that came after it had ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        late_answers: Option<u32>,
    }
}
