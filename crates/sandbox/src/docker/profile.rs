//! The system call filter, in the format of container engines.
//!
//! It lists the allowed calls, because an engine may be older than the kernel and ignores names it
//! does not know: a call that is to be refused would be allowed. It lists every existing call
//! except those of [`crate::seccomp`], so that both kinds of sandboxes make the same promise.

use libc::c_long;
use serde::Serialize;
use syscalls::Sysno;

use crate::seccomp;

/// A whole profile.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    default_action: Action,
    default_errno_ret: i32,
    architectures: [&'static str; 1],
    syscalls: Vec<Rule>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    names: Vec<&'static str>,
    action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno_ret: Option<i32>,
    args: Vec<Condition>,
}

/// A condition on one argument of a call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    index: u8,
    /// The value to compare with, or a bit mask.
    value: u64,
    /// The required value of those bits.
    value_two: u64,
    op: &'static str,
}

#[derive(Debug, Clone, Copy, Serialize)]
enum Action {
    #[serde(rename = "SCMP_ACT_ALLOW")]
    Allow,
    #[serde(rename = "SCMP_ACT_ERRNO")]
    Refuse,
}

/// Returns the profile as an engine reads it.
pub(crate) fn text() -> serde_json::Result<String> {
    serde_json::to_string(&profile())
}

fn profile() -> Profile {
    let (refused, absent) = (names(seccomp::refused_calls()), names(seccomp::ABSENT));
    let mut rules =
        vec![refuse(refused.clone(), libc::EPERM), refuse(absent.clone(), libc::ENOSYS)];
    let conditional = conditional();
    let named: Vec<_> = conditional.iter().flat_map(|rule| &rule.names).copied().collect();
    let is_free =
        |name: &&str| !refused.contains(name) && !absent.contains(name) && !named.contains(name);
    let free = Sysno::iter().map(|call| call.name()).filter(is_free).collect();
    rules.push(allow(free, Vec::new()));
    rules.extend(conditional);
    Profile {
        default_action: Action::Refuse,
        default_errno_ret: libc::EPERM,
        architectures: [ARCHITECTURE],
        syscalls: rules,
    }
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: &str = "SCMP_ARCH_X86_64";
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: &str = "SCMP_ARCH_AARCH64";

/// `fcntl` commands without a higher bit are as old as Unix.
const FCNTL_PLAIN: u32 = 1023;
/// The Linux-specific ones.
const FCNTL_MORE: std::ops::Range<u32> = 1024..1056;
/// The resource limits, by number.
const LIMITS: std::ops::Range<u32> = 0..16;

/// Returns the calls that are allowed with certain arguments. If a call has several rules, any of
/// them is enough.
fn conditional() -> Vec<Rule> {
    let namespaces = seccomp::NAMESPACES.iter().fold(0, |all, flag| all | flag.unsigned_abs());
    let set_id = seccomp::SET_ID.iter().fold(0, |all, bit| all | bit);
    let makes = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)).unsigned_abs();
    let mut rules = vec![allow(vec!["clone"], vec![without(0, namespaces)])];
    for family in seccomp::SOCKETS {
        rules.push(allow(vec!["socket"], vec![is(0, *family)]));
    }
    rules.push(allow(vec!["fcntl"], vec![without(1, !FCNTL_PLAIN)]));
    for command in FCNTL_MORE.filter(|command| !seccomp::LEASES.contains(command)) {
        rules.push(allow(vec!["fcntl"], vec![is_low(1, command)]));
    }
    for limit in LIMITS.filter(|limit| *limit != seccomp::KEPT_LIMIT) {
        rules.push(allow(vec!["setrlimit"], vec![is_low(0, limit)]));
        rules.push(allow(vec!["prlimit64"], vec![is_low(1, limit)]));
    }
    // Without a new limit the call only queries; with one it is faked.
    let kept = seccomp::KEPT_LIMIT;
    let asked = vec![is_low(1, kept), Condition { op: "SCMP_CMP_EQ", ..zero(2) }];
    rules.push(allow(vec!["prlimit64"], asked));
    let set = vec![is_low(1, kept), Condition { op: "SCMP_CMP_NE", ..zero(2) }];
    rules.push(Rule { args: set, ..refuse(vec!["prlimit64"], 0) });
    rules.push(Rule { args: vec![is_low(0, kept)], ..refuse(vec!["setrlimit"], 0) });
    let with_mode: &[(&'static str, u8)] = &[
        ("chmod", 1),
        ("fchmod", 1),
        ("creat", 1),
        ("mknod", 1),
        ("fchmodat", 2),
        ("fchmodat2", 2),
        ("mknodat", 2),
    ];
    for (name, mode_at) in with_mode {
        rules.push(allow(vec![name], vec![without(*mode_at, set_id)]));
    }
    for (name, flags_at) in [("open", 1), ("openat", 2)] {
        // Opening takes a mode only when it creates a file; otherwise the argument may be anything.
        rules.push(allow(vec![name], vec![without(flags_at, makes)]));
        rules.push(allow(vec![name], vec![without(flags_at + 1, set_id)]));
    }
    rules
}

fn names(calls: impl IntoIterator<Item = impl std::borrow::Borrow<c_long>>) -> Vec<&'static str> {
    let known = |call: &c_long| Sysno::new(usize::try_from(*call).ok()?).map(|call| call.name());
    calls.into_iter().filter_map(|call| known(call.borrow())).collect()
}

const fn refuse(names: Vec<&'static str>, errno: i32) -> Rule {
    Rule { names, action: Action::Refuse, errno_ret: Some(errno), args: Vec::new() }
}

const fn allow(names: Vec<&'static str>, args: Vec<Condition>) -> Rule {
    Rule { names, action: Action::Allow, errno_ret: None, args }
}

fn without(index: u8, bits: u32) -> Condition {
    Condition { index, value: bits.into(), value_two: 0, op: "SCMP_CMP_MASKED_EQ" }
}

fn is(index: u8, value: i32) -> Condition {
    Condition { index, value: value.unsigned_abs().into(), value_two: 0, op: "SCMP_CMP_EQ" }
}

/// The kernel uses 32 bits of the argument: the higher bits must not bypass the check.
fn is_low(index: u8, value: u32) -> Condition {
    let (mask, value_two) = (u32::MAX.into(), value.into());
    Condition { index, value: mask, value_two, op: "SCMP_CMP_MASKED_EQ" }
}

const fn zero(index: u8) -> Condition {
    Condition { index, value: 0, value_two: 0, op: "SCMP_CMP_EQ" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: each call has one meaning: refused, absent, or allowed, perhaps with conditions.
    #[test]
    fn no_call_is_both_refused_and_allowed() {
        let profile = profile();
        let of = |wanted: fn(&Rule) -> bool| -> Vec<_> {
            profile
                .syscalls
                .iter()
                .filter(|rule| wanted(rule))
                .flat_map(|rule| &rule.names)
                .collect()
        };
        let refused = of(|rule| matches!(rule.action, Action::Refuse));
        let free = of(|rule| matches!(rule.action, Action::Allow) && rule.args.is_empty());
        let conditional = of(|rule| !rule.args.is_empty());
        assert!(refused.contains(&&"mount") && refused.contains(&&"clone3"), "{refused:?}");
        assert!(free.contains(&&"read") && free.contains(&&"execve"), "{free:?}");
        assert!(conditional.contains(&&"clone") && conditional.contains(&&"socket"));
        for name in refused {
            let is_ignored = ["setrlimit", "prlimit64"].contains(name);
            assert!(!free.contains(&name), "{name}");
            assert_eq!(conditional.contains(&name), is_ignored, "{name}");
        }
        assert!(conditional.iter().all(|name| !free.contains(name)));
    }
}
