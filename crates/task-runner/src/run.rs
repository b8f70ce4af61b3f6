//! Loop around the lifecycle machine of one allocation: waits, steps, performs. It decides nothing.
//!
//! The machine's state is stored with every step that returned effects, and the effects are performed
//! at once. A start is idempotent: drivers know tasks by attempt and find running ones. Only the
//! removal of an attempt's records waits until the state is durable.

mod signal;

use std::sync::Arc;
use std::time::Duration;

use lifecycle::{AllocRunner, AllocSpec, Assignment, Event};
use model::ClientStatus;
use service_kit::clock::sleep_until_deadline;
use task_drivers::{AllocDirs, alloc_dirs};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info, info_span, warn};

use crate::context::Context;
use crate::handle::{Command, Handle, Progress};
use crate::leftovers::remove_all_attempts;
use crate::network::AllocNetwork;
use crate::runner::{Effects, Inputs, Record, Runner, RunnerStart, RunnerState};

/// Capacity of a runner's queues. A runner takes messages within microseconds; senders beyond wait.
const QUEUE: usize = 64;
/// Timeout of a stop at the end of the agent, beyond the tasks' own kill timeouts.
const STOP_MARGIN: Duration = Duration::from_secs(5);
/// Reason of a requested restart, in the task's events.
const RESTART_REASON: &str = "Restart requested by an operator";
/// The pause before the failed removal of an ended allocation, its files included, is retried.
const ALLOC_RETRY_PAUSE: Duration = Duration::from_secs(30);

/// Spawns a runner. It ends when the allocation is collected, or with `drain`.
///
/// Returns `None` if the job has no such group, which no server assigns.
pub fn spawn(
    context: &Arc<Context>,
    start: RunnerStart,
    drain: CancellationToken,
    tasks: &tokio_util::task::TaskTracker,
) -> Option<Handle> {
    let alloc = &start.assignment.alloc;
    let spec = AllocSpec::new(&start.assignment.job, alloc, context.limits)?;
    let now = context.clocks.now();
    let machine = match start.stored {
        Some((state, boot)) => AllocRunner::restore(spec, state, now, boot),
        None => AllocRunner::new(spec, now),
    };
    let (commands, command_queue) = mpsc::channel(QUEUE);
    let (answers, answer_queue) = mpsc::channel(QUEUE);
    let ended = machine.ended_at().map_or(Progress::Live, Progress::Ended);
    let (progress, seen) = watch::channel(ended);
    let span = info_span!("alloc", alloc_id = %alloc.id, job_id = %alloc.job_id);
    let network = Arc::new(AllocNetwork::restored(context, alloc.id));
    let inputs = Inputs {
        context: Arc::clone(context),
        alloc_id: alloc.id,
        answers,
        commands: commands.downgrade(),
        network,
        volumes: Arc::default(),
    };
    let client = machine.client();
    let runner = Runner {
        inputs: Arc::new(inputs),
        state: RunnerState::new(start.assignment, machine, context.ids.rng()),
        effects: Effects::new(start.leftovers),
        record: Record::new(progress, &client),
    };
    let (predecessors, is_contacted) = (start.predecessors, start.is_contacted);
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
        // The agent may be restarted once the runner has ended, so no start may outlive it.
        self.effects.work.shutdown().await;
    }

    async fn live(
        &mut self,
        mut queues: Queues,
        predecessors: Vec<Handle>,
        is_contacted: bool,
        drain: CancellationToken,
    ) {
        if self.state.machine().is_ended() {
            self.remove_leftovers();
        }
        if is_contacted {
            self.step(Event::ServersContacted).await;
        } else {
            // The agent may have died between storing and reporting the restored state. An
            // acknowledged state is not sent again.
            self.report();
            if self.is_unknown_to_servers() {
                // It is unknown whether the servers got a report after they gave the node up.
                self.offer_again();
            }
        }
        if self.state.assignment().alloc.is_server_terminal() {
            self.step(self.wanted_stop()).await;
        }
        let waiting = async {
            for predecessor in predecessors {
                predecessor.ended().await;
            }
        };
        tokio::pin!(waiting);
        let mut has_started = false;
        loop {
            if self.record.is_collected() && self.state.machine().is_ended() {
                self.remove(&drain).await;
                return;
            }
            let deadline = self.deadline();
            let event = tokio::select! {
                biased;
                () = drain.cancelled() => break,
                Some(answer) = queues.answers.recv() => Some(answer),
                command = queues.commands.recv() => match command {
                    Some(command) => self.command_event(command).await,
                    // The agent has dropped the handle.
                    None => break,
                },
                () = &mut waiting, if !has_started => {
                    has_started = true;
                    Some(Event::Begin)
                }
                () = sleep_until_deadline(deadline) => Some(Event::Tick),
                Some(_) = self.effects.work.join_next(), if !self.effects.work.is_empty() => {
                    if self.inputs.volumes.take_released() {
                        self.report();
                    }
                    None
                }
            };
            if let Some(event) = event {
                self.step(event).await;
            }
        }
        if self.inputs.context.stop_tasks_on_exit {
            self.stop_for_exit(&mut queues).await;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let uptime = self
            .state
            .machine()
            .next_deadline(self.inputs.context.clocks.now())?;
        Some(self.inputs.context.clocks.instant(uptime))
    }

    /// Translates a command into an event of the machine.
    async fn command_event(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::ServersContacted => Some(Event::ServersContacted),
            Command::Contact { age } => Some(Event::Contact { age }),
            Command::ReportAgain => {
                self.report();
                None
            }
            Command::Collect => {
                self.record.collect();
                Some(self.wanted_stop())
            }
            Command::Update(assignment) => self.update(assignment).await,
            Command::Checks { answer } => {
                // The caller may have gone.
                let _ = answer.send(self.check_views());
                None
            }
            Command::FindTask { task, answer } => {
                // The caller may have gone.
                let _ = answer.send(self.find_task(&task));
                None
            }
            Command::Signal {
                task,
                signal,
                answer,
            } => {
                self.send_signal(task, signal, answer).await;
                None
            }
            Command::Restart { scope, answer } => {
                let affected = self.state.machine().restartable(&scope);
                if affected.is_ok() {
                    let reason = RESTART_REASON.to_owned();
                    self.step(Event::Restart { scope, reason }).await;
                }
                // The caller may have gone.
                let _ = answer.send(affected);
                None
            }
        }
    }

    async fn update(&mut self, assignment: Assignment) -> Option<Event> {
        let spec = AllocSpec::new(
            &assignment.job,
            &assignment.alloc,
            self.inputs.context.limits,
        );
        let is_stopped = assignment.alloc.is_server_terminal();
        self.state.assign(assignment);
        match spec {
            Some(spec) if spec != *self.state.machine().spec() => {
                self.step(Event::Update(Box::new(spec))).await
            }
            // The promotion of a canary changes its tags alone.
            _ => self.sync_consul(),
        }
        if is_stopped {
            return Some(self.wanted_stop());
        }
        if self.is_unknown_to_servers() {
            // The servers gave this node up and it is back: they get its state again.
            self.step(Event::Reconnected).await;
            self.offer_again();
        }
        None
    }

    /// Returns the stop that the servers want.
    fn wanted_stop(&self) -> Event {
        let skip_delays = self.state.assignment().alloc.transition.no_shutdown_delay;
        Event::Stop { skip_delays }
    }

    fn is_unknown_to_servers(&self) -> bool {
        self.state.assignment().alloc.client_status_override == Some(ClientStatus::Unknown)
    }

    fn offer_again(&self) {
        self.inputs
            .context
            .reporter
            .offer_again(self.inputs.alloc_id, self.client());
    }

    pub(crate) async fn step(&mut self, event: Event) {
        let now = self.inputs.context.clocks.now();
        let effects = self.state.step(now, event);
        // First, because checks are followed by their ids in Consul.
        self.sync_consul();
        self.sync_checks();
        self.drop_ended_tasks();
        if effects.is_empty() {
            return;
        }
        if self.record.is_kept() && self.inputs.context.state.is_durable() {
            self.inputs
                .context
                .state
                .put_runner(self.inputs.alloc_id, self.state.machine().state())
                .await;
        }
        for effect in effects {
            self.perform(effect);
        }
    }

    /// Stops every task without storing or reporting it, so that the next run of the agent starts
    /// them again, as after a power cut.
    async fn stop_for_exit(&mut self, queues: &mut Queues) {
        self.record.end();
        let timeouts = self
            .state
            .machine()
            .spec()
            .tasks
            .values()
            .map(|task| task.kill_timeout);
        let limit = timeouts.max().unwrap_or_default() + STOP_MARGIN;
        let limit = limit.max(self.inputs.context.shutdown_grace_period);
        self.step(Event::Stop { skip_delays: true }).await;
        let stopping = async {
            while !self.state.machine().is_ended() {
                let deadline = self.deadline();
                let event = tokio::select! {
                    Some(answer) = queues.answers.recv() => answer,
                    () = sleep_until_deadline(deadline) => Event::Tick,
                };
                self.step(event).await;
            }
        };
        if tokio::time::timeout(limit, stopping).await.is_err() {
            error!(
                limit_s = limit.as_secs(),
                "tasks still run at the end of the agent"
            );
            return;
        }
        // The records of the last attempts are being removed.
        let removing = async { while self.effects.work.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_MARGIN, removing).await.is_err() {
            warn!("records of tasks are not removed");
        }
    }

    /// Removes the files and records of an ended allocation.
    async fn remove(&mut self, drain: &CancellationToken) {
        // Driver records go first: once the rest is gone, only the next run of the agent would find
        // them.
        let clearing = async {
            while self.effects.work.join_next().await.is_some() {}
            while !remove_all_attempts(&self.inputs.context, self.inputs.alloc_id).await {
                warn!("cannot remove the records of tasks; retrying");
                tokio::time::sleep(ALLOC_RETRY_PAUSE).await;
            }
            self.inputs
                .volumes
                .release(&self.inputs.context, self.inputs.alloc_id)
                .await;
            // The next run of the agent removes what is left.
            if let Err(error) = self
                .inputs
                .network
                .remove(&self.inputs.context, self.inputs.alloc_id)
                .await
            {
                warn!(error, "cannot remove the allocation's network");
            }
        };
        tokio::select! {
            () = clearing => {}
            () = drain.cancelled() => return,
        }
        while let Err(error) = self.remove_files().await {
            warn!(%error, "cannot remove the allocation's files; retrying");
            tokio::select! {
                () = tokio::time::sleep(ALLOC_RETRY_PAUSE) => {}
                () = drain.cancelled() => return,
            }
        }
        self.inputs.context.state.delete(self.inputs.alloc_id).await;
        self.inputs
            .context
            .reporter
            .queue()
            .forget(self.inputs.alloc_id);
        self.record.publish(Progress::Removed);
        info!("allocation collected");
    }

    async fn remove_files(&self) -> std::io::Result<()> {
        let Some(base) = &self.inputs.context.alloc_dir else {
            return Ok(());
        };
        let dirs = AllocDirs::new(base, self.inputs.alloc_id);
        // A directory tree may be large.
        blocking::spawn(move || alloc_dirs::remove(&dirs))
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }
}
