//! The diff of two versions of a job and the scheduler's updates, towards readers.

use jobdiff::{DiffType, FieldDiff, GroupUpdates, JobDiff, ObjectDiff, TaskDiff, TaskGroupDiff};

use crate::v1;

fn all<'a, T, W: From<&'a T>>(items: &'a [T]) -> Vec<W> {
    items.iter().map(Into::into).collect()
}

impl From<DiffType> for v1::DiffType {
    fn from(diff_type: DiffType) -> Self {
        match diff_type {
            DiffType::None => Self::None,
            DiffType::Added => Self::Added,
            DiffType::Deleted => Self::Deleted,
            DiffType::Edited => Self::Edited,
        }
    }
}

impl From<&JobDiff> for v1::JobDiff {
    fn from(diff: &JobDiff) -> Self {
        Self {
            r#type: v1::DiffType::from(diff.diff_type).into(),
            id: diff.id.clone(),
            fields: all(&diff.fields),
            objects: all(&diff.objects),
            task_groups: all(&diff.task_groups),
        }
    }
}

impl From<&TaskGroupDiff> for v1::TaskGroupDiff {
    fn from(diff: &TaskGroupDiff) -> Self {
        Self {
            r#type: v1::DiffType::from(diff.diff_type).into(),
            name: diff.name.clone(),
            fields: all(&diff.fields),
            objects: all(&diff.objects),
            tasks: all(&diff.tasks),
            updates: diff.updates.clone().into_iter().collect(),
        }
    }
}

impl From<&TaskDiff> for v1::TaskDiff {
    fn from(diff: &TaskDiff) -> Self {
        Self {
            r#type: v1::DiffType::from(diff.diff_type).into(),
            name: diff.name.clone(),
            fields: all(&diff.fields),
            objects: all(&diff.objects),
            annotations: diff.annotations.clone(),
        }
    }
}

impl From<&ObjectDiff> for v1::ObjectDiff {
    fn from(diff: &ObjectDiff) -> Self {
        Self {
            r#type: v1::DiffType::from(diff.diff_type).into(),
            name: diff.name.clone(),
            fields: all(&diff.fields),
            objects: all(&diff.objects),
        }
    }
}

impl From<&FieldDiff> for v1::FieldDiff {
    fn from(diff: &FieldDiff) -> Self {
        Self {
            r#type: v1::DiffType::from(diff.diff_type).into(),
            name: diff.name.clone(),
            old: diff.old.clone(),
            new: diff.new.clone(),
            annotations: diff.annotations.clone(),
        }
    }
}

impl From<&GroupUpdates> for v1::DesiredUpdates {
    fn from(updates: &GroupUpdates) -> Self {
        let GroupUpdates {
            ignore,
            place,
            migrate,
            stop,
            in_place_update,
            destructive_update,
            canary,
            preemptions,
            disconnect,
            reconnect,
            reschedule_now,
            reschedule_later,
        } = *updates;
        Self {
            ignore,
            place,
            migrate,
            stop,
            in_place_update,
            destructive_update,
            canary,
            preemptions,
            disconnect,
            reconnect,
            reschedule_now,
            reschedule_later,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn field(diff_type: DiffType) -> FieldDiff {
        FieldDiff {
            name: "Count".to_owned(),
            diff_type,
            old: "1".to_owned(),
            new: "3".to_owned(),
            annotations: vec!["forces create".to_owned()],
        }
    }

    fn object(diff_type: DiffType, objects: Vec<ObjectDiff>) -> ObjectDiff {
        ObjectDiff {
            name: "Network".to_owned(),
            diff_type,
            fields: vec![field(DiffType::None)],
            objects,
        }
    }

    #[test]
    fn every_part_of_a_diff_reaches_the_wire() {
        let port = object(DiffType::Deleted, Vec::new());
        let task = TaskDiff {
            name: "server".to_owned(),
            diff_type: DiffType::Added,
            fields: vec![field(DiffType::Added)],
            objects: vec![object(DiffType::Edited, vec![port])],
            annotations: vec!["forces create/destroy update".to_owned()],
        };
        let group = TaskGroupDiff {
            name: "app".to_owned(),
            diff_type: DiffType::Edited,
            fields: vec![field(DiffType::Edited)],
            objects: vec![object(DiffType::Added, Vec::new())],
            tasks: vec![task],
            updates: BTreeMap::from([("create".to_owned(), 2)]),
        };
        let diff = JobDiff {
            id: "web".to_owned(),
            diff_type: DiffType::Edited,
            fields: vec![field(DiffType::Deleted)],
            objects: vec![object(DiffType::Edited, Vec::new())],
            task_groups: vec![group],
        };
        let wire = v1::JobDiff::from(&diff);
        assert_eq!(
            (wire.id.as_str(), wire.r#type()),
            ("web", v1::DiffType::Edited)
        );
        let expected = v1::FieldDiff {
            r#type: v1::DiffType::Deleted.into(),
            name: "Count".to_owned(),
            old: "1".to_owned(),
            new: "3".to_owned(),
            annotations: vec!["forces create".to_owned()],
        };
        assert_eq!(wire.fields, [expected]);
        assert_eq!(wire.objects[0].r#type(), v1::DiffType::Edited);
        let group = &wire.task_groups[0];
        assert_eq!((group.name.as_str(), group.updates["create"]), ("app", 2));
        assert_eq!(group.r#type(), v1::DiffType::Edited);
        assert_eq!(group.fields[0].r#type(), v1::DiffType::Edited);
        assert_eq!(group.objects[0].r#type(), v1::DiffType::Added);
        let task = &group.tasks[0];
        assert_eq!(
            (task.name.as_str(), task.r#type()),
            ("server", v1::DiffType::Added)
        );
        assert_eq!(task.annotations, ["forces create/destroy update"]);
        assert_eq!(task.fields[0].r#type(), v1::DiffType::Added);
        let network = &task.objects[0];
        assert_eq!(
            (network.name.as_str(), network.r#type()),
            ("Network", v1::DiffType::Edited)
        );
        assert_eq!(network.fields[0].r#type(), v1::DiffType::None);
        assert_eq!(network.objects[0].r#type(), v1::DiffType::Deleted);
    }
}
