//! State of an allocation's runner.

use std::collections::HashMap;
use std::sync::Arc;

use lifecycle::{AllocRunner, AllocState, Assignment, Boot, Event};
use model::{AllocId, ClientStatus};
use rand::rngs::StdRng;
use task_drivers::{Driver, TaskId};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::handle::{Handle, Progress};
use crate::context::Context;

/// Start values of a runner.
pub(crate) struct Beginning {
    pub(crate) assignment: Assignment,
    /// The state stored by an earlier run of the agent, and whether the machine has rebooted since.
    pub(crate) stored: Option<(AllocState, Boot)>,
    /// Attempts of this allocation that drivers have records of, from earlier runs of the agent.
    pub(crate) leftovers: Vec<TaskId>,
    /// Allocations on this node that have to end before it starts.
    pub(crate) predecessors: Vec<Handle>,
    /// Whether a server has answered in this run of the agent.
    pub(crate) is_contacted: bool,
}

/// The runner of one allocation.
pub(super) struct Runner {
    pub(super) context: Arc<Context>,
    pub(super) alloc_id: AllocId,
    pub(super) assignment: Assignment,
    pub(super) machine: AllocRunner,
    pub(super) rng: StdRng,
    /// Results of effects are sent here.
    pub(super) answers: mpsc::Sender<Event>,
    /// Starts in progress, by task.
    pub(super) starts: HashMap<String, CancellationToken>,
    /// Attempts with driver records that this run of the agent has neither recovered nor removed.
    pub(super) leftovers: Vec<TaskId>,
    /// Effects in progress; aborted with the runner.
    pub(super) work: JoinSet<()>,
    pub(super) progress: watch::Sender<Progress>,
    /// Whether steps are stored and reported; not while the agent stops tasks at its own end.
    pub(super) is_recorded: bool,
    pub(super) is_collected: bool,
    pub(super) last_status: ClientStatus,
}

impl Runner {
    pub(super) fn task_id(&self, task: &str, attempt: u32) -> TaskId {
        TaskId {
            alloc_id: self.alloc_id,
            task: task.to_owned(),
            attempt,
        }
    }

    pub(super) fn driver(&self, task: &str) -> Option<Arc<dyn Driver>> {
        let group = self
            .assignment
            .job
            .task_group(&self.assignment.alloc.task_group)?;
        self.context
            .drivers
            .get(group.task(task)?.driver.as_str())
            .cloned()
    }
}
