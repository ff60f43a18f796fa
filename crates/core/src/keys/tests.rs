//! Tables of the rule for session keys.

use ringback_proto::ids::{ProjectId, SessionId, TokenId};
use ringback_proto::principal::{AgentKey, KeyHolder, KeyLevel, PrincipalId};
use ringback_proto::request::ProjectLimits;

use super::*;

fn owner(number: u8) -> PrincipalId {
    PrincipalId::Token(TokenId::from_random([number; 16]))
}

fn project(key_level: KeyLevel) -> ProjectRecord {
    ProjectRecord {
        id: ProjectId::from_random([7; 16]),
        name: "p".to_owned(),
        description: None,
        owner: owner(1),
        agent: None,
        key_level,
        limits: ProjectLimits::default(),
        network: None,
        image: None,
        permissions: None,
        created_at: 0,
    }
}

fn user(level: Level, target: Target) -> Principal {
    Principal { id: owner(1), level, target, held_by: None }
}

fn agent(level: Level, target: Target) -> Principal {
    let session = SessionId::from_random([3; 16]);
    let held_by = Some(KeyHolder { session, key: AgentKey::Passed });
    Principal { id: owner(2), level, target, held_by }
}

/// Rule: a session key is the intersection of its starter's permissions and those of its project.
#[test]
fn a_key_has_no_more_than_its_starter_and_its_project() {
    let own = || Target::Projects(vec![project(KeyLevel::None).id]);
    let elsewhere = || Target::Projects(vec![ProjectId::from_random([8; 16])]);
    for (starter, key_level, level) in [
        (user(Level::Admin, Target::Everything), KeyLevel::None, None),
        (user(Level::Admin, Target::Everything), KeyLevel::Read, Some(Level::Read)),
        (user(Level::Admin, Target::Everything), KeyLevel::Write, Some(Level::Write)),
        (user(Level::Read, Target::Everything), KeyLevel::Write, Some(Level::Read)),
        (user(Level::Write, own()), KeyLevel::Write, Some(Level::Write)),
        (agent(Level::Read, own()), KeyLevel::Write, Some(Level::Read)),
        (agent(Level::Write, own()), KeyLevel::Read, Some(Level::Read)),
        (agent(Level::Admin, own()), KeyLevel::Write, Some(Level::Write)),
        // A child does not see what its parent's key does not see.
        (agent(Level::Write, elsewhere()), KeyLevel::Write, None),
        (agent(Level::Write, Target::Everything), KeyLevel::Write, None),
    ] {
        let starter = match starter.held_by {
            None => Starter::User(&starter),
            Some(_) => Starter::Agent(Some(&starter)),
        };
        let grant = made(starter, &project(key_level));
        assert_eq!(grant.as_ref().map(|grant| grant.level), level, "{starter:?}");
        assert!(grant.is_none_or(|grant| grant.target == own()), "{starter:?}");
    }
}

/// Rule: an agent without a key cannot start a session that has one.
#[test]
fn without_a_key_nobody_hands_one_down() {
    assert_eq!(made(Starter::Agent(None), &project(KeyLevel::Write)), None);
}

/// Rule: a passed token keeps its scope and its projects, and grants no more than its starter has.
#[test]
fn a_passed_token_stays_what_it_is() {
    let writer = user(Level::Write, Target::Everything);
    for level in [Level::Read, Level::Write] {
        let grant = passed(&writer, &user(level, Target::Everything)).unwrap();
        assert_eq!(grant, Grant { level, target: Target::Everything });
    }
    assert!(passed(&writer, &user(Level::Admin, Target::Everything)).is_err());
    let narrow = agent(Level::Write, Target::Projects(vec![project(KeyLevel::None).id]));
    assert!(passed(&narrow, &user(Level::Read, Target::Everything)).is_err());
}
