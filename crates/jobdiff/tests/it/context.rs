//! Unchanged fields listed as context, and whole jobs added and deleted.

use jobdiff::{DiffType, FieldDiff, ObjectDiff, diff};

use crate::support::full;

fn object(objects: &[ObjectDiff], name: &str) -> ObjectDiff {
    objects
        .iter()
        .find(|object| object.name == name)
        .unwrap()
        .clone()
}

fn names(fields: &[FieldDiff]) -> Vec<(&str, DiffType)> {
    fields
        .iter()
        .map(|field| (field.name.as_str(), field.diff_type))
        .collect()
}

#[test]
fn with_context_a_changed_block_shows_what_is_the_same_in_it() {
    let (old, mut new) = (full(), full());
    new.task_groups[0].tasks[0].resources.cpu_mhz = 7;
    new.datacenters.push("dc2".to_owned());
    let with = diff(Some(&old), Some(&new), true);
    let task = &with.task_groups[0].tasks[1];
    assert_eq!(
        (task.name.as_str(), task.diff_type),
        ("server", DiffType::Edited)
    );
    assert!(task.fields.is_empty(), "{:?}", task.fields);
    let resources = object(&task.objects, "Resources");
    let expected = [
        ("CPU", DiffType::Edited),
        ("Cores", DiffType::None),
        ("DiskMB", DiffType::None),
        ("IOPS", DiffType::None),
        ("MemoryMB", DiffType::None),
        ("MemoryMaxMB", DiffType::None),
        ("SecretsMB", DiffType::None),
    ];
    assert_eq!(names(&resources.fields), expected);
    let same = &resources.fields[4];
    assert_eq!((same.old.as_str(), same.new.as_str()), ("256", "256"));
    let datacenters = object(&with.objects, "Datacenters");
    let expected = [
        ("Datacenters", DiffType::None),
        ("Datacenters", DiffType::Added),
    ];
    assert_eq!(names(&datacenters.fields), expected);

    let without = diff(Some(&old), Some(&new), false);
    assert_eq!(without.task_groups.len(), 1, "the other group is the same");
    let tasks = &without.task_groups[0].tasks;
    assert_eq!(tasks.len(), 1, "the other task is the same");
    let resources = object(&tasks[0].objects, "Resources");
    assert_eq!(names(&resources.fields), [("CPU", DiffType::Edited)]);
}

#[test]
fn a_new_job_is_added_in_all_its_parts() {
    let job = full();
    let added = diff(None, Some(&job), true);
    assert_eq!(
        (added.diff_type, added.id.as_str()),
        (DiffType::Added, "web")
    );
    assert!(
        added
            .fields
            .iter()
            .all(|field| field.diff_type == DiffType::Added)
    );
    let priority = added
        .fields
        .iter()
        .find(|field| field.name == "Priority")
        .unwrap();
    assert_eq!((priority.old.as_str(), priority.new.as_str()), ("", "50"));
    assert!(added.fields.iter().all(|field| field.name != "ID"));
    assert_eq!(added.task_groups.len(), 2);
    for group in &added.task_groups {
        assert_eq!(group.diff_type, DiffType::Added);
        assert!(
            group
                .objects
                .iter()
                .all(|object| object.diff_type == DiffType::Added)
        );
        assert!(
            group
                .tasks
                .iter()
                .all(|task| task.diff_type == DiffType::Added)
        );
        let network = object(&group.objects, "Network");
        let ports: Vec<&str> = network
            .objects
            .iter()
            .map(|port| port.name.as_str())
            .collect();
        assert_eq!(ports, ["Dynamic Port", "Static Port"]);
        let has_value =
            |object: &ObjectDiff| object.fields.iter().any(|field| field.name == "Value");
        assert!(!has_value(&network.objects[0]) && has_value(&network.objects[1]));
    }
    // Empty values are left out.
    let task = &added.task_groups[0].tasks[0];
    assert!(task.objects.iter().any(|object| object.name == "Lifecycle"));
    assert!(
        added.task_groups[0]
            .fields
            .iter()
            .all(|field| field.name != "MaxRunDuration")
    );
}

#[test]
fn a_deleted_job_is_deleted_in_all_its_parts() {
    let job = full();
    let deleted = diff(Some(&job), None, false);
    assert_eq!(
        (deleted.diff_type, deleted.id.as_str()),
        (DiffType::Deleted, "web")
    );
    let groups = &deleted.task_groups;
    assert_eq!(groups.len(), 2);
    assert!(
        groups
            .iter()
            .all(|group| group.diff_type == DiffType::Deleted)
    );
    let fields = groups.iter().flat_map(|group| &group.fields);
    assert!(fields.into_iter().all(|field| field.new.is_empty()));
}

#[test]
fn no_job_on_either_side_is_no_difference() {
    assert_eq!(diff(None, None, true), jobdiff::JobDiff::default());
}

#[test]
fn an_empty_value_counts_as_absent() {
    let (with, mut without) = (full(), full());
    without.task_groups[0].tasks[0].user = String::new();
    let user = |old, new| {
        let diff = diff(Some(old), Some(new), true);
        let [user] = &diff.task_groups[0].tasks[1].fields[..] else {
            panic!("{diff:?}")
        };
        (user.name.clone(), user.diff_type)
    };
    assert_eq!(
        user(&with, &without),
        ("User".to_owned(), DiffType::Deleted)
    );
    assert_eq!(user(&without, &with), ("User".to_owned(), DiffType::Added));
    let added = diff(None, Some(&without), true);
    let fields = &added.task_groups[0].tasks[1].fields;
    assert!(
        fields.iter().all(|field| field.name != "User"),
        "{fields:?}"
    );
}
