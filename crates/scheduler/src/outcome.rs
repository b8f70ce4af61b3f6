//! End of an evaluation, and the blocked evaluation that waits for failed placements.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    DeploymentId, EvalStatus, Evaluation, ExhaustedResources, NodeId, Timestamp, TriggeredBy,
};
use placement::Requirements;
use rustc_hash::FxHashMap;
use state::Snapshot;

use crate::draft::Draft;
use crate::inputs::Inputs;
use crate::run_rng::RunRng;

const BLOCKED: &str = "created to place remaining allocations";
const CONFLICTS: &str = "created due to placement conflicts";

/// The maximum number of classes that a blocked evaluation names. Nodes have a handful of classes,
/// unless each has its own; then the list would outgrow the rest of the evaluation.
const CLASSES_MAX: usize = 256;

/// The maximum number of classes in a metric, those with the most nodes, for the same reason.
const COUNTED_CLASSES_MAX: usize = 64;

/// The changes of nodes that may unblock an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct UnblockHints {
    /// Class → its nodes could run one of the blocked groups; absent: not known.
    classes: BTreeMap<String, bool>,
    /// Any change may help.
    escaped: bool,
}

/// Adds the end of the evaluation to a complete draft.
pub(crate) fn end_evaluation(inputs: &Inputs<'_>, draft: &mut Draft<'_>, rng: &mut RunRng) {
    complete_metrics(inputs, draft);
    let eval = inputs.eval;
    let mut outcome = eval.clone();
    outcome.modify_time = inputs.now;
    outcome.snapshot_index = draft.plan().snapshot_index;
    outcome.failed_task_groups = draft.failed().clone();
    outcome.queued_allocs = draft.queued().clone();
    let followup = draft.plan().followup_evals.last();
    outcome.next_eval = followup.map(|eval| eval.id).or(eval.next_eval);
    outcome.deployment_id = match &draft.plan().deployment {
        Some(deployment) => Some(deployment.id),
        None => eval.deployment_id.or_else(|| active_deployment(inputs)),
    };
    let is_blocked = match draft.full_nodes() {
        Some(nodes) => !nodes.is_empty(),
        None => !draft.failed().is_empty(),
    };
    if is_blocked && eval.status == EvalStatus::Blocked {
        // It stays blocked, with new hints.
        let hints = unblock_hints(inputs, draft);
        outcome.class_eligibility = hints.classes;
        outcome.escaped_computed_class = hints.escaped;
    } else {
        outcome.status = EvalStatus::Complete;
        outcome.status_description = String::new();
        outcome.class_eligibility = BTreeMap::new();
        outcome.escaped_computed_class = false;
        if is_blocked {
            let blocked = blocked_eval(inputs, draft, rng, TriggeredBy::QueuedAllocs, BLOCKED);
            outcome.blocked_eval = Some(blocked.id);
            draft.add_followup(blocked);
        }
    }
    draft.set_outcome(outcome);
}

/// Returns the active deployment of the job's current version: waiting for the evaluation includes
/// waiting for it.
fn active_deployment(inputs: &Inputs<'_>) -> Option<DeploymentId> {
    let snapshot = inputs.snapshot;
    let job = snapshot.job(&inputs.eval.job)?;
    let newest = snapshot.latest_deployment(&inputs.eval.job)?;
    let is_active = newest.value.status.is_active()
        && newest.value.job_version == job.value.version
        && !job.value.stop;
    is_active.then_some(newest.value.id)
}

/// Returns the failed evaluation.
pub(crate) fn failed(
    eval: &Evaluation,
    snapshot_index: u64,
    now: Timestamp,
    description: String,
) -> Evaluation {
    let mut outcome = eval.clone();
    outcome.modify_time = now;
    outcome.snapshot_index = snapshot_index;
    outcome.status = EvalStatus::Failed;
    outcome.status_description = description;
    outcome
}

/// Ends an evaluation whose plans were refused too often: all changes are dropped, and a blocked
/// evaluation retries later.
pub(crate) fn give_up(
    inputs: &Inputs<'_>,
    draft: &mut Draft<'_>,
    rng: &mut RunRng,
    description: String,
) {
    draft.discard_changes();
    complete_metrics(inputs, draft);
    let blocked = blocked_eval(inputs, draft, rng, TriggeredBy::MaxPlanAttempts, CONFLICTS);
    let index = draft.plan().snapshot_index;
    let mut outcome = failed(inputs.eval, index, inputs.now, description);
    outcome.failed_task_groups = draft.failed().clone();
    outcome.queued_allocs = draft.queued().clone();
    outcome.blocked_eval = Some(blocked.id);
    draft.set_outcome(outcome);
    draft.add_followup(blocked);
}

/// Adds to the metric of each failed group its tasks' requests of the exhausted dimensions.
fn complete_metrics(inputs: &Inputs<'_>, draft: &mut Draft<'_>) {
    let job = inputs.snapshot.job(&inputs.eval.job);
    draft.edit_metrics(|name, failures, metric| {
        keep_largest(&mut metric.class_filtered);
        keep_largest(&mut metric.class_exhausted);
        let is_short = |dimension| metric.dimension_exhausted.contains_key(dimension);
        let (cpu, memory) = (is_short("cpu"), is_short("memory"));
        let group = job.and_then(|job| job.value.task_group(name));
        let Some(group) = group.filter(|_| cpu || memory) else {
            return;
        };
        for task in &group.tasks {
            let total = |is_short: bool, ask: u64| {
                u64::from(is_short) * ask.saturating_mul(failures.into())
            };
            let amounts = ExhaustedResources {
                cpu_mhz: total(cpu, task.resources.cpu_mhz.into()),
                memory_mib: total(memory, task.resources.memory_mib.into()),
            };
            metric
                .resources_exhausted
                .insert(task.name.clone(), amounts);
        }
    });
}

/// Keeps the classes with the most nodes, of equals the first by name.
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
    inputs: &Inputs<'_>,
    draft: &Draft<'_>,
    rng: &mut RunRng,
    triggered_by: TriggeredBy,
    description: &str,
) -> Evaluation {
    let eval = inputs.eval;
    let hints = unblock_hints(inputs, draft);
    let mut blocked = Evaluation::pending(
        rng.eval_id(),
        eval.job.clone(),
        eval.job_type,
        eval.priority,
        triggered_by,
        inputs.now,
    );
    blocked.status = EvalStatus::Blocked;
    blocked.status_description = description.to_owned();
    blocked.previous_eval = Some(eval.id);
    blocked.failed_task_groups = draft.failed().clone();
    blocked.queued_allocs = draft.queued().clone();
    blocked.class_eligibility = hints.classes;
    blocked.escaped_computed_class = hints.escaped;
    blocked.snapshot_index = draft.plan().snapshot_index;
    blocked.trace_parent.clone_from(&eval.trace_parent);
    blocked
}

/// Returns the classes whose nodes could run one of the failed groups.
fn unblock_hints(inputs: &Inputs<'_>, draft: &Draft<'_>) -> UnblockHints {
    if let Some(nodes) = draft.full_nodes().filter(|nodes| !nodes.is_empty()) {
        return hints_for_nodes(inputs.snapshot, nodes);
    }
    let waiting: Vec<_> = draft
        .failed()
        .keys()
        .flat_map(|group| {
            let older = inputs.older.iter();
            let older = older.filter(move |((name, _), _)| name == group);
            inputs
                .requirements
                .get(group)
                .into_iter()
                .chain(older.map(|(_, requirements)| requirements))
        })
        .collect();
    hints_for_groups(inputs.snapshot, &waiting)
}

/// Returns the classes of the only nodes that can help.
fn hints_for_nodes(snapshot: &Snapshot, nodes: &BTreeSet<NodeId>) -> UnblockHints {
    let mut classes = BTreeMap::new();
    let mut escaped = false;
    for node in snapshot.nodes().map(|node| &node.value) {
        let is_waited_for = nodes.contains(&node.id);
        escaped |= is_waited_for && node.computed_class.is_empty();
        let class = classes.entry(node.computed_class.clone()).or_insert(false);
        *class |= is_waited_for;
    }
    if escaped || classes.len() > CLASSES_MAX {
        return UnblockHints {
            classes: BTreeMap::new(),
            escaped: true,
        };
    }
    UnblockHints { classes, escaped }
}

fn hints_for_groups(snapshot: &Snapshot, waiting: &[&Requirements]) -> UnblockHints {
    if waiting.is_empty()
        || waiting
            .iter()
            .any(|requirements| requirements.escapes_class())
    {
        return UnblockHints {
            classes: BTreeMap::new(),
            escaped: true,
        };
    }
    let mut verdicts = FxHashMap::<&str, bool>::default();
    // One node of each kind stands for all with the same facts, the class among them.
    let kinds = snapshot.node_table().kinds().flatten();
    for node in kinds.map(|kind| &kind.example.value) {
        if node.computed_class.is_empty() {
            // Its class says nothing about it.
            return UnblockHints {
                classes: BTreeMap::new(),
                escaped: true,
            };
        }
        verdicts
            .entry(&node.computed_class)
            .or_insert_with(|| waiting.iter().any(|group| group.class_passes(node)));
    }
    // A class that is not named may help, so the classes that cannot must be named.
    let fits = verdicts.len() <= CLASSES_MAX;
    if !fits && verdicts.values().filter(|passes| !**passes).count() > CLASSES_MAX {
        return UnblockHints {
            classes: BTreeMap::new(),
            escaped: true,
        };
    }
    let named = verdicts.into_iter().filter(|(_, passes)| fits || !passes);
    let classes = named
        .map(|(class, passes)| (class.to_owned(), passes))
        .collect();
    UnblockHints {
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
