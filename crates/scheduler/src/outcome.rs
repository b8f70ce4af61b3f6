//! How an evaluation ends, and the blocked evaluation that waits for what had no place.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    DeploymentId, EvalStatus, Evaluation, ExhaustedResources, NodeId, Plan, Timestamp, TriggeredBy,
};
use placement::Requirements;
use rustc_hash::FxHashMap;
use state::Snapshot;

use crate::planner::Planner;

const BLOCKED: &str = "created to place remaining allocations";
const CONFLICTS: &str = "created due to placement conflicts";

/// How many classes a blocked evaluation names. Nodes have a handful of classes unless somebody
/// gives each a word of its own; then the list would outgrow everything else in the evaluation.
const CLASSES_MAX: usize = 256;

/// How many classes a metric names, those with the most nodes. An operator has a handful, unless
/// each node has a class of its own; then they would outgrow everything else in the evaluation.
const COUNTED_CLASSES_MAX: usize = 64;

/// Which changes of nodes may help a blocked evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hope {
    /// Class → whether its nodes could run one of the groups that wait; absent: not known.
    classes: BTreeMap<String, bool>,
    /// Any change may help.
    escaped: bool,
}

/// Writes into the plan how the evaluation ends once all of it is committed.
pub(crate) fn settle(planner: &mut Planner<'_>) {
    complete_metrics(planner);
    let eval = planner.eval;
    let mut outcome = eval.clone();
    outcome.modify_time = planner.now;
    outcome.snapshot_index = planner.plan.snapshot_index;
    outcome.failed_task_groups = planner.failed.clone();
    outcome.queued_allocs = planner.queued.clone();
    outcome.next_eval = planner
        .plan
        .followup_evals
        .last()
        .map(|eval| eval.id)
        .or(eval.next_eval);
    outcome.deployment_id = match &planner.plan.deployment {
        Some(deployment) => Some(deployment.id),
        None => eval.deployment_id.or_else(|| under_way(planner)),
    };
    let waits = match &planner.waiting_nodes {
        Some(nodes) => !nodes.is_empty(),
        None => !planner.failed.is_empty(),
    };
    if waits && eval.status == EvalStatus::Blocked {
        // The same one waits on, with what is known now.
        let hope = hope(planner);
        outcome.class_eligibility = hope.classes;
        outcome.escaped_computed_class = hope.escaped;
    } else {
        outcome.status = EvalStatus::Complete;
        outcome.status_description = String::new();
        outcome.class_eligibility = BTreeMap::new();
        outcome.escaped_computed_class = false;
        if waits {
            let blocked = blocked_eval(planner, TriggeredBy::QueuedAllocs, BLOCKED);
            outcome.blocked_eval = Some(blocked.id);
            planner.plan.followup_evals.push(blocked);
        }
    }
    planner.plan.eval_outcome = Some(Box::new(outcome));
}

/// Returns the deployment of the job's current version while it goes on: whoever waits for the
/// evaluation waits for it as well.
fn under_way(planner: &Planner<'_>) -> Option<DeploymentId> {
    let job = planner.snapshot.job(&planner.eval.job)?;
    let newest = planner.snapshot.latest_deployment(&planner.eval.job)?;
    let goes_on = newest.value.status.is_active()
        && newest.value.job_version == job.value.version
        && !job.value.stop;
    goes_on.then_some(newest.value.id)
}

/// Writes into an otherwise empty plan that the evaluation failed.
pub(crate) fn fail(plan: &mut Plan, eval: &Evaluation, now: Timestamp, description: String) {
    let mut outcome = eval.clone();
    outcome.modify_time = now;
    outcome.snapshot_index = plan.snapshot_index;
    outcome.status = EvalStatus::Failed;
    outcome.status_description = description;
    plan.eval_outcome = Some(Box::new(outcome));
}

/// Turns a plan into the last word on an evaluation whose plans were refused too often: nothing is
/// placed any more, and a blocked evaluation tries again when the rush is over.
pub(crate) fn give_up(planner: &mut Planner<'_>, description: String) {
    planner.plan.stops.clear();
    planner.plan.placements.clear();
    planner.plan.preemptions.clear();
    planner.preemptions.clear();
    planner.plan.deployment = None;
    planner.plan.deployment_updates.clear();
    planner.plan.followup_evals.clear();
    complete_metrics(planner);
    let blocked = blocked_eval(planner, TriggeredBy::MaxPlanAttempts, CONFLICTS);
    fail(&mut planner.plan, planner.eval, planner.now, description);
    if let Some(outcome) = &mut planner.plan.eval_outcome {
        outcome.failed_task_groups = planner.failed.clone();
        outcome.queued_allocs = planner.queued.clone();
        outcome.blocked_eval = Some(blocked.id);
    }
    planner.plan.followup_evals.push(blocked);
}

/// Says of every group that has no place what its tasks would have taken of what was short.
fn complete_metrics(planner: &mut Planner<'_>) {
    let job = planner.snapshot.job(&planner.eval.job);
    for (name, metric) in &mut planner.failed {
        keep_largest(&mut metric.class_filtered);
        keep_largest(&mut metric.class_exhausted);
        let is_short = |dimension| metric.dimension_exhausted.contains_key(dimension);
        let (cpu, memory) = (is_short("cpu"), is_short("memory"));
        let group = job.and_then(|job| job.value.task_group(name));
        let Some(group) = group.filter(|_| cpu || memory) else {
            continue;
        };
        let failures = u64::from(planner.queued.get(name).copied().unwrap_or(0));
        for task in &group.tasks {
            let total =
                |is_short: bool, ask: u64| u64::from(is_short) * ask.saturating_mul(failures);
            let amounts = ExhaustedResources {
                cpu_mhz: total(cpu, task.resources.cpu_mhz.into()),
                memory_mib: total(memory, task.resources.memory_mib.into()),
            };
            metric
                .resources_exhausted
                .insert(task.name.clone(), amounts);
        }
    }
}

/// Leaves the classes with the most nodes, of two with as many the first by name.
fn keep_largest(classes: &mut BTreeMap<String, u32>) {
    if classes.len() <= COUNTED_CLASSES_MAX {
        return;
    }
    let mut counts: Vec<_> = classes.values().copied().collect();
    counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    let least = counts[COUNTED_CLASSES_MAX - 1];
    let more = counts.iter().filter(|count| **count > least).count();
    let mut as_many = COUNTED_CLASSES_MAX - more;
    classes.retain(|_, count| {
        let is_kept = *count > least || (*count == least && as_many > 0);
        as_many -= usize::from(is_kept && *count == least);
        is_kept
    });
}

fn blocked_eval(
    planner: &mut Planner<'_>,
    triggered_by: TriggeredBy,
    description: &str,
) -> Evaluation {
    let eval = planner.eval;
    let hope = hope(planner);
    let mut blocked = Evaluation::pending(
        planner.draw.eval_id(),
        eval.job.clone(),
        eval.job_type,
        eval.priority,
        triggered_by,
        planner.now,
    );
    blocked.status = EvalStatus::Blocked;
    blocked.status_description = description.to_owned();
    blocked.previous_eval = Some(eval.id);
    blocked.failed_task_groups = planner.failed.clone();
    blocked.queued_allocs = planner.queued.clone();
    blocked.class_eligibility = hope.classes;
    blocked.escaped_computed_class = hope.escaped;
    blocked.snapshot_index = planner.plan.snapshot_index;
    blocked.trace_parent.clone_from(&eval.trace_parent);
    blocked
}

/// Works out which classes could run one of the groups that have no place.
fn hope(planner: &Planner<'_>) -> Hope {
    if let Some(nodes) = planner
        .waiting_nodes
        .as_ref()
        .filter(|nodes| !nodes.is_empty())
    {
        return hope_in(planner.snapshot, nodes);
    }
    let waiting: Vec<_> = planner
        .failed
        .keys()
        .flat_map(|group| {
            let older = planner.older.iter();
            let older = older.filter(move |((name, _), _)| name == group);
            planner
                .requirements
                .get(group)
                .into_iter()
                .chain(older.map(|(_, requirements)| requirements))
        })
        .collect();
    hope_of(planner.snapshot, &waiting)
}

/// Only these nodes can help, so only their classes are waited for.
fn hope_in(snapshot: &Snapshot, nodes: &BTreeSet<NodeId>) -> Hope {
    let mut classes = BTreeMap::new();
    let mut escaped = false;
    for node in snapshot.nodes().map(|node| &node.value) {
        let is_waited_for = nodes.contains(&node.id);
        escaped |= is_waited_for && node.computed_class.is_empty();
        let class = classes.entry(node.computed_class.clone()).or_insert(false);
        *class |= is_waited_for;
    }
    if escaped || classes.len() > CLASSES_MAX {
        return Hope {
            classes: BTreeMap::new(),
            escaped: true,
        };
    }
    Hope { classes, escaped }
}

fn hope_of(snapshot: &Snapshot, waiting: &[&Requirements]) -> Hope {
    if waiting.is_empty()
        || waiting
            .iter()
            .any(|requirements| requirements.escapes_class())
    {
        return Hope {
            classes: BTreeMap::new(),
            escaped: true,
        };
    }
    let mut verdicts = FxHashMap::<&str, bool>::default();
    // One node speaks for all that share its facts, the class among them.
    let kinds = snapshot.node_table().kinds().flatten();
    for node in kinds.map(|kind| &kind.example.value) {
        if node.computed_class.is_empty() {
            // It can only be told apart by asking it.
            return Hope {
                classes: BTreeMap::new(),
                escaped: true,
            };
        }
        verdicts
            .entry(&node.computed_class)
            .or_insert_with(|| waiting.iter().any(|group| group.class_passes(node)));
    }
    // A class that is not named is taken for one that may help, so a no is what must be named.
    let fits = verdicts.len() <= CLASSES_MAX;
    if !fits && verdicts.values().filter(|passes| !**passes).count() > CLASSES_MAX {
        return Hope {
            classes: BTreeMap::new(),
            escaped: true,
        };
    }
    let named = verdicts.into_iter().filter(|(_, passes)| fits || !passes);
    let classes = named
        .map(|(class, passes)| (class.to_owned(), passes))
        .collect();
    Hope {
        classes,
        escaped: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_classes_are_kept() {
        let mut classes: BTreeMap<String, u32> =
            (0..100).map(|n| (format!("c{n:02}"), 1)).collect();
        classes.insert("c98".into(), 7);
        classes.insert("c99".into(), 2);
        keep_largest(&mut classes);
        assert_eq!(classes.len(), COUNTED_CLASSES_MAX);
        let kept: Vec<_> = classes.keys().map(String::as_str).collect();
        assert_eq!(kept[61..], ["c61", "c98", "c99"]);
    }
}
