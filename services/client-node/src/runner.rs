//! The loop around the machine of one allocation: waits, steps, performs. It decides nothing.
//!
//! The machine's state goes to disk with every step that returned effects, and the effects go on at
//! once: a start is safe to perform again, because drivers know their tasks by attempt and find
//! those that are there. Only what cannot be taken back waits for the disk, which is forgetting how
//! an attempt ended.

mod perform;
mod start;
#[cfg(test)]
mod tests;

pub(crate) use perform::clear;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lifecycle::{AllocRunner, AllocSpec, AllocState, Boot, Event};
use model::{AllocId, ClientStatus};
use rand::rngs::StdRng;
use task_drivers::{AllocDirs, TaskId};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info, info_span, warn};

use crate::alloc_dir;
use crate::assignment::Assignment;
use crate::context::Context;

/// How many commands and answers may wait for a runner: it takes them within microseconds, and
/// whoever sends more waits.
const QUEUE: usize = 64;
/// How long a stop beyond the tasks' own kill timeouts may take when the agent ends.
const STOP_MARGIN: Duration = Duration::from_secs(5);
/// The pause before a directory that cannot be removed is tried again.
const REMOVE_PAUSE: Duration = Duration::from_secs(30);

/// What a runner is told from outside.
#[derive(Debug)]
pub(crate) enum Command {
    /// Its desired side has changed.
    Update(Assignment),
    /// A server's answer has been applied for the first time since the agent started.
    ServersContacted,
    /// A server answered this long ago.
    Contact { age: Duration },
    /// The servers may have forgotten what they were told of it.
    TellAgain,
    /// Stop it and remove every trace of it.
    Destroy,
}

/// How far a runner is, for others to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    Live,
    /// Nothing of it runs any more.
    Ended,
    /// Every trace of it is gone.
    Removed,
}

/// A runner, from outside. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    commands: mpsc::Sender<Command>,
    pub(crate) progress: watch::Receiver<Progress>,
}

impl Handle {
    /// Tells the runner something; one that is gone needs to know nothing.
    pub(crate) async fn tell(&self, command: Command) {
        let _ = self.commands.send(command).await;
    }

    pub(crate) fn has_ended(&self) -> bool {
        *self.progress.borrow() != Progress::Live
    }

    /// Returns once nothing of it runs any more.
    pub(crate) async fn ended(mut self) {
        // A runner that is gone runs nothing either.
        let _ = self
            .progress
            .wait_for(|progress| *progress != Progress::Live)
            .await;
    }
}

/// What a new runner begins with.
pub(crate) struct Beginning {
    pub(crate) assignment: Assignment,
    /// What an earlier run of the agent had stored, and whether the machine booted since.
    pub(crate) stored: Option<(AllocState, Boot)>,
    /// What drivers keep of this allocation from before this run of the agent.
    pub(crate) leftovers: Vec<TaskId>,
    /// Allocations on this node whose place it takes: it begins when they have ended.
    pub(crate) predecessors: Vec<Handle>,
    /// Whether a server has been heard in this run of the agent.
    pub(crate) is_contacted: bool,
}

pub(super) struct Runner {
    context: Arc<Context>,
    alloc_id: AllocId,
    assignment: Assignment,
    machine: AllocRunner,
    rng: StdRng,
    /// Answers to effects come back here.
    answers: mpsc::Sender<Event>,
    /// Starts under way, by task.
    starts: HashMap<String, CancellationToken>,
    /// What drivers keep of attempts that this run of the agent has not taken up.
    leftovers: Vec<TaskId>,
    /// Effects being performed; they end with the runner.
    work: JoinSet<()>,
    progress: watch::Sender<Progress>,
    /// Whether what happens now is kept and told; not while the agent stops tasks for its own end.
    is_kept: bool,
    is_destroyed: bool,
    last_status: ClientStatus,
}

/// Starts a runner. It ends when the allocation has been destroyed, or with `drain`.
///
/// Returns `None` when the job has no such group, which no server assigns.
pub(crate) fn spawn(
    context: &Arc<Context>,
    beginning: Beginning,
    drain: CancellationToken,
    tasks: &tokio_util::task::TaskTracker,
) -> Option<Handle> {
    let alloc = &beginning.assignment.alloc;
    let spec = AllocSpec::new(&beginning.assignment.job, alloc, context.limits)?;
    let now = context.clocks.now();
    let machine = match beginning.stored {
        Some((state, boot)) => AllocRunner::restore(spec, state, now, boot),
        None => AllocRunner::new(spec, now),
    };
    let (commands, command_queue) = mpsc::channel(QUEUE);
    let (answers, answer_queue) = mpsc::channel(QUEUE);
    let ended = if machine.is_ended() {
        Progress::Ended
    } else {
        Progress::Live
    };
    let (progress, seen) = watch::channel(ended);
    let span = info_span!("alloc", alloc_id = %alloc.id, job_id = %alloc.job_id);
    let runner = Runner {
        context: Arc::clone(context),
        alloc_id: alloc.id,
        last_status: machine.client().status,
        assignment: beginning.assignment,
        machine,
        rng: context.ids.rng(),
        answers,
        starts: HashMap::new(),
        leftovers: beginning.leftovers,
        work: JoinSet::new(),
        progress,
        is_kept: true,
        is_destroyed: false,
    };
    let (predecessors, is_contacted) = (beginning.predecessors, beginning.is_contacted);
    let queues = Queues {
        commands: command_queue,
        answers: answer_queue,
    };
    tasks.spawn(
        runner
            .run(queues, predecessors, is_contacted, drain)
            .instrument(span),
    );
    Some(Handle {
        commands,
        progress: seen,
    })
}

struct Queues {
    commands: mpsc::Receiver<Command>,
    answers: mpsc::Receiver<Event>,
}

impl Runner {
    async fn run(
        mut self,
        queues: Queues,
        predecessors: Vec<Handle>,
        is_contacted: bool,
        drain: CancellationToken,
    ) {
        self.live(queues, predecessors, is_contacted, drain).await;
        // Whoever waits for the runner may start the agent anew: by then no start of it goes on.
        self.work.shutdown().await;
    }

    async fn live(
        &mut self,
        mut queues: Queues,
        predecessors: Vec<Handle>,
        is_contacted: bool,
        drain: CancellationToken,
    ) {
        if self.machine.is_ended() {
            self.clear_leftovers();
        }
        if is_contacted {
            self.step(Event::ServersContacted).await;
        } else {
            // What was restored may have been kept and never told: the agent may have died between
            // the two. What was acknowledged is not sent again.
            self.report();
            if self.is_given_up() {
                // Nor is it known whether they were told after they gave it up.
                self.offer_again();
            }
        }
        if self.assignment.alloc.is_server_terminal() {
            self.step(Event::Stop { skip_delays: false }).await;
        }
        let waiting = async {
            for predecessor in predecessors {
                predecessor.ended().await;
            }
        };
        tokio::pin!(waiting);
        let mut has_begun = false;
        loop {
            if self.is_destroyed && self.machine.is_ended() {
                self.remove(&drain).await;
                return;
            }
            let deadline = self.deadline();
            let event = tokio::select! {
                biased;
                () = drain.cancelled() => break,
                Some(answer) = queues.answers.recv() => Some(answer),
                command = queues.commands.recv() => match command {
                    Some(command) => self.obey(command).await,
                    // The agent has dropped it.
                    None => break,
                },
                () = &mut waiting, if !has_begun => {
                    has_begun = true;
                    Some(Event::Begin)
                }
                () = sleep_until_maybe(deadline) => Some(Event::Tick),
                Some(_) = self.work.join_next(), if !self.work.is_empty() => None,
            };
            if let Some(event) = event {
                self.step(event).await;
            }
        }
        if self.context.stop_tasks_on_exit {
            self.stop_for_exit(&mut queues).await;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let uptime = self.machine.next_deadline(self.context.clocks.now())?;
        Some(self.context.clocks.instant(uptime))
    }

    /// Translates a command for the machine.
    async fn obey(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::ServersContacted => Some(Event::ServersContacted),
            Command::Contact { age } => Some(Event::Contact { age }),
            Command::TellAgain => {
                self.report();
                None
            }
            Command::Destroy => {
                self.is_destroyed = true;
                Some(Event::Stop { skip_delays: false })
            }
            Command::Update(assignment) => self.update(assignment).await,
        }
    }

    async fn update(&mut self, assignment: Assignment) -> Option<Event> {
        let spec = AllocSpec::new(&assignment.job, &assignment.alloc, self.context.limits);
        let is_stopped = assignment.alloc.is_server_terminal();
        self.assignment = assignment;
        match spec {
            Some(spec) if spec != *self.machine.spec() => self.step(Event::Update(spec)).await,
            _ => {}
        }
        if is_stopped {
            return Some(Event::Stop { skip_delays: false });
        }
        if self.is_given_up() {
            // The servers gave this node up and find it back: they are told everything again.
            self.step(Event::Reconnected).await;
            self.offer_again();
        }
        None
    }

    fn is_given_up(&self) -> bool {
        self.assignment.alloc.client_status_override == Some(ClientStatus::Unknown)
    }

    fn offer_again(&self) {
        self.context
            .reporter
            .offer_again(self.alloc_id, self.machine.client());
    }

    async fn step(&mut self, event: Event) {
        let now = self.context.clocks.now();
        let effects = self.machine.step(now, event, &mut self.rng);
        if effects.is_empty() {
            return;
        }
        if self.is_kept && self.context.state.is_kept() {
            self.context
                .state
                .put_runner(self.alloc_id, self.machine.state())
                .await;
        }
        for effect in effects {
            self.perform(effect);
        }
    }

    /// Ends every task as a power cut would, only in better order: nothing of it is kept or told,
    /// so the next run of the agent starts them again.
    async fn stop_for_exit(&mut self, queues: &mut Queues) {
        self.is_kept = false;
        let timeouts = self
            .machine
            .spec()
            .tasks
            .values()
            .map(|task| task.kill_timeout);
        let limit = timeouts.max().unwrap_or_default() + STOP_MARGIN;
        let limit = limit.max(self.context.shutdown_grace_period);
        self.step(Event::Stop { skip_delays: true }).await;
        let stopping = async {
            while !self.machine.is_ended() {
                let deadline = self.deadline();
                let event = tokio::select! {
                    Some(answer) = queues.answers.recv() => answer,
                    () = sleep_until_maybe(deadline) => Event::Tick,
                };
                self.step(event).await;
            }
        };
        if tokio::time::timeout(limit, stopping).await.is_err() {
            error!(limit_s = limit.as_secs(), "tasks do not end with the agent");
            return;
        }
        // What is kept of their last attempts is being removed.
        let removing = async { while self.work.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_MARGIN, removing).await.is_err() {
            warn!("what is kept of tasks is not removed");
        }
    }

    /// Removes every trace of an allocation that has ended.
    async fn remove(&mut self, drain: &CancellationToken) {
        // What is kept of its attempts goes first: once the rest is gone, nobody looks for it before
        // the agent starts next.
        let clearing = async {
            while self.work.join_next().await.is_some() {}
            while !perform::clear_all(&self.context, self.alloc_id).await {
                warn!("cannot remove what is kept of tasks, trying again");
                tokio::time::sleep(REMOVE_PAUSE).await;
            }
        };
        tokio::select! {
            () = clearing => {}
            () = drain.cancelled() => return,
        }
        while let Err(error) = self.remove_files().await {
            warn!(%error, "cannot remove the allocation's files, trying again");
            tokio::select! {
                () = tokio::time::sleep(REMOVE_PAUSE) => {}
                () = drain.cancelled() => return,
            }
        }
        self.context.state.delete(self.alloc_id).await;
        self.context.reporter.forget(self.alloc_id);
        self.progress.send_replace(Progress::Removed);
        info!("allocation collected");
    }

    async fn remove_files(&self) -> std::io::Result<()> {
        let Some(base) = &self.context.alloc_dir else {
            return Ok(());
        };
        let dirs = AllocDirs::new(base, self.alloc_id);
        // A directory tree may be large.
        offload::spawn(move || alloc_dir::remove(&dirs))
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }
}

async fn sleep_until_maybe(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
