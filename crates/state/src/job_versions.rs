//! Pruning of job versions, by every transaction that writes a new one: a registration, and the
//! revert of a failed deployment.
//!
//! A job keeps its newest six versions, among them always the newest stable one as the target of a
//! rollback. Tagged versions are kept in addition, and so is every version that an allocation names.
//! Source: Nomad's public behaviour; its default of `job_tracked_versions`.

use std::collections::BTreeSet;

use model::JobKey;

use crate::entity::Write;
use crate::key::Key;
use crate::snapshot::Snapshot;

/// The number of versions that a job keeps.
pub const KEPT_VERSIONS: usize = 6;

/// The largest number of versions that one transaction prunes. More than one is needed when
/// allocations held many versions for long. Two operations each, so the transaction stays small.
const MAX_PRUNED: usize = 64;

/// Returns the deletions that make room for one more version of a job, and the compares that they
/// rely on.
pub fn prune(snapshot: &Snapshot, key: &JobKey) -> Vec<Write> {
    let versions: Vec<u64> = snapshot
        .job_versions(key)
        .map(|job| job.value.version)
        .filter(|version| snapshot.version_tag(key, *version).is_none())
        .collect();
    let over = (versions.len() + 1).saturating_sub(KEPT_VERSIONS);
    if over == 0 {
        return Vec::new();
    }
    let newest_stable = versions
        .iter()
        .rev()
        .find(|version| snapshot.is_stable(key, **version));
    let needed: BTreeSet<u64> = snapshot
        .allocs_by_job(key)
        .map(|view| view.alloc.job_version)
        .collect();
    let mut writes: Vec<Write> = versions
        .iter()
        .filter(|version| newest_stable != Some(*version))
        .take(over)
        .filter(|version| !needed.contains(version))
        .take(MAX_PRUNED)
        .flat_map(|version| deletions(snapshot, key, *version))
        .collect();
    if !writes.is_empty() {
        // One of them may be tagged at this moment.
        writes.push(tags_unchanged(snapshot, key));
    }
    writes
}

/// Returns the compare of a transaction that relies on the job's tags.
pub fn tags_unchanged(snapshot: &Snapshot, key: &JobKey) -> Write {
    let modify_index = snapshot
        .job_tags(key)
        .map_or(0, |stored| stored.modify_index);
    Write::require(Key::JobTags(key.clone()), modify_index)
}

/// Returns the deletions of one version and of its stable marker. A missing marker is compared: one
/// that is created meanwhile would outlive its version, and mark a later version of that number.
pub fn deletions(snapshot: &Snapshot, key: &JobKey, version: u64) -> Vec<Write> {
    let row = snapshot.job_version(key, version).map(|row| Write::Delete {
        key: Key::JobVersion(key.clone(), version),
        modify_index: row.modify_index,
    });
    let marker = Key::JobStable(key.clone(), version);
    let marker = match snapshot.stable_index(key, version) {
        Some(modify_index) => Write::Delete {
            key: marker,
            modify_index,
        },
        None => Write::RequireAbsent { key: marker },
    };
    row.into_iter().chain([marker]).collect()
}
