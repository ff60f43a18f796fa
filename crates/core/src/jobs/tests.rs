//! Jobs from submission to end: what is written, and what is released afterwards.

use ringback_proto::ids::TokenId;

use super::*;

const NOW: Now = Now { mono: 100, unix: 5_000 };

fn job(number: u8) -> JobId {
    JobId::from_random([number; 16])
}

fn record(number: u8) -> JobRecord {
    JobRecord {
        id: job(number),
        tool: "job_sleep".to_owned(),
        owner: PrincipalId::Local,
        project: None,
        session: None,
        repeat: None,
        request: Bytes::new(),
        state: JobState::Pending,
        result: None,
        result_blob: None,
        error: None,
        created_at: 0,
        started_at: None,
        completed_at: None,
        expires_at: None,
    }
}

fn table(running_max: usize) -> JobTable {
    JobTable::new(JobLimits { running_max, live_max: 5, live_per_principal_max: 4 })
}

fn submit(table: &mut JobTable, number: u8) -> Result<Effects<Release>> {
    table.submit(record(number), ToolTiming::AsyncShort, None, NOW)
}

/// Renders effects as one line of text: `+1r` created running, `+1p` created pending, `>1` started,
/// `.1complete` ended, `!1` start the work, `x1` stop it, `=1running` announced, `ended1`.
#[expect(clippy::wildcard_enum_match_arm, reason = "the table writes only about jobs")]
fn told(effects: &Effects<Release>) -> String {
    let number = |id: &JobId| id.as_bytes()[0];
    let writes = effects.write.iter().map(|record| match record {
        Record::JobCreated(record) => {
            let state = if record.state == JobState::Running { "r" } else { "p" };
            format!("+{}{state}", number(&record.id))
        }
        Record::JobStarted { id, .. } => format!(">{}", number(id)),
        Record::JobEnded { id, end } => format!(".{}{}", number(id), end.state.as_str()),
        other => panic!("not about jobs: {other:?}"),
    });
    let releases = effects.release.iter().filter_map(|release| match release {
        Release::Settled(_) => None,
        Release::Announce { job, state, .. } => Some(format!("={}{}", number(job), state.as_str())),
        Release::Start(job) => Some(format!("!{}", number(job))),
        Release::Stop(job, _) => Some(format!("x{}", number(job))),
        Release::Ended(job) => Some(format!("ended{}", number(job))),
    });
    writes.chain(releases).collect::<Vec<_>>().join(" ")
}

fn check(effects: &Effects<Release>, expected: &str) {
    assert_eq!(told(effects), expected);
}

fn complete() -> WorkEnd {
    WorkEnd::Complete(WorkResult::Inline(Bytes::from_static(b"r")))
}

fn error_of(effects: &Effects<Release>) -> ToolError {
    let Record::JobEnded { end, .. } = &effects.write[0] else { panic!("an end") };
    ToolError::decode(end.error.as_ref().unwrap()).unwrap()
}

#[test]
fn a_job_is_told_to_nobody_and_does_nothing_before_its_record_is_durable() {
    let mut table = table(1);
    check(&submit(&mut table, 1).unwrap(), "+1r");
    check(&table.settled(job(1), NOW), "=1running !1");
    check(&table.finished(job(1), complete(), NOW), ".1complete");
    check(&table.settled(job(1), NOW), "=1complete ended1");
    assert!(table.is_empty());
}

#[test]
fn a_pending_job_starts_in_the_commit_that_ends_another() {
    let mut table = table(1);
    submit(&mut table, 1).unwrap();
    check(&submit(&mut table, 2).unwrap(), "+2p");
    check(&table.settled(job(1), NOW), "=1running !1");
    check(&table.settled(job(2), NOW), "=2pending");
    check(&table.finished(job(1), complete(), NOW), ".1complete >2");
    check(&table.settled(job(1), NOW), "=1complete ended1");
    check(&table.settled(job(2), NOW), "=2running !2");
    check(&table.finished(job(2), complete(), NOW), ".2complete");
    check(&table.settled(job(2), NOW), "=2complete ended2");
    assert!(table.is_empty());
}

#[test]
fn a_place_that_became_free_while_a_record_was_written_is_taken() {
    let mut table = table(1);
    submit(&mut table, 1).unwrap();
    submit(&mut table, 2).unwrap();
    table.settled(job(1), NOW);
    check(&table.finished(job(1), complete(), NOW), ".1complete");
    check(&table.settled(job(2), NOW), ">2 =2pending");
    check(&table.settled(job(2), NOW), "=2running !2");
}

#[test]
fn a_full_table_is_busy_and_remembers_nothing_of_the_refused() {
    let mut table = table(1);
    for number in 1..=4 {
        submit(&mut table, number).unwrap();
    }
    assert_eq!(submit(&mut table, 5).unwrap_err().kind(), ErrorKind::Busy);
    let mut other = record(6);
    other.owner = PrincipalId::Token(TokenId::from_random([1; 16]));
    table.submit(other, ToolTiming::AsyncShort, None, NOW).unwrap();
    let mut another = record(7);
    another.owner = PrincipalId::Token(TokenId::from_random([2; 16]));
    let error = table.submit(another, ToolTiming::AsyncShort, None, NOW).unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Busy, Certainty::NotStarted));
    assert_eq!(table.n_live(), 5);
}

#[test]
fn cancelling_a_pending_job_ends_it_without_running() {
    let mut table = table(1);
    submit(&mut table, 1).unwrap();
    submit(&mut table, 2).unwrap();
    table.settled(job(1), NOW);
    table.settled(job(2), NOW);
    let effects = table.stop(job(2), StopReason::Cancelled, NOW).unwrap();
    check(&effects, ".2cancelled");
    assert_eq!(error_of(&effects).certainty, Certainty::NotStarted);
    check(&table.settled(job(2), NOW), "=2cancelled ended2");
    check(&table.finished(job(1), complete(), NOW), ".1complete");
    table.settled(job(1), NOW);
    assert!(table.is_empty());
}

#[test]
fn a_running_job_is_cancelled_only_when_its_work_has_stopped() {
    let mut table = table(1);
    submit(&mut table, 1).unwrap();
    table.settled(job(1), NOW);
    check(&table.stop(job(1), StopReason::Cancelled, NOW).unwrap(), "x1");
    check(&table.stop(job(1), StopReason::Cancelled, NOW).unwrap(), "");
    let effects = table.finished(job(1), WorkEnd::Stopped, NOW);
    check(&effects, ".1cancelled");
    assert_eq!(error_of(&effects).certainty, Certainty::MayHaveRun);
}

#[test]
fn a_job_that_completed_although_it_was_told_to_stop_is_complete() {
    let mut table = table(1);
    submit(&mut table, 1).unwrap();
    table.settled(job(1), NOW);
    table.stop(job(1), StopReason::Cancelled, NOW).unwrap();
    check(&table.finished(job(1), complete(), NOW), ".1complete");
    check(&table.stop(job(1), StopReason::Cancelled, NOW).unwrap(), "");
    check(&table.settled(job(1), NOW), "=1complete ended1");
    assert!(table.stop(job(1), StopReason::Cancelled, NOW).is_none());
}

#[test]
fn a_job_cancelled_while_its_record_is_written_never_starts() {
    let mut table = table(1);
    submit(&mut table, 1).unwrap();
    check(&table.stop(job(1), StopReason::Cancelled, NOW).unwrap(), "");
    check(&table.settled(job(1), NOW), ".1cancelled =1running");
    check(&table.settled(job(1), NOW), "=1cancelled ended1");

    submit(&mut table, 2).unwrap();
    submit(&mut table, 3).unwrap();
    table.stop(job(3), StopReason::Cancelled, NOW).unwrap();
    check(&table.settled(job(3), NOW), ".3cancelled =3pending");
    table.settled(job(3), NOW);
    table.settled(job(2), NOW);
    table.finished(job(2), complete(), NOW);
    table.settled(job(2), NOW);
    assert!(table.is_empty());
}

#[test]
fn a_deadline_stops_running_work_and_fails_pending_work() {
    let mut table = table(1);
    let deadline = |ms| Some(Deadline::smallest(NOW, Some(ms), None, u64::MAX));
    for (number, ms) in [(1, 10), (2, 20)] {
        table.submit(record(number), ToolTiming::AsyncShort, deadline(ms), NOW).unwrap();
        table.settled(job(number), NOW);
    }
    assert_eq!(table.next_deadline(), Some(110));
    let later = |mono| Now { mono, unix: 6_000 };
    check(&table.expire(later(109)), "");
    check(&table.expire(later(110)), "x1");
    let effects = table.expire(later(120));
    check(&effects, ".2failed");
    assert_eq!(error_of(&effects).code, "timeout");
    assert_eq!(error_of(&effects).certainty, Certainty::NotStarted);
    let effects = table.finished(job(1), WorkEnd::Stopped, later(121));
    assert_eq!(error_of(&effects).context.timeout_ms, Some(10));
    assert_eq!(table.next_deadline(), None);
}

#[test]
fn after_a_restart_pending_jobs_run_and_running_ones_were_interrupted() {
    let mut table = table(1);
    let running = JobRecord { state: JobState::Running, ..record(1) };
    let records =
        [running, record(2), record(3)].map(|record| (record, ToolTiming::AsyncShort.into()));
    let effects = table.restore(records.to_vec(), NOW);
    check(&effects, ".1failed >2");
    assert_eq!(error_of(&effects).context.reason.as_deref(), Some("interrupted"));
    check(&table.settled(job(1), NOW), "=1failed ended1");
    check(&table.settled(job(2), NOW), "=2running !2");
    check(&table.finished(job(2), complete(), NOW), ".2complete >3");
}

#[test]
fn after_a_restart_nothing_runs_that_an_agent_began_with_its_key() {
    let mut table = table(1);
    let session = Some(ringback_proto::ids::SessionId::from_random([1; 16]));
    let held = JobRecord { session, ..record(1) };
    let records = [held, record(2)].map(|record| (record, ToolTiming::AsyncShort.into()));
    check(&table.restore(records.to_vec(), NOW), ".1failed >2");
    check(&table.settled(job(1), NOW), "=1failed ended1");
}

#[test]
fn a_write_that_failed_leaves_no_trace() {
    let mut table = table(1);
    submit(&mut table, 1).unwrap();
    check(&table.abandoned(job(1), NOW), "");
    assert!(table.is_empty());
    submit(&mut table, 2).unwrap();
    table.settled(job(2), NOW);
    table.finished(job(2), complete(), NOW);
    check(&table.abandoned(job(2), NOW), "");
    assert!(table.is_empty());
}

/// Rule: a free slot goes to a waiting job.
#[test]
fn a_job_that_could_not_be_written_gives_its_place_to_the_next() {
    let mut table = table(1);
    submit(&mut table, 1).unwrap();
    submit(&mut table, 2).unwrap();
    check(&table.settled(job(2), NOW), "=2pending");
    check(&table.abandoned(job(1), NOW), ">2");
    check(&table.settled(job(2), NOW), "=2running !2");
}

#[test]
fn how_long_a_job_is_kept_depends_on_how_it_ended() {
    let failed = || WorkEnd::Failed(Box::new(Error::invalid("no").into()));
    let cases = [
        (ToolTiming::AsyncShort, complete(), TTL_COMPLETE_MS),
        (ToolTiming::FireAndForget, complete(), TTL_TRANSPORT_MS),
        (ToolTiming::AsyncShort, failed(), TTL_FAILED_MS),
        (ToolTiming::FireAndForget, failed(), TTL_FAILED_MS),
        (ToolTiming::AsyncLong, WorkEnd::Stopped, TTL_FAILED_MS),
    ];
    for (timing, end, ttl_ms) in cases {
        let end = job_end("t", timing, None, end, true, NOW.unix);
        assert_eq!(end.expires_at - end.completed_at, ttl_ms, "{timing:?} {:?}", end.state);
    }
}

#[test]
fn a_closed_table_lets_running_jobs_end_and_keeps_pending_ones() {
    let mut table = table(1);
    submit(&mut table, 1).unwrap();
    submit(&mut table, 2).unwrap();
    table.settled(job(1), NOW);
    table.settled(job(2), NOW);
    assert_eq!(table.close(), [job(1)]);
    check(&table.stop(job(1), StopReason::Shutdown, NOW).unwrap(), "x1");
    let effects = table.finished(job(1), WorkEnd::Stopped, NOW);
    check(&effects, ".1failed");
    assert_eq!(error_of(&effects).context.reason.as_deref(), Some("interrupted"));
    check(&table.settled(job(1), NOW), "=1failed ended1");
    assert_eq!((table.n_running(), table.n_live()), (0, 1));
}

fn command(table: &mut JobTable, number: u8) -> Result<Effects<Release>> {
    table.submit(record(number), ToolTiming::FireAndForget, None, NOW)
}

/// Rule: a region for what the running jobs make can be placed while they run.
#[test]
fn short_work_of_a_service_needs_no_slot() {
    let mut table = table(1);
    check(&submit(&mut table, 1).unwrap(), "+1r");
    for (number, name, state) in
        [(2, "garden_create_region", "r"), (3, "garden_export", "p"), (4, "abc_to_midi", "p")]
    {
        let row = ringback_proto::tool::find(name).unwrap();
        let effects = table.submit(record(number), row, None, NOW).unwrap();
        check(&effects, &format!("+{number}{state}"));
    }
}

#[test]
fn a_command_runs_without_a_slot_and_past_a_full_queue() {
    let mut table = table(1);
    check(&submit(&mut table, 1).unwrap(), "+1r");
    for number in 2..=4 {
        check(&submit(&mut table, number).unwrap(), &format!("+{number}p"));
    }
    assert!(submit(&mut table, 5).is_err());
    check(&command(&mut table, 6).unwrap(), "+6r");
    check(&table.settled(job(6), NOW), "=6running !6");
    check(&table.finished(job(6), complete(), NOW), ".6complete");
    check(&table.settled(job(6), NOW), "=6complete ended6");
    assert_eq!(table.n_running(), 1);
}

#[test]
fn a_flood_of_commands_is_refused_and_leaves_room_for_others() {
    let mut table = table(1);
    let mut flood = record(1);
    for number in 0..COMMANDS_PER_PRINCIPAL_MAX {
        flood.id = JobId::from_random((number as u128 + 1000).to_be_bytes());
        table.submit(flood.clone(), ToolTiming::FireAndForget, None, NOW).unwrap();
    }
    assert_eq!(command(&mut table, 1).unwrap_err().kind(), ErrorKind::Busy);
    let other = PrincipalId::Token(TokenId::from_random([1; 16]));
    let theirs = JobRecord { owner: other, ..record(2) };
    check(&table.submit(theirs, ToolTiming::FireAndForget, None, NOW).unwrap(), "+2r");
    check(&submit(&mut table, 3).unwrap(), "+3r");
}

/// Rule: a `garden_play` from before a restart never plays after it.
#[test]
fn a_command_from_before_a_restart_is_interrupted_whatever_its_state() {
    for state in [JobState::Pending, JobState::Running] {
        let mut table = table(1);
        let before = JobRecord { state, ..record(1) };
        assert!(!resumes(&before, ToolTiming::FireAndForget));
        let effects = table.restore(vec![(before, ToolTiming::FireAndForget.into())], NOW);
        check(&effects, ".1failed");
        assert_eq!(error_of(&effects).context.reason.as_deref(), Some("interrupted"));
        check(&table.settled(job(1), NOW), "=1failed ended1");
        assert!(table.is_empty());
    }
    assert!(resumes(&record(1), ToolTiming::AsyncShort));
}

#[test]
fn a_command_is_kept_for_a_minute_and_a_failed_one_for_half_an_hour() {
    for (end, ttl_ms) in
        [(complete(), 60_000), (WorkEnd::Failed(Box::new(Error::invalid("x").into())), 30 * 60_000)]
    {
        let mut table = table(1);
        command(&mut table, 1).unwrap();
        table.settled(job(1), NOW);
        let effects = table.finished(job(1), end, NOW);
        let Record::JobEnded { end, .. } = &effects.write[0] else { panic!("an end") };
        assert_eq!(end.expires_at, NOW.unix + ttl_ms);
    }
}
