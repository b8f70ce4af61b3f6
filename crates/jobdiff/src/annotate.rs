//! What the differences do to allocations, in words.

use std::collections::BTreeMap;

use crate::tree::{DiffType, FieldDiff, JobDiff, ObjectDiff, TaskDiff};

const CREATE: &str = "forces create";
const DESTROY: &str = "forces destroy";
const IN_PLACE: &str = "forces in-place update";
const DESTRUCTIVE: &str = "forces create/destroy update";

/// The objects of a task that a running allocation can be given anew. A restart policy is one of
/// them: a group's is its tasks' too, and nothing is started anew for it.
const IN_PLACE_OBJECTS: [&str; 7] = [
    "Affinity",
    "Constraint",
    "DispatchPayload",
    "LogConfig",
    "RestartPolicy",
    "Service",
    "Spread",
];

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

/// Says in a diff what its differences do to allocations: by task group what the scheduler would
/// do, and for each field and task what it forces.
///
/// Source: Nomad's words and rules.
pub fn annotate(diff: &mut JobDiff, updates: &BTreeMap<String, GroupUpdates>) {
    for group in &mut diff.task_groups {
        if let Some(updates) = updates.get(&group.name) {
            group.updates = words(updates);
        }
        annotate_count(&mut group.fields);
        let of_group = group.diff_type;
        for task in &mut group.tasks {
            task.annotations
                .extend(forced(task, of_group).map(str::to_owned));
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

fn forced(task: &TaskDiff, of_group: DiffType) -> Option<&'static str> {
    match (of_group, task.diff_type) {
        (_, DiffType::None) => None,
        (DiffType::Added, _) => Some(CREATE),
        (DiffType::Deleted, _) => Some(DESTROY),
        (_, DiffType::Edited) if may_keep_running(task) => Some(IN_PLACE),
        _ => Some(DESTRUCTIVE),
    }
}

fn may_keep_running(task: &TaskDiff) -> bool {
    let fields = changed(&task.fields).all(|field| field.name == "KillTimeout");
    fields && task.objects.iter().all(may_change_under_way)
}

fn may_change_under_way(object: &ObjectDiff) -> bool {
    let turns_logs_off = || {
        let mut changed = changed(&object.fields);
        object.name == "LogConfig" && changed.any(|field| field.name == "Disabled")
    };
    IN_PLACE_OBJECTS.contains(&object.name.as_str()) && !turns_logs_off()
}

fn changed(fields: &[FieldDiff]) -> impl Iterator<Item = &FieldDiff> {
    let changed = |field: &&FieldDiff| field.diff_type != DiffType::None;
    fields.iter().filter(changed)
}
