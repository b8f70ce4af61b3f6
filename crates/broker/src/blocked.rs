//! Blocked evaluations, and the capacity gains that unblock them.
//!
//! The scheduler blocks an evaluation on the basis of a snapshot. Capacity gained between that
//! snapshot and now would be missed, so the revisions of gains are remembered and compared.
//! Gains of classes and of nodes are kept apart, because their ids are of different kinds.
//! A gain unblocks only evaluations that may fit into the node's free capacity ([`crate::free_capacity`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{EvalId, JobKey, NodeId, Timestamp};
use rustc_hash::FxHashMap;

use crate::config::CAPACITY_MEMORY;
use crate::event::BlockedOn;
use crate::free_capacity::{Asks, FreeCapacity};

/// Computed class → whether its nodes could take the job.
type Eligibility = BTreeMap<Arc<str>, bool>;

/// The needs that the evaluations of one group share.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Needs {
    eligibility: Eligibility,
    asks: Option<Asks>,
}

/// The revision of a gain, its node and its class.
type GainKey = (u64, Option<NodeId>, Arc<str>);

#[derive(Debug)]
struct ClassGain {
    free: FreeCapacity,
    at: Timestamp,
}

/// A job has one blocked evaluation; a system job one per node.
type Owner = (Arc<JobKey>, Option<NodeId>);

#[derive(Debug, Default)]
pub(crate) struct Blocked {
    tracked: FxHashMap<EvalId, Tracked>,
    by_owner: BTreeMap<Owner, EvalId>,
    /// Grouped by known eligibility of classes and by requested resources: thousands of evaluations
    /// share few groups, and a gain checks each group once.
    by_class: BTreeMap<Arc<Needs>, BTreeSet<EvalId>>,
    /// Evaluations that capacity of any class may help (Nomad: escaped), by requested resources.
    any_class: BTreeMap<Option<Asks>, BTreeSet<EvalId>>,
    by_node: BTreeMap<NodeId, BTreeSet<EvalId>>,
    after_conflicts: BTreeSet<EvalId>,
    /// By revision; of each node only the newest gain, because it includes earlier ones.
    class_gains: BTreeMap<GainKey, ClassGain>,
    /// The newest gain of each node in `class_gains`.
    newest_of_node: FxHashMap<NodeId, GainKey>,
    node_gains: FxHashMap<NodeId, Gain>,
    /// The highest revision of any gain of a class.
    newest_gain: u64,
    forgot_at: Timestamp,
}

#[derive(Debug)]
struct Tracked {
    owner: Owner,
    group: Group,
    /// The index of its scheduler's snapshot, or its create index if that is higher.
    recency: u64,
}

/// The group that an evaluation is in.
#[derive(Debug)]
enum Group {
    ByClass(Arc<Needs>),
    AnyClass(Option<Asks>),
}

#[derive(Clone, Copy, Debug)]
struct Gain {
    index: u64,
    at: Timestamp,
}

/// The outcome of [`Blocked::block`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Tracked,
    /// Capacity came after its snapshot: schedule it again at once.
    Missed,
    /// The job has a newer blocked evaluation.
    Duplicate,
}

impl Blocked {
    /// Tracks an evaluation, unless capacity came meanwhile or the job has a newer one.
    ///
    /// Returns the older blocked evaluation of the job that this one supersedes, if any.
    pub(crate) fn block(
        &mut self,
        id: EvalId,
        job: &Arc<JobKey>,
        create_index: u64,
        on: BlockedOn,
    ) -> (Verdict, Option<EvalId>) {
        let owner = (Arc::clone(job), on.node_id);
        let recency = create_index.max(on.snapshot_index);
        let older = self.by_owner.get(&owner).copied();
        if let Some(older) = older {
            if self.tracked[&older].recency > recency {
                return (Verdict::Duplicate, None);
            }
            self.untrack(older);
        }
        if self.missed(&on) {
            return (Verdict::Missed, older);
        }
        self.track(id, owner, recency, on);
        (Verdict::Tracked, older)
    }

    fn track(&mut self, id: EvalId, owner: Owner, recency: u64, on: BlockedOn) {
        if let Some(node_id) = on.node_id {
            self.by_node.entry(node_id).or_default().insert(id);
        }
        if on.after_conflicts {
            self.after_conflicts.insert(id);
        }
        let group = if on.escaped {
            self.any_class
                .entry(on.asks.clone())
                .or_default()
                .insert(id);
            Group::AnyClass(on.asks)
        } else {
            let needs = self.shared(Needs {
                eligibility: on.class_eligibility,
                asks: on.asks,
            });
            self.by_class
                .entry(Arc::clone(&needs))
                .or_default()
                .insert(id);
            Group::ByClass(needs)
        };
        self.by_owner.insert(owner.clone(), id);
        self.tracked.insert(
            id,
            Tracked {
                owner,
                group,
                recency,
            },
        );
    }

    fn shared(&self, needs: Needs) -> Arc<Needs> {
        match self.by_class.get_key_value(&needs) {
            Some((shared, _)) => Arc::clone(shared),
            None => Arc::new(needs),
        }
    }

    /// Tells whether capacity that may help came after the evaluation's snapshot.
    fn missed(&self, on: &BlockedOn) -> bool {
        let newer = |gain: &Gain| gain.index > on.snapshot_index;
        if on
            .node_id
            .and_then(|id| self.node_gains.get(&id))
            .is_some_and(newer)
        {
            return true;
        }
        if self.newest_gain <= on.snapshot_index {
            return false;
        }
        let after = (on.snapshot_index.saturating_add(1), None, Arc::from(""));
        let mut newer = self.class_gains.range(after..);
        newer.any(|((_, _, class), gain)| {
            (on.escaped || on.class_eligibility.get(class) != Some(&false))
                && gain.free.may_take(on.asks.as_ref())
        })
    }

    /// Records that a class (and a node) has gained capacity, and removes and returns the evaluations
    /// that it may unblock, ordered by id.
    pub(crate) fn gain(
        &mut self,
        now: Timestamp,
        class: Arc<str>,
        node_id: Option<NodeId>,
        free: FreeCapacity,
        index: u64,
    ) -> BTreeSet<EvalId> {
        self.forget(now);
        self.newest_gain = self.newest_gain.max(index);
        let mut freed = BTreeSet::new();
        for (asks, ids) in &self.any_class {
            if free.may_take(asks.as_ref()) {
                freed.extend(ids);
            }
        }
        for (needs, ids) in &self.by_class {
            let is_eligible = needs.eligibility.get(&class) != Some(&false);
            if is_eligible && free.may_take(needs.asks.as_ref()) {
                freed.extend(ids);
            }
        }
        if let Some(node_id) = node_id {
            freed.extend(self.by_node.get(&node_id).into_iter().flatten());
            note(&mut self.node_gains, node_id, Gain { index, at: now });
        }
        self.note_of_class((index, node_id, class), ClassGain { free, at: now });
        for id in &freed {
            self.untrack(*id);
        }
        freed
    }

    fn note_of_class(&mut self, key: GainKey, gain: ClassGain) {
        if let Some(node_id) = key.1 {
            if let Some(newest) = self.newest_of_node.get(&node_id) {
                if newest.0 > key.0 {
                    return;
                }
                self.class_gains.remove(newest);
            }
            self.newest_of_node.insert(node_id, key.clone());
        }
        self.class_gains.insert(key, gain);
    }

    /// Forgets gains that no snapshot in use can be older than.
    fn forget(&mut self, now: Timestamp) {
        // A third of the memory: gains are looked through a few times in their life.
        if now.since(self.forgot_at) < CAPACITY_MEMORY / 3 {
            return;
        }
        self.forgot_at = now;
        self.class_gains
            .retain(|_, gain| now.since(gain.at) <= CAPACITY_MEMORY);
        self.newest_of_node
            .retain(|_, key| self.class_gains.contains_key(key));
        self.node_gains
            .retain(|_, gain| now.since(gain.at) <= CAPACITY_MEMORY);
    }

    /// Removes and returns the evaluations that lost too many placement races, ordered by id.
    pub(crate) fn take_after_conflicts(&mut self) -> BTreeSet<EvalId> {
        let ids = std::mem::take(&mut self.after_conflicts);
        for id in &ids {
            self.untrack(*id);
        }
        ids
    }

    pub(crate) fn has_after_conflicts(&self) -> bool {
        !self.after_conflicts.is_empty()
    }

    /// Returns a job's blocked evaluations: one, or one a node.
    pub(crate) fn of_job(&self, job: &Arc<JobKey>) -> Vec<EvalId> {
        // `None` orders before every node.
        self.by_owner
            .range((Arc::clone(job), None)..)
            .take_while(|((other, _), _)| other == job)
            .map(|(_, id)| *id)
            .collect()
    }

    /// Removes an evaluation, if it is tracked.
    pub(crate) fn untrack(&mut self, id: EvalId) {
        let Some(tracked) = self.tracked.remove(&id) else {
            return;
        };
        match &tracked.group {
            Group::ByClass(needs) => remove_from(&mut self.by_class, needs, id),
            Group::AnyClass(asks) => remove_from(&mut self.any_class, asks, id),
        }
        if let Some(node_id) = tracked.owner.1 {
            remove_from(&mut self.by_node, &node_id, id);
        }
        self.after_conflicts.remove(&id);
        self.by_owner.remove(&tracked.owner);
    }

    pub(crate) fn len(&self) -> usize {
        self.tracked.len()
    }

    pub(crate) fn contains(&self, id: EvalId) -> bool {
        self.tracked.contains_key(&id)
    }

    pub(crate) fn any_class_len(&self) -> usize {
        self.any_class.values().map(BTreeSet::len).sum()
    }
}

fn note<K: Eq + std::hash::Hash>(gains: &mut FxHashMap<K, Gain>, key: K, gain: Gain) {
    let known = gains.entry(key).or_insert(gain);
    if gain.index >= known.index {
        *known = gain;
    }
}

fn remove_from<K: Ord>(groups: &mut BTreeMap<K, BTreeSet<EvalId>>, key: &K, id: EvalId) {
    if let Some(group) = groups.get_mut(key) {
        group.remove(&id);
        if group.is_empty() {
            groups.remove(key);
        }
    }
}
