//! Resources in use: of tasks and of machines.

use proto::v1;

use super::{Style, sorted};
use crate::output::fields::Fields;
use crate::output::size::bytes;
use crate::output::table::Table;
use crate::output::time::show_duration;

/// Returns the table of what tasks use, or a sentence if that is unknown.
pub(crate) fn tasks(stats: &v1::GetAllocationStatsResponse) -> String {
    if stats.tasks.is_empty() {
        return "No task runs whose use is known\n".to_owned();
    }
    let header = [
        "Task",
        "CPU",
        "CPU Share",
        "Throttled",
        "Memory",
        "Max Memory",
        "RSS",
        "Cache",
        "Swap",
    ];
    let mut table = Table::new(header);
    for (name, usage) in sorted(&stats.tasks) {
        let cpu = usage.cpu.unwrap_or_default();
        let memory = usage.memory.unwrap_or_default();
        let size = |size: Option<u64>| size.map_or_else(|| "-".to_owned(), bytes);
        table.row([
            name.to_owned(),
            format!("{:.0} MHz", cpu.mhz),
            format!("{:.1}%", cpu.percent),
            format!("{:.1}s", cpu.throttled_seconds),
            size(memory.usage),
            size(memory.max_usage),
            size(memory.rss),
            size(memory.cache),
            size(memory.swap),
        ]);
    }
    table.render()
}

/// Returns what is in use on a machine; verbose: of each core.
pub(crate) fn host(usage: &v1::NodeUsage, style: &Style) -> String {
    let memory = usage.memory.unwrap_or_default();
    let mut fields = Fields::new();
    fields
        .add("Uptime", show_duration(usage.uptime_seconds))
        .add("CPU", format!("{:.0} MHz", usage.cpu_mhz))
        .add(
            "Cores Busy",
            format!("{:.1} of {}", busy(usage), usage.cores.len()),
        )
        .add(
            "Memory",
            format!("{} of {} used", bytes(memory.used), bytes(memory.total)),
        )
        .add("Memory Available", bytes(memory.available));
    let mut out = fields.render();
    if style.verbose {
        let mut table = Table::new(["Core", "User", "System", "Idle"]);
        for core in &usage.cores {
            let share = |percent: f64| format!("{percent:.1}%");
            table.row([
                core.name.clone(),
                share(core.user_percent),
                share(core.system_percent),
                share(core.idle_percent),
            ]);
        }
        out.push_str(&style.section("CPU", &table.render()));
    }
    out.push_str(&style.section("Disks", &disks(usage)));
    out
}

/// Returns the number of cores that work.
fn busy(usage: &v1::NodeUsage) -> f64 {
    let shares = usage.cores.iter().map(|core| 100.0 - core.idle_percent);
    shares.sum::<f64>() / 100.0
}

fn disks(usage: &v1::NodeUsage) -> String {
    let header = [
        "Mount Point",
        "Device",
        "Size",
        "Used",
        "Available",
        "Inodes",
        "Allocations",
    ];
    let mut table = Table::new(header);
    for disk in &usage.disks {
        table.row([
            disk.mount_point.clone(),
            disk.device.clone(),
            bytes(disk.size),
            format!("{} ({:.0}%)", bytes(disk.used), disk.used_percent),
            bytes(disk.available),
            format!("{:.0}%", disk.inodes_used_percent),
            if disk.has_allocations { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table.render()
}
