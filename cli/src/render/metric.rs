//! Why something could not be placed, and what its user can do about it.

use proto::v1::AllocMetric;

use super::sorted;
use crate::output::printable;

/// Returns the reasons, one a line, as in `* Dimension "memory" exhausted on 2 nodes`.
pub(crate) fn reasons(metric: &AllocMetric) -> Vec<String> {
    let mut lines = Vec::new();
    if metric.nodes_evaluated == 0 {
        lines.push("* No nodes were eligible for evaluation".to_owned());
    }
    for (datacenter, nodes) in sorted(&metric.nodes_available) {
        if *nodes == 0 {
            lines.push(format!(
                "* No nodes are available in datacenter {datacenter:?}"
            ));
        }
    }
    for (constraint, nodes) in sorted(&metric.constraint_filtered) {
        let constraint = printable(constraint);
        lines.push(format!(
            "* Constraint \"{constraint}\": {nodes} nodes excluded by filter"
        ));
    }
    if metric.nodes_exhausted > 0 {
        lines.push(format!(
            "* Resources exhausted on {} nodes",
            metric.nodes_exhausted
        ));
    }
    for (dimension, nodes) in sorted(&metric.dimension_exhausted) {
        let dimension = printable(dimension);
        lines.push(format!(
            "* Dimension \"{dimension}\" exhausted on {nodes} nodes"
        ));
    }
    lines
}

/// Returns how many allocations of a task group a metric stands for.
pub(crate) fn failures(metric: &AllocMetric) -> u32 {
    metric.coalesced_failures.saturating_add(1)
}

/// Returns what to do, one sentence for each kind of reason.
pub(crate) fn advice(metric: &AllocMetric) -> Vec<String> {
    let mut lines = Vec::new();
    let filtered = !metric.constraint_filtered.is_empty();
    if metric.nodes_evaluated == 0 && !filtered {
        lines.push(
            "Start a client-node in the job's datacenters and node pool, or change those of the \
             job: 'kafila node status' shows what there is"
                .to_owned(),
        );
    }
    let missing_driver = |(reason, _): &(&str, &u32)| reason.contains("missing drivers");
    let constraints = sorted(&metric.constraint_filtered);
    if constraints.iter().any(missing_driver) {
        lines.push(
            "Enable the task's driver on a node, or use one that is there: \
             'kafila node status -verbose NODE' lists them"
                .to_owned(),
        );
    }
    if constraints.iter().any(|reason| !missing_driver(reason)) {
        lines.push(
            "Loosen the constraint, or give a node what it asks for: \
             'kafila node status -verbose NODE' lists attributes and meta"
                .to_owned(),
        );
    }
    if metric.nodes_exhausted > 0 {
        let dimensions: Vec<&str> = sorted(&metric.dimension_exhausted)
            .into_iter()
            .map(|(dimension, _)| dimension)
            .collect();
        let what = if dimensions.is_empty() {
            "less".to_owned()
        } else {
            format!("less {}", printable(&dimensions.join(" and ")))
        };
        lines.push(format!(
            "Ask for {what}, stop other jobs, or add a node: \
             'kafila node status NODE' shows what is allocated"
        ));
    }
    lines
}

/// Returns the block that stands for one task group: its title, reasons, and what to do.
pub(crate) fn group(name: &str, metric: &AllocMetric) -> Vec<String> {
    let count = failures(metric);
    let noun = if count == 1 {
        "allocation"
    } else {
        "allocations"
    };
    let name = printable(name);
    let mut lines = vec![format!(
        "Task Group \"{name}\" (failed to place {count} {noun}):"
    )];
    lines.extend(reasons(metric).iter().map(|line| format!("  {line}")));
    lines.extend(advice(metric).iter().map(|line| format!("  -> {line}")));
    lines
}
