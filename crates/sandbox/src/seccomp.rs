//! The system calls that a sandbox does not have.
//!
//! A list of forbidden calls, not of allowed ones: agents are programs for Node, Go, Python and the
//! shell, and start compilers. Forbidden are calls that reach past namespaces, that load code into
//! the kernel, and that have been used to escape sandboxes before and no agent needs.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

/// Always refused.
#[rustfmt::skip]
const REFUSED: &[libc::c_long] = &[
    // Mounts.
    libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot, libc::SYS_move_mount,
    libc::SYS_open_tree, libc::SYS_fsopen, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick,
    libc::SYS_mount_setattr, OPEN_TREE_ATTR,
    // Namespaces; `clone` has its own rule.
    libc::SYS_unshare, libc::SYS_setns,
    // Other processes' memory and files.
    libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_kcmp,
    libc::SYS_pidfd_getfd, libc::SYS_process_madvise,
    // Files by number, past every path.
    libc::SYS_open_by_handle_at, libc::SYS_name_to_handle_at, libc::SYS_fanotify_init,
    // Keyrings are not in a namespace.
    libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key,
    // Code in the kernel, and large kernel subsystems that are rarely needed and often broken.
    libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register,
    libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module,
    libc::SYS_kexec_load, libc::SYS_kexec_file_load,
    // The machine.
    libc::SYS_reboot, libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_acct, libc::SYS_quotactl,
    libc::SYS_quotactl_fd, libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_adjtimex,
    libc::SYS_clock_adjtime, libc::SYS_syslog, libc::SYS_vhangup, libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl, libc::SYS_sethostname, libc::SYS_setdomainname,
    libc::SYS_migrate_pages, libc::SYS_move_pages,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[];

/// Newer than `libc` on some architectures; their numbers are the same on all.
const OPEN_TREE_ATTR: libc::c_long = 467;
const FCHMODAT2: libc::c_long = 452;

/// Reported as nonexistent, so that programs fall back: their arguments are behind a pointer, where
/// no filter can look.
pub(crate) const ABSENT: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

/// The namespaces that `clone` must not make.
pub(crate) const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// The allowed socket families: a network namespace does not contain all others.
pub(crate) const SOCKETS: &[i32] =
    &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Injects input into a terminal, and the console's variant.
const TERMINAL_INPUT: &[libc::c_ulong] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// Requests that make everyone who opens a file wait, or report every change in a directory:
/// leases, delegations and `dnotify`.
pub(crate) const LEASES: &[u32] = &[libc::F_SETLEASE as u32, libc::F_NOTIFY as u32, F_SETDELEG];
/// Newer than `libc`.
const F_SETDELEG: u32 = 1040;

/// The limit that keeps a crash from starting a program outside the sandbox. Lowering it to zero
/// would remove that protection, so it cannot be set; programs that want no dumps get none anyway.
pub(crate) const KEPT_LIMIT: u32 = libc::RLIMIT_CORE;

/// Mode bits of a file that runs as its owner: outside the sandbox, that is the daemon's user.
pub(crate) const SET_ID: &[u32] = &[libc::S_ISUID, libc::S_ISGID];

/// Numbers from here on are a second set of all calls, which no other rule covers.
const X32_START: u32 = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type CompileResult<T> = Result<T, seccompiler::BackendError>;

/// Returns the programs for the kernel, in bubblewrap's format. They are compiled once.
pub(crate) fn programs() -> CompileResult<&'static [Vec<u8>]> {
    static PROGRAMS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    if let Some(programs) = PROGRAMS.get() {
        return Ok(programs);
    }
    let compiled = compile_all()?;
    Ok(PROGRAMS.get_or_init(|| compiled))
}

fn compile_all() -> CompileResult<Vec<Vec<u8>>> {
    let refused = compile(refused()?, libc::EPERM)?;
    // Faked as successful.
    let ignored = compile(ignored()?, 0)?;
    Ok([refused, ignored, absent()].iter().map(bytes).collect())
}

/// Returns the calls that are always refused on this architecture.
pub(crate) fn refused_calls() -> impl Iterator<Item = &'static libc::c_long> {
    REFUSED.iter().chain(REFUSED_HERE)
}

fn compile(rules: Rules, errno: i32) -> CompileResult<BpfProgram> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
}

fn refused() -> CompileResult<Rules> {
    let mut rules: Rules = refused_calls().map(|call| (*call, Vec::new())).collect();
    let namespaces = NAMESPACES.iter().map(|flag| has(0, flag.unsigned_abs()));
    rules.insert(libc::SYS_clone, any(namespaces)?);
    let leases = LEASES.iter().map(|command| is(1, u64::from(*command)));
    rules.insert(libc::SYS_fcntl, any(leases)?);
    let inputs = TERMINAL_INPUT.iter().map(|request| is(1, *request));
    rules.insert(libc::SYS_ioctl, any(inputs)?);
    let others: CompileResult<Vec<_>> = SOCKETS.iter().map(|family| is_not(0, *family)).collect();
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(others?)?]);
    for (call, mode_at) in
        [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2), (libc::SYS_mknodat, 2)]
    {
        rules.insert(call, any(SET_ID.iter().map(|bit| has(mode_at, *bit)))?);
    }
    rules.insert(libc::SYS_openat, made_with_set_id(2)?);
    #[cfg(target_arch = "x86_64")]
    {
        for call in [libc::SYS_chmod, libc::SYS_creat, libc::SYS_mknod] {
            rules.insert(call, any(SET_ID.iter().map(|bit| has(1, *bit)))?);
        }
        rules.insert(libc::SYS_open, made_with_set_id(1)?);
    }
    Ok(rules)
}

/// Calls that are faked as successful: programs such as `gpg` give up when they fail.
fn ignored() -> CompileResult<Rules> {
    let kept = u64::from(KEPT_LIMIT);
    // Without a new limit the call only queries.
    let is_new = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    Ok(Rules::from([
        (libc::SYS_setrlimit, vec![SeccompRule::new(vec![is(0, kept)?])?]),
        (libc::SYS_prlimit64, vec![SeccompRule::new(vec![is(1, kept)?, is_new])?]),
    ]))
}

/// Opening takes a mode only when it creates a file; otherwise the argument may be anything.
fn made_with_set_id(flags_at: u8) -> CompileResult<Vec<SeccompRule>> {
    // The part of `O_TMPFILE` that is not `O_DIRECTORY`.
    let unnamed = libc::O_TMPFILE & !libc::O_DIRECTORY;
    let mut rules = Vec::new();
    for makes in [libc::O_CREAT, unnamed] {
        for bit in SET_ID {
            let both = vec![has(flags_at, makes.unsigned_abs())?, has(flags_at + 1, *bit)?];
            rules.push(SeccompRule::new(both)?);
        }
    }
    Ok(rules)
}

fn any(
    conditions: impl Iterator<Item = CompileResult<SeccompCondition>>,
) -> CompileResult<Vec<SeccompRule>> {
    conditions.map(|condition| SeccompRule::new(vec![condition?])).collect()
}

/// The kernel uses 32 bits of all of these: the higher bits must not bypass the check.
fn has(argument: u8, bits: u32) -> CompileResult<SeccompCondition> {
    let bits = u64::from(bits);
    let op = SeccompCmpOp::MaskedEq(bits);
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, bits)
}

fn is(argument: u8, value: u64) -> CompileResult<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: i32) -> CompileResult<SeccompCondition> {
    let value = u64::from(value.unsigned_abs());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// Reports some calls, and the whole second set, as nonexistent. It needs a comparison with "at
/// least", which the compiler lacks, and one program costs a sandbox less than two.
fn absent() -> BpfProgram {
    let step = |code: u32, jt, k| sock_filter { code: code as u16, jt, jf: 0, k };
    let (compare, end) = (libc::BPF_JMP | libc::BPF_K, libc::BPF_RET | libc::BPF_K);
    let at_least = step(compare | libc::BPF_JGE, 0, X32_START);
    let equal = |call: &libc::c_long| step(compare | libc::BPF_JEQ, 0, *call as u32);
    let mut questions: Vec<_> = [at_least].into_iter().chain(ABSENT.iter().map(equal)).collect();
    // A match jumps over the remaining steps, including the one that allows.
    for (steps_after, question) in (1..).zip(questions.iter_mut().rev()) {
        question.jt = steps_after;
    }
    let number = step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0);
    let allow = step(end, 0, SeccompAction::Allow.into());
    let refuse = step(end, 0, SeccompAction::Errno(libc::ENOSYS as u32).into());
    [number].into_iter().chain(questions).chain([allow, refuse]).collect()
}

/// Returns it with the memory layout of `struct sock_filter`.
fn bytes(program: &BpfProgram) -> Vec<u8> {
    let steps = program.iter().flat_map(|step| {
        let [code_low, code_high] = step.code.to_ne_bytes();
        let [k0, k1, k2, k3] = step.k.to_ne_bytes();
        [code_low, code_high, step.jt, step.jf, k0, k1, k2, k3]
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: the kernel accepts the filter: whole instructions, and fewer than 4096.
    #[test]
    fn the_programs_compile_for_this_machine() {
        for program in programs().unwrap() {
            assert!(program.len() % 8 == 0 && program.len() / 8 <= 4096, "{}", program.len());
        }
    }
}
