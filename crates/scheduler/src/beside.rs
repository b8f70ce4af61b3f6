//! What a plan asks of nodes for allocations that may be beside some of their job's others, and beside
//! which.

use model::job::TaskGroup;
use model::{AllocId, Indexed, Job, NodeId};
use placement::Requirements;
use rustc_hash::FxHashMap;

use crate::generation::Generation;
use crate::planner::Planner;
use crate::rank::{Ask, Neighbour, Preferences};
use crate::reconcile::changes::PlaceAsk;

/// One that the plan has placed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    pub(crate) node_id: NodeId,
    pub(crate) group: &'a str,
    pub(crate) generation: Generation,
}

/// Task group and number → allocations, with their nodes.
pub(crate) type Namesakes<'a> = FxHashMap<(&'a str, u32), Vec<(AllocId, NodeId)>>;

/// Which nodes will do for an allocation of which at most one, with some others, stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Those where it is as distinct as if all stayed.
    Nobody,
    /// Any where it is distinct from who may stay with it.
    WhoParts,
}

impl<'a> Planner<'a> {
    /// Returns what a group asks of nodes for allocations of one generation.
    pub(crate) fn ask<'r>(
        &self,
        job: &Indexed<Job>,
        group: &TaskGroup,
        requirements: &'r Requirements,
        generation: Generation,
        beside: Beside,
    ) -> Ask<'r> {
        let live = self.live().into_iter();
        let live = live.map(|placed| {
            let parts = generation.parts_from(placed.generation);
            Neighbour {
                node_id: placed.node_id,
                is_of_group: placed.group == group.name,
                parts,
                may_share: parts && beside == Beside::WhoParts,
            }
        });
        Ask {
            requirements,
            preferences: Preferences::new(&job.value, group),
            count: group.count,
            algorithm: self.algorithm,
            live: live.collect(),
            claim: self.claim(&job.value),
        }
    }

    /// Returns the node of the old one whose number a canary has, and which makes way for it.
    pub(crate) fn node_of_namesake(&self, group: &str, ask: &PlaceAsk<'a>) -> Option<NodeId> {
        if !ask.is_canary {
            return None;
        }
        // Thousands of canaries may ask: the job's allocations are gone through once.
        let namesakes = self.namesakes.get_or_init(|| self.old());
        let mut namesakes = namesakes
            .get(&(group, ask.name_index))
            .into_iter()
            .flatten();
        let namesake = namesakes.find(|(id, _)| !self.stopped.contains(id));
        namesake.map(|(_, node_id)| *node_id)
    }

    /// Returns those that go if the version that is being tried out stays.
    fn old(&self) -> Namesakes<'a> {
        let mut old = Namesakes::default();
        for view in self.snapshot.allocs_by_job(&self.eval.job) {
            let alloc = &view.alloc;
            if !view.is_terminal() && self.generations.of(alloc.id) == Generation::Old {
                let namesakes = old.entry((&*alloc.task_group, alloc.name_index));
                namesakes.or_default().push((alloc.id, alloc.node_id));
            }
        }
        old
    }

    /// Returns where the job's live allocations are as the plan leaves them.
    fn live(&self) -> Vec<Placed<'a>> {
        let stay = self.snapshot.allocs_by_job(&self.eval.job);
        let stay =
            stay.filter(|view| !view.is_terminal() && !self.stopped.contains(&view.alloc.id));
        let stay = stay.map(|view| Placed {
            node_id: view.alloc.node_id,
            group: &view.alloc.task_group,
            generation: self.generations.of(view.alloc.id),
        });
        stay.chain(self.placed.iter().copied()).collect()
    }
}
