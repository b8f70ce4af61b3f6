//! `distinct_property` of system and sysbatch jobs: limits placements by value.

use std::collections::BTreeSet;

use model::{AllocId, AllocMetric, NodeId};
use placement::distinct::PropertyUse;
use placement::{Level, Requirements};
use state::Snapshot;

use crate::reconcile::context::Context;
use crate::system::changes::NodeAsk;

/// The changes of earlier groups: constraints of the job count them.
#[derive(Debug, Default)]
pub(super) struct EarlierGroups {
    pub(super) stopped: BTreeSet<AllocId>,
    pub(super) placed: Vec<NodeId>,
}

/// Keeps the placements of `missing`, in order, that the property limits allow beside the
/// allocations that stay; the others are counted in `filtered`.
///
/// `stopped` are the group's own allocations that do not stay. Nothing waits for a freed value: the
/// change that frees one evaluates the job, which checks every node.
pub(super) fn limit<'a>(
    context: &Context<'a>,
    group: &str,
    requirements: &'a Requirements,
    earlier: &EarlierGroups,
    stopped: &BTreeSet<AllocId>,
    missing: Vec<NodeAsk<'a>>,
    filtered: &mut AllocMetric,
) -> Vec<NodeAsk<'a>> {
    let rules = &requirements.distinct_properties;
    if rules.is_empty() {
        return missing;
    }
    let snapshot: &Snapshot = context.snapshot;
    let mut uses: Vec<_> = rules.iter().map(PropertyUse::new).collect();
    let live = snapshot.allocs_by_job(context.key).filter(|view| {
        let id = &view.alloc.id;
        !view.is_terminal() && !stopped.contains(id) && !earlier.stopped.contains(id)
    });
    let live = live.map(|view| (view.alloc.node_id, *view.alloc.task_group == *group));
    let placed = earlier.placed.iter().map(|node_id| (*node_id, false));
    for (node_id, is_of_group) in live.chain(placed) {
        let Some(node) = snapshot.node(node_id) else {
            continue;
        };
        let counting = uses.iter_mut();
        for property in counting.filter(|one| is_of_group || one.level() == Level::Job) {
            property.add(&node.value);
        }
    }
    let mut kept = Vec::with_capacity(missing.len());
    for ask in missing {
        let Some(node) = snapshot.node(ask.node_id) else {
            continue;
        };
        let ruled_out = uses.iter().find_map(|one| one.check(&node.value).err());
        if let Some(reason) = ruled_out {
            filtered.nodes_filtered += 1;
            *filtered.constraint_filtered.entry(reason).or_insert(0) += 1;
            let class = &node.value.node_class;
            if !class.is_empty() {
                *filtered.class_filtered.entry(class.clone()).or_insert(0) += 1;
            }
            continue;
        }
        for property in &mut uses {
            property.add(&node.value);
        }
        kept.push(ask);
    }
    kept
}
