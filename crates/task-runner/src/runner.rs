//! State of an allocation's runner.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use lifecycle::{AllocRunner, AllocState, Assignment, Boot, Event, NoProcess};
use model::{AllocId, ClientStatus};
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
    pub(crate) context: Arc<Context>,
    pub(crate) alloc_id: AllocId,
    pub(crate) assignment: Assignment,
    pub(crate) machine: AllocRunner,
    pub(crate) rng: StdRng,
    /// Results of effects are sent here.
    pub(crate) answers: mpsc::Sender<Event>,
    /// The runner's own queue; it does not keep the runner alive.
    pub(crate) commands: mpsc::WeakSender<Command>,
    /// Starts in progress, by task.
    pub(crate) starts: HashMap<String, CancellationToken>,
    /// Attempts with driver records that this run of the agent has neither recovered nor removed.
    pub(crate) leftovers: Vec<TaskId>,
    pub(crate) network: Arc<AllocNetwork>,
    pub(crate) volumes: Arc<AllocVolumes>,
    /// State that the attempts of a task share, by task.
    pub(crate) shared: HashMap<String, Arc<TaskShared>>,
    /// Running checks, which are among the work.
    pub(crate) checks: CheckRuns,
    pub(crate) in_consul: ConsulRegistrations,
    /// Effects in progress; aborted with the runner.
    pub(crate) work: JoinSet<()>,
    pub(crate) progress: watch::Sender<Progress>,
    /// True if steps are stored and reported; false while the agent stops tasks at its own end.
    pub(crate) is_recorded: bool,
    pub(crate) is_collected: bool,
    pub(crate) last_status: ClientStatus,
}

impl Runner {
    pub(crate) fn task_id(&self, task: &str, attempt: u32) -> TaskId {
        TaskId {
            alloc_id: self.alloc_id,
            task: task.to_owned(),
            attempt,
        }
    }

    /// Returns the node's facts, with the allocation's network if it has its own.
    pub(crate) fn facts(&self) -> Cow<'_, NodeFacts> {
        let facts = &self.context.facts;
        match self.network.status() {
            None => Cow::Borrowed(facts),
            network => Cow::Owned(facts.clone().with_network(network)),
        }
    }

    pub(crate) fn find_task(&self, task: &str) -> Result<RunningTask, NoProcess> {
        let attempt = self.machine.running_attempt(task)?;
        let task_name = || task.to_owned();
        let driver = self
            .driver(task)
            .ok_or_else(|| NoProcess::NotRunning { task: task_name() })?;
        let id = self.task_id(task, attempt);
        Ok(RunningTask { id, driver })
    }

    pub(crate) fn driver(&self, task: &str) -> Option<Arc<dyn Driver>> {
        let group = self
            .assignment
            .job
            .task_group(&self.assignment.alloc.task_group)?;
        self.context
            .drivers
            .get(group.task(task)?.driver.as_str())
            .cloned()
    }

    /// Returns the address that the driver gave a running task, if it gave one.
    pub(crate) fn driver_address(&self, task: &str) -> Option<DriverAddress> {
        let mut attempts = self.machine.expected_attempts();
        let (_, attempt) = attempts.find(|(name, _)| *name == task)?;
        self.driver(task)?.address(&self.task_id(task, attempt))
    }
}

impl Runner {
    pub(crate) fn shared(&mut self, task: &str) -> Arc<TaskShared> {
        Arc::clone(self.shared.entry(task.to_owned()).or_default())
    }

    /// Drops the belongings of ended tasks, and revokes their tokens.
    pub(crate) fn drop_ended_tasks(&mut self) {
        let machine = &self.machine;
        let ended = self.shared.extract_if(|task, _| machine.is_dead(task));
        for (_, shared) in ended {
            for service in LoginService::ALL {
                if let Some(keeper) = shared.login(service).keeper() {
                    self.work.spawn(keeper.revoke().in_current_span());
                }
            }
        }
    }
}
