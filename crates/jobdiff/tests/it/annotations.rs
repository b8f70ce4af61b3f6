//! Annotations: the effects of differences on allocations.

use std::collections::BTreeMap;

use jobdiff::{GroupUpdates, JobDiff, TaskDiff, annotate, diff};
use model::consul::Consul;
use model::{Job, Task};

use crate::support::full;

const DESTRUCTIVE: &str = "forces create/destroy update";
const IN_PLACE: &str = "forces in-place update";

fn annotated(edit: impl FnOnce(&mut Job)) -> JobDiff {
    let (old, mut new) = (full(), full());
    edit(&mut new);
    let mut diff = diff(Some(&old), Some(&new), true);
    annotate(&mut diff, Some(&old), Some(&new), &BTreeMap::new());
    diff
}

fn task<'a>(diff: &'a JobDiff, name: &str) -> &'a TaskDiff {
    let tasks = &diff.task_groups[0].tasks;
    tasks.iter().find(|task| task.name == name).unwrap()
}

fn in_consul(namespace: &str) -> Consul {
    Consul {
        cluster: Consul::DEFAULT_CLUSTER.into(),
        namespace: namespace.into(),
        partition: String::new(),
    }
}

#[test]
fn a_changed_count_forces_creations_or_destructions() {
    for (count, expected) in [(3, vec!["forces create"]), (1, vec!["forces destroy"])] {
        let diff = annotated(|job| job.task_groups[0].count = count);
        let field = &diff.task_groups[0].fields[0];
        assert_eq!(field.name, "Count");
        assert_eq!(field.annotations, expected);
    }
}

#[test]
fn a_new_group_with_count_zero_forces_nothing() {
    let mut job = full();
    job.task_groups[0].count = 0;
    let mut added = diff(None, Some(&job), true);
    annotate(&mut added, None, Some(&job), &BTreeMap::new());
    let of = |group: usize| {
        let fields = &added.task_groups[group].fields;
        let count = fields.iter().find(|field| field.name == "Count").unwrap();
        (count.new.as_str(), count.annotations.concat())
    };
    assert_eq!(of(0), ("0", String::new()));
    assert_eq!(of(1), ("2", "forces create".to_owned()));
}

#[test]
fn a_changed_task_is_updated_in_place_or_replaced() {
    type Edit = fn(&mut Task);
    let table: &[(Edit, &str)] = &[
        (
            |task| task.kill_timeout = std::time::Duration::ZERO,
            IN_PLACE,
        ),
        (|task| task.constraints.clear(), IN_PLACE),
        (|task| task.affinities.clear(), IN_PLACE),
        (|task| task.logs.max_files = 1, IN_PLACE),
        (|task| task.restart.attempts = 7, IN_PLACE),
        (
            |task| {
                task.logs.max_files = 1;
                task.kill_timeout = std::time::Duration::ZERO;
            },
            IN_PLACE,
        ),
        (|task| task.leader = !task.leader, IN_PLACE),
        (
            |task| task.shutdown_delay += std::time::Duration::from_secs(1),
            IN_PLACE,
        ),
        (|task| task.kill_signal = "SIGUSR1".into(), IN_PLACE),
        (|task| task.logs.disabled = true, DESTRUCTIVE),
        (
            |task| drop(task.env.insert("A".into(), "b".into())),
            DESTRUCTIVE,
        ),
        (|task| task.driver = "raw_exec".into(), DESTRUCTIVE),
        (|task| task.resources.cpu_mhz = 7, DESTRUCTIVE),
        (|task| task.config.clear(), DESTRUCTIVE),
        (|task| task.consul = Some(in_consul("")), IN_PLACE),
        (|task| task.consul = Some(in_consul("a")), DESTRUCTIVE),
        (
            |task| {
                task.kill_timeout = std::time::Duration::ZERO;
                task.user = "root".into();
            },
            DESTRUCTIVE,
        ),
    ];
    for (number, (edit, expected)) in table.iter().enumerate() {
        let diff = annotated(|job| edit(&mut job.task_groups[0].tasks[0]));
        assert_eq!(task(&diff, "server").annotations, [*expected], "{number}");
        assert!(task(&diff, "init").annotations.is_empty(), "{number}");
    }
}

/// The scheduler and the annotations share one rule.
#[test]
fn changes_around_a_task_count_as_they_do_for_the_scheduler() {
    type Edit = fn(&mut Job);
    let table: &[(Edit, Option<&str>)] = &[
        (
            |job| drop(job.meta.insert("a".into(), "b".into())),
            Some(DESTRUCTIVE),
        ),
        (
            |job| drop(job.task_groups[0].meta.insert("a".into(), "b".into())),
            Some(DESTRUCTIVE),
        ),
        (|job| job.task_groups[0].networks.clear(), Some(DESTRUCTIVE)),
        (
            |job| job.task_groups[0].ephemeral_disk.size_mib += 1,
            Some(DESTRUCTIVE),
        ),
        (
            |job| job.task_groups[0].consul = Some(in_consul("a")),
            Some(DESTRUCTIVE),
        ),
        (|job| job.task_groups[0].consul = Some(in_consul("")), None),
        (|job| job.priority = 80, None),
        (|job| job.task_groups[0].count += 1, None),
        (|job| job.task_groups[0].constraints.clear(), None),
    ];
    for (number, (edit, expected)) in table.iter().enumerate() {
        let (old, mut new) = (full(), full());
        edit(&mut new);
        let diff = annotated(edit);
        for name in ["server", "init"] {
            let said = task(&diff, name).annotations.first();
            assert_eq!(said.map(String::as_str), *expected, "{number} {name}");
        }
        let group = &new.task_groups[0];
        let is_destructive = model::needs_new_tasks(&old, &new, group);
        assert_eq!(is_destructive, expected.is_some(), "{number}");
    }
}

#[test]
fn tasks_are_added_and_deleted_with_their_group_or_within_it() {
    let diff = annotated(|job| job.task_groups[0].tasks[0].name = "main".into());
    assert_eq!(task(&diff, "main").annotations, [DESTRUCTIVE]);
    assert_eq!(task(&diff, "server").annotations, [DESTRUCTIVE]);

    let diff = annotated(|job| job.task_groups[0].name = "other".into());
    let all: Vec<_> = diff
        .task_groups
        .iter()
        .map(|group| (group.name.as_str(), group.tasks[0].annotations.concat()))
        .collect();
    let expected = [
        ("app", "forces destroy".to_owned()),
        ("db", String::new()),
        ("other", "forces create".to_owned()),
    ];
    assert_eq!(all, expected);
    let counts = diff.task_groups.iter().map(|group| {
        let count = group.fields.iter().find(|field| field.name == "Count");
        count.map_or(String::new(), |count| count.annotations.concat())
    });
    let expected = ["forces destroy", "", "forces create"];
    assert_eq!(counts.collect::<Vec<_>>(), expected);
}

#[test]
fn updates_have_a_word_each_and_no_zeros() {
    let mut all = diff(Some(&full()), Some(&full()), true);
    let every = GroupUpdates {
        ignore: 1,
        place: 2,
        migrate: 3,
        stop: 4,
        in_place_update: 5,
        destructive_update: 6,
        canary: 7,
        preemptions: 8,
        disconnect: 9,
        reconnect: 10,
        reschedule_now: 11,
        reschedule_later: 12,
    };
    let none = GroupUpdates::default();
    let updates = [("app", every), ("db", none), ("gone", every)];
    let updates = updates.map(|(name, updates)| (name.to_owned(), updates));
    annotate(&mut all, Some(&full()), Some(&full()), &updates.into());
    let words: Vec<(&str, u64)> = all.task_groups[0]
        .updates
        .iter()
        .map(|(word, count)| (word.as_str(), *count))
        .collect();
    let expected = [
        ("canary", 7),
        ("create", 2),
        ("create/destroy update", 6),
        ("destroy", 4),
        ("ignore", 1),
        ("in-place update", 5),
        ("migrate", 3),
    ];
    assert_eq!(words, expected);
    assert!(all.task_groups[1].updates.is_empty());
}
