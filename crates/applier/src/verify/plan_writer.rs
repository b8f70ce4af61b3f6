//! Builds the writes of the accepted part of a plan, in an order in which they may be split.

use std::collections::{BTreeMap, BTreeSet};

use model::plan::Stop;
use model::{
    AllocId, Allocation, Deployment, DesiredStatus, EvalId, EvalStatus, Evaluation, NodeId, Plan,
    Timestamp,
};
use state::{AllocView, Entity, Key, Snapshot, Write};

use crate::pending::Pending;
use crate::plan_writes::{IndivisibleWrites, PlanWrites};
use crate::verify::evictions::Evictions;
use crate::verify::preconditions::deployments;
use crate::verify::{csi, volumes};

/// Builds the writes of one plan.
pub(crate) struct PlanWriter<'a> {
    snapshot: &'a Snapshot,
    pending: &'a Pending,
    plan: &'a Plan,
    now: Timestamp,
    /// Replaced allocation → its accepted replacement.
    successors: BTreeMap<AllocId, AllocId>,
    /// Allocations that the accepted part updates; the update also sets their successor.
    updated: BTreeSet<AllocId>,
    /// Allocations written so far: a plan writes a key once.
    written: BTreeSet<AllocId>,
    /// Volume claims written so far.
    claimed: BTreeSet<Key>,
}

/// The plan depends on a pending write, so there is no revision to compare with yet.
struct DependsOnPending;

impl<'a> PlanWriter<'a> {
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        pending: &'a Pending,
        plan: &'a Plan,
        now: Timestamp,
    ) -> Self {
        Self {
            snapshot,
            pending,
            plan,
            now,
            successors: BTreeMap::new(),
            updated: BTreeSet::new(),
            written: BTreeSet::new(),
            claimed: BTreeSet::new(),
        }
    }

    /// Returns the writes for the parts of `nodes`, without the placements `withheld`; `None` when the
    /// plan must wait for a pending write.
    pub(crate) fn write(
        mut self,
        nodes: &[NodeId],
        withheld: &BTreeSet<AllocId>,
        is_whole: bool,
    ) -> Option<PlanWrites> {
        let plan = self.plan;
        let placements = |node: &NodeId| plan.placements.get(node).into_iter().flatten();
        let placements: Vec<_> = nodes
            .iter()
            .flat_map(placements)
            .filter(|alloc| !withheld.contains(&alloc.id))
            .collect();
        for alloc in &placements {
            if self.snapshot.alloc(alloc.id).is_some() {
                self.updated.insert(alloc.id);
            }
            if let Some(previous) = alloc.previous_alloc {
                self.successors.insert(previous, alloc.id);
            }
        }
        let mut units = Vec::with_capacity(placements.len());
        let mut evictions = Evictions::default();
        for node_id in nodes {
            self.write_stops(*node_id, &mut units).ok()?;
            self.write_evictions(*node_id, withheld, &mut evictions)
                .ok()?;
        }
        units.extend(evictions.into_units(self.snapshot, plan, self.now));
        for alloc in placements {
            self.write_placement(alloc, &mut units).ok()?;
        }
        let mut writes = PlanWrites {
            units,
            ..PlanWrites::default()
        };
        writes.head = self.head(&writes.units, is_whole);
        if is_whole {
            writes.tail = self.tail();
        }
        if !writes.is_empty() {
            writes.guards = self.guards();
        }
        Some(writes)
    }

    fn write_stops(
        &mut self,
        node_id: NodeId,
        units: &mut Vec<IndivisibleWrites>,
    ) -> Result<(), DependsOnPending> {
        let plan = self.plan;
        for stop in plan.stops.get(&node_id).into_iter().flatten() {
            if let Some(op) = self.stop(stop, DesiredStatus::Stop)? {
                units.push(IndivisibleWrites {
                    ops: vec![op],
                    node_check: None,
                });
            }
        }
        Ok(())
    }

    fn write_evictions(
        &mut self,
        node_id: NodeId,
        withheld: &BTreeSet<AllocId>,
        evictions: &mut Evictions,
    ) -> Result<(), DependsOnPending> {
        let plan = self.plan;
        let placements = plan.placements.get(&node_id);
        // Without any placement the evictions are pointless; another placement may need their room.
        let is_in_vain = placements.is_some_and(|placements| {
            let mut placements = placements.iter();
            placements.all(|alloc| withheld.contains(&alloc.id))
        });
        if is_in_vain {
            return Ok(());
        }
        for stop in plan.preemptions.get(&node_id).into_iter().flatten() {
            let Some(view) = self.snapshot.alloc(stop.alloc_id) else {
                continue;
            };
            if let Some(op) = self.stop(stop, DesiredStatus::Evict)? {
                evictions.add(view.alloc.job_key(), op);
            }
        }
        Ok(())
    }

    fn write_placement(
        &mut self,
        alloc: &Allocation,
        units: &mut Vec<IndivisibleWrites>,
    ) -> Result<(), DependsOnPending> {
        if !self.written.insert(alloc.id) {
            return Ok(());
        }
        let mut ops = Vec::with_capacity(1);
        let old = self.snapshot.alloc(alloc.id);
        match old {
            None => {
                let claimed = &mut self.claimed;
                let beside = volumes::ops(self.snapshot, self.pending, alloc, claimed);
                ops.extend(beside.ok_or(DependsOnPending)?);
                ops.extend(csi::compares(self.snapshot, alloc));
                ops.push(create_alloc(alloc.clone()));
            }
            Some(old) => {
                let mut alloc = alloc.clone();
                let successor = self.successors.get(&alloc.id).copied();
                alloc.next_alloc = successor.or(alloc.next_alloc);
                ops.push(self.update(old, alloc)?);
            }
        }
        if let Some(link) = self.link(alloc)? {
            ops.push(link);
        }
        // A change of an ended allocation's record does not depend on its node.
        let has_ended = old.is_some_and(AllocView::is_client_terminal);
        let node = self.snapshot.node(alloc.node_id).filter(|_| !has_ended);
        let node_check =
            node.map(|node| Write::require(Key::Node(alloc.node_id), node.modify_index));
        units.push(IndivisibleWrites { ops, node_check });
        Ok(())
    }

    /// Ends an allocation; `None` when that would change nothing.
    fn stop(
        &mut self,
        stop: &Stop,
        desired: DesiredStatus,
    ) -> Result<Option<Write>, DependsOnPending> {
        let Some(view) = self.snapshot.alloc(stop.alloc_id) else {
            return Ok(None);
        };
        // An ended allocation cannot be evicted.
        if desired == DesiredStatus::Evict && view.is_terminal() {
            return Ok(None);
        }
        let mut alloc = Allocation::clone(&view.alloc);
        if !view.alloc.is_server_terminal() {
            alloc.desired_status = desired;
            alloc.desired_description.clone_from(&stop.description);
            alloc.preempted_by = stop.preempted_by.or(alloc.preempted_by);
        }
        if !view.is_client_terminal() {
            alloc.client_status_override = stop.client_status.or(alloc.client_status_override);
        }
        alloc.followup_eval_id = stop.followup_eval_id.or(alloc.followup_eval_id);
        alloc.next_alloc = self.successors.get(&alloc.id).copied().or(alloc.next_alloc);
        if alloc == *view.alloc || !self.written.insert(alloc.id) {
            return Ok(None);
        }
        alloc.modify_time = self.now;
        self.update(view, alloc).map(Some)
    }

    /// Sets the successor of the allocation that `alloc` replaces, unless its stop or update does so.
    fn link(&mut self, alloc: &Allocation) -> Result<Option<Write>, DependsOnPending> {
        let Some(previous) = alloc.previous_alloc else {
            return Ok(None);
        };
        let Some(view) = self.snapshot.alloc(previous) else {
            return Ok(None);
        };
        let is_stopped = self
            .plan
            .stops
            .get(&view.alloc.node_id)
            .is_some_and(|stops| stops.iter().any(|stop| stop.alloc_id == previous));
        let is_linked = is_stopped || self.updated.contains(&previous);
        if is_linked || view.alloc.next_alloc == Some(alloc.id) || !self.written.insert(previous) {
            return Ok(None);
        }
        let mut linked = Allocation::clone(&view.alloc);
        linked.next_alloc = Some(alloc.id);
        linked.modify_time = self.now;
        self.update(view, linked).map(Some)
    }

    fn update(&self, view: &AllocView, alloc: Allocation) -> Result<Write, DependsOnPending> {
        let key = Key::Alloc(alloc.id);
        if self.pending.is_unshown(&key, view.alloc_modify_index) {
            return Err(DependsOnPending);
        }
        Ok(Write::Update {
            key,
            entity: Entity::Alloc(Box::new(alloc)),
            modify_index: view.alloc_modify_index,
        })
    }

    fn guards(&self) -> Vec<Write> {
        let plan = self.plan;
        vec![
            Write::require(Key::Job(plan.job.clone()), plan.job_modify_index),
            Write::require(Key::Eval(plan.eval_id), plan.eval_modify_index),
        ]
    }

    fn head(&self, units: &[IndivisibleWrites], is_whole: bool) -> Vec<Write> {
        let mut ops = Vec::new();
        let mut written = BTreeSet::new();
        if let Some(deployment) = &self.plan.deployment {
            written.insert(deployment.id);
            ops.push(self.put_deployment(self.with_real_canaries(deployment, units)));
        }
        for update in &self.plan.deployment_updates {
            let Some(stored) = self.snapshot.deployment(update.deployment_id) else {
                continue;
            };
            if !written.insert(update.deployment_id) || !stored.value.status.is_active() {
                continue;
            }
            let mut deployment = stored.value.clone();
            deployment.status = update.status;
            deployment
                .status_description
                .clone_from(&update.description);
            deployment.modify_time = self.now;
            if !deployment.status.is_active() {
                self.snapshot.note_final_counts(&mut deployment);
            }
            ops.push(self.put_deployment(deployment));
        }
        // A deployment with new placements must not have failed or been paused meanwhile.
        for id in deployments(self.plan) {
            if let Some(stored) = self
                .snapshot
                .deployment(id)
                .filter(|_| !written.contains(&id))
            {
                let modify_index = stored.modify_index;
                ops.push(Write::require(Key::Deployment(id), modify_index));
            }
        }
        let named = named_evals(units);
        for eval in &self.plan.followup_evals {
            let waits = eval.status == EvalStatus::Blocked;
            if !waits && (is_whole || named.contains(&eval.id)) {
                ops.push(Write::create_eval(eval.clone()));
            }
        }
        // Compares alone need no transaction.
        let writes_something = !units.is_empty() || is_whole;
        let is_idle = ops.iter().all(|op| op.is_compare());
        if is_idle && !writes_something {
            Vec::new()
        } else {
            ops
        }
    }

    fn put_deployment(&self, deployment: Deployment) -> Write {
        let key = Key::Deployment(deployment.id);
        match self.snapshot.deployment(deployment.id) {
            None => Write::Create {
                key,
                entity: Entity::Deployment(Box::new(deployment)),
            },
            Some(stored) => Write::Update {
                key,
                entity: Entity::Deployment(Box::new(deployment)),
                modify_index: stored.modify_index,
            },
        }
    }

    /// Removes canaries whose node was rejected.
    fn with_real_canaries(
        &self,
        deployment: &Deployment,
        units: &[IndivisibleWrites],
    ) -> Deployment {
        let mut deployment = deployment.clone();
        if deployment
            .groups
            .values()
            .any(|group| !group.placed_canaries.is_empty())
        {
            let created: BTreeSet<_> = units
                .iter()
                .flat_map(|unit| &unit.ops)
                .filter_map(Write::created_alloc)
                .collect();
            for group in deployment.groups.values_mut() {
                group
                    .placed_canaries
                    .retain(|id| created.contains(id) || self.snapshot.alloc(*id).is_some());
            }
        }
        deployment
    }

    fn tail(&self) -> Vec<Write> {
        let blocked = |eval: &&Evaluation| eval.status == EvalStatus::Blocked;
        let mut ops: Vec<_> = self
            .plan
            .followup_evals
            .iter()
            .filter(blocked)
            .cloned()
            .map(Write::create_eval)
            .collect();
        let stored = self.snapshot.eval(self.plan.eval_id);
        if let (Some(outcome), Some(stored)) = (&self.plan.eval_outcome, stored) {
            ops.push(Write::Update {
                key: Key::Eval(outcome.id),
                entity: Entity::Eval(outcome.clone()),
                modify_index: stored.modify_index,
            });
        }
        ops
    }
}

fn create_alloc(alloc: Allocation) -> Write {
    Write::Create {
        key: Key::Alloc(alloc.id),
        entity: Entity::Alloc(Box::new(alloc)),
    }
}

/// Returns the follow-up evaluations that written allocations name.
fn named_evals(units: &[IndivisibleWrites]) -> BTreeSet<EvalId> {
    let entities = units
        .iter()
        .flat_map(|unit| &unit.ops)
        .filter_map(Write::entity);
    let named = entities.filter_map(|entity| match entity {
        Entity::Alloc(alloc) => alloc.followup_eval_id,
        _ => None,
    });
    named.collect()
}
