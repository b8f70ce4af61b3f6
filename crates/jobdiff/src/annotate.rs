//! Annotations: the effects of differences on allocations.

use std::collections::BTreeMap;

use model::{Job, TaskGroup, changes_surroundings, restarts_task};

use crate::tree::{DiffType, FieldDiff, JobDiff, TaskDiff};

const CREATE: &str = "forces create";
const DESTROY: &str = "forces destroy";
const IN_PLACE: &str = "forces in-place update";
const DESTRUCTIVE: &str = "forces create/destroy update";

/// Numbers of allocations of a task group by the scheduler's decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupUpdates {
    pub ignore: u64,
    pub place: u64,
    pub migrate: u64,
    pub stop: u64,
    pub in_place_update: u64,
    pub destructive_update: u64,
    pub canary: u64,
    pub preemptions: u64,
    pub disconnect: u64,
    pub reconnect: u64,
    pub reschedule_now: u64,
    pub reschedule_later: u64,
}

/// Adds to the diff of `old` and `new` the effects on allocations: the scheduler's updates to each
/// task group, and the effect of each changed count and task.
///
/// An unchanged task is annotated too, if a change of its job or group replaces it.
///
/// Source: Nomad's words. The rule is the scheduler's own; Nomad's annotations go by field names and
/// call changes of `kill_signal`, `leader` and `logs` destructive, which its scheduler makes in place.
pub fn annotate(
    diff: &mut JobDiff,
    old: Option<&Job>,
    new: Option<&Job>,
    updates: &BTreeMap<String, GroupUpdates>,
) {
    for group in &mut diff.task_groups {
        if let Some(updates) = updates.get(&group.name) {
            group.updates = words(updates);
        }
        annotate_count(&mut group.fields);
        let of_group = group.diff_type;
        let sides = Sides::of(old, new, &group.name);
        for task in &mut group.tasks {
            let forced = forced(task, of_group, &sides);
            task.annotations.extend(forced.map(str::to_owned));
        }
    }
}

fn words(updates: &GroupUpdates) -> BTreeMap<String, u64> {
    let counts = [
        ("ignore", updates.ignore),
        ("create", updates.place),
        ("destroy", updates.stop),
        ("migrate", updates.migrate),
        ("canary", updates.canary),
        ("in-place update", updates.in_place_update),
        ("create/destroy update", updates.destructive_update),
    ];
    let some = counts.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(word, count)| (word.to_owned(), count)).collect()
}

fn annotate_count(fields: &mut [FieldDiff]) {
    for field in fields.iter_mut().filter(|field| field.name == "Count") {
        // An added or deleted count has no other side.
        let number = |text: &str| text.parse::<u64>().unwrap_or(0);
        let (old, new) = (number(&field.old), number(&field.new));
        if new > old {
            field.annotations.push(CREATE.to_owned());
        } else if new < old {
            field.annotations.push(DESTROY.to_owned());
        }
    }
}

/// Returns the effect of a change of a task, or of its job and group.
fn forced(task: &TaskDiff, of_group: DiffType, sides: &Sides<'_>) -> Option<&'static str> {
    match (of_group, task.diff_type) {
        (DiffType::Added, _) => Some(CREATE),
        (DiffType::Deleted, _) => Some(DESTROY),
        (_, DiffType::Added | DiffType::Deleted) => Some(DESTRUCTIVE),
        (_, _) if sides.is_replaced(&task.name) => Some(DESTRUCTIVE),
        (_, DiffType::None) => None,
        (_, DiffType::Edited) => Some(IN_PLACE),
    }
}

/// A group in both versions of its job.
struct Sides<'a> {
    old: Option<(&'a Job, &'a TaskGroup)>,
    new: Option<(&'a Job, &'a TaskGroup)>,
}

impl<'a> Sides<'a> {
    fn of(old: Option<&'a Job>, new: Option<&'a Job>, group: &str) -> Self {
        let side = |job: Option<&'a Job>| job.and_then(|job| Some((job, job.task_group(group)?)));
        Self {
            old: side(old),
            new: side(new),
        }
    }

    /// Reports whether the scheduler replaces the task's allocation.
    fn is_replaced(&self, task: &str) -> bool {
        let (Some((old_job, old)), Some((new_job, new))) = (self.old, self.new) else {
            return false;
        };
        let (Some(old_task), Some(new_task)) = (old.task(task), new.task(task)) else {
            return true;
        };
        changes_surroundings(old, new)
            || restarts_task((old_job, old, old_task), (new_job, new, new_task))
    }
}
