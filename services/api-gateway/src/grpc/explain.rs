//! `kafila.v1.Evaluations.Explain`: what every node says of an evaluation's job.

use std::time::Duration;

use proto::v1;
use scheduler::explain::{
    ClassExplanation, Counts, Explanation, GroupExplanation, Inquest, NodeExplanation, Obstacle,
    Outscored, Reason, Victim, Way, Ways, explain,
};
use state::{Snapshot, Table};
use tracing::{Instrument as _, info_span};

use super::{Api, evaluations, nodes};
use crate::error::Error;

/// What an explanation looks at.
const TABLES: [Table; 4] = [Table::Evals, Table::Jobs, Table::Allocs, Table::Nodes];

impl Api {
    pub(super) async fn explain_evaluation(
        &self,
        request: v1::ExplainEvaluationRequest,
        timeout: Option<Duration>,
    ) -> Result<v1::ExplainEvaluationResponse, Error> {
        let options = request.options.unwrap_or_default();
        let find = |snapshot: &Snapshot| {
            let id = evaluations::find(snapshot, &request.eval_id)?;
            let node = match request.node_id.as_str() {
                "" => None,
                text => Some(nodes::find(snapshot, text)?),
            };
            Ok(((snapshot.clone(), id, node), String::new()))
        };
        let index = |snapshot: &Snapshot| snapshot.index().max(1);
        let ((snapshot, id, node), meta) =
            self.ask(&options, timeout, &TABLES, index, find).await?;
        let eval = snapshot.eval(id).cloned();
        let eval = eval.expect("found in this very snapshot");
        let evaluation = v1::Evaluation::from(&*eval);
        let gateway = &self.gateway;
        let (now, seed) = (gateway.now(), gateway.ids.next_u64());
        let work = move || {
            let inquest = Inquest {
                eval: &eval,
                node,
                now,
                seed,
            };
            explain(&snapshot, &inquest)
        };
        let explanation = gateway
            .dry_runs
            .run(gateway.config.request_timeout, work)
            .instrument(info_span!("explain", eval_id = %id))
            .await
            .map_err(Error::Explanation)?;
        Ok(v1::ExplainEvaluationResponse {
            meta,
            evaluation: Some(evaluation),
            explanation: Some(to_wire(&explanation)),
        })
    }
}

fn to_wire(explanation: &Explanation) -> v1::Explanation {
    v1::Explanation {
        index: explanation.index,
        job_version: explanation.job_version,
        nothing_wanted: explanation.nothing_wanted.unwrap_or_default().to_owned(),
        groups: explanation.groups.iter().map(group).collect(),
    }
}

fn group(group: &GroupExplanation) -> v1::GroupExplanation {
    let alloc_id = group.question.alloc_id();
    let held = group.held.as_ref();
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
        preemption: ways(&group.ways),
        done: group.done,
        waiting: group.waiting,
        waits_until_ns: group.waits_until.map_or(0, |until| until.0),
        held_by: held.map_or("", |held| held.by.as_str()).to_owned(),
        held_by_deployment: held
            .map(|held| held.deployment_id.to_string())
            .unwrap_or_default(),
    }
}

fn ways(ways: &Ways) -> Option<v1::PreemptionCounts> {
    let Ways {
        open,
        off,
        outranked,
        never,
        needed_least,
        is_off,
    } = *ways;
    (*ways != Ways::default()).then(|| v1::PreemptionCounts {
        open,
        off,
        outranked,
        never,
        needed_least: needed_least.unwrap_or(0).into(),
        disabled: is_off,
    })
}

fn way(way: &Way) -> v1::ExplainedPreemption {
    let needed = match way {
        Way::Outranked { needed, .. } => *needed,
        Way::Open { .. } | Way::Off { .. } | Way::Never { .. } => 0,
    };
    v1::ExplainedPreemption {
        way: way.as_str().to_owned(),
        text: way.text(),
        victims: way.victims().iter().map(victim).collect(),
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
    let obstacles = node.obstacles.iter();
    v1::NodeExplanation {
        node_id: node.node_id.to_string(),
        node_name: node.node_name.clone(),
        class: node.class.clone(),
        verdict: node.verdict.as_str().to_owned(),
        holds: node.holds,
        obstacles: obstacles
            .map(|one| obstacle(one, &node.node_name))
            .collect(),
        score: node.score.as_ref().map(Into::into),
        preemption: node.way.as_ref().map(way),
    }
}

fn obstacle(obstacle: &Obstacle, node_name: &str) -> v1::Obstacle {
    let missing = obstacle.missing();
    v1::Obstacle {
        verdict: obstacle.verdict().as_str().to_owned(),
        reason: obstacle.reason(),
        change: obstacle.change(node_name),
        missing: missing.map_or(0, |(amount, _)| amount),
        unit: missing.map_or("", |(_, unit)| unit).to_owned(),
    }
}
