//! Explanations of evaluations as the API returns them.

use proto::v1;
use scheduler::explain::{
    ClassExplanation, Counts, Explanation, GroupExplanation, NodeExplanation, Outscored,
    PlacementBlocker, PreemptionCounts, PreemptionOutcome, Reason, Victim,
};

pub fn explanation(explanation: &Explanation) -> v1::Explanation {
    v1::Explanation {
        index: explanation.index,
        job_version: explanation.job_version,
        empty_reason: explanation.empty_reason.unwrap_or_default().to_owned(),
        groups: explanation.groups.iter().map(group).collect(),
    }
}

fn group(group: &GroupExplanation) -> v1::GroupExplanation {
    let alloc_id = group.question.alloc_id();
    let hold = group.hold.as_ref();
    v1::GroupExplanation {
        name: group.name.clone(),
        wanted: group.wanted,
        placed: group.placed,
        live: group.live,
        missing: group.missing,
        would_place: group.would_place,
        question: group.question.as_str().to_owned(),
        alloc_id: alloc_id.map(|id| id.to_string()).unwrap_or_default(),
        job_version: group.job_version,
        counts: Some(counts(&group.counts)),
        chosen: group.chosen.as_ref().map(|chosen| v1::ChosenNode {
            node_id: chosen.node_id.to_string(),
            node_name: chosen.node_name.clone(),
            class: chosen.class.clone(),
            score: chosen.score.as_ref().map(Into::into),
            keeps_disk: chosen.keeps_disk,
            victims: chosen.victims.iter().map(victim).collect(),
        }),
        classes: group.classes.iter().map(class).collect(),
        classes_left_out: group.classes_left_out,
        nodes_left_out: group.nodes_left_out,
        nearest: group.nearest.as_ref().map(node),
        node: group.node.as_ref().map(node),
        preemption: preemption_counts(&group.preemption),
        done: group.done,
        waiting: group.waiting,
        waits_until_ns: group.waits_until.map_or(0, |until| until.0),
        hold_reason: hold.map_or("", |hold| hold.reason.as_str()).to_owned(),
        hold_deployment_id: hold
            .map(|hold| hold.deployment_id.to_string())
            .unwrap_or_default(),
    }
}

fn preemption_counts(counts: &PreemptionCounts) -> Option<v1::PreemptionCounts> {
    let PreemptionCounts {
        possible,
        disabled,
        outranked,
        insufficient,
        min_priority,
        type_disabled,
    } = *counts;
    (*counts != PreemptionCounts::default()).then(|| v1::PreemptionCounts {
        possible,
        disabled,
        outranked,
        insufficient,
        min_priority: min_priority.unwrap_or(0).into(),
        type_disabled,
    })
}

fn preemption(outcome: &PreemptionOutcome) -> v1::ExplainedPreemption {
    let needed = match outcome {
        PreemptionOutcome::Outranked { needed, .. } => *needed,
        PreemptionOutcome::Possible { .. }
        | PreemptionOutcome::Disabled { .. }
        | PreemptionOutcome::Insufficient { .. } => 0,
    };
    v1::ExplainedPreemption {
        outcome: outcome.as_str().to_owned(),
        text: outcome.text(),
        victims: outcome.victims().iter().map(victim).collect(),
        needed_priority: needed.into(),
    }
}

fn victim(victim: &Victim) -> v1::ExplainedVictim {
    v1::ExplainedVictim {
        alloc_id: victim.alloc_id.to_string(),
        job_id: victim.job_id.clone(),
        priority: victim.priority.into(),
    }
}

fn counts(counts: &Counts) -> v1::VerdictCounts {
    let Counts {
        out_of_scope,
        unavailable,
        filtered,
        exhausted,
        outscored,
        chosen,
    } = *counts;
    v1::VerdictCounts {
        out_of_scope,
        unavailable,
        filtered,
        exhausted,
        outscored,
        chosen,
    }
}

fn class(class: &ClassExplanation) -> v1::ClassExplanation {
    v1::ClassExplanation {
        class: class.class.clone(),
        counts: Some(counts(&class.counts)),
        holds: class.holds,
        reasons: class.reasons.iter().map(reason).collect(),
        reasons_left_out: class.reasons_left_out,
        best: class.best.as_ref().map(outscored),
    }
}

fn reason(reason: &Reason) -> v1::ExplainedReason {
    let missing = reason.missing;
    v1::ExplainedReason {
        verdict: reason.verdict.as_str().to_owned(),
        reason: reason.reason.clone(),
        nodes: reason.nodes,
        least_missing: missing.map_or(0, |missing| missing.least),
        most_missing: missing.map_or(0, |missing| missing.most),
        unit: missing.map_or("", |missing| missing.unit).to_owned(),
    }
}

fn outscored(outscored: &Outscored) -> v1::OutscoredNode {
    v1::OutscoredNode {
        node_name: outscored.node_name.clone(),
        score: Some((&outscored.score).into()),
        gap_per_mille: outscored.gap_per_mille,
    }
}

fn node(node: &NodeExplanation) -> v1::NodeExplanation {
    let blockers = node.blockers.iter();
    v1::NodeExplanation {
        node_id: node.node_id.to_string(),
        node_name: node.node_name.clone(),
        class: node.class.clone(),
        verdict: node.verdict.as_str().to_owned(),
        holds: node.holds,
        blockers: blockers.map(|one| blocker(one, &node.node_name)).collect(),
        score: node.score.as_ref().map(Into::into),
        preemption: node.preemption.as_ref().map(preemption),
    }
}

fn blocker(blocker: &PlacementBlocker, node_name: &str) -> v1::PlacementBlocker {
    let missing = blocker.missing();
    v1::PlacementBlocker {
        verdict: blocker.verdict().as_str().to_owned(),
        reason: blocker.reason(),
        change: blocker.change(node_name),
        missing: missing.map_or(0, |(amount, _)| amount),
        unit: missing.map_or("", |(_, unit)| unit).to_owned(),
    }
}
