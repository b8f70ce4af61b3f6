//! `kafila var lock`: runs a command while it holds the lock of a variable.
//!
//! [`lock_deadline`] knows when the lock ends by this command's own clock, [`group`] is the process group of the
//! command, and [`guard`] ends that group if this process is killed. Nothing is decided by the gateway's
//! clock: a lock without a renewal ends here before it ends in etcd.

mod group;
pub(super) mod guard;
mod lock_deadline;

use std::time::Duration;

use proto::v1;
use service_kit::Backoff;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use self::group::{Group, exit_of};
use self::lock_deadline::LockDeadline;
use crate::args::var::Lock;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// First and longest pause between two tries while another holds the lock: a release is noticed within
/// seconds, and a hundred waiting commands send some forty requests a second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));
/// Timeout of the release; after that the lock ends by its TTL and delay.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// The lock of one command.
struct LockSession<'a> {
    context: &'a Context,
    args: &'a Lock,
    path: &'a str,
    id: String,
}

pub(super) async fn run(context: &Context, args: &Lock) -> Result<Exit, Error> {
    let [path, command @ ..] = args.words.as_slice() else {
        return Err(Error::text("no variable: write its path, then a command"));
    };
    if command.is_empty() {
        let text = format!(
            "no command: write it after the path, as in 'kafila var lock {path} ./migrate.sh'"
        );
        return Err(Error::text(text));
    }
    let session = LockSession {
        context,
        args,
        path,
        id: context.connection.request_id(),
    };
    let mut signals = Signals::new()?;
    let acquired = tokio::select! {
        acquired = session.acquire() => acquired,
        number = signals.next() => {
            // The last request may still have acquired the lock.
            session.release().await;
            return Ok(signaled(number));
        }
    };
    let deadline = acquired?;
    let group = match Group::spawn(command, args.shell, &session.id, path) {
        Ok(group) => group,
        Err(error) => {
            session.release().await;
            context
                .printer
                .err(&format!("Error running {:?}: {error}", command.join(" ")));
            return Ok(Exit::OfCommand(group::code_of(&error)));
        }
    };
    session.run(group, deadline, signals).await
}

impl LockSession<'_> {
    /// Waits until the lock is free, and acquires it.
    async fn acquire(&self) -> Result<LockDeadline, Error> {
        let mut pauses = Backoff::new(PAUSES.0, PAUSES.1);
        let mut rng = self.context.connection.ids().rng();
        let mut failures = 0;
        loop {
            let sent = Instant::now();
            let error = match self.context.connection.acquire_lock(self.request()).await {
                Ok(_) => {
                    self.say("acquired");
                    return Ok(LockDeadline::new(self.command_time(), sent));
                }
                Err(error) => error,
            };
            if error.is_aborted() {
                failures = 0;
                self.say(&format!("awaited: {error}"));
            } else if error.is_transient() && self.may_retry(failures) {
                failures += 1;
                self.say(&format!("awaited: {error}"));
            } else {
                return Err(error);
            }
            sleep(pauses.next(&mut rng)).await;
        }
    }

    /// Time after a request in which the command may run.
    fn command_time(&self) -> Duration {
        lock_deadline::command_time(self.args.ttl, self.args.delay, guard::GRACE)
    }

    fn may_retry(&self, failures: u32) -> bool {
        self.args.max_retry == 0 || failures < self.args.max_retry
    }

    fn request(&self) -> v1::AcquireLockRequest {
        v1::AcquireLockRequest {
            namespace: self.context.connection.namespace().to_owned(),
            path: self.path.to_owned(),
            lock_id: self.id.clone(),
            ttl: Some(proto::duration_to_wire(self.args.ttl)),
            delay: Some(proto::duration_to_wire(self.args.delay)),
        }
    }

    /// Awaits the end of the command, or the loss of the lock, which ends the command.
    async fn run(
        &self,
        mut group: Group,
        deadline: LockDeadline,
        mut signals: Signals,
    ) -> Result<Exit, Error> {
        let kept = self.keep(deadline);
        tokio::pin!(kept);
        loop {
            tokio::select! {
                status = group.wait() => {
                    self.release().await;
                    let status = status.map_err(|error| Error::text(format!("Error waiting: {error}")))?;
                    return Ok(exit_of(status));
                }
                number = signals.next() => group.signal(number),
                reason = &mut kept => {
                    let text = format!(
                        "Error: the lock of variable {:?} was lost: {reason}\nThe command is being ended.",
                        self.path
                    );
                    self.context.printer.err(&text);
                    group.end().await;
                    return Ok(Exit::Failure);
                }
            }
        }
    }

    /// Renews the lock until it is lost; returns the reason.
    async fn keep(&self, mut deadline: LockDeadline) -> String {
        loop {
            sleep_until(deadline.next_renewal()).await;
            let sent = Instant::now();
            let renewal = self.context.connection.renew_lock(self.path, &self.id);
            match timeout_at(deadline.time(), renewal).await {
                Ok(Ok(())) => deadline.renewed(sent),
                Ok(Err(error)) if error.is_aborted() => return error.to_string(),
                Ok(Err(error)) => {
                    let now = Instant::now();
                    if deadline.is_over(now) {
                        return error.to_string();
                    }
                    self.say(&format!("not renewed yet: {error}"));
                    deadline.failed(now);
                }
                Err(_) => {
                    return format!(
                        "no gateway answered within {}s",
                        self.command_time().as_secs()
                    );
                }
            }
        }
    }

    /// Releases the lock. What fails here is left to the lock's end.
    async fn release(&self) {
        let released = self.context.connection.release_lock(self.path, &self.id);
        match timeout(RELEASE_TIMEOUT, released).await {
            Ok(Ok(())) => self.say("released"),
            Ok(Err(error)) => self.say(&format!("not released: {error}")),
            Err(_) => self.say("not released: no gateway answered"),
        }
    }

    fn say(&self, what: &str) {
        if self.args.verbose {
            let text = format!("Lock of variable {:?} {what}", self.path);
            self.context.printer.err(&text);
        }
    }
}

/// Signals that end a command, which are passed on.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self, Error> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Error::text(format!("Error listening for signals: {error}")))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> rustix::process::Signal {
        tokio::select! {
            _ = self.interrupt.recv() => rustix::process::Signal::INT,
            _ = self.terminate.recv() => rustix::process::Signal::TERM,
        }
    }
}

fn signaled(number: rustix::process::Signal) -> Exit {
    match number {
        rustix::process::Signal::INT => Exit::Interrupted,
        other => Exit::OfCommand(128 + u8::try_from(other.as_raw()).unwrap_or_default()),
    }
}
