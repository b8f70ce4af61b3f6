//! What the differences do to allocations, in words.

use std::collections::BTreeMap;

use model::{Job, TaskGroup, changes_surroundings, restarts_task};

use crate::tree::{DiffType, FieldDiff, JobDiff, TaskDiff};

const CREATE: &str = "forces create";
const DESTROY: &str = "forces destroy";
const IN_PLACE: &str = "forces in-place update";
const DESTRUCTIVE: &str = "forces create/destroy update";

/// How many allocations of a task group the scheduler would do something about.
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

/// Says in the diff of `old` and `new` what the differences do to allocations: by task group what
/// the scheduler would do, and for each field and task what it forces.
///
/// A task that is as it was is told of if what is around it forces something.
///
/// Source: Nomad's words; the rule is the scheduler's own.
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
        // What was added or deleted has no other side.
        let number = |text: &str| text.parse::<u64>().unwrap_or(0);
        let (old, new) = (number(&field.old), number(&field.new));
        if new > old {
            field.annotations.push(CREATE.to_owned());
        } else if new < old {
            field.annotations.push(DESTROY.to_owned());
        }
    }
}

/// Returns what becomes of a task: what its own difference forces, or what differs around it.
fn forced(task: &TaskDiff, of_group: DiffType, sides: &Sides<'_>) -> Option<&'static str> {
    match (of_group, task.diff_type) {
        (DiffType::Added, _) => Some(CREATE),
        (DiffType::Deleted, _) => Some(DESTROY),
        (_, DiffType::Added | DiffType::Deleted) => Some(DESTRUCTIVE),
        (_, _) if sides.start_anew(&task.name) => Some(DESTRUCTIVE),
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

    /// Asks what the scheduler asks of allocations: whether the task has to be started anew.
    fn start_anew(&self, task: &str) -> bool {
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
