//! The filter of an isolated task's system calls.
//!
//! It refuses the calls that administer the machine or have no use inside a namespace, and lets all
//! others pass, so a program of a newer libc works on. Programs of another architecture, such as
//! those of 32 bits, are killed: their numbers mean other calls.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

/// Refused with "operation not permitted".
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
];

/// Flags of `clone` that make namespaces.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// Returns the programs, all of which apply.
///
/// # Errors
/// The machine's architecture has no filter.
pub(super) fn filter() -> Result<Vec<BpfProgram>, String> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|number| (*number, Vec::new())).collect();
    let makes_namespace = NAMESPACES.map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        let has_flag = SeccompCmpOp::MaskedEq(flag);
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, has_flag, flag);
        condition.and_then(|condition| SeccompRule::new(vec![condition]))
    });
    let makes_namespace: Result<Vec<_>, _> = makes_namespace.into_iter().collect();
    let makes_namespace = makes_namespace.map_err(|error| error.to_string())?;
    refused.insert(libc::SYS_clone, makes_namespace);
    // Its flags are behind a pointer, which a filter cannot read. A libc falls back to `clone`.
    let missing = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok(vec![
        program(refused, libc::EPERM)?,
        program(missing, libc::ENOSYS)?,
    ])
}

fn program(
    calls: BTreeMap<i64, Vec<SeccompRule>>,
    error: libc::c_int,
) -> Result<BpfProgram, String> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH);
    let architecture = architecture.map_err(|error| error.to_string())?;
    let errno = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, errno, architecture);
    let program: Result<BpfProgram, _> = filter.and_then(TryInto::try_into);
    let program = program.map_err(|error| error.to_string())?;
    Ok(if cfg!(target_arch = "x86_64") {
        other_numbers().into_iter().chain(program).collect()
    } else {
        program
    })
}

/// Refuses calls by the numbers of the x32 interface, which would pass by all others.
fn other_numbers() -> [sock_filter; 3] {
    const X32_BIT: u32 = 0x4000_0000;
    let step = |code: u32, jt, jf, k| sock_filter {
        code: u16::try_from(code).unwrap_or_default(),
        jt,
        jf,
        k,
    };
    [
        // The number is the first word of the data.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32_BIT),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
        ),
    ]
}
