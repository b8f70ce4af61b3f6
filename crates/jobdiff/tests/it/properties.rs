//! Properties of the diff of any two jobs.

use jobdiff::{DiffType, diff};
use model::Job;
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::edits::{EDITS, Edit};
use crate::support::{changes, full};

fn edited(edits: &[Edit]) -> Job {
    let mut job = full();
    for (edit, _) in edits {
        edit(&mut job);
    }
    job
}

fn some_edits() -> impl Strategy<Value = Vec<Edit>> {
    subsequence(EDITS, 0..=EDITS.len())
}

proptest! {
    #[test]
    fn a_job_does_not_differ_from_itself(edits in some_edits(), contextual: bool) {
        let job = edited(&edits);
        let diff = diff(Some(&job), Some(&job), contextual);
        prop_assert_eq!(diff.diff_type, DiffType::None);
        prop_assert_eq!(changes(&diff), Vec::<String>::new());
        prop_assert_eq!(diff.task_groups.is_empty(), !contextual);
    }

    #[test]
    fn changes_made_together_show_as_they_do_alone(edits in some_edits(), contextual: bool) {
        let diff = diff(Some(&full()), Some(&edited(&edits)), contextual);
        let mut expected: Vec<&str> = edits.iter().flat_map(|(_, changes)| *changes).copied().collect();
        expected.sort_unstable();
        prop_assert_eq!(changes(&diff), expected);
        prop_assert_eq!(diff.diff_type == DiffType::None, edits.is_empty());
    }

    #[test]
    fn every_list_is_sorted(edits in some_edits()) {
        let diff = diff(Some(&full()), Some(&edited(&edits)), true);
        prop_assert!(diff.task_groups.is_sorted_by_key(|group| &group.name));
        prop_assert!(diff.fields.is_sorted_by_key(|field| &field.name));
        for group in &diff.task_groups {
            prop_assert!(group.tasks.is_sorted_by_key(|task| &task.name));
            prop_assert!(group.fields.is_sorted_by_key(|field| &field.name));
            let content = |object: &jobdiff::ObjectDiff| (object.name.clone(), object.fields.clone());
            prop_assert!(group.objects.is_sorted_by_key(content));
            for object in group.tasks.iter().flat_map(|task| &task.objects).chain(&group.objects) {
                prop_assert!(object.fields.is_sorted_by_key(|field| &field.name));
            }
        }
    }
}
