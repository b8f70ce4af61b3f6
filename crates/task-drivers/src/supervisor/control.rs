//! Requests of the agent, served by one thread per connection.

use std::io::{self, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::protocol::{Reply, Request, VERSION, read_line, write_line};
use super::reap;
use super::shared::{Facts, Phase, Shared};
use crate::signals;

/// Timeout for killed processes to be gone before the agent gets a refusal.
/// Source: Nomad 2.0 behaviour of raw_exec.
const KILL_LIMIT: Duration = Duration::from_secs(15);
/// Upper bound of a wait on behalf of a watching agent. An agent that died leaves a closed
/// connection, which the next write detects.
const WATCH_LIMIT: Duration = Duration::from_secs(3600);
/// Room for a few calls.
const STACK_BYTES: usize = 96 * 1024;
/// The pause after an error of `accept`, such as a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(super) fn spawn(listener: UnixListener, shared: Arc<Shared>) -> io::Result<()> {
    thread::Builder::new()
        .name("control".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            loop {
                let Ok((stream, _)) = listener.accept() else {
                    thread::sleep(ACCEPT_PAUSE);
                    continue;
                };
                let shared = Arc::clone(&shared);
                let answered = thread::Builder::new()
                    .name("connection".to_owned())
                    .stack_size(STACK_BYTES)
                    .spawn(move || {
                        // The agent is gone or sent an invalid request; it will reconnect.
                        let _ = answer(&stream, &shared);
                    });
                if answered.is_err() {
                    thread::sleep(ACCEPT_PAUSE);
                }
            }
        })?;
    Ok(())
}

fn answer(stream: &UnixStream, shared: &Shared) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = read_line::<Request>(&mut reader)? {
        let reply = match request {
            Request::Ping { .. } => pong(&shared.lock()),
            Request::Watch { .. } => watch(&mut writer, shared)?,
            Request::Stop {
                signal, grace_ms, ..
            } => stop(shared, &signal, Duration::from_millis(grace_ms)),
            Request::Signal { signal, .. } => send_signal(shared, &signal),
            Request::Forget { .. } => {
                let reply = forget(shared);
                write_line(&mut writer, &reply)?;
                if reply == Reply::Done {
                    shared.change(|facts| facts.is_forgotten = true);
                }
                continue;
            }
        };
        write_line(&mut writer, &reply)?;
    }
    Ok(())
}

fn pong(facts: &Facts) -> Reply {
    Reply::Pong {
        version: VERSION,
        supervisor_pid: std::process::id(),
        task_pid: facts.task.map(|task| task.pid),
        log_dropped_bytes: facts.log_dropped_bytes,
    }
}

/// Sends the start and every message as they come. Returns the last reply, the task's end.
fn watch(writer: &mut &UnixStream, shared: &Shared) -> io::Result<Reply> {
    let mut is_start_sent = false;
    let mut messages_sent = 0;
    loop {
        let facts = shared.wait_for(WATCH_LIMIT, |facts| {
            facts.phase.is_over()
                || facts.messages_ever > messages_sent
                || (!is_start_sent && facts.phase == Phase::Running)
        });
        let pid = facts.pid;
        let is_started = !matches!(facts.phase, Phase::Starting | Phase::StartFailed { .. });
        let unsent = usize::try_from(facts.messages_ever - messages_sent).unwrap_or(usize::MAX);
        let skipped = facts.messages.len().saturating_sub(unsent);
        let messages: Vec<String> = facts.messages.iter().skip(skipped).cloned().collect();
        messages_sent = facts.messages_ever;
        let phase = facts.phase.clone();
        // Writing may block on an agent that does not read, so the lock is released first.
        drop(facts);
        if is_started && !is_start_sent {
            write_line(writer, &Reply::Started { pid })?;
            is_start_sent = true;
        }
        for text in messages {
            write_line(writer, &Reply::Message { text })?;
        }
        match phase {
            Phase::Exited(exit) => return Ok(Reply::Exited { exit }),
            Phase::StartFailed {
                message,
                recoverable,
            } => {
                return Ok(Reply::StartFailed {
                    message,
                    recoverable,
                });
            }
            Phase::Starting | Phase::Running | Phase::Ending => {}
        }
    }
}

/// Signals the task's own process, which may end its children in good order. The remaining ones are
/// killed after the grace.
fn stop(shared: &Shared, signal: &str, grace: Duration) -> Reply {
    send_signal(shared, signal);
    if shared
        .wait_for(grace, |facts| facts.task.is_none())
        .task
        .is_some()
    {
        let facts = shared.lock();
        // Under the lock: while the facts name the process, it has not been reaped.
        if let Some(task) = facts.task {
            reap::kill_group(task);
        }
    }
    let facts = shared.wait_for(KILL_LIMIT, |facts| facts.phase.is_over());
    if facts.phase.is_over() {
        Reply::Done
    } else {
        let seconds = KILL_LIMIT.as_secs();
        Reply::Refused {
            reason: format!("not gone {seconds} s after SIGKILL"),
        }
    }
}

fn send_signal(shared: &Shared, name: &str) -> Reply {
    let signal: Signal = signals::or_interrupt(name);
    let facts = shared.lock();
    let Some(task) = facts.task else {
        return Reply::Refused {
            reason: "the task does not run".to_owned(),
        };
    };
    match task.signal(signal) {
        Ok(()) => Reply::Done,
        Err(error) => Reply::Refused {
            reason: error.to_string(),
        },
    }
}

fn forget(shared: &Shared) -> Reply {
    if shared.lock().phase.is_over() {
        Reply::Done
    } else {
        Reply::Refused {
            reason: "the task still runs".to_owned(),
        }
    }
}
