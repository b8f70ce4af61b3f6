//! Resource limits of one task on its node: cpu, dedicated cores and memory.

use std::collections::BTreeMap;

use model::{Allocation, MemoryMax, Task};

/// A task's share of its allocation's resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// In MHz; with `cores`, the sum of their speeds.
    pub cpu_mhz: u64,
    /// Dedicated cores, ascending; empty: the task shares the others.
    pub cores: Vec<u16>,
    pub memory_mib: u32,
    /// The limit up to which memory may exceed `memory_mib`: the job's setting, where the operator
    /// allows oversubscription.
    pub memory_max: MemoryMax,
}

impl ResourceLimits {
    /// `core_mhz` is core → MHz of the node.
    pub fn new(task: &Task, alloc: &Allocation, core_mhz: &BTreeMap<u16, u32>) -> Self {
        let resources = &alloc.resources;
        let mut cores = resources.cores.iter();
        let cores = cores.find(|cores| cores.task == task.name);
        let cores = cores.map_or_else(Vec::new, |cores| cores.ids.clone());
        let cpu_mhz = if cores.is_empty() {
            u64::from(task.resources.cpu_mhz)
        } else {
            let known = cores.iter().filter_map(|id| core_mhz.get(id));
            known.map(|mhz| u64::from(*mhz)).sum()
        };
        Self {
            cpu_mhz,
            cores,
            memory_mib: task.resources.memory_mib,
            memory_max: if resources.memory_oversubscribed {
                task.resources.memory_max
            } else {
                MemoryMax::AsAsked
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{AllocatedCores, NodeId};
    use test_kit::builders;

    use super::*;

    #[test]
    fn a_task_gets_its_dedicated_cores_and_the_memory_that_the_operator_allows() {
        let mut job = builders::service("web", 1);
        let task = &mut job.task_groups[0].tasks[0];
        task.resources.memory_max = MemoryMax::Unlimited;
        let task = task.clone();
        let mut alloc = builders::allocation(1, &job, NodeId::from_random(1));
        let speeds = BTreeMap::from([(0, 1_000), (2, 2_500), (3, 2_500)]);
        let plain = ResourceLimits::new(&task, &alloc, &speeds);
        assert_eq!(plain.cpu_mhz, u64::from(task.resources.cpu_mhz));
        assert_eq!(plain.memory_max, MemoryMax::AsAsked);
        alloc.resources.cores = [("other", vec![0]), (task.name.as_str(), vec![2, 3])]
            .map(|(task, ids)| AllocatedCores {
                task: task.to_owned(),
                ids,
            })
            .into();
        alloc.resources.memory_oversubscribed = true;
        let more = ResourceLimits::new(&task, &alloc, &speeds);
        assert_eq!((more.cpu_mhz, &more.cores[..]), (5_000, &[2, 3][..]));
        assert_eq!(more.memory_max, MemoryMax::Unlimited);
    }
}
