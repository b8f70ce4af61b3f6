//! What a task may use on the node that it was placed on.

use std::collections::BTreeMap;

use model::{Allocation, MemoryMax, Task};

/// A task's part of what its allocation holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// In MHz; with `cores`, what these come to.
    pub cpu_mhz: u64,
    /// Cores that are the task's alone, lowest first; empty: it shares all.
    pub cores: Vec<u16>,
    pub memory_mib: u32,
    /// How far memory may go beyond `memory_mib`: what the job says, if the operator lets it.
    pub memory_max: MemoryMax,
}

impl Allowance {
    /// `core_mhz` is core → MHz, as the node has them.
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

/// Returns cores the way the kernel lists them, as in `0-2,5`.
pub(crate) fn list(cores: &[u16]) -> String {
    let mut ranges = Vec::<(u16, u16)>::new();
    for id in cores {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*id) => *last = *id,
            _ => ranges.push((*id, *id)),
        }
    }
    let shown = ranges.into_iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    shown.collect::<Vec<_>>().join(",")
}

/// Reads what [`list`] writes; `None`: it is no such list.
pub(crate) fn parse_list(text: &str) -> Option<Vec<u16>> {
    let mut ids = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        ids.extend(first.parse::<u16>().ok()?..=last.parse::<u16>().ok()?);
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use model::{AllocatedCores, NodeId};
    use test_kit::builders;

    use super::*;

    #[test]
    fn cores_are_listed_as_the_kernel_does() {
        assert_eq!(list(&[]), "");
        assert_eq!(list(&[3]), "3");
        assert_eq!(list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(list(&[65_535]), "65535");
        assert_eq!(parse_list("0-2,5,7-8\n"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(parse_list(""), Some(Vec::new()));
        assert_eq!(parse_list("0-x"), None);
    }

    #[test]
    fn a_task_gets_its_own_cores_and_what_the_operator_allows() {
        let mut job = builders::service("web", 1);
        let task = &mut job.task_groups[0].tasks[0];
        task.resources.memory_max = MemoryMax::Unlimited;
        let task = task.clone();
        let mut alloc = builders::allocation(1, &job, NodeId::from_random(1));
        let speeds = BTreeMap::from([(0, 1_000), (2, 2_500), (3, 2_500)]);
        let plain = Allowance::new(&task, &alloc, &speeds);
        assert_eq!(plain.cpu_mhz, u64::from(task.resources.cpu_mhz));
        assert_eq!(plain.memory_max, MemoryMax::AsAsked);
        alloc.resources.cores = [("other", vec![0]), (task.name.as_str(), vec![2, 3])]
            .map(|(task, ids)| AllocatedCores {
                task: task.to_owned(),
                ids,
            })
            .into();
        alloc.resources.memory_oversubscribed = true;
        let more = Allowance::new(&task, &alloc, &speeds);
        assert_eq!((more.cpu_mhz, &more.cores[..]), (5_000, &[2, 3][..]));
        assert_eq!(more.memory_max, MemoryMax::Unlimited);
    }
}
