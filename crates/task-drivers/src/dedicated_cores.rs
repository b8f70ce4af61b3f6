//! Dedicated cores: the cores that tasks with shared cpu do not use.

use std::collections::BTreeMap;

use crate::driver::TaskId;

/// Dedicated cores by task, as tasks come and go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DedicatedCores {
    /// Only tasks that have some.
    by_task: BTreeMap<TaskId, Vec<u16>>,
}

impl DedicatedCores {
    /// Dedicates `cores` to a task. Returns whether that changes anything.
    pub(crate) fn add(&mut self, id: &TaskId, cores: &[u16]) -> bool {
        if cores.is_empty() {
            return false;
        }
        let before = self.by_task.insert(id.clone(), cores.to_vec());
        before.as_deref() != Some(cores)
    }

    /// Releases a task's cores. Returns whether that changes anything.
    pub(crate) fn remove(&mut self, id: &TaskId) -> bool {
        self.by_task.remove(id).is_some()
    }

    /// Returns the cores of `all` for tasks that share cpu.
    ///
    /// Shape: in the order of `all`. Never empty unless `all` is: when every core is dedicated, the
    /// sharing tasks run on all of them, because a control group without cores runs nothing.
    pub(crate) fn shared(&self, all: &[u16]) -> Vec<u16> {
        let is_dedicated = |id: &u16| self.by_task.values().flatten().any(|core| core == id);
        let shared: Vec<_> = all.iter().copied().filter(|id| !is_dedicated(id)).collect();
        if shared.is_empty() {
            all.to_vec()
        } else {
            shared
        }
    }
}

#[cfg(test)]
mod tests {
    use model::AllocId;

    use super::*;

    fn id(number: u128) -> TaskId {
        TaskId {
            alloc_id: AllocId::from_random(number),
            task: "web".into(),
            attempt: 1,
        }
    }

    #[test]
    fn sharing_tasks_get_the_cores_that_are_not_dedicated() {
        let all = [0, 1, 2, 3];
        let mut cores = DedicatedCores::default();
        assert_eq!(cores.shared(&all), all);
        assert!(!cores.add(&id(1), &[]), "it shares cpu itself");
        assert!(cores.add(&id(1), &[0, 2]));
        assert!(!cores.add(&id(1), &[0, 2]), "it was recovered");
        assert_eq!(cores.shared(&all), [1, 3]);
        // Core 9 is outside the agent's affinity mask by now.
        assert!(cores.add(&id(2), &[3, 9]));
        assert_eq!(cores.shared(&all), [1]);
        assert!(cores.remove(&id(1)));
        assert!(!cores.remove(&id(1)));
        assert_eq!(cores.shared(&all), [0, 1, 2]);
    }

    #[test]
    fn sharing_tasks_run_on_all_cores_when_every_core_is_dedicated() {
        let mut cores = DedicatedCores::default();
        cores.add(&id(1), &[0]);
        cores.add(&id(2), &[1]);
        assert_eq!(cores.shared(&[0, 1]), [0, 1]);
        cores.remove(&id(2));
        assert_eq!(cores.shared(&[0, 1]), [1]);
    }

    /// Two attempts of one task may overlap for a moment: the later one keeps the cores.
    #[test]
    fn attempts_of_a_task_are_distinct() {
        let (first, mut second) = (id(1), id(1));
        second.attempt = 2;
        let mut cores = DedicatedCores::default();
        cores.add(&first, &[0]);
        cores.add(&second, &[0]);
        cores.remove(&first);
        assert_eq!(cores.shared(&[0, 1]), [1]);
    }
}
