//! Draft of a plan: the changes decided so far, with the placements that failed.
//!
//! Its fields are private: the planners add stops, updates and placements through methods, and
//! `outcome` completes it with the end of the evaluation. `evictions` adds and releases victims.

mod evictions;

use std::collections::{BTreeMap, BTreeSet};

use model::plan::Stop;
use model::{
    AllocId, AllocMetric, Allocation, ClientStatus, Deployment, DeploymentId, Evaluation, Indexed,
    Job, NodeId, Plan, Timestamp,
};
use state::{AllocView, NodeUsage, Snapshot};

use crate::generation::{Generation, Generations};
use crate::inputs::Inputs;
use crate::preempt::preempted::Preempted;
use crate::reconcile::changes::{GroupChanges, JobChanges, Mark, StopAsk};
use crate::reconcile::node_condition::{NodeCondition, node_condition};

/// An allocation that the plan places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    pub(crate) node_id: NodeId,
    pub(crate) group: &'a str,
    pub(crate) generation: Generation,
}

#[derive(Debug)]
pub(crate) struct Draft<'a> {
    plan: Plan,
    /// Task group → metric of its failed placements.
    failed: BTreeMap<String, AllocMetric>,
    /// Task group → number of failed placements.
    queued: BTreeMap<String, u32>,
    /// Allocations that hold no resources once the plan is applied.
    stopped: BTreeSet<AllocId>,
    placed: Vec<Placed<'a>>,
    /// New canaries with their groups.
    canaries: Vec<(&'a str, AllocId)>,
    /// Generations of the job's stored allocations.
    generations: Generations,
    /// Nodes without room for their allocation; `None`: the job does not need particular nodes.
    full_nodes: Option<BTreeSet<NodeId>>,
    preempted: Preempted,
    /// Task group → number of victims, for people.
    preemptions: BTreeMap<String, u32>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            plan,
            failed: BTreeMap::new(),
            queued: BTreeMap::new(),
            stopped: BTreeSet::new(),
            placed: Vec::new(),
            canaries: Vec::new(),
            generations: Generations::default(),
            full_nodes: None,
            preempted: Preempted::default(),
            preemptions: BTreeMap::new(),
        }
    }

    /// Adds everything of `changes` but placements; `job` is `None` when it is stopped or gone.
    pub(crate) fn add_changes(
        &mut self,
        inputs: &Inputs<'a>,
        job: Option<&Indexed<Job>>,
        changes: &mut JobChanges<'a>,
    ) {
        self.plan.deployment = changes.deployment.take();
        self.generations = std::mem::take(&mut changes.generations);
        self.plan.deployment_updates = std::mem::take(&mut changes.deployment_updates);
        self.plan.followup_evals = std::mem::take(&mut changes.delayed_evals);
        for stop in &changes.lost_while_stopping {
            self.stop(inputs.snapshot, stop);
        }
        for group in &changes.groups {
            for stop in &group.stops {
                self.stop(inputs.snapshot, stop);
            }
            if let Some(job) = job {
                self.edit(inputs, job, changes.deployment_id, group);
            }
        }
    }

    fn stop(&mut self, snapshot: &Snapshot, stop: &StopAsk<'a>) {
        let alloc = &stop.view.alloc;
        if !stop.view.is_terminal() {
            self.stopped.insert(alloc.id);
        }
        let client_status = stop
            .client_status
            .or_else(|| lost_with_node(snapshot, stop.view));
        self.plan
            .stops
            .entry(alloc.node_id)
            .or_default()
            .push(Stop {
                alloc_id: alloc.id,
                description: stop.reason.to_string(),
                client_status,
                followup_eval_id: stop.followup,
                preempted_by: None,
            });
    }

    /// Stops an allocation whose replacement has been placed.
    pub(crate) fn stop_replaced(&mut self, view: &AllocView, description: &str) {
        self.stopped.insert(view.alloc.id);
        self.plan
            .stops
            .entry(view.alloc.node_id)
            .or_default()
            .push(Stop {
                alloc_id: view.alloc.id,
                description: description.to_owned(),
                client_status: None,
                followup_eval_id: None,
                preempted_by: None,
            });
    }

    /// Updates allocations that keep running: in place to the current version, and with the notes of
    /// disconnected ones and of follow-up evaluations.
    fn edit(
        &mut self,
        inputs: &Inputs<'a>,
        job: &Indexed<Job>,
        deployment_id: Option<DeploymentId>,
        group: &GroupChanges<'a>,
    ) {
        for edit in group.edits.values() {
            let mut alloc = Allocation::clone(&edit.view.alloc);
            if edit.in_place {
                alloc.eval_id = inputs.eval.id;
                alloc.job_version = job.value.version;
                alloc.canary &= alloc.deployment_id == deployment_id;
                alloc.deployment_id = deployment_id;
            }
            match edit.mark {
                Some(Mark::Unknown) => {
                    alloc.client_status_override = Some(ClientStatus::Unknown);
                    alloc.unknown_since = inputs.now;
                    // The follow-up was for a failure before.
                    alloc.followup_eval_id = None;
                }
                Some(Mark::Reconnected) => {
                    alloc.client_status_override = None;
                    alloc.unknown_since = Timestamp::NEVER;
                    alloc.followup_eval_id = None;
                }
                None => {}
            }
            alloc.followup_eval_id = edit.followup.or(alloc.followup_eval_id);
            alloc.modify_time = inputs.now;
            let of_node = self.plan.placements.entry(alloc.node_id).or_default();
            of_node.push(alloc);
        }
    }

    /// Adds a new allocation.
    pub(crate) fn place(&mut self, alloc: Allocation, group: &'a str, generation: Generation) {
        self.placed.push(Placed {
            node_id: alloc.node_id,
            group,
            generation,
        });
        if alloc.canary {
            self.canaries.push((group, alloc.id));
        }
        let of_node = self.plan.placements.entry(alloc.node_id).or_default();
        of_node.push(alloc);
    }

    /// Starts counting failed placements of a group.
    pub(crate) fn begin_group(&mut self, group: &str) {
        self.queued.insert(group.to_owned(), 0);
    }

    /// Adds a failed placement of a group; `first` makes the metric of the group's first failure.
    pub(crate) fn fail(
        &mut self,
        group: &str,
        first: impl FnOnce() -> AllocMetric,
    ) -> &mut AllocMetric {
        *self.queued.entry(group.to_owned()).or_insert(0) += 1;
        match self.failed.entry(group.to_owned()) {
            std::collections::btree_map::Entry::Occupied(known) => {
                let metric = known.into_mut();
                metric.coalesced_failures += 1;
                metric
            }
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(first()),
        }
    }

    /// Adds a failed placement of a group that has failed before; `false`: it has not.
    pub(crate) fn fail_again(&mut self, group: &str) -> bool {
        let Some(metric) = self.failed.get_mut(group) else {
            return false;
        };
        metric.coalesced_failures += 1;
        *self.queued.entry(group.to_owned()).or_insert(0) += 1;
        true
    }

    /// Sets the metric of a group that no node can run.
    pub(crate) fn set_failed(&mut self, group: &str, metric: AllocMetric) {
        self.failed.insert(group.to_owned(), metric);
    }

    /// Declares that the job needs particular nodes: only full ones block it.
    pub(crate) fn need_particular_nodes(&mut self) {
        self.full_nodes = Some(BTreeSet::new());
    }

    pub(crate) fn add_full_node(&mut self, node: NodeId) {
        self.full_nodes.get_or_insert_default().insert(node);
    }

    /// Adds the new canaries to their deployment: the plan's, or else `current`.
    pub(crate) fn note_canaries(&mut self, current: Option<Deployment>) {
        if self.canaries.is_empty() {
            return;
        }
        let Some(mut deployment) = self.plan.deployment.take().or(current) else {
            return;
        };
        self.add_canaries_to(&mut deployment);
        self.plan.deployment = Some(deployment);
    }

    pub(crate) fn add_canaries_to(&self, deployment: &mut Deployment) {
        for (group, id) in &self.canaries {
            if let Some(group) = deployment.groups.get_mut(*group) {
                group.placed_canaries.push(*id);
            }
        }
    }

    pub(crate) fn set_deployment(&mut self, deployment: Deployment) {
        self.plan.deployment = Some(deployment);
    }

    pub(crate) fn add_followup(&mut self, eval: Evaluation) {
        self.plan.followup_evals.push(eval);
    }

    pub(crate) fn set_outcome(&mut self, eval: Evaluation) {
        self.plan.eval_outcome = Some(Box::new(eval));
    }

    /// Drops all changes; the failed placements stay.
    pub(crate) fn discard_changes(&mut self) {
        self.plan.stops.clear();
        self.plan.placements.clear();
        self.plan.preemptions.clear();
        self.preemptions.clear();
        self.plan.deployment = None;
        self.plan.deployment_updates.clear();
        self.plan.followup_evals.clear();
    }

    /// Edits the metric of each group with failed placements, given their number.
    pub(crate) fn edit_metrics(&mut self, mut edit: impl FnMut(&str, u32, &mut AllocMetric)) {
        for (group, metric) in &mut self.failed {
            let failures = self.queued.get(group).copied().unwrap_or(0);
            edit(group, failures, metric);
        }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn into_plan(self) -> Plan {
        self.plan
    }

    pub(crate) fn failed(&self) -> &BTreeMap<String, AllocMetric> {
        &self.failed
    }

    pub(crate) fn queued(&self) -> &BTreeMap<String, u32> {
        &self.queued
    }

    /// Returns the nodes without room; `None`: the job does not need particular nodes.
    pub(crate) fn full_nodes(&self) -> Option<&BTreeSet<NodeId>> {
        self.full_nodes.as_ref()
    }

    pub(crate) fn preempted(&self) -> &Preempted {
        &self.preempted
    }

    /// Returns the number of victims by task group.
    pub(crate) fn preemptions(&self) -> &BTreeMap<String, u32> {
        &self.preemptions
    }

    pub(crate) fn generations(&self) -> &Generations {
        &self.generations
    }

    pub(crate) fn is_stopped(&self, id: AllocId) -> bool {
        self.stopped.contains(&id)
    }

    /// Returns the stored allocations that hold no resources any more: stopped ones and victims.
    pub(crate) fn released(&self) -> impl Iterator<Item = AllocId> {
        self.stopped.iter().copied().chain(self.preempted.ids())
    }

    pub(crate) fn placed(&self) -> &[Placed<'a>] {
        &self.placed
    }

    /// Returns the new allocations.
    pub(crate) fn new_allocs(&self, snapshot: &Snapshot) -> impl Iterator<Item = &Allocation> {
        let allocs = self.plan.placements.values().flatten();
        allocs.filter(|alloc| snapshot.alloc(alloc.id).is_none())
    }

    /// Returns the new allocations on one node.
    pub(crate) fn new_allocs_on(
        &self,
        snapshot: &Snapshot,
        node: NodeId,
    ) -> impl Iterator<Item = &Allocation> {
        let allocs = self.plan.placements.get(&node).into_iter().flatten();
        allocs.filter(|alloc| snapshot.alloc(alloc.id).is_none())
    }

    /// Returns the usage of a node by its stored allocations, without the stopped ones.
    pub(crate) fn usage_without_stopped(&self, snapshot: &Snapshot, node_id: NodeId) -> NodeUsage {
        let mut usage = snapshot.usage(node_id).cloned().unwrap_or_default();
        for stop in self.plan.stops.get(&node_id).into_iter().flatten() {
            let view = snapshot.alloc(stop.alloc_id);
            if let Some(view) = view.filter(|view| !view.is_terminal()) {
                usage.remove(&view.alloc.resources);
            }
        }
        usage
    }
}

/// Returns `lost` for an allocation that is to stop if its node cannot report its end.
fn lost_with_node(snapshot: &Snapshot, view: &AllocView) -> Option<ClientStatus> {
    let is_gone = matches!(
        node_condition(snapshot, view),
        NodeCondition::Down | NodeCondition::Gone
    );
    (is_gone && !view.is_client_terminal()).then_some(ClientStatus::Lost)
}
