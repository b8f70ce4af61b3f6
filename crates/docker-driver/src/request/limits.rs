//! Limits of a container: cpu, memory, processes, files.

use bollard::models::{HostConfig, ResourcesUlimits};
use model::MemoryMax;
use task_drivers::{TaskConfig, core_list};

use super::parts::{map, some, text};
use crate::options::Options;
use crate::settings::Settings;

/// Shares of the whole machine, those of a container without a limit.
const WHOLE_SHARES: u64 = 1_024;
/// The kernel's range of shares.
const SHARES: (u64, u64) = (2, 262_144);
/// Period of a cpu limit, in microseconds, and the kernel's range.
const CPU_PERIOD: i64 = 100_000;
const CPU_PERIODS: std::ops::RangeInclusive<i64> = 1_000..=1_000_000;
/// The kernel's least quota, in microseconds.
const LEAST_QUOTA: i64 = 1_000;

pub(super) fn set(
    host: &mut HostConfig,
    task: &TaskConfig,
    options: &Options,
    settings: &Settings,
) -> Result<(), String> {
    set_cpu(host, task, options)?;
    set_memory(host, task, options);
    host.pids_limit = Some(pids_limit(options, settings)?);
    host.shm_size = (options.shm_size != 0).then_some(options.shm_size);
    host.oom_score_adj = (options.oom_score_adj != 0).then_some(options.oom_score_adj);
    host.sysctls = map(&options.sysctl);
    let ulimits: Result<Vec<_>, _> = options.ulimit.iter().map(ulimit).collect();
    host.ulimits = some(ulimits?);
    Ok(())
}

/// The shares are the task's part of the machine, so that containers of others keep their weight.
fn set_cpu(host: &mut HostConfig, task: &TaskConfig, options: &Options) -> Result<(), String> {
    let (asked, machine) = (task.resources.cpu_mhz, task.machine.cpu_mhz.max(1));
    let shares = (asked.saturating_mul(WHOLE_SHARES) / machine).clamp(SHARES.0, SHARES.1);
    host.cpu_shares = i64::try_from(shares).ok();
    host.cpuset_cpus = if task.resources.cores.is_empty() {
        text(&options.cpuset_cpus)
    } else {
        Some(core_list::format(&task.resources.cores))
    };
    if options.cpu_hard_limit {
        let period = options.cpu_cfs_period.unwrap_or(CPU_PERIOD);
        if !CPU_PERIODS.contains(&period) {
            return Err(format!(
                "option cpu_cfs_period: {period} is outside of 1000 to 1000000 microseconds"
            ));
        }
        let total = u64::try_from(period).unwrap_or(0) * task.machine.cores.max(1);
        let quota = total.saturating_mul(asked) / machine;
        host.cpu_period = Some(period);
        host.cpu_quota = Some(i64::try_from(quota).unwrap_or(i64::MAX).max(LEAST_QUOTA));
    }
    Ok(())
}

/// Swap equals memory: a container does not swap.
fn set_memory(host: &mut HostConfig, task: &TaskConfig, options: &Options) {
    let bytes = |mib: u32| i64::from(mib) * 1024 * 1024;
    let asked = task.resources.memory_mib;
    let limit = match task.resources.memory_max {
        MemoryMax::Unlimited => None,
        MemoryMax::Mib(mib) => Some(mib.max(options.memory_hard_limit)),
        MemoryMax::AsAsked if options.memory_hard_limit > 0 => Some(options.memory_hard_limit),
        MemoryMax::AsAsked => Some(asked),
    };
    host.memory = limit.map(bytes);
    host.memory_swap = limit.map(bytes);
    host.memory_reservation = (limit != Some(asked)).then(|| bytes(asked));
    let own = &options.podman;
    host.memory_swap = own.memory_swap.or(host.memory_swap);
    host.memory_reservation = own.memory_reservation.or(host.memory_reservation);
    host.memory_swappiness = own.memory_swappiness;
}

fn pids_limit(options: &Options, settings: &Settings) -> Result<i64, String> {
    let most = i64::from(settings.config.pids_limit);
    if most > 0 && options.pids_limit > most {
        return Err(format!(
            "option pids_limit: {} is above the node's {}, {most}",
            options.pids_limit,
            settings.setting("pids_limit")
        ));
    }
    Ok(match (options.pids_limit, most) {
        (0, 0) => -1,
        (0, most) => most,
        (asked, _) => asked,
    })
}

/// Reads `soft[:hard]`.
fn ulimit((name, value): (&String, &String)) -> Result<ResourcesUlimits, String> {
    let (soft, hard) = value.split_once(':').unwrap_or((value, value));
    let number = |text: &str| {
        text.trim().parse::<i64>().map_err(|_| {
            format!("option ulimit: {value:?} of {name:?} is not a valid limit: write soft:hard in numbers")
        })
    };
    Ok(ResourcesUlimits {
        name: Some(name.clone()),
        soft: Some(number(soft)?),
        hard: Some(number(hard)?),
    })
}
