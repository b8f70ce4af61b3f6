//! Check of a whole history, revision by revision.

use std::collections::BTreeSet;

use state::{Change, Key, Snapshot, State};

use crate::pace::check_pace;
use crate::snapshot::{check_names, check_node, check_versions};
use crate::transition::check_key;
use crate::violation::Violation;

/// Limit of kept violations: the first ones matter, and a broken history may have millions.
const MOST_VIOLATIONS: usize = 100;

/// Follows a history and checks every revision. Only objects that a revision touches are checked, so
/// the cost is proportional to the changes.
#[derive(Debug, Default)]
pub struct History {
    state: State,
    revisions: u64,
    violations: Vec<Violation>,
}

impl History {
    /// Applies the changes of one revision and checks them.
    ///
    /// # Panics
    /// Panics when `revision` is not after the last one.
    pub fn apply(&mut self, revision: u64, changes: Vec<Change>) {
        let keys: BTreeSet<Key> = changes.iter().map(|change| key(change).clone()).collect();
        let before = self.state.snapshot();
        self.state.apply(revision, changes);
        let after = self.state.snapshot();
        self.revisions += 1;
        let mut found = Vec::new();
        let mut nodes = BTreeSet::new();
        let mut jobs = BTreeSet::new();
        for key in &keys {
            check_key(&before, &after, key, &mut found);
            match key {
                Key::Node(id) => drop(nodes.insert(*id)),
                Key::Alloc(id) | Key::AllocClient(id) => {
                    for view in [before.alloc(*id), after.alloc(*id)].into_iter().flatten() {
                        nodes.insert(view.alloc.node_id);
                        jobs.insert(view.alloc.job_key());
                    }
                }
                Key::Job(job) | Key::JobVersion(job, _) => drop(jobs.insert(job.clone())),
                _ => {}
            }
        }
        check_pace(&before, &after, keys.into_iter(), &mut found);
        for node in nodes {
            check_node(&after, node, &mut found);
        }
        for job in jobs {
            check_names(&after, &job, &mut found);
            check_versions(&after, &job, &mut found);
        }
        let room = MOST_VIOLATIONS.saturating_sub(self.violations.len());
        self.violations.extend(found.into_iter().take(room));
    }

    /// Returns the state as of the last revision applied.
    pub fn snapshot(&self) -> Snapshot {
        self.state.snapshot()
    }

    /// Returns the number of checked revisions.
    pub fn revisions(&self) -> u64 {
        self.revisions
    }

    /// Returns the violations, oldest first, at most a hundred.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
}

fn key(change: &Change) -> &Key {
    match change {
        Change::Put { key, .. } | Change::Delete { key } => key,
    }
}
