//! Reasons of failed placements, and advice.

use placement::reasons::{
    DISTINCT_HOSTS, MISSING_DRIVERS, MISSING_VOLUME, NETWORK, PORT_COLLISION,
};
use proto::v1::AllocMetric;

use super::sorted;
use crate::output::printable;

/// Returns the reasons, one a line, for example `* Dimension "memory" exhausted on 2 nodes`.
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
    for (class, nodes) in sorted(&metric.class_filtered) {
        let class = printable(class);
        lines.push(format!(
            "* Class \"{class}\": {} excluded by filter",
            count_of_nodes(*nodes)
        ));
    }
    for (constraint, nodes) in sorted(&metric.constraint_filtered) {
        let constraint = printable(constraint);
        lines.push(format!(
            "* Constraint \"{constraint}\": {} excluded by filter",
            count_of_nodes(*nodes)
        ));
    }
    if metric.nodes_exhausted > 0 {
        lines.push(format!(
            "* Resources exhausted on {}",
            count_of_nodes(metric.nodes_exhausted)
        ));
    }
    for (class, nodes) in sorted(&metric.class_exhausted) {
        let class = printable(class);
        lines.push(format!(
            "* Class \"{class}\" exhausted on {}",
            count_of_nodes(*nodes)
        ));
    }
    for (dimension, nodes) in sorted(&metric.dimension_exhausted) {
        let dimension = printable(dimension);
        lines.push(format!(
            "* Dimension \"{dimension}\" exhausted on {}",
            count_of_nodes(*nodes)
        ));
    }
    for (task, wanted) in sorted(&metric.resources_exhausted) {
        let amounts = [
            (wanted.cpu_mhz, "MHz of cpu"),
            (wanted.memory_mib, "MiB of memory"),
        ];
        let amounts = amounts.into_iter().filter(|(amount, _)| *amount > 0);
        let amounts: Vec<_> = amounts.collect();
        if !amounts.is_empty() {
            let (task, wanted) = (printable(task), with_share(&amounts, failures(metric)));
            lines.push(format!("* Task \"{task}\" wanted {wanted}"));
        }
    }
    lines
}

/// Returns the amounts that `count` allocations want together, and the share of one.
fn with_share(amounts: &[(u64, &str)], count: u32) -> String {
    let count = u64::from(count);
    let divided = |divisor: u64| {
        let parts = amounts
            .iter()
            .map(|(amount, unit)| format!("{} {unit}", amount / divisor));
        parts.collect::<Vec<_>>().join(" and ")
    };
    let total = divided(1);
    // A sum that was cut off at the largest number has no share.
    if count > 1
        && amounts
            .iter()
            .all(|(amount, _)| amount.is_multiple_of(count))
    {
        let share = divided(count);
        format!("{total} in all: {share} for each of {count} allocations")
    } else {
        format!("{total} in all")
    }
}

fn count_of_nodes(count: u32) -> String {
    match count {
        1 => "1 node".to_owned(),
        _ => format!("{count} nodes"),
    }
}

/// Returns the number of failed allocations that a metric represents.
pub(crate) fn failures(metric: &AllocMetric) -> u32 {
    metric.coalesced_failures.saturating_add(1)
}

/// The start of constraints on the Consul of nodes, which services with `provider = "consul"` imply.
const CONSUL_ATTRIBUTES: &str = "${attr.consul.";

/// Returns advice, one sentence for each kind of reason.
pub(crate) fn advice(metric: &AllocMetric) -> Vec<String> {
    let mut lines = Vec::new();
    let filtered = !metric.constraint_filtered.is_empty();
    if metric.nodes_evaluated == 0 && !filtered {
        lines.push(
            "Start a client-node in the job's datacenters and node pool, change those of the job, \
             or let an ineligible node be used again, 'kafila node eligibility -enable NODE': \
             'kafila node status' shows what there is"
                .to_owned(),
        );
    }
    let missing_driver = |(reason, _): &(&str, &u32)| reason.contains(MISSING_DRIVERS);
    let missing_volume = |(reason, _): &(&str, &u32)| reason.contains(MISSING_VOLUME);
    let constraints = sorted(&metric.constraint_filtered);
    if constraints.iter().any(missing_driver) {
        lines.push(
            "Enable the task's driver on a node, or use one that is there: \
             'kafila node status -verbose NODE' lists them"
                .to_owned(),
        );
    }
    if constraints.iter().any(missing_volume) {
        lines.push(
            "Register the volume that the group asks for on a node, 'kafila volume register FILE', \
             or give it to one with [host_volumes] in its configuration: 'kafila volume status' \
             and 'kafila node status -verbose NODE' list them"
                .to_owned(),
        );
    }
    let no_other_host = |(reason, _): &(&str, &u32)| *reason == DISTINCT_HOSTS;
    if constraints.iter().any(no_other_host) {
        lines.push(
            "distinct_hosts: lower the count, or add a node: those that would do have one already"
                .to_owned(),
        );
    }
    let no_consul = |(reason, _): &(&str, &u32)| reason.starts_with(CONSUL_ATTRIBUTES);
    if constraints.iter().any(no_consul) {
        lines.push(
            "Give a node a Consul, [consul] in its configuration, or write provider = \"nomad\" in the \
             services: 'kafila node status -verbose NODE' lists consul.version of those with one"
                .to_owned(),
        );
    }
    let is_named = |reason: &_| {
        missing_driver(reason)
            || missing_volume(reason)
            || no_other_host(reason)
            || no_consul(reason)
    };
    if !constraints.iter().all(is_named) {
        lines.push(
            "Loosen the constraint, or give a node what it asks for: \
             'kafila node status -verbose NODE' lists attributes and meta"
                .to_owned(),
        );
    }
    if metric.nodes_exhausted > 0 {
        let exhausted = sorted(&metric.dimension_exhausted);
        let exhausted = exhausted.into_iter().map(|(dimension, _)| dimension);
        let (ports, others): (Vec<&str>, Vec<&str>) =
            exhausted.partition(|dimension| dimension.starts_with(NETWORK));
        lines.extend(amounts_advice(&others, ports.is_empty()));
        lines.extend(ports_advice(&ports));
    }
    lines
}

/// Returns advice about exhausted resources except ports; `is_all` if no ports are exhausted.
fn amounts_advice(dimensions: &[&str], is_all: bool) -> Option<String> {
    let amounts: Vec<&str> = AMOUNTS
        .into_iter()
        .filter(|amount| dimensions.contains(amount))
        .collect();
    let mut ways = Vec::new();
    if !amounts.is_empty() || dimensions.is_empty() && is_all {
        let what = format!("ask for less {}", amounts.join(" and "));
        ways.push(what.trim_end().to_owned());
    }
    if dimensions.contains(&"cores") {
        ways.push("ask for fewer cores".to_owned());
    }
    if dimensions.iter().any(|it| it.starts_with("device")) {
        ways.push("ask for fewer devices".to_owned());
    }
    if ways.is_empty() && dimensions.is_empty() {
        return None;
    }
    ways.push("stop other jobs, or add a node".to_owned());
    let ways = ways.join(", ");
    let (first, rest) = ways.split_at(1);
    let first = first.to_uppercase();
    Some(format!(
        "{first}{rest}: 'kafila node status NODE' shows what is allocated"
    ))
}

/// Dimensions with amounts ("less"); the others are counted ("fewer").
const AMOUNTS: [&str; 3] = ["cpu", "memory", "disk"];

/// Returns advice about exhausted ports.
fn ports_advice(dimensions: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut taken: Vec<&str> = Vec::new();
    let mut is_other = false;
    for dimension in dimensions {
        match dimension.split_once(PORT_COLLISION) {
            Some((_, port)) => taken.push(port.trim()),
            None => is_other = true,
        }
    }
    if !taken.is_empty() {
        let ports = printable(&taken.join(", "));
        lines.push(format!(
            "The static port {ports} is taken on those nodes, perhaps by this job itself: choose \
             another, leave out 'static' so that one is chosen, lower the count, or add a node"
        ));
    }
    if is_other {
        lines.push(
            "Ask for fewer ports, stop other jobs, or add a node: 'kafila alloc status ALLOC' \
             shows the ports of an allocation"
                .to_owned(),
        );
    }
    lines
}

/// Returns the block of one task group: its title, reasons and advice.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_for_counted_resources_is_to_ask_for_fewer() {
        let advised = |dimensions: &[&str]| {
            let dimension_exhausted = dimensions.iter().map(|it| ((*it).to_owned(), 1));
            let metric = AllocMetric {
                nodes_evaluated: 1,
                nodes_exhausted: 1,
                dimension_exhausted: dimension_exhausted.collect(),
                ..AllocMetric::default()
            };
            let line = advice(&metric).join("\n");
            line.split(':').next().unwrap().to_owned()
        };
        for (dimensions, expected) in [
            (
                &["devices: no devices match request"][..],
                "Ask for fewer devices, stop other jobs, or add a node",
            ),
            (
                &["cores", "cpu", "memory"],
                "Ask for less cpu and memory, ask for fewer cores, stop other jobs, or add a node",
            ),
            (
                &["max allocation exceeded"],
                "Stop other jobs, or add a node",
            ),
        ] {
            assert_eq!(advised(dimensions), expected, "{dimensions:?}");
        }
    }

    #[test]
    fn a_volume_that_is_missing_is_no_constraint_to_loosen() {
        let advised = |reasons: &[&str]| {
            let metric = AllocMetric {
                nodes_evaluated: 1,
                constraint_filtered: reasons.iter().map(|it| ((*it).to_owned(), 1)).collect(),
                ..AllocMetric::default()
            };
            advice(&metric)
        };
        let volume = advised(&["missing compatible host volumes"]);
        assert_eq!(volume.len(), 1, "{volume:?}");
        for way in ["kafila volume register FILE", "[host_volumes]"] {
            assert!(volume[0].contains(way), "{volume:?}");
        }
        let both = advised(&["missing compatible host volumes", "${attr.a} = b"]);
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both[1].starts_with("Loosen the constraint"), "{both:?}");
    }

    #[test]
    fn a_missing_consul_is_no_constraint_to_loosen() {
        let metric = AllocMetric {
            nodes_evaluated: 1,
            constraint_filtered: [("${attr.consul.version} semver >= 1.8.0".to_owned(), 1)].into(),
            ..AllocMetric::default()
        };
        let advised = advice(&metric);
        assert_eq!(advised.len(), 1, "{advised:?}");
        assert!(advised[0].contains("[consul]"), "{advised:?}");
    }

    #[test]
    fn the_share_of_one_allocation_is_shown() {
        let both = |mhz, count| with_share(&[(mhz, "MHz of cpu"), (60, "MiB of memory")], count);
        assert_eq!(
            both(300, 3),
            "300 MHz of cpu and 60 MiB of memory in all: 100 MHz of cpu and 20 MiB of memory for each \
             of 3 allocations"
        );
        assert_eq!(both(100, 1), "100 MHz of cpu and 60 MiB of memory in all");
        let most = u64::MAX;
        let expected = format!("{most} MHz of cpu and 60 MiB of memory in all");
        assert_eq!(both(most, 2), expected);
    }

    #[test]
    fn without_evaluated_nodes_the_advice_names_ineligible_nodes() {
        let advised = advice(&AllocMetric::default()).join("\n");
        assert!(
            advised.contains("kafila node eligibility -enable"),
            "{advised}"
        );
    }

    #[test]
    fn a_taken_port_is_no_matter_of_less() {
        let metric = |dimensions: &[&str]| AllocMetric {
            nodes_evaluated: 1,
            nodes_exhausted: 1,
            dimension_exhausted: dimensions.iter().map(|it| ((*it).to_owned(), 1)).collect(),
            ..AllocMetric::default()
        };
        let port = "network: reserved port collision http=8080";
        let advised = advice(&metric(&[port])).join("\n");
        assert!(
            advised.contains("static port http=8080 is taken"),
            "{advised}"
        );
        assert!(!advised.contains("less"), "{advised}");
        let advised = advice(&metric(&["memory", port])).join("\n");
        assert!(advised.contains("Ask for less memory,"), "{advised}");
        assert!(advised.contains("static port"), "{advised}");
        let advised = advice(&metric(&["network: dynamic port selection failed"])).join("\n");
        assert!(advised.contains("Ask for fewer ports"), "{advised}");
        assert!(advice(&metric(&[])).join("\n").contains("Ask for less, "));
    }
}
