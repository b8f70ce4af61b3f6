//! Metrics under the names that operators of Nomad know, beside our own: the one table of both names.
//!
//! A family is in the table if it means the same here; docs/metrics.md repeats the table with the
//! differences, and a test compares both. [`add`] works on the text of a scrape, so no service
//! measures anything twice. Source: Nomad's public documentation of its metrics.

mod kind;
mod sample;

use std::collections::BTreeMap;

pub use self::kind::{Kind, Labels};
use self::sample::Sample;

/// A family with two names.
#[derive(Clone, Copy, Debug)]
pub struct Alias {
    /// The name in our exposition; of a counter with `_total`, of a histogram without a suffix.
    pub ours: &'static str,
    /// Nomad's name. `{label}` stands for the value of that label, which is no label there.
    pub nomad: &'static str,
    pub kind: Kind,
}

const fn alias(ours: &'static str, nomad: &'static str, kind: Kind) -> Alias {
    Alias { ours, nomad, kind }
}

/// Bytes as MiB, which Nomad calls MB.
const MIB: Kind = Kind::Scaled(1.0 / 1_048_576.0);

/// The table, in the order of the documentation.
pub const ALIASES: &[Alias] = &[
    alias(
        "kafila_eval_broker_total_ready",
        "nomad_nomad_broker_total_ready",
        Kind::Gauge,
    ),
    alias(
        "kafila_eval_broker_total_unacked",
        "nomad_nomad_broker_total_unacked",
        Kind::Gauge,
    ),
    alias(
        "kafila_eval_broker_total_pending",
        "nomad_nomad_broker_total_pending",
        Kind::Gauge,
    ),
    alias(
        "kafila_eval_broker_total_waiting",
        "nomad_nomad_broker_total_waiting",
        Kind::Gauge,
    ),
    alias(
        "kafila_eval_broker_total_cancelable",
        "nomad_nomad_broker_total_cancelable",
        Kind::Gauge,
    ),
    alias(
        "kafila_eval_broker_ready",
        "nomad_nomad_broker_{type}_ready",
        Kind::Gauge,
    ),
    alias(
        "kafila_eval_broker_wait_time_seconds",
        "nomad_nomad_broker_wait_time",
        Kind::Milliseconds,
    ),
    alias(
        "kafila_eval_broker_process_time_seconds",
        "nomad_nomad_broker_process_time",
        Kind::Milliseconds,
    ),
    alias(
        "kafila_eval_broker_response_time_seconds",
        "nomad_nomad_broker_response_time",
        Kind::Milliseconds,
    ),
    alias(
        "kafila_eval_broker_total_blocked",
        "nomad_nomad_blocked_evals_total_blocked",
        Kind::Gauge,
    ),
    alias(
        "kafila_eval_broker_total_escaped",
        "nomad_nomad_blocked_evals_total_escaped",
        Kind::Gauge,
    ),
    alias(
        "kafila_scheduler_worker_wait_for_index_seconds",
        "nomad_nomad_worker_wait_for_index",
        Kind::Milliseconds,
    ),
    alias(
        "kafila_scheduler_worker_invoke_scheduler_seconds",
        "nomad_nomad_worker_invoke_scheduler_{type}",
        Kind::Milliseconds,
    ),
    alias(
        "kafila_scheduler_worker_submit_plan_seconds",
        "nomad_nomad_worker_submit_plan",
        Kind::Milliseconds,
    ),
    alias(
        "kafila_plan_applier_queue_depth",
        "nomad_nomad_plan_queue_depth",
        Kind::Gauge,
    ),
    alias(
        "kafila_plan_applier_evaluate_seconds",
        "nomad_nomad_plan_evaluate",
        Kind::Milliseconds,
    ),
    alias(
        "kafila_plan_applier_apply_seconds",
        "nomad_nomad_plan_apply",
        Kind::Milliseconds,
    ),
    alias(
        "kafila_plan_applier_submit_seconds",
        "nomad_nomad_plan_submit",
        Kind::Milliseconds,
    ),
    alias(
        "kafila_plan_applier_nodes_rejected_total",
        "nomad_nomad_plan_node_rejected",
        Kind::Counter,
    ),
    alias(
        "kafila_cluster_controller_heartbeat_active_nodes",
        "nomad_nomad_heartbeat_active",
        Kind::Gauge,
    ),
    alias(
        "kafila_cluster_controller_jobs",
        "nomad_nomad_job_status_{status}",
        Kind::Gauge,
    ),
    alias(
        "kafila_cluster_controller_job_allocations",
        "nomad_nomad_job_summary_{status}",
        Kind::Gauge,
    ),
    alias(
        "kafila_client_node_allocations_ended",
        "nomad_client_allocations_terminal",
        Kind::Gauge,
    ),
    alias(
        "kafila_client_node_tasks_running",
        "nomad_client_tasks_running",
        Kind::Gauge,
    ),
    alias(
        "kafila_client_node_allocs_complete_total",
        "nomad_client_allocs_complete",
        Kind::Counter,
    ),
    alias(
        "kafila_client_node_allocs_failed_total",
        "nomad_client_allocs_failed",
        Kind::Counter,
    ),
    alias(
        "kafila_client_node_allocs_restart_total",
        "nomad_client_allocs_restart",
        Kind::Counter,
    ),
    alias(
        "kafila_client_node_allocs_oom_killed_total",
        "nomad_client_allocs_oom_killed",
        Kind::Counter,
    ),
    alias(
        "kafila_client_node_allocated_cpu_mhz",
        "nomad_client_allocated_cpu",
        Kind::Gauge,
    ),
    alias(
        "kafila_client_node_allocated_memory_bytes",
        "nomad_client_allocated_memory",
        MIB,
    ),
    alias(
        "kafila_client_node_allocated_disk_bytes",
        "nomad_client_allocated_disk",
        MIB,
    ),
    alias(
        "kafila_client_node_unallocated_cpu_mhz",
        "nomad_client_unallocated_cpu",
        Kind::Gauge,
    ),
    alias(
        "kafila_client_node_unallocated_memory_bytes",
        "nomad_client_unallocated_memory",
        MIB,
    ),
    alias(
        "kafila_client_node_unallocated_disk_bytes",
        "nomad_client_unallocated_disk",
        MIB,
    ),
    alias(
        "kafila_client_node_host_memory_bytes",
        "nomad_client_host_memory_{kind}",
        Kind::Gauge,
    ),
    alias(
        "kafila_client_node_host_disk_bytes",
        "nomad_client_host_disk_{kind}",
        Kind::Gauge,
    ),
    alias(
        "kafila_client_node_host_uptime_seconds",
        "nomad_client_uptime",
        Kind::Gauge,
    ),
    alias(
        "kafila_client_node_alloc_memory_bytes",
        "nomad_client_allocs_memory_{kind}",
        Kind::Gauge,
    ),
    alias(
        "kafila_client_node_alloc_cpu_throttled_periods_total",
        "nomad_client_allocs_cpu_throttled_periods",
        Kind::Counter,
    ),
];

/// Returns `text`, OpenMetrics of one process, with the families of the table under both names.
/// `labels` are added to those under Nomad's.
pub(crate) fn add(text: &str, labels: &Labels) -> String {
    let mut families = BTreeMap::<String, Family>::new();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    for sample in lines.filter_map(Sample::parse) {
        if let Some(found) = find(&sample) {
            let line = found.sample.line(found.suffix, found.kind, labels);
            let family = families.entry(found.family).or_default();
            family.kind = Some(found.kind);
            family.lines.push(line);
        }
    }
    let (own, end) = text
        .strip_suffix("# EOF\n")
        .map_or((text, ""), |own| (own, "# EOF\n"));
    let mut out = own.to_owned();
    for (name, family) in &families {
        let shown = match family.kind {
            Some(Kind::Milliseconds) => "summary",
            Some(Kind::Counter) => "unknown",
            _ => "gauge",
        };
        out.push_str(&format!("# TYPE {name} {shown}\n"));
        for line in &family.lines {
            out.push_str(&format!("{name}{line}\n"));
        }
    }
    out.push_str(end);
    out
}

#[derive(Debug, Default)]
struct Family {
    kind: Option<Kind>,
    /// Without the family's name.
    lines: Vec<String>,
}

/// A sample of the table.
struct Found {
    /// Nomad's name.
    family: String,
    suffix: &'static str,
    kind: Kind,
    /// Without the labels that are in the name.
    sample: Sample,
}

fn find(sample: &Sample) -> Option<Found> {
    ALIASES.iter().find_map(|alias| {
        let suffix = match alias.kind {
            Kind::Milliseconds => ["_sum", "_count"]
                .into_iter()
                .find(|suffix| sample.name.strip_suffix(suffix) == Some(alias.ours))?,
            _ if sample.name == alias.ours => "",
            _ => return None,
        };
        let mut sample = sample.clone();
        Some(Found {
            family: sample.take_into(alias.nomad)?,
            suffix,
            kind: alias.kind,
            sample,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_both_names() {
        let text = "\
# HELP kafila_eval_broker_total_ready Deliverable evaluations.
# TYPE kafila_eval_broker_total_ready gauge
kafila_eval_broker_total_ready 3
# TYPE kafila_eval_broker_ready gauge
kafila_eval_broker_ready{type=\"service\"} 2
kafila_eval_broker_ready{type=\"batch\"} 1
# TYPE kafila_eval_broker_wait_time_seconds histogram
kafila_eval_broker_wait_time_seconds_sum{type=\"a,\\\"b\\\"\"} 0.25
kafila_eval_broker_wait_time_seconds_count{type=\"a,\\\"b\\\"\"} 4
kafila_eval_broker_wait_time_seconds_bucket{le=\"0.5\",type=\"a,\\\"b\\\"\"} 4
kafila_plan_applier_nodes_rejected_total 7
kafila_client_node_allocated_memory_bytes 3145728.0
kafila_eval_broker_sessions 1
# EOF
";
        let labels = vec![("node_id", "n\"1".to_owned())];
        let both = add(text, &labels);
        let added = "\
# TYPE nomad_client_allocated_memory gauge
nomad_client_allocated_memory{node_id=\"n\\\"1\"} 3
# TYPE nomad_nomad_broker_batch_ready gauge
nomad_nomad_broker_batch_ready{node_id=\"n\\\"1\"} 1
# TYPE nomad_nomad_broker_service_ready gauge
nomad_nomad_broker_service_ready{node_id=\"n\\\"1\"} 2
# TYPE nomad_nomad_broker_total_ready gauge
nomad_nomad_broker_total_ready{node_id=\"n\\\"1\"} 3
# TYPE nomad_nomad_broker_wait_time summary
nomad_nomad_broker_wait_time_sum{node_id=\"n\\\"1\",type=\"a,\\\"b\\\"\"} 250
nomad_nomad_broker_wait_time_count{node_id=\"n\\\"1\",type=\"a,\\\"b\\\"\"} 4
# TYPE nomad_nomad_plan_node_rejected unknown
nomad_nomad_plan_node_rejected{node_id=\"n\\\"1\"} 7
# EOF
";
        let expected = text.replace("# EOF\n", added);
        assert_eq!(both, expected);
        let plain = add("kafila_eval_broker_total_ready 3\n", &Labels::new());
        assert!(
            plain.ends_with("\nnomad_nomad_broker_total_ready 3\n"),
            "{plain}"
        );
    }

    fn source(path: &str) -> String {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        std::fs::read_to_string(format!("{root}/{path}")).unwrap()
    }

    #[test]
    fn the_documentation_has_the_table() {
        let document = source("docs/metrics.md");
        let rows: Vec<[&str; 2]> = document
            .lines()
            .filter(|line| line.starts_with("| `kafila_"))
            .map(|line| {
                let mut cells = line.split('`').skip(1).step_by(2);
                [cells.next().unwrap(), cells.next().unwrap()]
            })
            .collect();
        let expected: Vec<[&str; 2]> = ALIASES.iter().map(|it| [it.ours, it.nomad]).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn each_family_is_declared_by_its_service() {
        for alias in ALIASES {
            let name = alias.ours.strip_prefix("kafila_").unwrap();
            let services = [
                ("eval_broker", "services/eval-broker/src/metrics.rs"),
                (
                    "scheduler_worker",
                    "services/scheduler-worker/src/metrics.rs",
                ),
                ("plan_applier", "services/plan-applier/src/metrics.rs"),
                (
                    "cluster_controller",
                    "services/cluster-controller/src/metrics.rs",
                ),
                (
                    "cluster_controller",
                    "services/cluster-controller/src/metrics/jobs.rs",
                ),
                ("client_node", "services/client-node/src/metrics.rs"),
                ("client_node", "crates/task-runner/src/metrics.rs"),
                ("client_node", "crates/task-runner/src/job_counters.rs"),
                ("client_node", "crates/task-runner/src/levels.rs"),
            ];
            let is_declared = services.iter().any(|(service, file)| {
                let own = name
                    .strip_prefix(service)
                    .and_then(|it| it.strip_prefix('_'));
                let Some(own) = own else { return false };
                let text = source(file);
                let stems = [
                    own,
                    own.trim_end_matches("_total"),
                    own.trim_end_matches("_seconds"),
                ];
                let quoted = |word: &str| text.contains(&format!("\"{word}\""));
                // Some names are composed of two parts.
                let composed = |stem: &str| {
                    let mut splits = stem.match_indices('_');
                    splits.any(|(at, _)| quoted(&stem[..at]) && quoted(&stem[at + 1..]))
                };
                stems.iter().any(|stem| quoted(stem) || composed(stem))
            });
            assert!(is_declared, "{}", alias.ours);
        }
    }
}
