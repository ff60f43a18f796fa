//! Answers to an agent's permission requests.

use serde::Serialize;

/// Who answers an agent's permission requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Permissions {
    /// The agent's owner, with [`crate::AgentHandle::answer`]. Until then it waits.
    #[default]
    Ask,
    /// Every request is allowed, once.
    Allow,
    /// Every request is denied.
    Deny,
}

/// An option of a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PermissionOption {
    /// Its ID.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its meaning.
    pub kind: PermissionKind,
}

/// The meaning of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionKind {
    /// Yes, this time.
    AllowOnce,
    /// Yes, and do not ask again.
    AllowAlways,
    /// No, this time.
    RejectOnce,
    /// No, and do not ask again.
    RejectAlways,
    /// Something else, which its name explains.
    Other,
}

impl PermissionKind {
    pub(crate) fn of(text: &str) -> Self {
        match text {
            "allow_once" => Self::AllowOnce,
            "allow_always" => Self::AllowAlways,
            "reject_once" => Self::RejectOnce,
            "reject_always" => Self::RejectAlways,
            _ => Self::Other,
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowAlways => "allow_always",
            Self::RejectOnce => "reject_once",
            Self::RejectAlways => "reject_always",
            Self::Other => "other",
        }
    }
}

impl Permissions {
    /// Reads a policy by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ask" => Some(Self::Ask),
            "allow" => Some(Self::Allow),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }

    /// Returns the policy's answer: `None` if the caller has to decide, `Some(None)` if no option
    /// matches the policy.
    pub(crate) fn choose(self, options: &[PermissionOption]) -> Option<Option<String>> {
        // A single grant is preferred over a lasting one.
        let wanted = match self {
            Self::Ask => return None,
            Self::Allow => [PermissionKind::AllowOnce, PermissionKind::AllowAlways],
            Self::Deny => [PermissionKind::RejectOnce, PermissionKind::RejectAlways],
        };
        let of_kind = |kind| options.iter().find(move |option| option.kind == kind);
        Some(wanted.into_iter().find_map(of_kind).map(|option| option.id.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(kinds: &[PermissionKind]) -> Vec<PermissionOption> {
        let option = |kind: &PermissionKind| PermissionOption {
            id: format!("{kind:?}"),
            name: String::new(),
            kind: *kind,
        };
        kinds.iter().map(option).collect()
    }

    /// Rule: a policy grants only the single request it is asked about, if possible.
    #[test]
    fn a_policy_takes_what_holds_once() {
        use PermissionKind::{AllowAlways, AllowOnce, Other, RejectAlways, RejectOnce};
        let all = options(&[RejectAlways, RejectOnce, AllowAlways, AllowOnce]);
        assert_eq!(Permissions::Ask.choose(&all), None);
        assert_eq!(Permissions::Allow.choose(&all), Some(Some("AllowOnce".to_owned())));
        assert_eq!(Permissions::Deny.choose(&all), Some(Some("RejectOnce".to_owned())));
        let always = options(&[AllowAlways, RejectAlways]);
        assert_eq!(Permissions::Allow.choose(&always), Some(Some("AllowAlways".to_owned())));
        assert_eq!(Permissions::Allow.choose(&options(&[RejectOnce, Other])), Some(None));
        assert_eq!(Permissions::Deny.choose(&options(&[AllowOnce])), Some(None));
    }
}
