//! Text form of an explanation.

use std::fmt::Write as _;

use model::{Evaluation, Indexed, JobKey, NodeScore};
use scheduler::explain::{
    ClassExplanation, Counts, ExplainRequest, Explanation, GroupExplanation, NodeExplanation,
    PreemptionCounts, Verdict, explain_with as ask,
};
use state::Snapshot;

use crate::cluster::TestCluster;

/// Explains a job's newest evaluation that is not blocked.
pub(crate) fn explain(cluster: &TestCluster, job: &JobKey, edits: &[(&str, &str)]) -> String {
    let snapshot = cluster.snapshot();
    let mut node = None;
    for (key, value) in edits {
        assert_eq!(*key, "node");
        node = Some(cluster.node_named(value).id);
    }
    let request = ExplainRequest {
        eval: &newest(&snapshot, job),
        node,
        now: cluster.now,
        seed: 1,
    };
    describe(&ask(&cluster.config, &snapshot, &request), &snapshot)
}

fn newest(snapshot: &Snapshot, job: &JobKey) -> Indexed<Evaluation> {
    let evals = snapshot.evals_by_job(job);
    let evals = evals.filter(|eval| eval.value.status.as_str() != "blocked");
    let newest = evals.max_by_key(|eval| eval.create_index);
    Indexed::clone(newest.expect("the job was evaluated"))
}

fn describe(explanation: &Explanation, snapshot: &Snapshot) -> String {
    let mut text = String::new();
    if let Some(why) = explanation.empty_reason {
        writeln!(text, "nothing: {why}").unwrap();
    }
    for group in &explanation.groups {
        describe_group(group, &mut text);
    }
    // Names replace random ids.
    for view in snapshot.allocs() {
        text = text.replace(&view.alloc.id.short(), &view.alloc.name());
    }
    text
}

fn describe_group(group: &GroupExplanation, text: &mut String) {
    let GroupExplanation {
        name,
        wanted,
        placed,
        live,
        missing,
        would_place,
        ..
    } = group;
    writeln!(
        text,
        "{name}: wanted={wanted} placed={placed} live={live} missing={missing} \
         would_place={would_place}; asked: {} v{}",
        group.question.as_str(),
        group.job_version
    )
    .unwrap();
    describe_status(group, text);
    writeln!(text, "  all{}", counts(&group.counts)).unwrap();
    if let Some(chosen) = &group.chosen {
        let disk = if chosen.keeps_disk {
            ", for its disk"
        } else {
            ""
        };
        let score = chosen.score.as_ref().map_or("no room".into(), score);
        writeln!(text, "  chosen {}: {score}{disk}", chosen.node_name).unwrap();
        for victim in &chosen.victims {
            let (id, priority) = (victim.alloc_id.short(), victim.priority);
            writeln!(text, "    evicts {id} of priority {priority}").unwrap();
        }
    }
    describe_preemption(&group.preemption, text);
    for class in &group.classes {
        describe_class(class, text);
    }
    if group.classes_left_out > 0 {
        let (classes, nodes) = (group.classes_left_out, group.nodes_left_out);
        writeln!(text, "  and {classes} classes with {nodes} nodes").unwrap();
    }
    for (what, node) in [("nearest", &group.nearest), ("node", &group.node)] {
        if let Some(node) = node {
            describe_node(what, node, text);
        }
    }
}

fn describe_status(group: &GroupExplanation, text: &mut String) {
    let (done, waiting) = (group.done, group.waiting);
    if done + waiting > 0 {
        writeln!(text, "  done={done} waiting={waiting}").unwrap();
    }
    if let Some(hold) = &group.hold {
        writeln!(
            text,
            "  held back by its deployment: {}",
            hold.reason.as_str()
        )
        .unwrap();
    }
}

fn describe_preemption(preemption: &PreemptionCounts, text: &mut String) {
    let counts = [
        ("possible", preemption.possible),
        ("disabled", preemption.disabled),
        ("outranked", preemption.outranked),
        ("insufficient", preemption.insufficient),
    ];
    let counts = counts.into_iter().filter(|(_, nodes)| *nodes > 0);
    let counts: String = counts
        .map(|(preemption, nodes)| format!(" {preemption}={nodes}"))
        .collect();
    if !counts.is_empty() {
        let needed = preemption
            .min_priority
            .map(|least| format!(" needed={least}"));
        let off = if preemption.type_disabled {
            " type-disabled"
        } else {
            ""
        };
        writeln!(
            text,
            "  preemption{counts}{}{off}",
            needed.unwrap_or_default()
        )
        .unwrap();
    }
}

fn describe_class(class: &ClassExplanation, text: &mut String) {
    let name = if class.class.is_empty() {
        "<none>"
    } else {
        &class.class
    };
    writeln!(
        text,
        "  {name} holds={}{}",
        class.holds,
        counts(&class.counts)
    )
    .unwrap();
    for reason in &class.reasons {
        let missing = reason.missing.map(|missing| match missing.most {
            most if most == missing.least => format!(", {most} {} missing", missing.unit),
            most => format!(", {}-{most} {} missing", missing.least, missing.unit),
        });
        let missing = missing.unwrap_or_default();
        let (verdict, nodes) = (reason.verdict.as_str(), reason.nodes);
        writeln!(text, "    {verdict} {nodes}: {}{missing}", reason.reason).unwrap();
    }
    if class.reasons_left_out > 0 {
        writeln!(text, "    and {} reasons", class.reasons_left_out).unwrap();
    }
    if let Some(best) = &class.best {
        let gap = best
            .gap_per_mille
            .map_or("none".into(), |gap| gap.to_string());
        let (name, score) = (&best.node_name, score(&best.score));
        writeln!(text, "    best {name}: {score}, gap {gap}").unwrap();
    }
}

fn describe_node(what: &str, node: &NodeExplanation, text: &mut String) {
    let score = node.score.as_ref().map(score);
    let score = score.map(|score| format!(": {score}")).unwrap_or_default();
    writeln!(
        text,
        "  {what} {} {}{score}",
        node.node_name,
        node.verdict.as_str()
    )
    .unwrap();
    for blocker in &node.blockers {
        writeln!(text, "    {}", blocker.change(&node.node_name)).unwrap();
    }
    if let Some(preemption) = &node.preemption {
        writeln!(text, "    preemption: {}", preemption.text()).unwrap();
    }
}

fn counts(counts: &Counts) -> String {
    let shown = Verdict::ALL.map(|verdict| (verdict.as_str(), counts.of(verdict)));
    let shown = shown.into_iter().filter(|(_, nodes)| *nodes > 0);
    shown
        .map(|(verdict, nodes)| format!(" {}={nodes}", verdict.replace('-', "_")))
        .collect()
}

fn score(score: &NodeScore) -> String {
    let parts = score.parts.named();
    let parts: String = parts
        .map(|(name, said)| format!("{name} {said} "))
        .collect();
    format!("{parts}= {}", score.per_mille)
}
