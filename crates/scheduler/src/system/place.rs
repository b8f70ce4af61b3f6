//! Planner of system and sysbatch jobs: places on the named nodes, and updates the deployment.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    AllocMetric, ComparableResources, Deployment, DeploymentStatus, Indexed, Job, Node, NodeId,
};
use placement::{Exhausted, Requirements, VolumeAsks, VolumeWrites};
use rustc_hash::FxHashMap;
use state::{AllocView, NodeUsage};

use crate::draft::Draft;
use crate::inputs::Inputs;
use crate::preempt::choice::victims;
use crate::preempt::cost::preemption_score;
use crate::preempt::node_fit::NodeFit;
use crate::rank::assignment::Assignment;
use crate::rank::score::{Parts, fit, thousandths};
use crate::reconcile::rollout;
use crate::run_rng::RunRng;
use crate::system::changes::{NodeAsk, SystemChanges, SystemGroup};
use crate::template::Template;

/// The usage of nodes with the draft so far.
type Usages = FxHashMap<NodeId, NodeUsage>;

pub(crate) struct SystemPlanner<'a, 'd> {
    inputs: Inputs<'a>,
    draft: &'d mut Draft<'a>,
    rng: &'d mut RunRng,
    usages: Usages,
}

impl<'a, 'd> SystemPlanner<'a, 'd> {
    pub(crate) fn new(inputs: Inputs<'a>, draft: &'d mut Draft<'a>, rng: &'d mut RunRng) -> Self {
        Self {
            inputs,
            draft,
            rng,
            usages: Usages::default(),
        }
    }

    /// Stops and updates allocations, then places on every named node.
    pub(crate) fn execute(&mut self, job: &'a Indexed<Job>, changes: SystemChanges<'a>) {
        let SystemChanges {
            job: mut job_changes,
            groups,
            deployment,
        } = changes;
        let current = job_changes.current_deployment.take();
        let updated = job_changes.groups.iter();
        let updated = updated.filter(|group| group.desired.in_place_update > 0);
        let updated_in_place = updated.map(|group| group.name.clone()).collect();
        self.draft.need_particular_nodes();
        self.draft
            .add_changes(&self.inputs, Some(job), &mut job_changes);
        let wanted = job_changes.groups.iter();
        for group in wanted.filter(|group| group.group.is_some()) {
            self.draft.begin_group(&group.name);
        }
        let mut unplaced = BTreeMap::new();
        for system_group in &groups {
            let short = self.place_group(job, system_group, deployment.as_ref());
            unplaced.insert(system_group.group.name.as_str(), short);
        }
        if let Some(deployment) = deployment {
            self.settle_rollout(deployment, current, &groups, &unplaced, &updated_in_place);
        }
    }

    /// Places one group; returns the number of failed placements.
    fn place_group(
        &mut self,
        job: &'a Indexed<Job>,
        system_group: &SystemGroup<'a>,
        deployment: Option<&Deployment>,
    ) -> u32 {
        let group = system_group.group;
        let Some(requirements) = self.inputs.requirements.get(&group.name) else {
            return 0;
        };
        self.draft.begin_group(&group.name);
        if system_group.asks.is_empty()
            && !system_group.has_some
            && system_group.filtered.nodes_filtered > 0
        {
            // Nothing is blocked: a change of a node evaluates the job anyway.
            let metric = system_group.filtered.clone();
            self.draft.set_failed(&group.name, metric);
        }
        let deployment_id = deployment.map(|deployment| deployment.id);
        let template = Template::new(&self.inputs, job, group, deployment_id, requirements);
        let mut short = 0;
        for place in &system_group.asks {
            let in_pool = &system_group.filtered;
            let placed = self.place_on(&template, requirements, place, in_pool);
            if let Err(exhausted) = placed {
                short += 1;
                let first = || system_group.filtered.clone();
                let metric = self.draft.fail(&group.name, first);
                metric.nodes_exhausted += 1;
                let dimension = metric.dimension_exhausted.entry(exhausted.to_string());
                *dimension.or_insert(0) += 1;
                if let Some(node) = self.inputs.snapshot.node(place.node_id)
                    && !node.value.node_class.is_empty()
                {
                    let class = metric.class_exhausted.entry(node.value.node_class.clone());
                    *class.or_insert(0) += 1;
                }
                self.draft.add_full_node(place.node_id);
            }
        }
        short
    }

    fn place_on(
        &mut self,
        template: &Template<'a>,
        requirements: &Requirements,
        place: &NodeAsk<'a>,
        in_pool: &AllocMetric,
    ) -> Result<(), Exhausted> {
        let snapshot = self.inputs.snapshot;
        let Some(node) = snapshot.node(place.node_id) else {
            return Ok(());
        };
        let node = &node.value;
        let cause = place.ask.cause;
        let replaced = cause
            .previous()
            .filter(|view| !view.is_terminal() && cause.stop_description().is_some());
        let writes = || {
            let replaced = replaced.map(|view| view.alloc.id);
            let planned = self.draft.new_allocs_on(snapshot, node.id);
            let planned = planned.map(|alloc| VolumeWrites::of(snapshot, alloc));
            VolumeWrites::on_node(snapshot, node.id, replaced).chain(planned)
        };
        if requirements
            .volumes
            .is_taken(node, place.ask.name_index, writes)
        {
            return Err(Exhausted::Amount(VolumeAsks::CONFLICT));
        }
        let usage = self
            .usages
            .entry(node.id)
            .or_insert_with(|| self.draft.usage_without_stopped(snapshot, node.id));
        let mut without = usage.clone();
        if let Some(view) = replaced {
            without.remove(&view.alloc.resources);
        }
        let mut victims = Vec::new();
        let mut short = None;
        let assignment = match self.assign(node, &without, requirements) {
            Ok(assignment) => assignment,
            Err(exhausted) => {
                let job = &template.job.value;
                let found = self.victims_on(job, node, &without, requirements);
                let Some(found) = found else {
                    return Err(exhausted);
                };
                victims = found;
                for victim in &victims {
                    without.remove(&victim.alloc.resources);
                }
                short = Some(exhausted);
                self.assign(node, &without, requirements)?
            }
        };
        let priorities = victims
            .iter()
            .map(|view| self.inputs.priority_of(view.alloc.id));
        let parts = Parts {
            preemption: (!victims.is_empty()).then(|| preemption_score(priorities)),
            ..self.parts_on(node, without.total, &assignment, requirements)
        };
        let mut alloc = template.fill(&place.ask, node.id, assignment, self.inputs.now, self.rng);
        alloc.metric = Some(metric(&parts, in_pool, short).into());
        self.draft.evict(&victims, &mut alloc);
        without.add(&alloc.resources);
        self.usages.insert(node.id, without);
        // A failed predecessor is stopped as well, though it holds nothing any more.
        let stopped = cause
            .previous()
            .filter(|view| !view.alloc.is_server_terminal());
        if let (Some(view), Some(description)) = (stopped, cause.stop_description()) {
            self.draft.stop_replaced(view, description);
        }
        let generation = place.ask.generation();
        self.draft.place(alloc, &template.group.name, generation);
        Ok(())
    }

    /// Returns the ports, cores and devices of one more on a node that holds `usage`.
    fn assign(
        &mut self,
        node: &Node,
        usage: &NodeUsage,
        requirements: &Requirements,
    ) -> Result<Assignment, Exhausted> {
        Assignment::on(node, usage, requirements, |bound| self.rng.below(bound))
    }

    /// Returns the victims that make room on a node that holds `usage`; `None`: preemption is disabled
    /// or does not help.
    fn victims_on(
        &self,
        job: &Job,
        node: &Node,
        usage: &NodeUsage,
        requirements: &Requirements,
    ) -> Option<Vec<&'a AllocView>> {
        let preemptor = self.inputs.preemptor(job)?;
        let room = NodeFit {
            node,
            usage,
            requirements,
        };
        let preempted = self.draft.preempted();
        let candidates = preemptor.candidates(self.inputs.snapshot, node.id, preempted);
        let chosen = victims(&room, &candidates, preempted)?;
        let chosen = chosen.into_iter();
        Some(chosen.map(|position| candidates[position].view).collect())
    }

    /// Returns the scores of a node that holds `used`, for one more with `assignment`. They are only
    /// reported; system jobs have neither affinities nor spreads.
    fn parts_on(
        &self,
        node: &Node,
        used: ComparableResources,
        assignment: &Assignment,
        requirements: &Requirements,
    ) -> Parts {
        let after = used.plus(assignment.total(requirements));
        Parts {
            fit: fit(self.inputs.algorithm, node.available(), after),
            anti_affinity: None,
            is_penalised: false,
            affinity: None,
            spread: 0.0,
            devices: assignment.dedicated.device_score,
            preemption: None,
        }
    }

    /// Updates the deployment if its numbers have changed, and completes it.
    fn settle_rollout(
        &mut self,
        mut deployment: Deployment,
        current: Option<Deployment>,
        groups: &[SystemGroup<'a>],
        unplaced: &BTreeMap<&str, u32>,
        updated_in_place: &BTreeSet<String>,
    ) {
        let mut is_complete = true;
        for system_group in groups {
            let name = &system_group.group.name;
            let Some(part) = deployment.groups.get_mut(name) else {
                continue;
            };
            let short = unplaced.get(name.as_str()).copied().unwrap_or(0);
            part.desired_total = system_group.candidates.saturating_sub(short);
            // Full nodes are not waited for, unless all are full: an allocation placed later is not part
            // of the rollout.
            let is_short_only = part.desired_total > 0 && system_group.asks.len() <= short as usize;
            is_complete &= (system_group.asks.is_empty() || is_short_only)
                && !system_group.is_held
                && !updated_in_place.contains(name);
            part.desired_canaries = system_group.desired_canaries;
            is_complete &= system_group.healthy >= part.desired_total
                && (part.desired_canaries == 0 || part.promoted);
        }
        self.draft.add_canaries_to(&mut deployment);
        if deployment.status == DeploymentStatus::Running {
            deployment
                .running_description()
                .clone_into(&mut deployment.status_description);
        }
        let known = current.filter(|current| current.id == deployment.id);
        if is_complete && known.is_some() {
            deployment.status = DeploymentStatus::Successful;
            rollout::SUCCESSFUL.clone_into(&mut deployment.status_description);
        }
        if known.as_ref() != Some(&deployment) {
            // Only its end changes its time, from which progress deadlines count.
            if !deployment.status.is_active() {
                deployment.modify_time = self.inputs.now;
            }
            self.draft.set_deployment(deployment);
        }
    }
}

/// Returns the metric of a placement: only its own node was checked, which was `short` of something if
/// there are victims.
fn metric(parts: &Parts, in_pool: &AllocMetric, short: Option<Exhausted>) -> Box<AllocMetric> {
    Box::new(AllocMetric {
        nodes_evaluated: 1,
        nodes_exhausted: u32::from(short.is_some()),
        dimension_exhausted: short.iter().map(|short| (short.to_string(), 1)).collect(),
        nodes_in_pool: in_pool.nodes_in_pool,
        score_per_mille: thousandths(parts.score()),
        score_parts: Some(parts.in_thousandths()),
        ..AllocMetric::default()
    })
}
