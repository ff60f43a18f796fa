//! Projects, workspaces and sessions: what is written, who sees it, and what is deleted with what.

use ringback_proto::ids::{ProjectId, SessionId, TokenId, WorkspaceId};
use ringback_proto::money::MicroUsd;
use ringback_proto::network::{NetworkMode, NetworkPolicy};
use ringback_proto::permission::PermissionMode;
use ringback_proto::principal::{KeyLevel, Level, PrincipalId, Target};
use ringback_proto::record::{
    ProjectImage, ProjectRecord, Record, SessionChoice, SessionRecord, SessionState,
    SpendingRecord, TokenRecord, WorkspaceRecord,
};
use ringback_proto::request::{ModelUsage, ProjectLimits, SpendLimits};
use ringback_store::{CommitError, Page, ReadError, RowVisibility, SessionFilter, WriteOutcome};

use crate::common::{TestStore, bytes16, owner, project};

pub(crate) fn workspace_id(n: u64) -> WorkspaceId {
    WorkspaceId::from_random(bytes16(n))
}

pub(crate) fn session_id(n: u64) -> SessionId {
    SessionId::from_random(bytes16(n))
}

fn project_record(n: u64, owner: PrincipalId) -> ProjectRecord {
    ProjectRecord {
        id: project(n),
        name: format!("Project {n}"),
        description: None,
        owner,
        agent: None,
        key_level: KeyLevel::None,
        limits: ProjectLimits::default(),
        network: None,
        image: None,
        permissions: None,
        created_at: n,
    }
}

pub(crate) fn new_project(n: u64) -> Record {
    Record::ProjectCreated(Box::new(project_record(n, PrincipalId::Local)))
}

/// The workspace `n` of project `of`.
pub(crate) fn new_workspace(n: u64, of: u64) -> Record {
    Record::WorkspaceCreated(WorkspaceRecord {
        id: workspace_id(n),
        project: project(of),
        created_at: n,
        last_session_at: None,
    })
}

/// The session `n` in workspace `of` of project `of`.
pub(crate) fn session_record(n: u64, of: u64, owner: PrincipalId) -> SessionRecord {
    SessionRecord {
        id: session_id(n),
        project: project(of),
        workspace: workspace_id(of),
        owner,
        parent: None,
        root: session_id(n),
        depth: 0,
        agent: "script".to_owned(),
        state: SessionState::Starting,
        created_at: n,
        updated_at: n,
        ended_at: None,
        key: None,
        network: None,
        spending: SpendingRecord::default(),
        choice: SessionChoice::default(),
    }
}

pub(crate) fn new_session(n: u64, of: u64) -> Record {
    Record::SessionCreated(Box::new(session_record(n, of, PrincipalId::Local)))
}

pub(crate) fn changed(n: u64, state: SessionState, at: u64) -> Record {
    Record::SessionChanged { id: session_id(n), state, at }
}

fn key_of(n: u64) -> TokenRecord {
    TokenRecord {
        id: TokenId::from_random(bytes16(n)),
        name: format!("key {n}"),
        secret_hash: [n.to_be_bytes()[7]; 32],
        public_key: [n.to_be_bytes()[7]; 32],
        level: Level::Read,
        target: Target::Projects(vec![project(1)]),
        created_at: 1,
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
        session: Some(session_id(n)),
    }
}

fn visible_to(of: u64, projects: &[u64]) -> RowVisibility {
    RowVisibility::Owner {
        owner: owner(of),
        projects: projects.iter().copied().map(project).collect(),
    }
}

/// Returns the items of all pages of a list.
fn all<T>(mut page: impl FnMut(Option<&str>) -> Result<Page<T>, ReadError>) -> Vec<T> {
    let (mut items, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let next = page(cursor.as_deref()).unwrap();
        items.extend(next.items);
        match next.next_cursor {
            Some(next) => cursor = Some(next),
            None => return items,
        }
    }
}

/// A record with every field set.
fn spent(n: u64) -> SpendingRecord {
    SpendingRecord {
        limits: SpendLimits {
            max_tokens: Some(n),
            max_time_ms: Some(n + 1),
            max_micro_usd: Some(MicroUsd(n + 2)),
        },
        usage: ModelUsage {
            requests: n + 3,
            refused: n + 4,
            bytes_up: n + 5,
            bytes_down: n + 6,
            input_tokens: n + 7,
            output_tokens: n + 8,
            estimated: true,
            unpriced_tokens: n + 9,
            cost_micro_usd: Some(MicroUsd(n + 10)),
        },
        working_ms: n + 11,
    }
}

/// Rule: what a session has spent only grows, in whatever order it is written, and an unlimited
/// value stays unlimited.
#[test]
fn what_was_spent_is_the_most_that_was_written() {
    let test = TestStore::new();
    let limited = SessionRecord { spending: spent(1), ..session_record(2, 1, owner(3)) };
    let project = Record::ProjectCreated(Box::new(project_record(1, owner(3))));
    let limited = Record::SessionCreated(Box::new(limited));
    test.commit(vec![project, new_workspace(1, 1), new_session(1, 1), limited]).unwrap();
    let write = |of: u64, n: u64| {
        let spending = Box::new(spent(n));
        test.commit(vec![Record::SessionSpent { id: session_id(of), spending }]).unwrap();
    };
    for n in [5, 9, 7] {
        write(1, n);
        write(2, n);
    }
    let read = |of: u64| test.store.session(session_id(of)).unwrap().unwrap().spending;
    assert_eq!(read(1), SpendingRecord { limits: SpendLimits::default(), ..spent(9) });
    assert_eq!(read(2), spent(9));
    let unknown = Record::SessionSpent { id: session_id(3), spending: Box::default() };
    assert!(test.commit(vec![unknown]).is_err());
    for of in [1, 2] {
        let nothing = Record::SessionSpent { id: session_id(of), spending: Box::default() };
        test.commit(vec![nothing]).unwrap();
    }
    assert_eq!(read(1).usage, spent(9).usage);
    assert_eq!(read(2), spent(9));
}

#[test]
fn projects_workspaces_and_sessions_read_back_as_they_were_written() {
    let test = TestStore::new();
    let project_1 = ProjectRecord {
        description: Some("what for".to_owned()),
        agent: Some("script".to_owned()),
        key_level: KeyLevel::Write,
        limits: ProjectLimits {
            max_depth: Some(0),
            max_agents: Some(u32::MAX),
            max_sessions: Some(7),
            idle_ms: Some(1 << 40),
            max_tokens: Some(1 << 41),
            max_time_ms: Some(1),
            max_micro_usd: Some(MicroUsd(2)),
        },
        network: Some("allow a.org:443 [fd00::/8]:*".parse().unwrap()),
        image: Some(ProjectImage::Named("rust".to_owned())),
        permissions: Some("ask\nbash*=deny".parse().unwrap()),
        ..project_record(1, owner(3))
    };
    let image = Some(ProjectImage::Reference("debian:12".to_owned()));
    let plain = ProjectRecord { image, ..project_record(2, PrincipalId::Local) };
    let session = SessionRecord {
        parent: Some(session_id(8)),
        root: session_id(9),
        depth: 2,
        state: SessionState::Failed,
        ended_at: Some(12),
        key: Some(TokenId::from_random(bytes16(4))),
        network: Some(NetworkPolicy::of(NetworkMode::Full)),
        spending: spent(7),
        choice: SessionChoice {
            provider: Some("ollama".to_owned()),
            model: Some("small:1b".to_owned()),
            permissions: Some(PermissionMode::Deny),
        },
        ..session_record(1, 1, owner(3))
    };
    test.commit(vec![
        Record::ProjectCreated(Box::new(project_1.clone())),
        Record::ProjectCreated(Box::new(plain.clone())),
        new_workspace(1, 1),
        Record::SessionCreated(Box::new(session.clone())),
        Record::TokenCreated(key_of(1)),
    ])
    .unwrap();
    assert_eq!(test.store.project(project(1)).unwrap(), Some(project_1));
    assert_eq!(test.store.project(project(2)).unwrap(), Some(plain));
    assert_eq!(test.store.project(project(3)).unwrap(), None);
    assert_eq!(test.store.session(session_id(1)).unwrap(), Some(session));
    assert_eq!(test.store.session(session_id(2)).unwrap(), None);
    assert_eq!(test.store.tokens().unwrap(), [key_of(1)]);
    let workspace = test.store.workspace(workspace_id(1)).unwrap().unwrap();
    assert_eq!((workspace.project, workspace.last_session_at), (project(1), None));
    assert_eq!(test.store.workspace(workspace_id(2)).unwrap(), None);
}

#[test]
fn what_agents_of_a_project_are_answered_is_what_was_said_last() {
    let test = TestStore::new();
    test.commit(vec![new_project(1)]).unwrap();
    let permissions = || test.store.project(project(1)).unwrap().unwrap().permissions;
    assert_eq!(permissions(), None);
    for policy in [Some("deny\nread*=allow"), None, Some("-\n*=ask")] {
        let policy = policy.map(|text| text.parse().unwrap());
        let change = Record::ProjectPermissions { id: project(1), permissions: policy.clone() };
        test.commit(vec![change]).unwrap();
        assert_eq!(permissions(), policy);
    }
    let of_none = Record::ProjectPermissions { id: project(2), permissions: None };
    let refused = test.commit(vec![of_none]).unwrap_err();
    assert!(matches!(refused, CommitError::NoProject { .. }), "{refused:?}");
}

#[test]
fn what_a_session_may_reach_is_what_was_said_last() {
    let test = TestStore::new();
    test.commit(vec![new_project(1), new_workspace(1, 1), new_session(1, 1)]).unwrap();
    let network = || test.store.session(session_id(1)).unwrap().unwrap().network;
    assert_eq!(network(), None);
    for text in ["allow example.org:443 *.example.org:*", "none"] {
        let policy: NetworkPolicy = text.parse().unwrap();
        let change = Record::SessionNetwork { id: session_id(1), network: policy.clone() };
        test.commit(vec![change]).unwrap();
        assert_eq!(network(), Some(policy));
    }
    let of_nobody = Record::SessionNetwork { id: session_id(2), network: NetworkPolicy::default() };
    let refused = test.commit(vec![of_nobody]).unwrap_err();
    assert!(matches!(refused, CommitError::NoSession { .. }), "{refused:?}");
}

#[test]
fn a_session_is_over_from_the_change_that_leaves_it_without_an_agent() {
    let test = TestStore::new();
    test.commit(vec![new_project(1), new_workspace(1, 1), new_session(1, 1)]).unwrap();
    let stands = || {
        let session = test.store.session(session_id(1)).unwrap().unwrap();
        (session.state, session.updated_at, session.ended_at)
    };
    for (state, at, ended_at) in [
        (SessionState::Running, 10, None),
        (SessionState::Idle, 20, None),
        (SessionState::Interrupted, 30, Some(30)),
        (SessionState::Running, 40, None),
        (SessionState::Ended, 50, Some(50)),
    ] {
        test.commit(vec![changed(1, state, at)]).unwrap();
        assert_eq!(stands(), (state, at, ended_at));
    }
    let used = |at| Record::WorkspaceUsed { id: workspace_id(1), at };
    test.commit(vec![used(60), used(50)]).unwrap();
    let workspace = test.store.workspace(workspace_id(1)).unwrap().unwrap();
    assert_eq!(workspace.last_session_at, Some(60));
}

#[test]
fn what_belongs_to_nothing_is_refused() {
    let test = TestStore::new();
    test.commit(vec![new_project(1), new_project(2), new_workspace(1, 1), new_session(1, 1)])
        .unwrap();
    let refused = |record: Record| test.commit(vec![record]).unwrap_err();
    assert!(matches!(refused(new_workspace(9, 9)), CommitError::NoProject { .. }));
    assert!(matches!(refused(new_session(9, 9)), CommitError::NoProject { .. }));
    // In the right project, but with another project's workspace.
    let misplaced = SessionRecord { workspace: workspace_id(1), ..session_record(9, 2, owner(0)) };
    let misplaced = Record::SessionCreated(Box::new(misplaced));
    assert!(matches!(refused(misplaced), CommitError::NoWorkspace { .. }));
    for taken in [new_project(1), new_workspace(1, 1), new_session(1, 1)] {
        assert!(matches!(refused(taken), CommitError::Taken { .. }));
    }
    let used = Record::WorkspaceUsed { id: workspace_id(9), at: 1 };
    assert!(matches!(refused(used), CommitError::NoWorkspace { .. }));
    let gone = changed(9, SessionState::Idle, 1);
    assert!(matches!(refused(gone), CommitError::NoSession { .. }));
    let delete = Record::ProjectDeleted { id: project(9) };
    assert!(matches!(refused(delete), CommitError::NoProject { .. }));
    let delete = Record::WorkspaceDeleted { id: workspace_id(9) };
    assert!(matches!(refused(delete), CommitError::NoWorkspace { .. }));
    let delete = Record::SessionDeleted { id: session_id(9) };
    assert!(matches!(refused(delete), CommitError::NoSession { .. }));
}

/// Rule: nothing is deleted while an agent uses it, and a key never outlives its session.
#[test]
fn what_is_deleted_takes_its_past_sessions_and_their_keys_with_it() {
    let test = TestStore::new();
    test.commit(vec![
        new_project(1),
        new_project(2),
        new_workspace(1, 1),
        new_workspace(2, 2),
        new_session(1, 1),
        new_session(2, 2),
        new_session(3, 1),
        new_session(4, 1),
    ])
    .unwrap();
    test.commit((1..=4).map(key_of).map(Record::TokenCreated).collect()).unwrap();
    let deletions = [
        Record::SessionDeleted { id: session_id(3) },
        Record::WorkspaceDeleted { id: workspace_id(1) },
        Record::ProjectDeleted { id: project(1) },
    ];
    let live = [SessionState::Starting, SessionState::Running, SessionState::Idle];
    for state in live {
        test.commit(vec![changed(1, SessionState::Ended, 1), changed(4, SessionState::Ended, 1)])
            .unwrap();
        test.commit(vec![changed(3, state, 2)]).unwrap();
        for deletion in &deletions {
            let refused = test.commit(vec![deletion.clone()]).unwrap_err();
            assert!(
                matches!(&refused, CommitError::InUse { session, .. } if *session == session_id(3)),
                "{refused}"
            );
        }
    }
    test.commit(vec![changed(3, SessionState::Interrupted, 3)]).unwrap();
    let removed = |record: &Record| test.commit(vec![record.clone()]).unwrap();
    assert_eq!(removed(&deletions[0]), [WriteOutcome::SessionsRemoved(vec![session_id(3)])]);
    let both = vec![session_id(1), session_id(4)];
    assert_eq!(removed(&deletions[1]), [WriteOutcome::SessionsRemoved(both)]);
    assert_eq!(removed(&deletions[2]), [WriteOutcome::SessionsRemoved(vec![])]);
    assert_eq!(test.store.workspaces(project(1)).unwrap(), []);
    let left: Vec<_> =
        test.store.tokens().unwrap().into_iter().filter_map(|token| token.session).collect();
    assert_eq!(left, [session_id(2)]);
    let live = test.store.live_sessions().unwrap();
    assert!(live.into_iter().map(|session| session.id).eq([session_id(2)]));

    test.commit(vec![changed(2, SessionState::Ended, 4)]).unwrap();
    let delete = Record::ProjectDeleted { id: project(2) };
    assert_eq!(removed(&delete), [WriteOutcome::SessionsRemoved(vec![session_id(2)])]);
    assert_eq!(test.store.workspace(workspace_id(2)).unwrap(), None);
    assert_eq!(test.store.session(session_id(2)).unwrap(), None);
    assert_eq!(test.store.tokens().unwrap(), []);
}

#[test]
fn projects_are_listed_by_name_and_visibility() {
    let test = TestStore::new();
    for n in 0..40 {
        let mut record = project_record(n, owner(n % 3));
        record.name =
            format!("{} {n}", ["Żółw%", "zebra_", "ŻÓŁW"][usize::try_from(n % 3).unwrap()]);
        test.commit(vec![Record::ProjectCreated(Box::new(record))]).unwrap();
    }
    let list = |visible: &RowVisibility, part: Option<&str>, limit| -> Vec<ProjectId> {
        let page = |cursor: Option<&str>| test.store.projects(visible, part, cursor, limit);
        all(page).into_iter().map(|project| project.id).collect()
    };
    let expected = |keep: &dyn Fn(u64) -> bool| -> Vec<ProjectId> {
        (0..40).rev().filter(|n| keep(*n)).map(project).collect()
    };
    for limit in [1, 7, 100] {
        assert_eq!(list(&RowVisibility::All, None, limit), expected(&|_| true));
        assert_eq!(list(&RowVisibility::All, Some("żółw"), limit), expected(&|n| n % 3 != 1));
        assert_eq!(list(&RowVisibility::All, Some("w%"), limit), expected(&|n| n % 3 == 0));
        assert_eq!(
            list(&RowVisibility::All, Some("ZEBRA_ 1"), limit),
            expected(&|n| { n % 3 == 1 && n.to_string().starts_with('1') })
        );
        let mine = visible_to(1, &[3, 4, 3, 99]);
        assert_eq!(list(&mine, None, limit), expected(&|n| n % 3 == 1 || n == 3));
        assert_eq!(list(&mine, Some("żółw"), limit), expected(&|n| n == 3));
        assert_eq!(list(&visible_to(9, &[]), None, limit), []);
    }
    assert!(matches!(
        test.store.projects(&RowVisibility::All, None, Some("x"), 1),
        Err(ReadError::BadCursor)
    ));
}

#[test]
fn sessions_are_listed_by_project_state_and_visibility() {
    let test = TestStore::new();
    test.commit((0..4).flat_map(|n| [new_project(n), new_workspace(n, n)]).collect()).unwrap();
    let state_of = |n: u64| SessionState::ALL[usize::try_from(n % 6).unwrap()];
    for n in 0..60 {
        let record = SessionRecord { state: state_of(n), ..session_record(n, n % 4, owner(n % 5)) };
        test.commit(vec![Record::SessionCreated(Box::new(record))]).unwrap();
    }
    for visible in [RowVisibility::All, visible_to(1, &[]), visible_to(1, &[2, 3, 2])] {
        for project_n in [None, Some(1), Some(2), Some(9)] {
            for state in [None, Some(SessionState::Idle), Some(SessionState::Ended)] {
                let sees = |n: u64| match &visible {
                    RowVisibility::All => true,
                    RowVisibility::Owner { projects, .. } => {
                        n % 5 == 1 || projects.contains(&project(n % 4))
                    }
                    RowVisibility::Tree { .. } => false,
                };
                let expected: Vec<_> = (0..60)
                    .rev()
                    .filter(|n| sees(*n) && project_n.is_none_or(|project| n % 4 == project))
                    .filter(|n| state.is_none_or(|state| state_of(*n) == state))
                    .map(session_id)
                    .collect();
                let filter = SessionFilter { project: project_n.map(project), state, tree: None };
                for limit in [1, 7, 100] {
                    let listed = all(|cursor| test.store.sessions(&visible, filter, cursor, limit));
                    let listed: Vec<_> = listed.into_iter().map(|session| session.id).collect();
                    assert_eq!(listed, expected, "{visible:?} {filter:?}");
                }
            }
        }
    }
    let live = test.store.live_sessions().unwrap();
    let expected = (0..60).filter(|n| state_of(*n).is_live()).map(session_id);
    assert!(live.into_iter().map(|session| session.id).eq(expected));
}

#[test]
fn sessions_that_are_over_are_found_by_age() {
    let test = TestStore::new();
    test.commit((1..=2).flat_map(|n| [new_project(n), new_workspace(n, n)]).collect()).unwrap();
    for n in 1..=6 {
        let mut record = session_record(n, 1 + n % 2, owner(n % 3));
        if n > 3 {
            (record.parent, record.root) = (Some(session_id(n - 1)), session_id(3));
        }
        test.commit(vec![Record::SessionCreated(Box::new(record))]).unwrap();
    }
    for n in [5, 1, 2, 3] {
        test.commit(vec![changed(n, SessionState::Ended, n * 10)]).unwrap();
    }
    let over = |visible: &RowVisibility, of: Option<u64>, until, limit| -> Vec<SessionId> {
        let found = test.store.sessions_over(visible, of.map(project), until, limit).unwrap();
        found.into_iter().map(|session| session.id).collect()
    };
    let ids = |ns: &[u64]| -> Vec<_> { ns.iter().copied().map(session_id).collect() };
    assert_eq!(over(&RowVisibility::All, None, 30, 10), ids(&[1, 2, 3]));
    assert_eq!(over(&RowVisibility::All, None, 30, 2), ids(&[1, 2]));
    assert_eq!(over(&RowVisibility::All, Some(2), 100, 10), ids(&[1, 3, 5]));
    assert_eq!(over(&visible_to(2, &[]), None, 100, 10), ids(&[2, 5]));
    assert_eq!(over(&visible_to(2, &[2]), None, 100, 10), ids(&[1, 2, 3, 5]));
}

/// Rule: either all records of a commit are written, or none of them.
#[test]
fn a_session_and_its_workspace_are_written_together_or_not_at_all() {
    let test = TestStore::new();
    test.commit(vec![new_project(1)]).unwrap();
    let refused = test.commit(vec![new_workspace(1, 1), new_session(1, 1), new_session(1, 1)]);
    assert!(matches!(refused, Err(CommitError::Taken { .. })));
    assert_eq!(test.store.workspace(workspace_id(1)).unwrap(), None);
    assert_eq!(test.store.session(session_id(1)).unwrap(), None);
    test.commit(vec![new_workspace(1, 1), new_session(1, 1)]).unwrap();
    assert_eq!(test.store.workspaces(project(1)).unwrap().len(), 1);
}
