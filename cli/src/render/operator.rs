//! Leaders, scheduler configuration and garbage collection.

use proto::v1;

use crate::output::fields::Fields;
use crate::output::table::Table;

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
