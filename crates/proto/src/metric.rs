//! Placement metrics.

use model::{AllocMetric, ExhaustedResources, FieldErrors, NodeScore, ScoreParts};

use crate::fields::{At as _, Read, each, id};
use crate::v1;

impl TryFrom<v1::AllocMetric> for AllocMetric {
    type Error = FieldErrors;

    fn try_from(wire: v1::AllocMetric) -> Result<Self, FieldErrors> {
        read(wire).at("metric")
    }
}

pub(crate) fn read(wire: v1::AllocMetric) -> Read<AllocMetric> {
    Ok(AllocMetric {
        nodes_evaluated: wire.nodes_evaluated,
        nodes_filtered: wire.nodes_filtered,
        nodes_exhausted: wire.nodes_exhausted,
        nodes_in_pool: wire.nodes_in_pool,
        node_pool: wire.node_pool.into(),
        constraint_filtered: wire.constraint_filtered.into_iter().collect(),
        dimension_exhausted: wire.dimension_exhausted.into_iter().collect(),
        class_filtered: wire.class_filtered.into_iter().collect(),
        class_exhausted: wire.class_exhausted.into_iter().collect(),
        resources_exhausted: wire
            .resources_exhausted
            .into_iter()
            .map(|(task, amounts)| (task, exhausted(amounts)))
            .collect(),
        nodes_available: wire.nodes_available.into_iter().collect(),
        score_per_mille: wire.score_per_mille,
        score_parts: wire.score_parts.map(score_parts),
        runners_up: each(wire.runners_up, node_score).at("runners_up")?,
        coalesced_failures: wire.coalesced_failures,
    })
}

fn exhausted(wire: v1::ExhaustedResources) -> ExhaustedResources {
    ExhaustedResources {
        cpu_mhz: wire.cpu_mhz,
        memory_mib: wire.memory_mib,
    }
}

fn node_score(wire: v1::NodeScore) -> Read<NodeScore> {
    Ok(NodeScore {
        node_id: id(&wire.node_id).at("node_id")?,
        per_mille: wire.score_per_mille,
        parts: score_parts(wire.parts.unwrap_or_default()),
    })
}

fn score_parts(wire: v1::ScoreParts) -> ScoreParts {
    ScoreParts {
        fit: wire.fit,
        anti_affinity: wire.anti_affinity,
        reschedule_penalty: wire.reschedule_penalty,
        affinity: wire.affinity,
        spread: wire.spread,
        devices: wire.devices,
        preemption: wire.preemption,
    }
}

impl From<&AllocMetric> for v1::AllocMetric {
    fn from(metric: &AllocMetric) -> Self {
        Self {
            nodes_evaluated: metric.nodes_evaluated,
            nodes_filtered: metric.nodes_filtered,
            nodes_exhausted: metric.nodes_exhausted,
            nodes_in_pool: metric.nodes_in_pool,
            node_pool: metric.node_pool.to_string(),
            constraint_filtered: metric.constraint_filtered.clone().into_iter().collect(),
            dimension_exhausted: metric.dimension_exhausted.clone().into_iter().collect(),
            class_filtered: metric.class_filtered.clone().into_iter().collect(),
            class_exhausted: metric.class_exhausted.clone().into_iter().collect(),
            resources_exhausted: metric
                .resources_exhausted
                .iter()
                .map(|(task, amounts)| (task.clone(), (*amounts).into()))
                .collect(),
            nodes_available: metric.nodes_available.clone().into_iter().collect(),
            score_per_mille: metric.score_per_mille,
            score_parts: metric.score_parts.map(Into::into),
            runners_up: metric.runners_up.iter().map(Into::into).collect(),
            coalesced_failures: metric.coalesced_failures,
        }
    }
}

impl From<ExhaustedResources> for v1::ExhaustedResources {
    fn from(amounts: ExhaustedResources) -> Self {
        Self {
            cpu_mhz: amounts.cpu_mhz,
            memory_mib: amounts.memory_mib,
        }
    }
}

impl From<ScoreParts> for v1::ScoreParts {
    fn from(parts: ScoreParts) -> Self {
        Self {
            fit: parts.fit,
            anti_affinity: parts.anti_affinity,
            reschedule_penalty: parts.reschedule_penalty,
            affinity: parts.affinity,
            spread: parts.spread,
            devices: parts.devices,
            preemption: parts.preemption,
        }
    }
}

impl From<&NodeScore> for v1::NodeScore {
    fn from(score: &NodeScore) -> Self {
        Self {
            node_id: score.node_id.to_string(),
            score_per_mille: score.per_mille,
            parts: Some(score.parts.into()),
        }
    }
}
