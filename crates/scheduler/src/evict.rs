//! Writes down who makes way for whom.

use model::plan::Stop;
use model::{AllocId, Allocation, Job, Node, NodeId};
use placement::{Requirements, check_change};
use state::{AllocView, NodeUsage};

use crate::planner::Planner;
use crate::preempt::{Claim, Room, victims};

impl<'a> Planner<'a> {
    /// Returns in whose name others are asked to make way for allocations of `job`; `None`: the
    /// operator does not want it for such jobs.
    pub(crate) fn claim(&self, job: &Job) -> Option<Claim> {
        self.preempts.then(|| Claim {
            job: job.key(),
            priority: job.priority,
        })
    }

    /// Returns who has to make way on one node, which holds `usage`, for one of `job`; `None`: nobody
    /// may be asked, or it would not help.
    pub(crate) fn who_makes_way(
        &self,
        job: &Job,
        node: &Node,
        usage: &NodeUsage,
        requirements: &Requirements,
    ) -> Option<Vec<&'a AllocView>> {
        let claim = self.claim(job)?;
        let room = Room {
            node,
            usage,
            requirements,
        };
        let candidates = claim.candidates(self.snapshot, node.id, &self.preempted);
        let chosen = victims(&room, &candidates, &self.preempted)?;
        let chosen = chosen.into_iter();
        Some(chosen.map(|position| candidates[position].view).collect())
    }

    /// Evicts those who make way for `alloc`.
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
}

impl<'a> Planner<'a> {
    /// Lets those stay after all for whom there is room once the plan is carried out: what was placed
    /// or moved away later may have left some.
    pub(crate) fn spare_who_can_stay(&mut self) {
        let nodes: Vec<_> = self.plan.preemptions.keys().copied().collect();
        for node_id in nodes {
            let Some(node) = self.snapshot.node(node_id) else {
                continue;
            };
            let mut usage = self.usage_when_done(node_id);
            let mut victims = self.plan.preemptions.remove(&node_id).unwrap_or_default();
            // The most important first, as they were chosen last; else who was chosen last.
            victims.sort_by_key(|stop| self.priority_of(stop.alloc_id));
            let mut going = Vec::with_capacity(victims.len());
            while let Some(stop) = victims.pop() {
                let view = self.snapshot.alloc(stop.alloc_id);
                let resources = view.map(|view| &view.alloc.resources);
                match resources.filter(|one| check_change(&node.value, &usage, [], [*one]).is_ok())
                {
                    Some(resources) => {
                        usage.add(resources);
                        self.spare(node_id, &stop);
                    }
                    None => going.push(stop),
                }
            }
            going.reverse();
            if !going.is_empty() {
                self.plan.preemptions.insert(node_id, going);
            }
        }
    }

    pub(crate) fn priority_of(&self, id: AllocId) -> u8 {
        let view = self.snapshot.alloc(id);
        let version = view.and_then(|view| {
            let alloc = &view.alloc;
            self.snapshot
                .job_version(&alloc.job_key(), alloc.job_version)
        });
        version.map_or(0, |job| job.value.priority)
    }

    /// Forgets that somebody makes way.
    fn spare(&mut self, node_id: NodeId, stop: &Stop) {
        let placed = self.plan.placements.get_mut(&node_id);
        let winner = placed.into_iter().flatten();
        let winner = winner
            .into_iter()
            .find(|alloc| Some(alloc.id) == stop.preempted_by);
        let Some(winner) = winner else { return };
        winner.preempted_allocs.retain(|id| *id != stop.alloc_id);
        if let Some(count) = self.preemptions.get_mut(&*winner.task_group) {
            *count -= 1;
        }
    }

    /// Returns what a node holds once the plan is carried out.
    fn usage_when_done(&self, node_id: NodeId) -> NodeUsage {
        let mut usage = self.usage_without_stopped(node_id);
        for stop in self.plan.preemptions.get(&node_id).into_iter().flatten() {
            if let Some(view) = self.snapshot.alloc(stop.alloc_id) {
                usage.remove(&view.alloc.resources);
            }
        }
        for alloc in self.plan.placements.get(&node_id).into_iter().flatten() {
            if self.snapshot.alloc(alloc.id).is_none() {
                usage.add(&alloc.resources);
            }
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
