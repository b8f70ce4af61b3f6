//! Evictions of a draft: its victims, and the release of those that fit after all.

use model::plan::Stop;
use model::{AllocId, Allocation, NodeId};
use placement::check_change;
use state::{AllocView, NodeUsage, Snapshot};

use crate::draft::Draft;
use crate::inputs::Inputs;

impl<'a> Draft<'a> {
    /// Evicts the victims of `alloc`.
    pub(crate) fn evict(&mut self, victims: &[&'a AllocView], alloc: &mut Allocation) {
        if victims.is_empty() {
            return;
        }
        for victim in victims {
            self.preempted.add(victim);
            let stop = eviction(victim, alloc.id);
            let of_node = self.plan.preemptions.entry(alloc.node_id).or_default();
            of_node.push(stop);
            alloc.preempted_allocs.push(victim.alloc.id);
        }
        let count = u32::try_from(victims.len()).unwrap_or(u32::MAX);
        *self
            .preemptions
            .entry(alloc.task_group.to_string())
            .or_insert(0) += count;
    }

    /// Releases victims that fit beside the complete plan: later placements and stops may have left
    /// room.
    pub(crate) fn release_fitting_victims(&mut self, inputs: &Inputs<'a>) {
        let snapshot = inputs.snapshot;
        let nodes: Vec<_> = self.plan.preemptions.keys().copied().collect();
        for node_id in nodes {
            let Some(node) = snapshot.node(node_id) else {
                continue;
            };
            let mut usage = self.final_usage(snapshot, node_id);
            let mut victims = self.plan.preemptions.remove(&node_id).unwrap_or_default();
            // The reverse order of their choice: the highest priority first, then the last chosen.
            victims.sort_by_key(|stop| inputs.priority_of(stop.alloc_id));
            let mut evicted = Vec::with_capacity(victims.len());
            while let Some(stop) = victims.pop() {
                let view = snapshot.alloc(stop.alloc_id);
                let resources = view.map(|view| &view.alloc.resources);
                match resources.filter(|one| check_change(&node.value, &usage, [], [*one]).is_ok())
                {
                    Some(resources) => {
                        usage.add(resources);
                        self.release(node_id, &stop);
                    }
                    None => evicted.push(stop),
                }
            }
            evicted.reverse();
            if !evicted.is_empty() {
                self.plan.preemptions.insert(node_id, evicted);
            }
        }
    }

    fn release(&mut self, node_id: NodeId, stop: &Stop) {
        let placed = self.plan.placements.get_mut(&node_id);
        let mut placed = placed.into_iter().flatten();
        let winner = placed.find(|alloc| Some(alloc.id) == stop.preempted_by);
        let Some(winner) = winner else { return };
        winner.preempted_allocs.retain(|id| *id != stop.alloc_id);
        if let Some(count) = self.preemptions.get_mut(&*winner.task_group) {
            *count -= 1;
        }
    }

    /// Returns a node's usage once the plan is applied.
    fn final_usage(&self, snapshot: &Snapshot, node_id: NodeId) -> NodeUsage {
        let mut usage = self.usage_without_stopped(snapshot, node_id);
        for stop in self.plan.preemptions.get(&node_id).into_iter().flatten() {
            if let Some(view) = snapshot.alloc(stop.alloc_id) {
                usage.remove(&view.alloc.resources);
            }
        }
        for alloc in self.new_allocs_on(snapshot, node_id) {
            usage.add(&alloc.resources);
        }
        usage
    }
}

fn eviction(victim: &AllocView, winner: AllocId) -> Stop {
    Stop {
        alloc_id: victim.alloc.id,
        description: format!("Preempted by alloc ID {winner}"),
        client_status: None,
        followup_eval_id: None,
        preempted_by: Some(winner),
    }
}
