//! JSON of `eval explain`.

use proto::v1;
use serde::Serialize;

use crate::metric::NodeScore;
use crate::time;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Explanation<'a> {
    #[serde(rename = "EvalID")]
    eval_id: &'a str,
    #[serde(rename = "JobID")]
    job_id: &'a str,
    namespace: &'a str,
    /// The revision that is explained.
    index: u64,
    /// The revision that the evaluation was processed at; 0: it is pending.
    snapshot_index: u64,
    job_version: Option<u64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    empty_reason: &'a str,
    task_groups: Vec<Group<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Group<'a> {
    name: &'a str,
    wanted: u32,
    live: u32,
    placed: u32,
    would_place: u32,
    missing: u32,
    done: u32,
    waiting: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_until: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    hold_reason: &'a str,
    #[serde(rename = "HoldDeploymentID", skip_serializing_if = "str::is_empty")]
    hold_deployment_id: &'a str,
    question: &'a str,
    #[serde(rename = "AllocID", skip_serializing_if = "str::is_empty")]
    alloc_id: &'a str,
    job_version: u64,
    nodes: Counts,
    chosen: Option<Chosen<'a>>,
    classes: Vec<Class<'a>>,
    classes_left_out: u32,
    nodes_left_out: u32,
    nearest_miss: Option<Node<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<Node<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preemption: Option<PreemptionCounts>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct PreemptionCounts {
    possible: u32,
    disabled: u32,
    outranked: u32,
    insufficient: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_priority: Option<u32>,
    type_disabled: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Counts {
    out_of_scope: u32,
    unavailable: u32,
    filtered: u32,
    exhausted: u32,
    outscored: u32,
    chosen: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Chosen<'a> {
    #[serde(rename = "NodeID")]
    node_id: &'a str,
    node_name: &'a str,
    node_class: &'a str,
    keeps_disk: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    victims: Vec<Victim<'a>>,
    score: Option<NodeScore<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Victim<'a> {
    #[serde(rename = "AllocID")]
    alloc_id: &'a str,
    #[serde(rename = "JobID")]
    job_id: &'a str,
    priority: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Preemption<'a> {
    outcome: &'a str,
    text: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    victims: Vec<Victim<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needed_priority: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Class<'a> {
    node_class: &'a str,
    nodes: Counts,
    holding: u32,
    reasons: Vec<Reason<'a>>,
    reasons_left_out: u32,
    best_outscored: Option<Outscored<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Reason<'a> {
    verdict: &'a str,
    reason: &'a str,
    nodes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    least_missing: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    most_missing: Option<u64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Outscored<'a> {
    node_name: &'a str,
    gap: Option<f64>,
    score: Option<NodeScore<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Node<'a> {
    #[serde(rename = "NodeID")]
    node_id: &'a str,
    node_name: &'a str,
    node_class: &'a str,
    verdict: &'a str,
    holding: u32,
    blockers: Vec<Blocker<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preemption: Option<Preemption<'a>>,
    score: Option<NodeScore<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Blocker<'a> {
    verdict: &'a str,
    reason: &'a str,
    change: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<u64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'a str,
}

impl<'a> Explanation<'a> {
    pub fn new(eval: &'a v1::Evaluation, explanation: &'a v1::Explanation) -> Self {
        Self {
            eval_id: &eval.id,
            job_id: &eval.job_id,
            namespace: &eval.namespace,
            index: explanation.index,
            snapshot_index: eval.snapshot_index,
            job_version: explanation.job_version,
            empty_reason: &explanation.empty_reason,
            task_groups: explanation.groups.iter().map(Into::into).collect(),
        }
    }
}

impl<'a> From<&'a v1::GroupExplanation> for Group<'a> {
    fn from(group: &'a v1::GroupExplanation) -> Self {
        Self {
            name: &group.name,
            wanted: group.wanted,
            live: group.live,
            placed: group.placed,
            would_place: group.would_place,
            missing: group.missing,
            done: group.done,
            waiting: group.waiting,
            waits_until: time::json(group.waits_until_ns),
            hold_reason: &group.hold_reason,
            hold_deployment_id: &group.hold_deployment_id,
            question: &group.question,
            alloc_id: &group.alloc_id,
            job_version: group.job_version,
            nodes: counts(group.counts),
            chosen: group.chosen.as_ref().map(|chosen| Chosen {
                node_id: &chosen.node_id,
                node_name: &chosen.node_name,
                node_class: &chosen.class,
                keeps_disk: chosen.keeps_disk,
                victims: victims(&chosen.victims),
                score: chosen.score.as_ref().map(Into::into),
            }),
            classes: group.classes.iter().map(Into::into).collect(),
            classes_left_out: group.classes_left_out,
            nodes_left_out: group.nodes_left_out,
            nearest_miss: group.nearest.as_ref().map(Into::into),
            node: group.node.as_ref().map(Into::into),
            preemption: group.preemption.as_ref().map(|counts| PreemptionCounts {
                possible: counts.possible,
                disabled: counts.disabled,
                outranked: counts.outranked,
                insufficient: counts.insufficient,
                min_priority: (counts.min_priority > 0).then_some(counts.min_priority),
                type_disabled: counts.type_disabled,
            }),
        }
    }
}

impl<'a> From<&'a v1::ClassExplanation> for Class<'a> {
    fn from(class: &'a v1::ClassExplanation) -> Self {
        let reasons = class.reasons.iter().map(|reason| {
            let is_counted = reason.most_missing > 0;
            Reason {
                verdict: &reason.verdict,
                reason: &reason.reason,
                nodes: reason.nodes,
                least_missing: is_counted.then_some(reason.least_missing),
                most_missing: is_counted.then_some(reason.most_missing),
                unit: &reason.unit,
            }
        });
        Self {
            node_class: &class.class,
            nodes: counts(class.counts),
            holding: class.holds,
            reasons: reasons.collect(),
            reasons_left_out: class.reasons_left_out,
            best_outscored: class.best.as_ref().map(|best| Outscored {
                node_name: &best.node_name,
                gap: best.gap_per_mille.map(|gap| f64::from(gap) / 1000.0),
                score: best.score.as_ref().map(Into::into),
            }),
        }
    }
}

impl<'a> From<&'a v1::NodeExplanation> for Node<'a> {
    fn from(node: &'a v1::NodeExplanation) -> Self {
        let blockers = node.blockers.iter().map(|blocker| Blocker {
            verdict: &blocker.verdict,
            reason: &blocker.reason,
            change: &blocker.change,
            missing: (blocker.missing > 0).then_some(blocker.missing),
            unit: &blocker.unit,
        });
        Self {
            node_id: &node.node_id,
            node_name: &node.node_name,
            node_class: &node.class,
            verdict: &node.verdict,
            holding: node.holds,
            blockers: blockers.collect(),
            preemption: node.preemption.as_ref().map(|it| Preemption {
                outcome: &it.outcome,
                text: &it.text,
                victims: victims(&it.victims),
                needed_priority: (it.needed_priority > 0).then_some(it.needed_priority),
            }),
            score: node.score.as_ref().map(Into::into),
        }
    }
}

fn victims(victims: &[v1::ExplainedVictim]) -> Vec<Victim<'_>> {
    let victims = victims.iter().map(|victim| Victim {
        alloc_id: &victim.alloc_id,
        job_id: &victim.job_id,
        priority: victim.priority,
    });
    victims.collect()
}

fn counts(counts: Option<v1::VerdictCounts>) -> Counts {
    let counts = counts.unwrap_or_default();
    Counts {
        out_of_scope: counts.out_of_scope,
        unavailable: counts.unavailable,
        filtered: counts.filtered,
        exhausted: counts.exhausted,
        outscored: counts.outscored,
        chosen: counts.chosen,
    }
}
