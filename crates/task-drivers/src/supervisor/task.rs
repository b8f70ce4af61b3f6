//! Start of the task's process, or adoption of one that has lost its supervisor.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode as FileMode;
use nix::unistd::mkfifo;

use super::clock;
use super::files::{self, Durability, STATE, StartRequest, State, User};
use super::isolation;
use super::logs::{Outputs, STREAMS};
use super::network;
use super::protocol::VERSION;
use super::reap::Reaped;
use crate::affinity;
use crate::cgroup::{self, TaskCgroup};
use crate::core_list;
use crate::process_id::{MARKER, ProcessId, boot_id};

/// A running task.
pub(super) struct Started {
    pub(super) reaped: Reaped,
    pub(super) outputs: Outputs,
}

/// A failed start.
pub(super) struct Failure {
    pub(super) message: String,
    pub(super) recoverable: bool,
}

impl Failure {
    fn new(what: &str, error: &io::Error) -> Self {
        // A missing or forbidden file stays so; other errors may be temporary.
        let is_final = matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput
        );
        Self {
            message: format!("{what}: {error}"),
            recoverable: !is_final,
        }
    }
}

pub(super) fn start(directory: &Path, request: &StartRequest) -> Result<Started, Failure> {
    let cgroup = make_cgroup(request);
    if let Some(isolation) = &request.isolation
        && isolation.needs_limits
    {
        let limited = cgroup
            .as_ref()
            .is_some_and(|group| group.has(&request.limits));
        if !limited {
            if let Some(cgroup) = &cgroup {
                let _ = cgroup.remove();
            }
            return Err(Failure {
                message: "the task's control group does not take its limits of cpu and memory"
                    .to_owned(),
                recoverable: true,
            });
        }
    }
    let (inputs, outputs) = match &request.logs {
        Some(_) => open_fifos(directory, request.user)
            .map_err(|error| Failure::new("task output", &error))?,
        None => (None, None),
    };
    let _ = fs::write(
        "/proc/self/oom_score_adj",
        request.oom_score_adj.to_string(),
    );
    let cgroup = cgroup.filter(|cgroup| cgroup.enter().is_ok());
    let make = |program: &Path| command(request, program, inputs);
    let begin = |command: &mut Command| spawn(command, cgroup.as_ref(), &request.limits.cores);
    // The command ends with the call, and with it the write ends of its output: the reader sees the
    // end of file when no process of the task is left.
    let spawned = match &request.isolation {
        Some(isolation) if isolation.needs_limits && cgroup.is_none() => Err(io::Error::other(
            "it cannot enter its control group, which limits it",
        )),
        Some(isolation) => isolation::start(request, isolation, make, begin),
        None => network::within(request.network.as_ref(), || {
            begin(&mut make(&request.command)?)
        }),
    };
    // Killing the group must not kill the supervisor, so a group that it cannot leave is not used.
    let cgroup = cgroup.filter(|_| {
        request
            .cgroup_slice
            .as_deref()
            .is_some_and(|slice| cgroup::enter_supervisors(slice).is_ok())
    });
    let child = spawned.map_err(|error| {
        if let Some(cgroup) = &cgroup {
            let _ = cgroup.remove();
        }
        Failure::new(
            &format!("cannot start {}", request.command.display()),
            &error,
        )
    })?;
    // The process is waited for by pid: dropping the handle neither kills nor reaps it.
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    drop(child);
    // A process that has ended already is not reaped yet, so it has a start time. If that cannot
    // be read, the pid alone identifies it.
    let process = ProcessId::of(pid).unwrap_or(ProcessId {
        pid,
        start_ticks: 0,
    });
    let started = Started {
        reaped: Reaped {
            process,
            task_id: request.task_id.clone(),
            is_child: true,
            cgroup,
        },
        outputs,
    };
    write_state(directory, &started).map_err(|error| {
        // The task could not be recovered later, so it must not run.
        started.reaped.kill_everything();
        Failure::new("cannot write state.json", &error)
    })?;
    Ok(started)
}

/// Takes over the process that `state.json` names.
pub(super) fn adopt(directory: &Path, request: &StartRequest) -> Result<Started, Failure> {
    let lost = |error: io::Error| Failure::new("cannot adopt the task", &error);
    let state: State = files::read(directory, STATE)
        .and_then(|state| state.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)))
        .map_err(lost)?;
    let outputs = match &request.logs {
        Some(_) => Some(reopen_fifos(directory).map_err(lost)?),
        None => None,
    };
    let slice = request.cgroup_slice.as_deref().filter(|_| state.has_cgroup);
    let started = Started {
        reaped: Reaped {
            process: state.task,
            task_id: request.task_id.clone(),
            is_child: false,
            cgroup: slice.map(|slice| TaskCgroup::at(slice, &request.cgroup_name)),
        },
        outputs,
    };
    write_state(directory, &started).map_err(lost)?;
    Ok(started)
}

fn write_state(directory: &Path, started: &Started) -> io::Result<()> {
    let own = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
    let state = State {
        version: VERSION,
        boot_id: boot_id(),
        supervisor: ProcessId::of(own).unwrap_or(ProcessId {
            pid: own,
            start_ticks: 0,
        }),
        task: started.reaped.process,
        has_cgroup: started.reaped.cgroup.is_some(),
        started_at: clock::wall(),
    };
    files::write(directory, STATE, &state, Durability::Crash)
}

/// Starts the process on its cores: confined by the control group, else by its affinity mask.
fn spawn(
    command: &mut Command,
    cgroup: Option<&TaskCgroup>,
    cores: &[u16],
) -> io::Result<std::process::Child> {
    let is_confined = cores.is_empty() || cgroup.is_some_and(|cgroup| cgroup.confine(cores));
    if is_confined {
        return command.spawn();
    }
    let on_cores = affinity::enter(cores).map_err(|error| {
        let list = core_list::format(cores);
        io::Error::new(
            error.kind(),
            format!("cannot run on its dedicated cores, {list}: {error}"),
        )
    })?;
    let spawned = command.spawn();
    drop(on_cores);
    spawned
}

fn make_cgroup(request: &StartRequest) -> Option<TaskCgroup> {
    let cgroup = TaskCgroup::at(request.cgroup_slice.as_deref()?, &request.cgroup_name);
    cgroup.create(&request.limits).ok()?;
    Some(cgroup)
}

fn command(request: &StartRequest, program: &Path, inputs: Outputs) -> io::Result<Command> {
    let mut command = Command::new(program);
    command
        .args(&request.args)
        .env_clear()
        .envs(&request.env)
        .env(MARKER, &request.task_id)
        .current_dir(&request.work_dir)
        .stdin(Stdio::null())
        .process_group(0);
    // An isolated process changes its user itself, after it has mounted the last of its root.
    if let Some(user) = request.user.filter(|_| request.isolation.is_none()) {
        command.uid(user.uid).gid(user.gid);
    }
    match inputs {
        Some([stdout, stderr]) => command.stdout(stdout).stderr(stderr),
        None => command.stdout(Stdio::null()).stderr(Stdio::null()),
    };
    Ok(command)
}

fn fifo(directory: &Path, position: usize) -> PathBuf {
    directory.join(format!("{}.fifo", STREAMS[position].as_str()))
}

/// Creates the pipes of the task's output. Returns the task's ends and the supervisor's.
///
/// The task's ends are open for reading as well: when the supervisor dies, the pipe still has a
/// reader, and SIGPIPE does not kill the task.
fn open_fifos(directory: &Path, user: Option<User>) -> io::Result<(Outputs, Outputs)> {
    let open = |position| {
        let path = fifo(directory, position);
        mkfifo(&path, FileMode::from_bits_truncate(0o600))?;
        if let Some(user) = user {
            // A task may reopen its own output as /dev/stdout.
            chown(&path, Some(user.uid), Some(user.gid))?;
        }
        let input = OpenOptions::new().read(true).write(true).open(&path)?;
        Ok::<_, io::Error>((input, File::open(&path)?))
    };
    let (stdout, stderr) = (open(0)?, open(1)?);
    Ok((Some([stdout.0, stderr.0]), Some([stdout.1, stderr.1])))
}

/// Opens the supervisor's ends of pipes that the task holds or has closed.
fn reopen_fifos(directory: &Path) -> io::Result<[File; 2]> {
    let open = |position| {
        // A blocking open would wait for a writer, and there may be none any more.
        let nonblocking = OFlag::O_NONBLOCK.bits();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open(fifo(directory, position))?;
        fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
        Ok::<_, io::Error>(file)
    };
    Ok([open(0)?, open(1)?])
}
