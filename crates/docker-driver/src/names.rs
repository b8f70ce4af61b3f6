//! Names of containers.

use task_drivers::TaskId;

/// Returns the container's name: `<task>-<alloc id>`. Attempts follow each other under one name.
pub(crate) fn of_task(id: &TaskId) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let is_name =
        id.task.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.task.chars().all(is_plain);
    if is_name {
        return format!("{}-{}", id.task, id.alloc_id);
    }
    // The code points keep names apart that differ in replaced characters alone.
    let plain = id.task.chars().map(|c| match c {
        c if is_plain(c) => c.to_string(),
        c => format!("_{:x}", u32::from(c)),
    });
    format!("task-{}-{}", plain.collect::<String>(), id.alloc_id)
}

#[cfg(test)]
mod tests {
    use model::AllocId;

    use super::*;

    #[test]
    fn names_are_the_tasks_and_allocations_and_differ_for_different_tasks() {
        let alloc_id = AllocId::from_random(7);
        for (task, want) in [
            ("web", format!("web-{alloc_id}")),
            ("a_b.c-1", format!("a_b.c-1-{alloc_id}")),
            ("a b", format!("task-a_20b-{alloc_id}")),
            ("é", format!("task-_e9-{alloc_id}")),
            ("-x", format!("task--x-{alloc_id}")),
        ] {
            let id = TaskId {
                alloc_id,
                task: task.to_owned(),
                attempt: 1,
            };
            assert_eq!(of_task(&id), want);
        }
    }
}
