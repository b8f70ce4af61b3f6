//! Plan results: the committed parts of a plan.

use model::{FieldErrors, PlanResult};

use crate::fields::{At as _, Read, each, id};
use crate::internal::v1 as internal;

impl TryFrom<internal::SubmitPlanResponse> for PlanResult {
    type Error = FieldErrors;

    fn try_from(wire: internal::SubmitPlanResponse) -> Result<Self, FieldErrors> {
        read(wire).at("plan_result")
    }
}

fn read(wire: internal::SubmitPlanResponse) -> Read<PlanResult> {
    let mut rejected_nodes = std::collections::BTreeMap::new();
    for (node, reason) in wire.rejected_nodes {
        rejected_nodes.insert(
            id(&node).at(format_args!("rejected_nodes[{node:?}]"))?,
            reason,
        );
    }
    Ok(PlanResult {
        placed: each(wire.placed_alloc_ids, |text| id(&text)).at("placed_alloc_ids")?,
        rejected_nodes,
        refused: Some(wire.refused).filter(|reason| !reason.is_empty()),
        commit_index: wire.commit_index,
        refresh_index: wire.refresh_index,
    })
}

impl From<&PlanResult> for internal::SubmitPlanResponse {
    fn from(result: &PlanResult) -> Self {
        Self {
            placed_alloc_ids: result.placed.iter().map(ToString::to_string).collect(),
            rejected_nodes: result
                .rejected_nodes
                .iter()
                .map(|(node_id, reason)| (node_id.to_string(), reason.clone()))
                .collect(),
            refused: result.refused.clone().unwrap_or_default(),
            commit_index: result.commit_index,
            refresh_index: result.refresh_index,
        }
    }
}
