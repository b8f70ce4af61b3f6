//! Text form of a decision: names in ranges, without random ids.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use model::{AllocMetric, Allocation, ClientStatus, EvalStatus, Evaluation, Timestamp};
use scheduler::{Decision, DesiredUpdates};
use state::Snapshot;

/// Describes `decision`, made on `snapshot` at `now`.
pub(crate) fn describe(decision: &Decision, snapshot: &Snapshot, now: Timestamp) -> String {
    let mut text = String::new();
    describe_allocs(decision, snapshot, &mut text);
    let plan = &decision.plan;
    if let Some(deployment) = &plan.deployment {
        let groups: Vec<_> = deployment
            .groups
            .iter()
            .map(|(name, group)| {
                let canaries = match (group.desired_canaries, group.promoted) {
                    (0, _) => String::new(),
                    (_, true) => " promoted".to_owned(),
                    (wanted, false) => {
                        format!(" canaries={}/{wanted}", group.placed_canaries.len())
                    }
                };
                format!("{name} total={}{canaries}", group.desired_total)
            })
            .collect();
        let status = deployment.status.as_str();
        let known = if snapshot.deployment(deployment.id).is_some() {
            "changed"
        } else {
            "new"
        };
        writeln!(text, "deployment {known} {status}: {}", groups.join(", ")).unwrap();
        let described = &deployment.status_description;
        if known == "new" && described != "Deployment is running" {
            writeln!(text, "  {described}").unwrap();
        }
    }
    for update in &plan.deployment_updates {
        writeln!(
            text,
            "deployment {}: {}",
            update.status.as_str(),
            update.description
        )
        .unwrap();
    }
    for eval in &plan.followup_evals {
        describe_followup(eval, now, &mut text);
    }
    if let Some(outcome) = &plan.eval_outcome {
        describe_outcome(outcome, &mut text);
    }
    for (group, desired) in &decision.desired_updates {
        writeln!(text, "counts {group}:{}", counts(desired)).unwrap();
    }
    text
}

fn describe_allocs(decision: &Decision, snapshot: &Snapshot, text: &mut String) {
    let mut lines = BTreeMap::<String, BTreeMap<String, Vec<u32>>>::new();
    let mut evicted = Vec::new();
    let outcome = decision.plan.eval_outcome.as_ref();
    let is_everywhere = outcome.is_some_and(|eval| eval.job_type.is_per_node());
    let mut add = |line: String, alloc: &Allocation| {
        // Where a name is on every node, nodes say more than indexes.
        let number = match snapshot.node(alloc.node_id).filter(|_| is_everywhere) {
            Some(node) => node.value.name[1..].parse().expect("nodes are n1, n2, …"),
            None => alloc.name_index,
        };
        lines
            .entry(line)
            .or_default()
            .entry(alloc.task_group.to_string())
            .or_default()
            .push(number);
    };
    for stop in decision.plan.stops.values().flatten() {
        let view = snapshot
            .alloc(stop.alloc_id)
            .expect("what is stopped exists");
        let lost = stop.client_status == Some(ClientStatus::Lost);
        let word = if lost { "stop, lost" } else { "stop" };
        let line = format!("{word}: {}", stop.description);
        add(line, &view.alloc);
    }
    for eviction in decision.plan.preemptions.values().flatten() {
        let view = snapshot
            .alloc(eviction.alloc_id)
            .expect("victims are stored");
        let winner = eviction.preempted_by.expect("victims have a winner");
        assert_eq!(
            eviction.description,
            format!("Preempted by alloc ID {winner}")
        );
        let node = &snapshot
            .node(view.alloc.node_id)
            .expect("it is there")
            .value;
        let name = view.alloc.name();
        evicted.push(format!("{name} on {}", node.name));
    }
    for alloc in decision.plan.placements.values().flatten() {
        let line = match snapshot.alloc(alloc.id).map(|view| &view.alloc) {
            Some(old) => describe_edit(old, alloc),
            None => describe_new(decision, snapshot, alloc),
        };
        add(line, alloc);
    }
    evicted.sort();
    if !evicted.is_empty() {
        writeln!(text, "evicted: {}", evicted.join(", ")).unwrap();
    }
    for (line, groups) in lines {
        let names: Vec<_> = groups
            .into_iter()
            .map(|(group, numbers)| match is_everywhere {
                true => format!("{group}@n[{}]", ranges(numbers)),
                false => format!("{group}[{}]", ranges(numbers)),
            })
            .collect();
        writeln!(text, "{} {line}", names.join(" ")).unwrap();
    }
}

fn describe_edit(old: &Allocation, new: &Allocation) -> String {
    let unknown = Some(ClientStatus::Unknown);
    let follows = if new.followup_eval_id.is_some() && old.followup_eval_id != new.followup_eval_id
    {
        ", to follow up"
    } else {
        ""
    };
    let what = match (old.client_status_override, new.client_status_override) {
        (before, after) if before != unknown && after == unknown => "is unknown",
        (before, after) if before == unknown && after != unknown => "is back",
        _ if !follows.is_empty() => return "to follow up".to_owned(),
        _ => "update in place",
    };
    format!("{what}{follows}")
}

fn describe_new(decision: &Decision, snapshot: &Snapshot, alloc: &Allocation) -> String {
    let mut line = "place".to_owned();
    if alloc.canary {
        line.push_str(" as canary");
    }
    if !alloc.reschedules.is_empty() {
        line.push_str(" again");
    } else if alloc.previous_alloc.is_some() {
        line.push_str(" as successor");
    }
    let job = snapshot.job(&decision.plan.job);
    let version = job.map_or(alloc.job_version, |job| job.value.version);
    if alloc.job_version != version {
        write!(line, " at v{}", alloc.job_version).unwrap();
    }
    line
}

fn describe_followup(eval: &Evaluation, now: Timestamp, text: &mut String) {
    let trigger = eval.triggered_by.as_str();
    if eval.status == EvalStatus::Blocked {
        let classes: Vec<_> = eval
            .class_eligibility
            .iter()
            .map(|(class, passes)| format!("{class}={passes}"))
            .collect();
        let hope = if eval.escaped_computed_class {
            "any node".to_owned()
        } else {
            classes.join(" ")
        };
        writeln!(text, "blocked evaluation {trigger}: waits for {hope}").unwrap();
    } else {
        let delay = eval.wait_until.since(now).as_secs_f64();
        writeln!(text, "evaluation {trigger} in {delay} s").unwrap();
    }
}

fn describe_outcome(outcome: &Evaluation, text: &mut String) {
    let queued: Vec<_> = outcome
        .queued_allocs
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(group, count)| format!(" queued {group}={count}"))
        .collect();
    let why = &outcome.status_description;
    let why = if why.is_empty() {
        String::new()
    } else {
        format!(" ({why})")
    };
    writeln!(
        text,
        "eval {}{}{why}",
        outcome.status.as_str(),
        queued.concat()
    )
    .unwrap();
    for (group, metric) in &outcome.failed_task_groups {
        writeln!(text, "no place for {group}: {}", describe_metric(metric)).unwrap();
    }
}

fn describe_metric(metric: &AllocMetric) -> String {
    let mut text = format!(
        "evaluated={} filtered={} exhausted={} coalesced={}",
        metric.nodes_evaluated,
        metric.nodes_filtered,
        metric.nodes_exhausted,
        metric.coalesced_failures
    );
    let reasons = metric
        .constraint_filtered
        .iter()
        .chain(&metric.dimension_exhausted);
    for (reason, count) in reasons {
        write!(text, "; {reason}: {count}").unwrap();
    }
    let classes = [
        ("filtered", &metric.class_filtered),
        ("exhausted", &metric.class_exhausted),
    ];
    for (what, counts) in classes {
        for (class, count) in counts {
            write!(text, "; {what} of class {class}: {count}").unwrap();
        }
    }
    for (task, amounts) in &metric.resources_exhausted {
        for (dimension, amount) in [("cpu", amounts.cpu_mhz), ("memory", amounts.memory_mib)] {
            if amount > 0 {
                write!(text, "; {task} wanted {dimension}={amount}").unwrap();
            }
        }
    }
    text
}

fn counts(desired: &DesiredUpdates) -> String {
    let named = [
        ("ignore", desired.ignore),
        ("place", desired.place),
        ("migrate", desired.migrate),
        ("stop", desired.stop),
        ("in_place", desired.in_place_update),
        ("destructive", desired.destructive_update),
        ("reschedule_now", desired.reschedule_now),
        ("reschedule_later", desired.reschedule_later),
        ("canary", desired.canary),
        ("disconnect", desired.disconnect),
        ("reconnect", desired.reconnect),
        ("preemptions", desired.preemptions),
    ];
    let shown = named.into_iter().filter(|(_, count)| *count > 0);
    let shown: String = shown
        .map(|(name, count)| format!(" {name}={count}"))
        .collect();
    if shown.is_empty() {
        " none".to_owned()
    } else {
        shown
    }
}

/// Writes `3,5-7`; a number that comes twice is written twice.
pub(crate) fn ranges(mut numbers: Vec<u32>) -> String {
    numbers.sort_unstable();
    let mut runs = Vec::<(u32, u32)>::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let runs = runs.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    runs.collect::<Vec<_>>().join(",")
}
