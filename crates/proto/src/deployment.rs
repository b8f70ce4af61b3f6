//! Deployments: the stored form in both directions, and the counts for readers.

use std::collections::BTreeMap;

use model::{
    Deployment, DeploymentGroup, DeploymentStatus, FieldErrors, Indexed, JobKey, Timestamp,
};

use crate::fields::{
    At as _, Read, duration, duration_to_wire, each, each_value, id, priority, time, word,
};
use crate::v1;

impl TryFrom<v1::Deployment> for Deployment {
    type Error = FieldErrors;

    fn try_from(wire: v1::Deployment) -> Result<Self, FieldErrors> {
        read(wire).at("deployment")
    }
}

pub(crate) fn read_status(text: &str) -> Read<DeploymentStatus> {
    word(text, &DeploymentStatus::ALL, DeploymentStatus::as_str)
}

pub(crate) fn read(wire: v1::Deployment) -> Read<Deployment> {
    Ok(Deployment {
        id: id(&wire.id).at("id")?,
        job: JobKey::new(wire.namespace, wire.job_id),
        job_version: wire.job_version,
        job_modify_index: wire.job_modify_index,
        job_create_index: wire.job_create_index,
        status: read_status(&wire.status).at("status")?,
        status_description: wire.status_description,
        groups: each_value(wire.task_groups, read_group).at("task_groups")?,
        eval_priority: priority(wire.eval_priority).at("eval_priority")?,
        create_time: time(wire.create_time_ns),
        modify_time: time(wire.modify_time_ns),
    })
}

fn read_group(wire: v1::DeploymentGroup) -> Read<DeploymentGroup> {
    Ok(DeploymentGroup {
        auto_revert: wire.auto_revert,
        auto_promote: wire.auto_promote,
        progress_deadline: duration(wire.progress_deadline.unwrap_or_default())
            .at("progress_deadline")?,
        promoted: wire.promoted,
        desired_canaries: wire.desired_canaries,
        desired_total: wire.desired_total,
        placed_canaries: each(wire.placed_canary_ids, |text| id(&text)).at("placed_canary_ids")?,
        // Set by the writer that ends the deployment; not on the wire.
        final_counts: None,
    })
}

impl From<&Deployment> for v1::Deployment {
    fn from(deployment: &Deployment) -> Self {
        Self {
            id: deployment.id.to_string(),
            namespace: deployment.job.namespace.to_string(),
            job_id: deployment.job.job_id.to_string(),
            job_version: deployment.job_version,
            job_modify_index: deployment.job_modify_index,
            job_create_index: deployment.job_create_index,
            status: deployment.status.as_str().to_owned(),
            status_description: deployment.status_description.clone(),
            task_groups: deployment
                .groups
                .iter()
                .map(|(name, group)| (name.clone(), group.into()))
                .collect(),
            eval_priority: u32::from(deployment.eval_priority),
            create_time_ns: deployment.create_time.0,
            modify_time_ns: deployment.modify_time.0,
            create_index: 0,
            modify_index: 0,
        }
    }
}

impl From<&DeploymentGroup> for v1::DeploymentGroup {
    fn from(group: &DeploymentGroup) -> Self {
        Self {
            auto_revert: group.auto_revert,
            auto_promote: group.auto_promote,
            progress_deadline: Some(duration_to_wire(group.progress_deadline)),
            promoted: group.promoted,
            desired_canaries: group.desired_canaries,
            desired_total: group.desired_total,
            placed_canary_ids: group
                .placed_canaries
                .iter()
                .map(ToString::to_string)
                .collect(),
            placed_allocs: 0,
            healthy_allocs: 0,
            unhealthy_allocs: 0,
            require_progress_by_ns: 0,
        }
    }
}

/// Fields of a deployment's group that are set on read, counted over its allocations.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeploymentGroupRead {
    pub placed_allocs: u32,
    pub healthy_allocs: u32,
    pub unhealthy_allocs: u32,
    /// Never: no deadline.
    pub require_progress_by: Timestamp,
}

impl v1::Deployment {
    /// Writes a stored deployment as readers get it; `groups` is keyed by task group, and one that
    /// is missing there has nothing placed.
    pub fn from_stored(
        deployment: &Indexed<Deployment>,
        groups: &BTreeMap<String, DeploymentGroupRead>,
    ) -> Self {
        let mut wire = Self {
            create_index: deployment.create_index,
            modify_index: deployment.modify_index,
            ..Self::from(&deployment.value)
        };
        for (name, group) in &mut wire.task_groups {
            let counts = groups.get(name).copied().unwrap_or_default();
            group.placed_allocs = counts.placed_allocs;
            group.healthy_allocs = counts.healthy_allocs;
            group.unhealthy_allocs = counts.unhealthy_allocs;
            group.require_progress_by_ns = counts.require_progress_by.0;
        }
        wire
    }
}
