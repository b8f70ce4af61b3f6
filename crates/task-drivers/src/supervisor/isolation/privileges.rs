//! Between fork and exec: the task's process mounts `/proc` and gives up its rights.
//!
//! Only system calls, without allocations: the process is a copy of one with other threads.

use std::io::{self, PipeReader, PipeWriter, Read, Write};

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use seccompiler::BpfProgram;

use super::failure::because;
use super::seccomp;
use crate::supervisor::files::{Isolation, StartRequest, User};

/// Files of `/proc` that tell about the machine's memory or keys.
const HIDDEN: [&std::ffi::CStr; 4] = [
    c"/proc/kcore",
    c"/proc/keys",
    c"/proc/timer_list",
    c"/proc/sched_debug",
];
/// Parts of `/proc` that change the machine. Source: Nomad's public behaviour.
const READ_ONLY: [&std::ffi::CStr; 5] = [
    c"/proc/sys",
    c"/proc/sysrq-trigger",
    c"/proc/irq",
    c"/proc/bus",
    c"/proc/fs",
];

/// The rights that are left to the task.
pub(super) struct Privileges {
    user: User,
    groups: Vec<Gid>,
    /// A bit per capability.
    bounding: u64,
    /// Those that the process has.
    held: u64,
    filter: Vec<BpfProgram>,
}

/// Step of [`Privileges::apply`], for the message of a failure.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Step {
    Proc = 1,
    Bounding,
    User,
    Capabilities,
    NoNewPrivileges,
    Filter,
}

impl Step {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Proc, "cannot mount /proc"),
        (Self::Bounding, "cannot bound its capabilities"),
        (Self::User, "cannot become the task's user"),
        (Self::Capabilities, "cannot set its capabilities"),
        (Self::NoNewPrivileges, "cannot forbid new privileges"),
        (Self::Filter, "cannot filter its system calls"),
    ];
}

impl Privileges {
    pub(super) fn new(request: &StartRequest, isolation: &Isolation) -> io::Result<Self> {
        let user = request
            .user
            .ok_or_else(|| io::Error::other("an isolated task has no user"))?;
        Ok(Self {
            user,
            groups: isolation
                .groups
                .iter()
                .copied()
                .map(Gid::from_raw)
                .collect(),
            bounding: isolation.bounding_capabilities,
            held: isolation.capabilities,
            filter: if isolation.seccomp {
                seccomp::filter().map_err(io::Error::other)?
            } else {
                Vec::new()
            },
        })
    }

    /// Mounts `/proc`, then gives up everything but these rights. A failure is sent to `report` as the
    /// step's number.
    pub(super) fn apply(&self, report: &PipeWriter) -> io::Result<()> {
        at(report, Step::Proc, mount_proc())?;
        self.give_up(report)
    }

    /// Gives up everything but these rights. A failure is sent to `report` as the step's number.
    pub(super) fn give_up(&self, report: &PipeWriter) -> io::Result<()> {
        let at = |step, result| at(report, step, result);
        at(Step::Bounding, bound(self.bounding))?;
        at(Step::User, self.become_user())?;
        at(Step::Capabilities, self.hold())?;
        at(Step::NoNewPrivileges, prctl::set_no_new_privs())?;
        for filter in &self.filter {
            let applied = seccompiler::apply_filter(filter);
            at(Step::Filter, applied.map_err(|_| Errno::last()))?;
        }
        Ok(())
    }

    fn become_user(&self) -> nix::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.user.uid), Gid::from_raw(self.user.gid));
        setgroups(&self.groups)?;
        setresgid(gid, gid, gid)?;
        // Lost with the user otherwise; the set is cut down next. An exec clears the flag.
        prctl::set_keepcaps(true)?;
        setresuid(uid, uid, uid)
    }

    fn hold(&self) -> nix::Result<()> {
        set_capabilities(self.held)?;
        if self.user.uid == 0 {
            return Ok(());
        }
        // Only ambient ones outlast the exec of a user other than root.
        for number in bits(self.held) {
            control(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong,
                number,
            )?;
        }
        Ok(())
    }
}

fn at(mut report: &PipeWriter, step: Step, result: nix::Result<()>) -> io::Result<()> {
    result.map_err(|error| {
        let _ = report.write(&[step as u8]);
        io::Error::from(error)
    })
}

/// Adds the step that failed, if it was one of [`Privileges::apply`].
pub(super) fn name(failure: &mut PipeReader, error: io::Error) -> io::Error {
    let mut number = [0];
    let _ = failure.read(&mut number);
    let step = Step::ALL.iter().find(|(step, _)| *step as u8 == number[0]);
    match step {
        Some((_, what)) => because(what, &error),
        None => error,
    }
}

fn mount_proc() -> nix::Result<()> {
    let none = None::<&str>;
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some(c"proc"), c"/proc", Some(c"proc"), plain, none)?;
    let existing = |result| match result {
        Err(Errno::ENOENT) => Ok(false),
        result => result.map(|()| true),
    };
    for file in HIDDEN {
        let bound = mount(Some(c"/dev/null"), file, none, MsFlags::MS_BIND, none);
        existing(bound)?;
    }
    for part in READ_ONLY {
        let bound = mount(Some(part), part, none, MsFlags::MS_BIND, none);
        if existing(bound)? {
            let again = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
            mount(none, part, none, again | plain, none)?;
        }
    }
    Ok(())
}

fn bits(set: u64) -> impl Iterator<Item = libc::c_ulong> {
    (0..64).filter(move |number| set & (1 << number) != 0)
}

/// Removes all other capabilities from the bounding set.
fn bound(kept: u64) -> nix::Result<()> {
    for number in bits(!kept) {
        match control(libc::PR_CAPBSET_DROP, number, 0) {
            // Beyond the kernel's last one.
            Err(Errno::EINVAL) => break,
            result => result?,
        }
    }
    Ok(())
}

fn control(option: libc::c_int, first: libc::c_ulong, second: libc::c_ulong) -> nix::Result<()> {
    let zero: libc::c_ulong = 0;
    #[expect(unsafe_code, reason = "no library has these calls")]
    // SAFETY: the arguments are numbers.
    let result = unsafe { libc::prctl(option, first, second, zero, zero) };
    Errno::result(result).map(drop)
}

/// Sets the permitted, effective and inheritable capabilities.
fn set_capabilities(set: u64) -> nix::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let header = Header {
        // _LINUX_CAPABILITY_VERSION_3 of <linux/capability.h>: two words per set.
        version: 0x2008_0522,
        pid: 0,
    };
    let [low, high] = [set, set >> 32].map(|word| {
        let word = u32::try_from(word & u64::from(u32::MAX)).unwrap_or_default();
        Data {
            effective: word,
            permitted: word,
            inheritable: word,
        }
    });
    let data = [low, high];
    #[expect(unsafe_code, reason = "no library has this system call")]
    // SAFETY: both structures have the kernel's layout for this version.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) };
    Errno::result(result).map(drop)
}
