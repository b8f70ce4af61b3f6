//! Blocked evaluations, and the capacity gains that unblock them.
//!
//! The scheduler blocks an evaluation on the basis of a snapshot. Capacity gained between that
//! snapshot and now would be missed, so the revisions of gains are remembered and compared.
//! Gains of classes and of nodes are kept apart, because their ids are of different kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{EvalId, JobKey, NodeId, Timestamp};
use rustc_hash::FxHashMap;

use crate::config::CAPACITY_MEMORY;
use crate::event::BlockedOn;

/// Computed class → whether its nodes could take the job.
type Eligibility = BTreeMap<Arc<str>, bool>;

/// A job has one blocked evaluation; a system job one per node.
type Owner = (Arc<JobKey>, Option<NodeId>);

#[derive(Debug, Default)]
pub(crate) struct Blocked {
    tracked: FxHashMap<EvalId, Tracked>,
    by_owner: BTreeMap<Owner, EvalId>,
    /// Grouped by what they know of classes: thousands of evaluations share few groups, and a gain
    /// looks at each group once.
    captured: BTreeMap<Arc<Eligibility>, BTreeSet<EvalId>>,
    escaped: BTreeSet<EvalId>,
    by_node: BTreeMap<NodeId, BTreeSet<EvalId>>,
    after_conflicts: BTreeSet<EvalId>,
    class_gains: FxHashMap<Arc<str>, Gain>,
    node_gains: FxHashMap<NodeId, Gain>,
    /// The highest revision of any gain of a class.
    newest_gain: u64,
    forgot_at: Timestamp,
}

#[derive(Debug)]
struct Tracked {
    owner: Owner,
    /// `None`: escaped.
    eligibility: Option<Arc<Eligibility>>,
    /// How far its scheduler has looked, or how new it is.
    recency: u64,
}

#[derive(Clone, Copy, Debug)]
struct Gain {
    index: u64,
    at: Timestamp,
}

/// What has become of an evaluation that was to be tracked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Tracked,
    /// Capacity came after its snapshot: look again at once.
    Missed,
    /// The job has a newer blocked one.
    Duplicate,
}

impl Blocked {
    /// Tracks an evaluation, unless capacity came meanwhile or the job has a newer one.
    ///
    /// Returns the older evaluation of the job that this one makes needless, if any.
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
        let eligibility = (!on.escaped).then(|| self.shared(on.class_eligibility));
        match &eligibility {
            Some(eligibility) => {
                self.captured
                    .entry(Arc::clone(eligibility))
                    .or_default()
                    .insert(id);
            }
            None => {
                self.escaped.insert(id);
            }
        }
        self.by_owner.insert(owner.clone(), id);
        self.tracked.insert(
            id,
            Tracked {
                owner,
                eligibility,
                recency,
            },
        );
    }

    fn shared(&self, eligibility: Eligibility) -> Arc<Eligibility> {
        match self.captured.get_key_value(&eligibility) {
            Some((shared, _)) => Arc::clone(shared),
            None => Arc::new(eligibility),
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
        on.escaped
            || self
                .class_gains
                .iter()
                .any(|(class, gain)| newer(gain) && on.class_eligibility.get(class) != Some(&false))
    }

    /// Records that a class (and a node) has gained capacity, and removes and returns the evaluations
    /// that it may unblock, ordered by id.
    pub(crate) fn gain(
        &mut self,
        now: Timestamp,
        class: Arc<str>,
        node_id: Option<NodeId>,
        index: u64,
    ) -> BTreeSet<EvalId> {
        self.forget(now);
        self.newest_gain = self.newest_gain.max(index);
        let mut freed = std::mem::take(&mut self.escaped);
        for (eligibility, ids) in &self.captured {
            if eligibility.get(&class) != Some(&false) {
                freed.extend(ids);
            }
        }
        if let Some(node_id) = node_id {
            freed.extend(self.by_node.get(&node_id).into_iter().flatten());
            note(&mut self.node_gains, node_id, Gain { index, at: now });
        }
        note(&mut self.class_gains, class, Gain { index, at: now });
        for id in &freed {
            self.untrack(*id);
        }
        freed
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
        self.node_gains
            .retain(|_, gain| now.since(gain.at) <= CAPACITY_MEMORY);
    }

    /// Returns those that lost too many races, ordered by id. They are not tracked any more.
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

    /// Forgets an evaluation; one that is not tracked is none.
    pub(crate) fn untrack(&mut self, id: EvalId) {
        let Some(tracked) = self.tracked.remove(&id) else {
            return;
        };
        match &tracked.eligibility {
            Some(eligibility) => remove_from(&mut self.captured, eligibility, id),
            None => {
                self.escaped.remove(&id);
            }
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

    pub(crate) fn escaped_len(&self) -> usize {
        self.escaped.len()
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
