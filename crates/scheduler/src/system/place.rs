//! Writes down who goes on which node, and how the rollout stands afterwards.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    AllocMetric, ComparableResources, Deployment, DeploymentStatus, Indexed, Job, Node, NodeId,
};
use placement::{Exhausted, Requirements, VolumeAsks, VolumeWrites};
use rustc_hash::FxHashMap;
use state::NodeUsage;

use crate::planner::{Planner, Template};
use crate::preempt::preemption_score;
use crate::rank::Given;
use crate::rank::score::{Parts, fit, thousandths};
use crate::reconcile::rollout;
use crate::system::{Everywhere, NodeAsk, SystemChanges};

/// What nodes hold once the plan so far is carried out.
type Usages = FxHashMap<NodeId, NodeUsage>;

impl<'a> Planner<'a> {
    /// Stops and notes, then places on every node that was named.
    pub(crate) fn carry_out_everywhere(
        &mut self,
        job: &'a Indexed<Job>,
        changes: SystemChanges<'a>,
    ) {
        let SystemChanges {
            job: mut job_changes,
            groups,
            deployment,
        } = changes;
        let current = job_changes.current_deployment.take();
        let updated = job_changes.groups.iter();
        let updated = updated.filter(|group| group.desired.in_place_update > 0);
        let updated_in_place = updated.map(|group| group.name.clone()).collect();
        self.waiting_nodes = Some(Default::default());
        self.carry_out(Some(job), job_changes);
        let mut usages = Usages::default();
        let mut unplaced = BTreeMap::new();
        for everywhere in &groups {
            let short = self.place_everywhere(job, everywhere, deployment.as_ref(), &mut usages);
            unplaced.insert(everywhere.group.name.as_str(), short);
        }
        if let Some(deployment) = deployment {
            self.settle_rollout(deployment, current, &groups, &unplaced, &updated_in_place);
        }
    }

    /// Places one group; returns how many found no room.
    fn place_everywhere(
        &mut self,
        job: &'a Indexed<Job>,
        everywhere: &Everywhere<'a>,
        deployment: Option<&Deployment>,
        usages: &mut Usages,
    ) -> u32 {
        let group = everywhere.group;
        let Some(requirements) = self.requirements.get(&group.name) else {
            return 0;
        };
        self.queued.insert(group.name.clone(), 0);
        if everywhere.asks.is_empty()
            && !everywhere.has_some
            && everywhere.filtered.nodes_filtered > 0
        {
            // Nothing waits for this: a node that changes is looked at anyway.
            let metric = everywhere.filtered.clone();
            self.failed.insert(group.name.clone(), metric);
        }
        let deployment_id = deployment.map(|deployment| deployment.id);
        let template = Template::new(self, job, group, deployment_id, requirements);
        let mut short = 0;
        for place in &everywhere.asks {
            let in_pool = &everywhere.filtered;
            let placed = self.place_on(&template, requirements, place, usages, in_pool);
            if let Err(exhausted) = placed {
                short += 1;
                let metric = match self.failed.get_mut(&group.name) {
                    Some(metric) => {
                        metric.coalesced_failures += 1;
                        metric
                    }
                    None => self
                        .failed
                        .entry(group.name.clone())
                        .or_insert_with(|| everywhere.filtered.clone()),
                };
                metric.nodes_exhausted += 1;
                let dimension = metric.dimension_exhausted.entry(exhausted.to_string());
                *dimension.or_insert(0) += 1;
                if let Some(node) = self.snapshot.node(place.node_id)
                    && !node.value.node_class.is_empty()
                {
                    let class = metric.class_exhausted.entry(node.value.node_class.clone());
                    *class.or_insert(0) += 1;
                }
                *self.queued.entry(group.name.clone()).or_insert(0) += 1;
                self.waiting_nodes
                    .get_or_insert_default()
                    .insert(place.node_id);
            }
        }
        short
    }

    fn place_on(
        &mut self,
        template: &Template<'a>,
        requirements: &Requirements,
        place: &NodeAsk<'a>,
        usages: &mut Usages,
        in_pool: &AllocMetric,
    ) -> Result<(), Exhausted> {
        let Some(node) = self.snapshot.node(place.node_id) else {
            return Ok(());
        };
        let node = &node.value;
        let cause = place.ask.cause;
        let replaced = cause
            .previous()
            .filter(|view| !view.is_terminal() && cause.stop_description().is_some());
        let snapshot = self.snapshot;
        let writes = || {
            let replaced = replaced.map(|view| view.alloc.id);
            let planned = self.plan.placements.get(&node.id).into_iter().flatten();
            let planned = planned.filter(|alloc| snapshot.alloc(alloc.id).is_none());
            let planned = planned.map(|alloc| VolumeWrites::of(snapshot, alloc));
            VolumeWrites::on_node(snapshot, node.id, replaced).chain(planned)
        };
        if requirements
            .volumes
            .is_taken(node, place.ask.name_index, writes)
        {
            return Err(Exhausted::Amount(VolumeAsks::CONFLICT));
        }
        let usage = usages
            .entry(node.id)
            .or_insert_with(|| self.usage_without_stopped(node.id));
        let mut without = usage.clone();
        if let Some(view) = replaced {
            without.remove(&view.alloc.resources);
        }
        let mut victims = Vec::new();
        let mut short = None;
        let given = match self.room_on(node, &without, requirements) {
            Ok(given) => given,
            Err(exhausted) => {
                let job = &template.job.value;
                let found = self.who_makes_way(job, node, &without, requirements);
                let Some(found) = found else {
                    return Err(exhausted);
                };
                victims = found;
                for victim in &victims {
                    without.remove(&victim.alloc.resources);
                }
                short = Some(exhausted);
                self.room_on(node, &without, requirements)?
            }
        };
        let priorities = victims.iter().map(|view| self.priority_of(view.alloc.id));
        let parts = Parts {
            preemption: (!victims.is_empty()).then(|| preemption_score(priorities)),
            ..self.parts_on(node, without.total, &given, requirements)
        };
        let mut alloc = template.fill(&place.ask, node.id, given, self.now, &mut self.draw);
        alloc.metric = Some(told(&parts, in_pool, short));
        self.evict(&victims, &mut alloc);
        without.add(&alloc.resources);
        *usage = without;
        if alloc.canary {
            self.canaries.push((&template.group.name, alloc.id));
        }
        // One that has failed is told, too, though it holds nothing any more.
        let told = cause
            .previous()
            .filter(|view| !view.alloc.is_server_terminal());
        if let (Some(view), Some(description)) = (told, cause.stop_description()) {
            self.stop_staged(view, description);
        }
        self.plan.placements.entry(node.id).or_default().push(alloc);
        Ok(())
    }

    /// Returns what one more gets on a node that holds `usage`.
    fn room_on(
        &mut self,
        node: &Node,
        usage: &NodeUsage,
        requirements: &Requirements,
    ) -> Result<Given, Exhausted> {
        let draw = &mut self.draw;
        Given::on(node, usage, requirements, |bound| draw.below(bound))
    }

    /// Returns how good a node is that holds `used`, for one that gets what is `given`. Nothing is
    /// chosen by it, and such jobs have neither affinities nor spreads.
    fn parts_on(
        &self,
        node: &Node,
        used: ComparableResources,
        given: &Given,
        requirements: &Requirements,
    ) -> Parts {
        let after = used.plus(given.total(requirements));
        Parts {
            fit: fit(self.algorithm, node.available(), after),
            anti_affinity: None,
            is_penalised: false,
            affinity: None,
            spread: 0.0,
            devices: given.exclusive.device_score,
            preemption: None,
        }
    }

    pub(crate) fn usage_without_stopped(&self, node_id: NodeId) -> NodeUsage {
        let mut usage = self.snapshot.usage(node_id).cloned().unwrap_or_default();
        for stop in self.plan.stops.get(&node_id).into_iter().flatten() {
            let view = self.snapshot.alloc(stop.alloc_id);
            if let Some(view) = view.filter(|view| !view.is_terminal()) {
                usage.remove(&view.alloc.resources);
            }
        }
        usage
    }

    /// Writes down how the rollout stands, if that is news, and whether it is through.
    fn settle_rollout(
        &mut self,
        mut deployment: Deployment,
        current: Option<Deployment>,
        groups: &[Everywhere<'a>],
        unplaced: &BTreeMap<&str, u32>,
        updated_in_place: &BTreeSet<String>,
    ) {
        let mut is_complete = true;
        for everywhere in groups {
            let name = &everywhere.group.name;
            let Some(part) = deployment.groups.get_mut(name) else {
                continue;
            };
            let short = unplaced.get(name.as_str()).copied().unwrap_or(0);
            part.desired_total = everywhere.candidates.saturating_sub(short);
            // Where there is no room is not waited for, unless there is room nowhere: who comes
            // later comes without a rollout.
            let is_short_only = part.desired_total > 0 && everywhere.asks.len() <= short as usize;
            is_complete &= (everywhere.asks.is_empty() || is_short_only)
                && !everywhere.is_held
                && !updated_in_place.contains(name);
            part.desired_canaries = everywhere.desired_canaries;
            is_complete &= everywhere.healthy >= part.desired_total
                && (part.desired_canaries == 0 || part.promoted);
        }
        for (name, id) in &self.canaries {
            if let Some(part) = deployment.groups.get_mut(*name) {
                part.placed_canaries.push(*id);
            }
        }
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
            // Only an end moves its time: what a rollout has to reach by when counts from there.
            if !deployment.status.is_active() {
                deployment.modify_time = self.now;
            }
            self.plan.deployment = Some(deployment);
        }
    }
}

/// Returns what is remembered of a placement: only its own node was asked for it, and was `short` of
/// something if others had to make way.
fn told(parts: &Parts, in_pool: &AllocMetric, short: Option<Exhausted>) -> Box<AllocMetric> {
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
