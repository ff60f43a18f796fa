//! Every tool with every kind of principal, and what each of them sees.

use ringback_proto::ErrorKind;
use ringback_proto::ids::TokenId;
use ringback_proto::tool::TOOLS;

use super::*;

fn principal(level: Level, target: Target) -> Principal {
    let id = PrincipalId::Token(TokenId::from_random([1; 16]));
    Principal { id, level, target, held_by: None }
}

fn project() -> ProjectId {
    ProjectId::from_random([2; 16])
}

fn held(key: AgentKey, principal: Principal) -> Principal {
    let session = SessionId::from_random([3; 16]);
    Principal { held_by: Some(KeyHolder { session, key }), ..principal }
}

/// All kinds of principals, each with a name.
fn kinds() -> Vec<(String, Principal)> {
    let mut kinds = Vec::new();
    for level in [Level::Read, Level::Write, Level::Admin] {
        let all = principal(level, Target::Everything);
        let some = principal(level, Target::Projects(vec![project()]));
        let passed = AgentKey::Passed;
        kinds.push((format!("{level} of all"), all.clone()));
        kinds.push((format!("{level} of a project"), some.clone()));
        kinds.push((format!("passed {level} of all"), held(passed, all)));
        kinds.push((format!("passed {level} of a project"), held(passed, some.clone())));
        // `key_level` has no admin; if it did, such a key would still get no further.
        kinds.push((format!("made {level}"), held(AgentKey::Made, some)));
    }
    kinds
}

/// Restates the rule: who may call a tool.
fn expected(row: &ToolRow, principal: &Principal) -> bool {
    let is_agent = principal.held_by.is_some();
    let is_for_all = principal.target == Target::Everything;
    let is_for_a_session = tree(principal).is_some();
    principal.level >= row.level
        && match needs(row.kind) {
            KeyRequirement::Level => true,
            KeyRequirement::Project => !is_for_a_session,
            KeyRequirement::AllProjects => is_for_all,
            KeyRequirement::User => !is_agent,
            KeyRequirement::Everything => is_for_all && !is_agent,
        }
}

/// Rule: every tool with every kind of principal; a tool without a row in [`needs`] does not compile.
#[test]
fn every_tool_is_for_those_whom_its_row_names() {
    for row in TOOLS {
        for (name, principal) in kinds() {
            let may = authorize(&principal, row);
            assert_eq!(may.is_ok(), expected(row, &principal), "{name}: {}", row.name);
            if let Err(error) = may {
                assert_eq!(error.kind(), ErrorKind::Forbidden);
                assert!(error.context().missing.is_some(), "{name}: {}", row.name);
            }
        }
    }
}

/// Rule: no key that an agent holds manages tokens, changes a project, answers for a caller,
/// loosens confinement or answers a permission request, whatever its scope and origin.
#[test]
fn no_key_of_an_agent_decides_what_agents_may() {
    let tools = [
        "token_create",
        "token_list",
        "token_revoke",
        "project_update",
        "caller_tool_requests",
        "caller_tool_response",
        "caller_tool_progress",
    ];
    for (name, principal) in kinds() {
        let is_agent = principal.held_by.is_some();
        for tool in tools {
            let row = ringback_proto::tool::find(tool).unwrap();
            let may = authorize(&principal, row).is_ok();
            assert_eq!(may, !is_agent && principal.level >= row.level, "{name}: {tool}");
        }
        let may = may_loosen(&principal, "x").is_ok();
        assert_eq!(may, !is_agent && principal.level == Level::Admin, "{name}");
        assert_eq!(may_answer(&principal, principal.id).is_ok(), !is_agent, "{name}");
    }
}

#[test]
fn a_denial_says_which_level_is_missing() {
    let reader = principal(Level::Read, Target::Everything);
    for row in TOOLS.iter().filter(|row| row.level > Level::Read) {
        let missing = authorize(&reader, row).unwrap_err().context().missing.clone().unwrap();
        assert!(missing.contains(row.level.as_str()), "{missing}");
    }
}

#[test]
fn a_token_sees_its_own_and_its_projects_and_only_a_full_admin_sees_all() {
    let project = project();
    let other = PrincipalId::Token(TokenId::from_random([9; 16]));
    let own = principal(Level::Read, Target::Everything);
    assert!(sight(&own).includes(own.id, None));
    assert!(!sight(&own).includes(other, Some(project)));

    let narrowed = principal(Level::Admin, Target::Projects(vec![project]));
    assert!(sight(&narrowed).includes(other, Some(project)));
    assert!(!sight(&narrowed).includes(other, None));

    assert_eq!(sight(&principal(Level::Admin, Target::Everything)), Visibility::All);
}

/// Rule: a session key sees its project, and within it only what its own session owns; a token that
/// a user passed sees what it saw before.
#[test]
fn the_key_of_a_session_sees_its_project_and_not_what_others_do_in_it() {
    let other = PrincipalId::Token(TokenId::from_random([9; 16]));
    let some = principal(Level::Write, Target::Projects(vec![project()]));
    let made = held(AgentKey::Made, some.clone());
    assert!(sight_of_projects(&made).includes(other, Some(project())));
    assert!(!sight(&made).includes(other, Some(project())));
    assert!(sight(&made).includes(made.id, None));
    assert_eq!(tree(&made), made.held_by.map(|held_by| held_by.session));
    let passed = held(AgentKey::Passed, some.clone());
    assert_eq!((tree(&passed), tree(&some)), (None, None));
    assert_eq!(sight(&passed), sight(&some));
}

/// Rule: what is made belongs to the session that holds the key and to its project; what a user
/// makes, to the one project of the token.
#[test]
fn what_is_made_belongs_to_the_session_and_project_of_its_key() {
    let (one, other) = (project(), ProjectId::from_random([8; 16]));
    let of = |projects: Vec<ProjectId>| principal(Level::Write, Target::Projects(projects));
    let nowhere = Provenance::default();
    let in_one = Provenance { project: Some(one), session: None };
    assert_eq!(provenance(&of(vec![one]), None), in_one);
    assert_eq!(provenance(&of(vec![one, other]), None), nowhere);
    assert_eq!(provenance(&of(vec![]), None), nowhere);
    let all = principal(Level::Admin, Target::Everything);
    assert_eq!(provenance(&all, None), nowhere);
    for key in [AgentKey::Made, AgentKey::Passed] {
        for user in [all.clone(), of(vec![one, other])] {
            let agent = held(key, user);
            let session = agent.held_by.map(|holder| holder.session);
            assert!(session.is_some());
            let there = Provenance { project: Some(other), session };
            assert_eq!(provenance(&agent, Some(other)), there);
        }
    }
}

/// Rule: paths of this machine are shown to a sandbox for the daemon's own user, and for neither a
/// token nor an agent with a key of that user.
#[test]
fn only_the_daemons_own_user_shows_toolchains() {
    let local = Principal::local();
    assert!(may_show_toolchains(&local).is_ok());
    let admin = principal(Level::Admin, Target::Everything);
    for refused in [admin.clone(), held(AgentKey::Made, local), held(AgentKey::Passed, admin)] {
        let error = may_show_toolchains(&refused).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden, "{refused:?}");
    }
}

#[test]
fn nobody_grants_more_than_it_has() {
    let a = ProjectId::from_random([2; 16]);
    let b = ProjectId::from_random([3; 16]);
    let narrowed = principal(Level::Admin, Target::Projects(vec![a]));
    assert!(may_grant(&narrowed, Level::Admin, &Target::Projects(vec![a])).is_ok());
    assert!(may_grant(&narrowed, Level::Read, &Target::Projects(vec![a, b])).is_err());
    assert!(may_grant(&narrowed, Level::Read, &Target::Everything).is_err());
    let writer = principal(Level::Write, Target::Everything);
    assert!(may_grant(&writer, Level::Admin, &Target::Everything).is_err());
}
