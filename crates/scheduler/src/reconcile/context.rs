//! Context of reconciling one job: its inputs, and the data that its groups share.

use std::collections::BTreeMap;

use model::{
    ClientStatus, Deployment, DeploymentStatus, Evaluation, Indexed, Job, JobKey, Timestamp,
};
use state::{AllocView, Snapshot};

use crate::reconcile::node_condition::{NodeCondition, node_condition};
use crate::reconcile::rollout::Rollouts;
use crate::run_rng::RunRng;

/// The inputs of reconciling one job, with the data that its groups share.
pub(crate) struct Context<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) key: &'a JobKey,
    pub(crate) batch: bool,
    pub(crate) eval: &'a Evaluation,
    pub(crate) now: Timestamp,
    pub(crate) rng: RunRng,
    pub(crate) rollouts: Rollouts,
    pub(crate) delayed_evals: Vec<Evaluation>,
}

impl<'a> Context<'a> {
    /// `job` is `None` when it is stopped or gone.
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        eval: &'a Evaluation,
        job: Option<&Indexed<Job>>,
        batch: bool,
        now: Timestamp,
        rng: RunRng,
    ) -> Self {
        let key = &eval.job;
        let rollouts = Rollouts::new(snapshot, key, job);
        Self {
            snapshot,
            key,
            batch,
            eval,
            now,
            rng,
            rollouts,
            delayed_evals: Vec::new(),
        }
    }

    /// Tells whether an allocation was told to stop, on a node that cannot report its end.
    pub(crate) fn is_lost_while_stopping(&self, view: &AllocView) -> bool {
        view.alloc.is_server_terminal()
            && matches!(
                view.client_status(),
                ClientStatus::Pending | ClientStatus::Running | ClientStatus::Unknown
            )
            && matches!(
                node_condition(self.snapshot, view),
                NodeCondition::Down | NodeCondition::Gone
            )
    }

    pub(crate) fn new_deployment(&mut self, job: &Indexed<Job>) -> Deployment {
        Deployment {
            id: self.rng.deployment_id(),
            job: self.key.clone(),
            job_version: job.value.version,
            job_modify_index: job.modify_index,
            job_create_index: job.create_index,
            status: DeploymentStatus::Running,
            status_description: String::new(),
            groups: BTreeMap::new(),
            eval_priority: self.eval.priority,
            create_time: self.now,
            modify_time: self.now,
        }
    }
}
