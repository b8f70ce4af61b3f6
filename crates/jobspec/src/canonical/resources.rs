//! What one task may use: cpu in MHz, memory in MiB.

use model::job::TaskResources;
use model::spec;

use super::check::{Check, Path};

/// Source: Nomad's defaults and least values.
const DEFAULT_CPU_MHZ: u32 = 100;
const DEFAULT_MEMORY_MIB: u32 = 300;
const MIN_CPU_MHZ: u32 = 1;
const MIN_MEMORY_MIB: u32 = 10;

pub(super) fn resources(
    check: &mut Check,
    path: &Path,
    spec: Option<&spec::Resources>,
    task: &str,
) -> TaskResources {
    let path = path.block("resources");
    let none = spec::Resources::default();
    let spec = spec.unwrap_or(&none);
    let cpu_mhz = check.number(path.field("cpu"), spec.cpu, DEFAULT_CPU_MHZ);
    if cpu_mhz < MIN_CPU_MHZ {
        let message = format!(
            "minimum CPU value is {MIN_CPU_MHZ}; got {cpu_mhz}: cpu is in MHz, leave it out for \
             {DEFAULT_CPU_MHZ}",
        );
        check.error(path.field("cpu"), message);
    }
    let memory_mib = check.number(path.field("memory"), spec.memory, DEFAULT_MEMORY_MIB);
    if memory_mib < MIN_MEMORY_MIB {
        let message = format!(
            "minimum MemoryMB value is {MIN_MEMORY_MIB}; got {memory_mib}: memory is in MB, leave \
             it out for {DEFAULT_MEMORY_MIB}",
        );
        check.error(path.field("memory"), message);
    }
    let memory_max_mib = memory_max(check, &path, spec.memory_max, memory_mib, task);
    TaskResources {
        cpu_mhz,
        cores: 0,
        memory_mib,
        memory_max_mib,
        devices: Vec::new(),
    }
}

fn memory_max(
    check: &mut Check,
    path: &Path,
    memory_max: Option<i64>,
    memory_mib: u32,
    task: &str,
) -> u32 {
    let field = path.field("memory_max");
    if memory_max == Some(-1) {
        let message = "unlimited memory is not supported by this version of Kafila: write the \
                       most that the task may use, in MB, or leave memory_max out";
        check.error(field, message);
        return 0;
    }
    let memory_max_mib = check.number(field.clone(), memory_max, 0);
    if memory_max_mib == 0 {
        return 0;
    }
    if memory_max_mib < memory_mib {
        let message = format!(
            "MemoryMaxMB value ({memory_max_mib}) should be larger than MemoryMB value \
             ({memory_mib}): raise memory_max, or leave it out",
        );
        check.error(field, message);
    }
    check.warn(format!(
        "Memory oversubscription is not enabled; Task {task:?} memory_max value will be ignored. \
         Ask for what the task needs with memory",
    ));
    memory_max_mib
}
