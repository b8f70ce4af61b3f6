//! Main function of a supervisor: detach from the agent, start the task, wait for its end, linger.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::setsid;

use super::files::{self, Durability, EXIT, End, START_REQUEST, StartRequest};
use super::logs::{self, Outputs};
use super::mode::Mode;
use super::shared::{Phase, Shared};
use super::{clock, control, own_program, reap, task};
use crate::cgroup;

/// Time that a supervisor waits to be forgotten after its task has ended. Afterwards its files
/// suffice. Source: the specification of the node.
const LINGER: Duration = Duration::from_secs(24 * 60 * 60);
/// Timeout for the last output to reach the files once every process is dead. The output is in the
/// pipe already, so this bounds a hanging disk, not a task that writes.
const LOG_FLUSH_LIMIT: Duration = Duration::from_secs(5);
/// OOM score of the supervisor, close to the minimum: without a supervisor the task's exit code is
/// lost. Source: the specification of the node.
const OOM_SCORE_ADJ: &str = "-999";

pub(super) fn run(directory: &Path, mode: Mode) -> io::Result<()> {
    let request: StartRequest = files::read(directory, START_REQUEST)?
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no intent.json"))?;
    if request.isolation.is_some() {
        own_program::run_read_only()?;
    }
    let listener = become_independent()?;
    if let Some(slice) = &request.cgroup_slice {
        // Without it the supervisor stays in the agent's group, which works as well.
        let _ = cgroup::enter_supervisors(slice);
    }
    let shared = Arc::new(Shared::new());
    let started = match mode {
        Mode::Start => task::start(directory, &request),
        Mode::Adopt => task::adopt(directory, &request),
    };
    // Lowered after the start, because a child inherits what its parent has.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ);
    match started {
        Ok(mut started) => {
            let outputs = started.outputs.take();
            let result = supervise(
                directory,
                &request,
                &started.reaped,
                outputs,
                &shared,
                listener,
            );
            if result.is_err() {
                // No process is left to record its end.
                started.reaped.kill_everything();
            }
            result?;
        }
        Err(failure) => {
            let (message, recoverable) = (failure.message, failure.recoverable);
            let end = End::StartFailed {
                message: message.clone(),
                recoverable,
            };
            files::write(directory, EXIT, &end, Durability::PowerCut)?;
            shared.change(|facts| {
                facts.phase = Phase::StartFailed {
                    message,
                    recoverable,
                }
            });
            control::spawn(listener, Arc::clone(&shared))?;
        }
    }
    drop(shared.wait_for(LINGER, |facts| facts.is_forgotten));
    Ok(())
}

/// Detaches from the agent: its session, its terminal, its signals. Returns the listening socket,
/// which is the standard input.
fn become_independent() -> io::Result<UnixListener> {
    setsid()?;
    prctl::set_child_subreaper(true)?;
    reset_signals()?;
    let listener = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(UnixListener::from(listener))
}

/// Makes the supervisor immune to accidental signals, because only the agent ends it, and gives the
/// task the signal dispositions of a login shell.
///
/// One empty handler does both: unlike "ignore", a handler is not inherited across exec. An agent
/// that a shell started in the background ignores some signals; a task that inherited this would
/// not receive its kill signal, and with SIGCHLD ignored it could not wait for its children.
pub(super) fn reset_signals() -> nix::Result<()> {
    let set = |signal, handler| {
        let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
        #[expect(
            unsafe_code,
            reason = "setting a signal's action is unsafe for handlers' sake"
        )]
        // SAFETY: the only handler is empty, so it can interrupt anything.
        unsafe {
            sigaction(signal, &action)
        }
    };
    for signal in [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
    ] {
        set(signal, SigHandler::Handler(do_nothing))?;
    }
    set(Signal::SIGCHLD, SigHandler::SigDfl)?;
    SigSet::empty().thread_set_mask()
}

extern "C" fn do_nothing(_: i32) {}

fn supervise(
    directory: &Path,
    request: &StartRequest,
    task: &reap::Reaped,
    outputs: Outputs,
    shared: &Arc<Shared>,
    listener: UnixListener,
) -> io::Result<()> {
    let writers = logs::spawn(request.logs.as_ref(), outputs, shared)?;
    shared.change(|facts| {
        facts.task = Some(task.process);
        facts.pid = task.process.pid;
        facts.phase = Phase::Running;
    });
    control::spawn(listener, Arc::clone(shared))?;
    let mut exit = reap::wait(task, shared)?;
    if let Some(cgroup) = &task.cgroup {
        exit.oom_killed = cgroup.was_out_of_memory();
        // The group is empty. A failed removal is retried when the task is forgotten.
        let _ = cgroup.remove();
    }
    let end = End::Exited {
        exit: exit.clone(),
        at: clock::wall(),
    };
    files::write(directory, EXIT, &end, Durability::PowerCut)?;
    logs::finish(&writers, LOG_FLUSH_LIMIT);
    shared.change(|facts| facts.phase = Phase::Exited(exit));
    Ok(())
}
