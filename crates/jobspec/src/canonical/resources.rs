//! The resources block: cpu in MHz or whole cores, memory in MiB, devices, ports of the task.

use model::MemoryMax;
use model::job::TaskResources;

use super::validation::{Path, Validation};
use super::{device, network};

/// Source: Nomad's defaults and least values.
const DEFAULT_CPU_MHZ: u32 = 100;
const DEFAULT_MEMORY_MIB: u32 = 300;
const MIN_CPU_MHZ: u32 = 1;
const MIN_MEMORY_MIB: u32 = 10;

pub(super) fn resources(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::Resources>,
    task: &str,
) -> TaskResources {
    let path = path.block("resources");
    let none = job_fields::Resources::default();
    let spec = spec.unwrap_or(&none);
    let cores = check.number(path.field("cores"), spec.cores, 0);
    let default_mhz = if cores > 0 { 0 } else { DEFAULT_CPU_MHZ };
    let least_mhz = if cores > 0 { 0 } else { MIN_CPU_MHZ };
    let cpu_mhz = check.number_from(least_mhz, path.field("cpu"), spec.cpu_mhz, default_mhz);
    if cores > 0 && cpu_mhz > 0 {
        let message = "Task can only ask for 'cpu' or 'cores' resource, not both: remove cpu for \
                       cores of the task's own, or cores for a share of all";
        check.error(path.field("cores"), message);
    }
    if cores == 0 && cpu_mhz < MIN_CPU_MHZ {
        let message = format!(
            "minimum CPU value is {MIN_CPU_MHZ}; got {cpu_mhz}: cpu is in MHz, leave it out for \
             {DEFAULT_CPU_MHZ}",
        );
        check.error(path.field("cpu"), message);
    }
    let memory_mib = check.number_from(
        MIN_MEMORY_MIB,
        path.field("memory"),
        spec.memory_mib,
        DEFAULT_MEMORY_MIB,
    );
    if memory_mib < MIN_MEMORY_MIB {
        let message = format!(
            "minimum MemoryMB value is {MIN_MEMORY_MIB}; got {memory_mib}: memory is in MB, leave \
             it out for {DEFAULT_MEMORY_MIB}",
        );
        check.error(path.field("memory"), message);
    }
    if spec.disk_mib.is_some_and(|disk| disk != 0) {
        check.warn(format!(
            "Task {task:?}: disk in a resources block is ignored: write ephemeral_disk {{ size = … }} in its group"
        ));
    }
    let memory_max = memory_max(check, &path, spec.memory_max_mib, memory_mib, task);
    TaskResources {
        cpu_mhz,
        cores,
        memory_mib,
        memory_max,
        devices: device::devices(check, &path, &spec.devices),
        networks: network::of_task(check, &path, &spec.networks, task),
    }
}

fn memory_max(
    check: &mut Validation,
    path: &Path,
    memory_max: Option<i64>,
    memory_mib: u32,
    task: &str,
) -> MemoryMax {
    let field = path.field("memory_max");
    let max = match memory_max.map(MemoryMax::try_from) {
        None => MemoryMax::AsAsked,
        Some(Ok(max)) => max,
        Some(Err(problem)) => {
            check.error(field, problem.to_string());
            return MemoryMax::AsAsked;
        }
    };
    if let MemoryMax::Mib(max_mib) = max
        && max_mib < memory_mib
    {
        let message = format!(
            "MemoryMaxMB value ({max_mib}) should be larger than MemoryMB value ({memory_mib}): \
             raise memory_max, or leave it out",
        );
        check.error(field, message);
    }
    if max.is_more() {
        check.warn(format!(
            "Task {task:?} may use memory up to memory_max only where the scheduler configuration \
             enables memory oversubscription; elsewhere memory is its limit",
        ));
    }
    max
}
