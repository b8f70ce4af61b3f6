//! Separation of a job's allocations by distinctness constraints while a version is tried out.

use model::job::TaskGroup;
use model::{AllocId, Indexed, Job, NodeId};
use placement::Requirements;
use rustc_hash::FxHashMap;

use crate::draft::{Draft, Placed};
use crate::generation::Generation;
use crate::inputs::Inputs;
use crate::rank::ask::{Ask, JobAllocation};
use crate::rank::preferences::Preferences;
use crate::reconcile::changes::PlaceAsk;

/// The allocations of a job from which a placement has to be distinct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separation {
    /// All of them.
    Full,
    /// All that may stay beside it: a canary and an outgoing allocation may share a node or a property
    /// value, because only one of the two survives the rollout.
    AllowOutgoing,
}

/// Returns a group's requirements of nodes for allocations of one generation.
pub(crate) fn ask<'r>(
    inputs: &Inputs<'_>,
    draft: &Draft<'_>,
    job: &Indexed<Job>,
    group: &TaskGroup,
    requirements: &'r Requirements,
    generation: Generation,
    separation: Separation,
) -> Ask<'r> {
    let live = live(inputs, draft).map(|placed| {
        let is_alternative = generation.is_alternative_to(placed.generation);
        JobAllocation {
            node_id: placed.node_id,
            is_of_group: placed.group == group.name,
            is_alternative,
            may_share: is_alternative && separation == Separation::AllowOutgoing,
        }
    });
    Ask {
        requirements,
        preferences: Preferences::new(&job.value, group),
        count: group.count,
        algorithm: inputs.algorithm,
        live: live.collect(),
        preemptor: inputs.preemptor(&job.value),
    }
}

/// Returns the job's live allocations as the draft leaves them.
fn live<'d, 'a: 'd>(
    inputs: &Inputs<'a>,
    draft: &'d Draft<'a>,
) -> impl Iterator<Item = Placed<'a>> + 'd {
    let stay = inputs.snapshot.allocs_by_job(&inputs.eval.job);
    let stay = stay.filter(|view| !view.is_terminal() && !draft.is_stopped(view.alloc.id));
    let stay = stay.map(|view| Placed {
        node_id: view.alloc.node_id,
        group: &view.alloc.task_group,
        generation: draft.generations().of(view.alloc.id),
    });
    stay.chain(draft.placed().iter().copied())
}

/// The outgoing allocations of a job, by task group and name index, with their nodes.
#[derive(Debug)]
pub(crate) struct OutgoingByName<'a>(FxHashMap<(&'a str, u32), Vec<(AllocId, NodeId)>>);

impl<'a> OutgoingByName<'a> {
    pub(crate) fn new(inputs: &Inputs<'a>, draft: &Draft<'a>) -> Self {
        let mut by_name = FxHashMap::<_, Vec<_>>::default();
        for view in inputs.snapshot.allocs_by_job(&inputs.eval.job) {
            let alloc = &view.alloc;
            if !view.is_terminal() && draft.generations().of(alloc.id) == Generation::Outgoing {
                let namesakes = by_name.entry((&*alloc.task_group, alloc.name_index));
                namesakes.or_default().push((alloc.id, alloc.node_id));
            }
        }
        Self(by_name)
    }

    /// Returns the node of the outgoing allocation that a canary replaces when it is promoted: the one
    /// with its name index.
    pub(crate) fn node_of_namesake(
        &self,
        draft: &Draft<'_>,
        group: &str,
        ask: &PlaceAsk<'_>,
    ) -> Option<NodeId> {
        let namesakes = self.0.get(&(group, ask.name_index)).into_iter();
        let mut namesakes = namesakes.flatten();
        let namesake = namesakes.find(|(id, _)| !draft.is_stopped(*id));
        namesake.map(|(_, node_id)| *node_id)
    }
}
