//! State of an allocation's runner.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lifecycle::{AllocRunner, AllocState, Assignment, Boot, Effect, Event, NoProcess, Now};
use model::{AllocClient, AllocId, ClientStatus};
use rand::rngs::StdRng;
use task_drivers::{Driver, DriverAddress, NodeFacts, TaskId};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::check_view::CheckRuns;
use crate::consul_services::ConsulRegistrations;
use crate::context::Context;
use crate::csi_volumes::AllocVolumes;
use crate::handle::{Command, Handle, Progress, RunningTask};
use crate::network::AllocNetwork;
use crate::task_shared::{LoginService, TaskShared};

/// Start values of a runner.
pub struct RunnerStart {
    pub assignment: Assignment,
    /// The state stored by an earlier run of the agent, and whether the machine has rebooted since.
    pub stored: Option<(AllocState, Boot)>,
    /// Attempts of this allocation that drivers have records of, from earlier runs of the agent.
    pub leftovers: Vec<TaskId>,
    /// Allocations on this node that have to end before it starts.
    pub predecessors: Vec<Handle>,
    /// True once a server has answered in this run of the agent.
    pub is_contacted: bool,
}

/// The runner of one allocation.
pub(crate) struct Runner {
    pub(crate) inputs: Arc<Inputs>,
    pub(crate) state: RunnerState,
    pub(crate) effects: Effects,
    pub(crate) record: Record,
}

/// The parts of a runner that no step changes.
pub(crate) struct Inputs {
    pub(crate) context: Arc<Context>,
    pub(crate) alloc_id: AllocId,
    /// Results of effects are sent here.
    pub(crate) answers: mpsc::Sender<Event>,
    /// The runner's own queue; it does not keep the runner alive.
    pub(crate) commands: mpsc::WeakSender<Command>,
    pub(crate) network: Arc<AllocNetwork>,
    pub(crate) volumes: Arc<AllocVolumes>,
}

/// The assignment and its machine, which change by [`Self::assign`] and [`Self::step`] alone.
pub(crate) struct RunnerState {
    assignment: Assignment,
    machine: AllocRunner,
    rng: StdRng,
}

impl RunnerState {
    pub(crate) fn new(assignment: Assignment, machine: AllocRunner, rng: StdRng) -> Self {
        Self {
            assignment,
            machine,
            rng,
        }
    }

    pub(crate) fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    pub(crate) fn machine(&self) -> &AllocRunner {
        &self.machine
    }

    pub(crate) fn rng(&mut self) -> &mut StdRng {
        &mut self.rng
    }

    pub(crate) fn assign(&mut self, assignment: Assignment) {
        self.assignment = assignment;
    }

    pub(crate) fn step(&mut self, now: Now, event: Event) -> Vec<Effect> {
        self.machine.step(now, event, &mut self.rng)
    }
}

/// Effects in progress, and what they leave for the next ones.
#[derive(Default)]
pub(crate) struct Effects {
    /// Starts in progress, by task.
    pub(crate) starts: HashMap<String, CancellationToken>,
    /// Attempts with driver records that this run of the agent has neither recovered nor removed.
    pub(crate) leftovers: Vec<TaskId>,
    /// State that the attempts of a task share, by task.
    pub(crate) shared: HashMap<String, Arc<TaskShared>>,
    /// Running checks, which are among the work.
    pub(crate) checks: CheckRuns,
    pub(crate) in_consul: ConsulRegistrations,
    /// Aborted with the runner.
    pub(crate) work: JoinSet<()>,
}

impl Effects {
    pub(crate) fn new(leftovers: Vec<TaskId>) -> Self {
        Self {
            leftovers,
            ..Self::default()
        }
    }
}

/// The runner's state as others see it.
pub(crate) struct Record {
    progress: watch::Sender<Progress>,
    /// True if steps are stored and reported; false while the agent stops tasks at its own end.
    is_kept: bool,
    is_collected: bool,
    last_status: ClientStatus,
    failed_tasks: HashSet<String>,
}

impl Record {
    /// `client`: the state that an earlier run of the agent reported, or of a new allocation.
    pub(crate) fn new(progress: watch::Sender<Progress>, client: &AllocClient) -> Self {
        let failed = client.task_states.iter().filter(|(_, state)| state.failed);
        Self {
            progress,
            is_kept: true,
            is_collected: false,
            last_status: client.status,
            failed_tasks: failed.map(|(task, _)| task.to_string()).collect(),
        }
    }

    pub(crate) fn publisher(&self) -> watch::Sender<Progress> {
        self.progress.clone()
    }

    pub(crate) fn publish(&self, progress: Progress) {
        self.progress.send_replace(progress);
    }

    /// Tells whether steps are stored and reported.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Stores and reports nothing from now on.
    pub(crate) fn end(&mut self) {
        self.is_kept = false;
    }

    pub(crate) fn is_collected(&self) -> bool {
        self.is_collected
    }

    /// The servers have forgotten the allocation: it is removed once it has ended.
    pub(crate) fn collect(&mut self) {
        self.is_collected = true;
    }

    /// Remembers a client status; returns whether it differs from the last one.
    pub(crate) fn is_new(&mut self, status: ClientStatus) -> bool {
        std::mem::replace(&mut self.last_status, status) != status
    }

    /// Remembers a failed task; returns whether it had not failed before.
    pub(crate) fn has_failed_now(&mut self, task: &str) -> bool {
        self.failed_tasks.insert(task.to_owned())
    }
}

impl Runner {
    pub(crate) fn task_id(&self, task: &str, attempt: u32) -> TaskId {
        TaskId {
            alloc_id: self.inputs.alloc_id,
            task: task.to_owned(),
            attempt,
        }
    }

    /// Returns the node's facts, with the allocation's network if it has its own.
    pub(crate) fn facts(&self) -> Cow<'_, NodeFacts> {
        let facts = &self.inputs.context.facts;
        match self.inputs.network.status() {
            None => Cow::Borrowed(facts),
            network => Cow::Owned(facts.clone().with_network(network)),
        }
    }

    pub(crate) fn find_task(&self, task: &str) -> Result<RunningTask, NoProcess> {
        let attempt = self.state.machine().running_attempt(task)?;
        let task_name = || task.to_owned();
        let driver = self
            .driver(task)
            .ok_or_else(|| NoProcess::NotRunning { task: task_name() })?;
        let id = self.task_id(task, attempt);
        Ok(RunningTask { id, driver })
    }

    pub(crate) fn driver(&self, task: &str) -> Option<Arc<dyn Driver>> {
        let group = self
            .state
            .assignment()
            .job
            .task_group(&self.state.assignment().alloc.task_group)?;
        self.inputs
            .context
            .drivers
            .get(group.task(task)?.driver.as_str())
            .cloned()
    }

    /// Returns the address that the driver gave a running task, if it gave one.
    pub(crate) fn driver_address(&self, task: &str) -> Option<DriverAddress> {
        let mut attempts = self.state.machine().expected_attempts();
        let (_, attempt) = attempts.find(|(name, _)| *name == task)?;
        self.driver(task)?.address(&self.task_id(task, attempt))
    }
}

impl Runner {
    pub(crate) fn shared(&mut self, task: &str) -> Arc<TaskShared> {
        Arc::clone(self.effects.shared.entry(task.to_owned()).or_default())
    }

    /// Drops the belongings of ended tasks, and revokes their tokens.
    pub(crate) fn drop_ended_tasks(&mut self) {
        let machine = self.state.machine();
        let ended = self
            .effects
            .shared
            .extract_if(|task, _| machine.is_dead(task));
        for (_, shared) in ended {
            for service in LoginService::ALL {
                if let Some(keeper) = shared.login(service).keeper() {
                    self.effects.work.spawn(keeper.revoke().in_current_span());
                }
            }
        }
    }
}
