//! Plans. On the wire each part names its node; in the model the parts are sorted by node.

use std::collections::BTreeMap;

use model::plan::{DeploymentUpdate, Stop};
use model::{Allocation, ClientStatus, FieldErrors, JobKey, NodeId, Plan};

use crate::fields::{At as _, Read, each, id, id_or_empty, optional_id, optional_word, priority};
use crate::internal::v1 as internal;
use crate::{allocation, deployment, evaluation, v1};

impl TryFrom<internal::Plan> for Plan {
    type Error = FieldErrors;

    fn try_from(wire: internal::Plan) -> Result<Self, FieldErrors> {
        read(wire).at("plan")
    }
}

fn read(wire: internal::Plan) -> Read<Plan> {
    let placements = each(wire.placements, allocation::read).at("placements")?;
    Ok(Plan {
        eval_id: id(&wire.eval_id).at("eval_id")?,
        eval_token: wire.eval_token,
        eval_modify_index: wire.eval_modify_index,
        job: JobKey::new(wire.namespace, wire.job_id),
        priority: priority(wire.priority).at("priority")?,
        all_at_once: wire.all_at_once,
        snapshot_index: wire.snapshot_index,
        job_modify_index: wire.job_modify_index,
        stops: by_node(each(wire.stops, read_stop).at("stops")?),
        placements: by_node(placements.into_iter().map(|alloc| (alloc.node_id, alloc))),
        preemptions: by_node(each(wire.preemptions, read_stop).at("preemptions")?),
        deployment: wire
            .deployment
            .map(deployment::read)
            .transpose()
            .at("deployment")?,
        deployment_updates: each(wire.deployment_updates, read_update).at("deployment_updates")?,
        followup_evals: each(wire.followup_evals, evaluation::read).at("followup_evals")?,
        eval_outcome: wire
            .eval_outcome
            .map(evaluation::read)
            .transpose()
            .at("eval_outcome")?
            .map(Box::new),
        trace_parent: wire.trace_parent,
    })
}

/// Sorts parts by their node; those of one node keep their order.
fn by_node<T>(parts: impl IntoIterator<Item = (NodeId, T)>) -> BTreeMap<NodeId, Vec<T>> {
    let mut nodes: BTreeMap<NodeId, Vec<T>> = BTreeMap::new();
    for (node_id, part) in parts {
        nodes.entry(node_id).or_default().push(part);
    }
    nodes
}

fn read_stop(wire: internal::Stop) -> Read<(NodeId, Stop)> {
    let stop = Stop {
        alloc_id: id(&wire.alloc_id).at("alloc_id")?,
        description: wire.description,
        client_status: optional_word(
            &wire.client_status,
            &ClientStatus::ALL,
            ClientStatus::as_str,
        )
        .at("client_status")?,
        followup_eval_id: optional_id(&wire.followup_eval_id).at("followup_eval_id")?,
        preempted_by: optional_id(&wire.preempted_by_alloc_id).at("preempted_by_alloc_id")?,
    };
    Ok((id(&wire.node_id).at("node_id")?, stop))
}

fn read_update(wire: internal::DeploymentUpdate) -> Read<DeploymentUpdate> {
    Ok(DeploymentUpdate {
        deployment_id: id(&wire.deployment_id).at("deployment_id")?,
        status: deployment::read_status(&wire.status).at("status")?,
        description: wire.description,
    })
}

impl From<&Plan> for internal::Plan {
    fn from(plan: &Plan) -> Self {
        Self {
            eval_id: plan.eval_id.to_string(),
            eval_token: plan.eval_token.clone(),
            eval_modify_index: plan.eval_modify_index,
            namespace: plan.job.namespace.to_string(),
            job_id: plan.job.job_id.to_string(),
            priority: u32::from(plan.priority),
            all_at_once: plan.all_at_once,
            snapshot_index: plan.snapshot_index,
            job_modify_index: plan.job_modify_index,
            stops: write_stops(&plan.stops),
            placements: plan.placements.iter().flat_map(write_placements).collect(),
            preemptions: write_stops(&plan.preemptions),
            deployment: plan.deployment.as_ref().map(Into::into),
            deployment_updates: plan.deployment_updates.iter().map(Into::into).collect(),
            followup_evals: plan.followup_evals.iter().map(Into::into).collect(),
            eval_outcome: plan.eval_outcome.as_deref().map(Into::into),
            trace_parent: plan.trace_parent.clone(),
        }
    }
}

/// Writes the placements of one node: the map's key decides, not the allocation's field.
fn write_placements(
    (node_id, allocs): (&NodeId, &Vec<Allocation>),
) -> impl Iterator<Item = v1::Allocation> {
    let node_id = node_id.to_string();
    allocs.iter().map(move |alloc| v1::Allocation {
        node_id: node_id.clone(),
        ..alloc.into()
    })
}

fn write_stops(nodes: &BTreeMap<NodeId, Vec<Stop>>) -> Vec<internal::Stop> {
    let mut wire = Vec::new();
    for (node_id, stops) in nodes {
        for stop in stops {
            wire.push(internal::Stop {
                alloc_id: stop.alloc_id.to_string(),
                node_id: node_id.to_string(),
                description: stop.description.clone(),
                client_status: stop
                    .client_status
                    .map_or_else(String::new, |status| status.as_str().to_owned()),
                followup_eval_id: id_or_empty(stop.followup_eval_id),
                preempted_by_alloc_id: id_or_empty(stop.preempted_by),
            });
        }
    }
    wire
}

impl From<&DeploymentUpdate> for internal::DeploymentUpdate {
    fn from(update: &DeploymentUpdate) -> Self {
        Self {
            deployment_id: update.deployment_id.to_string(),
            status: update.status.as_str().to_owned(),
            description: update.description.clone(),
        }
    }
}
