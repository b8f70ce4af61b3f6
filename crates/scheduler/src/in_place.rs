//! In-place updates: whether an allocation can take the job's new version on its node while its
//! tasks run.
//!
//! In-place updates never change amounts or ports (such updates are destructive), so only
//! feasibility is checked.

use std::collections::{BTreeMap, BTreeSet};

use model::job::TaskGroup;
use model::{AllocId, JobKey, Node};
use placement::distinct::PropertyUse;
use placement::{Feasibility, Level, Requirements};
use rustc_hash::FxHashMap;
use state::{AllocView, Snapshot};

/// Checks in-place updates, with a cache per group.
pub(crate) struct InPlace<'a> {
    snapshot: &'a Snapshot,
    key: &'a JobKey,
    requirements: &'a BTreeMap<String, Requirements>,
    /// Allocations that will be stopped anyway, though perhaps not now: distinctness does not count
    /// them.
    leaving: BTreeSet<AllocId>,
    groups: FxHashMap<&'a str, Group<'a>>,
}

struct Group<'a> {
    requirements: &'a Requirements,
    feasibility: Feasibility<'a>,
    properties: Vec<PropertyUse<'a>>,
}

impl<'a> InPlace<'a> {
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        key: &'a JobKey,
        requirements: &'a BTreeMap<String, Requirements>,
        leaving: BTreeSet<AllocId>,
    ) -> Self {
        Self {
            snapshot,
            key,
            requirements,
            leaving,
            groups: FxHashMap::default(),
        }
    }

    /// Tells whether `view`'s node satisfies the current job, schedulable or not.
    pub(crate) fn can_stay(&mut self, group: &'a TaskGroup, view: &AllocView) -> bool {
        let snapshot = self.snapshot;
        let Some(node) = snapshot.node(view.alloc.node_id).map(|node| &node.value) else {
            return false;
        };
        if !self.groups.contains_key(group.name.as_str()) {
            let Some(asked) = self.group(group) else {
                return false;
            };
            self.groups.insert(&group.name, asked);
        }
        let Some(asked) = self.groups.get_mut(group.name.as_str()) else {
            return false;
        };
        asked.requirements.scope.contains(node)
            && asked.feasibility.check(node).is_ok()
            && asked.requirements.volumes.pass(node, view.alloc.name_index)
            && !shares_host(snapshot, self.key, asked.requirements, &self.leaving, view)
            && passes_properties(&mut asked.properties, node)
    }

    fn group(&self, group: &'a TaskGroup) -> Option<Group<'a>> {
        let requirements = self.requirements.get(&group.name)?;
        let mut properties: Vec<_> = requirements
            .distinct_properties
            .iter()
            .map(PropertyUse::new)
            .collect();
        if !properties.is_empty() {
            for view in self
                .snapshot
                .allocs_by_job(self.key)
                .filter(|view| !view.is_terminal() && !self.leaving.contains(&view.alloc.id))
            {
                let Some(node) = self.snapshot.node(view.alloc.node_id) else {
                    continue;
                };
                for property in &mut properties {
                    if counts(property.level(), &group.name, view) {
                        property.add(&node.value);
                    }
                }
            }
        }
        Some(Group {
            requirements,
            feasibility: Feasibility::new(requirements),
            properties,
        })
    }
}

/// Tells whether a constraint of `level` in `group` counts `view`, which is of the same job.
pub(crate) fn counts(level: Level, group: &str, view: &AllocView) -> bool {
    level == Level::Job || *view.alloc.task_group == *group
}

fn shares_host(
    snapshot: &Snapshot,
    key: &JobKey,
    requirements: &Requirements,
    leaving: &BTreeSet<AllocId>,
    view: &AllocView,
) -> bool {
    let Some(distinct) = requirements.distinct_hosts else {
        return false;
    };
    snapshot.allocs_by_node(view.alloc.node_id).any(|other| {
        other.alloc.id != view.alloc.id
            && !other.is_terminal()
            && !leaving.contains(&other.alloc.id)
            && other.alloc.job_id == key.job_id
            && other.alloc.namespace == key.namespace
            && counts(distinct.level, &view.alloc.task_group, other)
    })
}

/// Checks `node` as if the allocation on it, which is counted, were placed again.
fn passes_properties(properties: &mut [PropertyUse<'_>], node: &Node) -> bool {
    let mut passes = true;
    for property in properties {
        property.remove(node);
        passes &= property.check(node).is_ok();
        property.add(node);
    }
    passes
}
