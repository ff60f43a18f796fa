//! The job that a call on a line belongs to, and that its answer must name again.

use ringback_proto::ids::JobId;
use ringback_proto::{Certainty, Error, ErrorKind, Result};

/// Returns the outcome that a party reported, if it is about the job of the call: an answer about
/// another job must not end this one.
///
/// # Errors
/// `tool_failed` when the call has a job and the answer names another, or none.
pub fn same_job<T>(call: Option<JobId>, answer: Option<&str>, outcome: Result<T>) -> Result<T> {
    let Some(job) = call else { return outcome };
    let why = match answer {
        Some(answer) if answer.parse() == Ok(job) => return outcome,
        Some(_) => "another job_id than the call",
        None => "no job_id",
    };
    let message =
        format!("the answer to a call of {job} has {why}; a worker must return it unchanged");
    Err(Error::new(ErrorKind::ToolFailed, message).with_certainty(Certainty::MayHaveRun))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a job id is never lost or swapped.
    #[test]
    fn an_answer_ends_a_job_only_under_its_own_id() {
        let job = JobId::from_random([1; 16]);
        let other = JobId::from_random([2; 16]).to_string();
        let own = job.to_string();
        let upper = own.to_uppercase();
        for (call, answer, is_accepted) in [
            (None, None, true),
            (None, Some(other.as_str()), true),
            (Some(job), Some(own.as_str()), true),
            (Some(job), Some(other.as_str()), false),
            (Some(job), Some(upper.as_str()), false),
            (Some(job), Some(""), false),
            (Some(job), None, false),
        ] {
            assert_eq!(same_job(call, answer, Ok(())).is_ok(), is_accepted, "{call:?} {answer:?}");
        }
        let failed = same_job(Some(job), None, Ok(())).unwrap_err();
        assert_eq!(
            (failed.kind(), failed.certainty()),
            (ErrorKind::ToolFailed, Certainty::MayHaveRun)
        );
        let refused =
            same_job(Some(job), Some(&own), Err::<(), _>(Error::invalid("x"))).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }
}
