//! New allocations of a group: their common part, and the fields that each placement adds.

use std::sync::Arc;

use model::job::TaskGroup;
use model::{
    AllocId, AllocatedResources, Allocation, DeploymentId, DesiredStatus, DesiredTransition,
    Indexed, Job, JobKey, NodeId, Timestamp,
};
use placement::{Requirements, VolumeWrites};
use state::AllocView;

use crate::inputs::Inputs;
use crate::rank::ask::{AllocAsk, Found};
use crate::rank::assignment::Assignment;
use crate::rank::search::Search;
use crate::reconcile::changes::{Cause, PlaceAsk};
use crate::reconcile::reschedule::{events_of_replacement, failed_at};
use crate::run_rng::RunRng;

/// Tells whether a task of the group has `memory_max` and its node pool allows that.
fn oversubscribes_memory(inputs: &Inputs<'_>, job: &Indexed<Job>, group: &TaskGroup) -> bool {
    let mut tasks = group.tasks.iter();
    tasks.any(|task| task.resources.memory_max.is_more())
        && inputs.config.oversubscribes_memory(&job.value.node_pool)
}

/// The common part of a group's new allocations.
pub(crate) struct Template<'a> {
    pub(crate) job: &'a Indexed<Job>,
    pub(crate) group: &'a TaskGroup,
    alloc: Allocation,
    /// The last of them found no node.
    pub(crate) is_full: bool,
}

impl<'a> Template<'a> {
    pub(crate) fn new(
        inputs: &Inputs<'a>,
        job: &'a Indexed<Job>,
        group: &'a TaskGroup,
        deployment_id: Option<DeploymentId>,
        requirements: &Requirements,
    ) -> Self {
        let JobKey { namespace, job_id } = inputs.eval.job.clone();
        // `job` may be an older version, whose row is younger than the job.
        let current = inputs.snapshot.job(&inputs.eval.job);
        let alloc = Allocation {
            id: AllocId::default(),
            eval_id: inputs.eval.id,
            node_id: NodeId::default(),
            namespace,
            job_id,
            job_version: job.value.version,
            job_create_index: current.map_or(job.create_index, |job| job.create_index),
            task_group: Arc::from(group.name.as_str()),
            name_index: 0,
            resources: AllocatedResources {
                total: requirements.resources,
                memory_oversubscribed: oversubscribes_memory(inputs, job, group),
                ..AllocatedResources::default()
            },
            desired_status: DesiredStatus::Run,
            desired_description: String::new(),
            transition: DesiredTransition::default(),
            deployment_id,
            canary: false,
            client_status_override: None,
            unknown_since: Timestamp::NEVER,
            previous_alloc: None,
            next_alloc: None,
            followup_eval_id: None,
            preempted_by: None,
            preempted_allocs: Vec::new(),
            reschedules: Vec::new(),
            create_time: inputs.now,
            modify_time: Timestamp::NEVER,
            metric: None,
        };
        Self {
            job,
            group,
            alloc,
            is_full: false,
        }
    }

    /// Returns the requirements of the allocation for `ask` beyond those of its group.
    pub(crate) fn alloc_ask(&self, ask: &PlaceAsk<'a>) -> AllocAsk {
        let name_index = ask.name_index;
        let Some(previous) = ask.cause.previous() else {
            return AllocAsk {
                name_index,
                ..AllocAsk::default()
            };
        };
        let disk = self.group.ephemeral_disk;
        let failed = previous.client_status() == model::ClientStatus::Failed;
        let mut penalised: Vec<_> = previous
            .alloc
            .reschedules
            .iter()
            .map(|event| event.previous_node)
            .collect();
        if failed {
            penalised.push(previous.alloc.node_id);
        }
        AllocAsk {
            preferred: (disk.sticky || disk.migrate).then_some(previous.alloc.node_id),
            penalised,
            name_index,
        }
    }

    /// Makes the allocation for `ask` on the node that was found, and adds it to the search.
    pub(crate) fn allocation(
        &self,
        search: &mut Search<'a, '_>,
        ask: &PlaceAsk<'a>,
        found: Found<'a>,
        now: Timestamp,
        rng: &mut RunRng,
    ) -> Allocation {
        let mut alloc = self.fill(ask, found.node_id, found.assignment, now, rng);
        alloc.metric = Some(found.metric.into());
        search.take(found.position, &alloc.resources);
        let writes = VolumeWrites::of_group(&alloc.namespace, self.group, alloc.name_index);
        search.cluster.add_writes(found.position, writes);
        let csi = search.requirements.csi.volumes(alloc.name_index);
        search.cluster.add_csi(found.position, csi);
        alloc
    }

    /// Makes the allocation for `ask` on a node.
    pub(crate) fn fill(
        &self,
        ask: &PlaceAsk<'a>,
        node_id: NodeId,
        assignment: Assignment,
        now: Timestamp,
        rng: &mut RunRng,
    ) -> Allocation {
        let mut alloc = self.alloc.clone();
        alloc.id = rng.alloc_id();
        alloc.node_id = node_id;
        alloc.name_index = ask.name_index;
        alloc.resources.ports = assignment.ports;
        assignment.dedicated.add_to(&mut alloc.resources);
        alloc.canary = ask.is_canary && alloc.deployment_id.is_some();
        if let Some(previous) = ask.cause.previous() {
            alloc.previous_alloc = Some(previous.alloc.id);
            alloc.reschedules = self.reschedules(ask.cause, previous, now);
        }
        alloc
    }

    /// Returns the reschedule history of a replacement: that of its predecessor with the failure added,
    /// or unchanged after a loss or migration within the same version.
    fn reschedules(
        &self,
        cause: Cause<'a>,
        previous: &AllocView,
        now: Timestamp,
    ) -> Vec<model::allocation::RescheduleEvent> {
        match cause {
            Cause::Reschedule(_) => {
                let policy = self.group.reschedule.as_ref();
                events_of_replacement(previous, policy, failed_at(previous), now)
            }
            Cause::Unknown(_, since) => {
                events_of_replacement(previous, self.group.reschedule.as_ref(), since, now)
            }
            Cause::Lost(_) | Cause::Migrate(_)
                if previous.alloc.job_version == self.job.value.version =>
            {
                previous.alloc.reschedules.clone()
            }
            Cause::Lost(_) | Cause::Migrate(_) | Cause::Update(_) | Cause::Missing => Vec::new(),
        }
    }
}
