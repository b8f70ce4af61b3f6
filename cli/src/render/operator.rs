//! Processes, leaders, scheduler configuration and garbage collection.

use proto::v1;

use crate::output::fields::Fields;
use crate::output::table::Table;
use crate::output::time::show_duration;

/// Services that elect a leader.
const LED: [&str; 4] = [
    "cluster-controller",
    "deployment-watcher",
    "eval-broker",
    "plan-applier",
];

/// Services without a leader have a row as well.
pub(crate) fn leaders(leaders: &[v1::Leader]) -> Table {
    let mut table = Table::new(["Service", "Address", "Replica", "Term"]);
    let is_led = |service: &&str| leaders.iter().any(|leader| leader.service == *service);
    for service in LED.into_iter().filter(|service| !is_led(service)) {
        table.row([service, "<none>", "<none>", "<none>"].map(str::to_owned));
    }
    for leader in leaders {
        table.row([
            leader.service.clone(),
            leader.address.clone(),
            leader.replica.clone(),
            leader.term.to_string(),
        ]);
    }
    table
}

/// `answers`: for each process, whether it answers the gateway; `None`: unknown.
pub(crate) fn processes(processes: &[v1::Process], answers: &[Option<bool>]) -> Table {
    let mut table = Table::new(["Service", "Address", "Version", "Leader", "Answers"]);
    for (process, answers) in processes.iter().zip(answers) {
        let is_led = LED.contains(&process.service.as_str());
        table.row([
            process.service.clone(),
            process.address.clone(),
            process.version.clone(),
            match (is_led, process.is_leader) {
                (false, _) => "<none>",
                (true, true) => "true",
                (true, false) => "false",
            }
            .to_owned(),
            match answers {
                Some(true) => "yes",
                Some(false) => "no",
                None => "<none>",
            }
            .to_owned(),
        ]);
    }
    table
}

pub(crate) fn scheduler_config(config: &v1::SchedulerConfiguration) -> Fields {
    let preemption = config.preemption_config.unwrap_or_default();
    let mut fields = Fields::new();
    fields.add("Scheduler Algorithm", config.scheduler_algorithm.as_str());
    for (key, value) in [
        (
            "Memory Oversubscription",
            config.memory_oversubscription_enabled,
        ),
        ("Reject Job Registration", config.reject_job_registration),
        ("Pause Eval Broker", config.pause_eval_broker),
        (
            "Preemption System Scheduler",
            preemption.system_scheduler_enabled,
        ),
        (
            "Preemption Service Scheduler",
            preemption.service_scheduler_enabled,
        ),
        (
            "Preemption Batch Scheduler",
            preemption.batch_scheduler_enabled,
        ),
        (
            "Preemption SysBatch Scheduler",
            preemption.sysbatch_scheduler_enabled,
        ),
    ] {
        fields.add(key, value.to_string());
    }
    fields.add("Modify Index", config.modify_index.to_string());
    fields
}

pub(crate) fn log_level(level: &v1::LogLevel) -> Fields {
    let mut fields = Fields::new();
    fields.add("Log Level", level.filter.as_str());
    fields.add("Configured", level.configured.as_str());
    if let Some(left) = expires_in(level) {
        fields.add("Expires In", left);
    }
    fields
}

/// Reports the change and its duration.
pub(crate) fn log_level_change(previous: &str, level: &v1::LogLevel) -> String {
    let (filter, configured) = (&level.filter, &level.configured);
    let until = match expires_in(level) {
        Some(left) => format!(" for {left}, then {configured}"),
        None if filter == configured => " (the configured level)".to_owned(),
        None => " until the process ends".to_owned(),
    };
    format!("Log level changed from {previous} to {filter}{until}")
}

/// Rounded up: a level that was set for an hour a moment ago expires in `1h`.
fn expires_in(level: &v1::LogLevel) -> Option<String> {
    let left = level.expires_after.as_ref()?;
    let seconds = left.seconds + i64::from(left.nanos > 0);
    Some(show_duration(u64::try_from(seconds).unwrap_or(0)))
}

/// Says how much was forgotten.
pub(crate) fn collected(collected: &v1::CollectGarbageResponse) -> String {
    let kinds = [
        ("Jobs", collected.jobs),
        ("Evaluations", collected.evaluations),
        ("Allocations", collected.allocations),
        ("Deployments", collected.deployments),
        ("Nodes", collected.nodes),
    ];
    let mut fields = Fields::new();
    for (kind, count) in kinds {
        fields.add(kind, count.to_string());
    }
    let mut text = fields.render();
    if collected.conflicts > 0 {
        text.push_str("\nSome of it was changed meanwhile and stays: run the command again.\n");
    }
    text
}
