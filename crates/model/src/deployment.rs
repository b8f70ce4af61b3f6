//! Deployments: the rollout of one job version.
//!
//! Counts of placed and healthy allocations are not stored: the replica derives them from the
//! allocations of the deployment.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{AllocId, DeploymentId, JobKey};
use crate::time::{Timestamp, duration_ns};

/// The value of `deployment/<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployment {
    /// Stands in the key, so the stored value leaves it out; filled in on read.
    #[serde(skip)]
    pub id: DeploymentId,
    #[serde(flatten)]
    pub job: JobKey,
    pub job_version: u64,
    /// The job key's mod revision when the deployment was created.
    pub job_modify_index: u64,
    pub job_create_index: u64,
    pub status: DeploymentStatus,
    pub status_description: String,
    pub groups: BTreeMap<String, DeploymentGroup>,
    /// Priority of the evaluations made for it.
    pub eval_priority: u8,
    pub create_time: Timestamp,
    pub modify_time: Timestamp,
}

/// One task group's part of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentGroup {
    pub auto_revert: bool,
    pub auto_promote: bool,
    /// Zero: no deadline.
    #[serde(with = "duration_ns")]
    pub progress_deadline: Duration,
    pub promoted: bool,
    pub desired_canaries: u32,
    pub desired_total: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placed_canaries: Vec<AllocId>,
    /// Counts at the end of the deployment; unset before. They are stored because allocations do not
    /// stay with an ended deployment: later versions take them over, and they are garbage collected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_counts: Option<DeploymentCounts>,
}

/// Progress of one task group of a deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentCounts {
    pub placed: u32,
    pub healthy: u32,
    pub unhealthy: u32,
}

impl DeploymentGroup {
    /// Tells whether the group waits for the promotion of its canaries.
    pub fn awaits_promotion(&self) -> bool {
        self.desired_canaries > 0 && !self.promoted
    }
}

impl Deployment {
    /// Returns the status description of a running deployment.
    ///
    /// Source: wire format; Nomad's clients show and compare these texts.
    pub fn running_description(&self) -> &'static str {
        let waiting = || {
            self.groups
                .values()
                .filter(|group| group.awaits_promotion())
        };
        if waiting().next().is_none() {
            "Deployment is running"
        } else if waiting().all(|group| group.auto_promote) {
            "Deployment is running pending automatic promotion"
        } else {
            "Deployment is running but requires manual promotion"
        }
    }

    /// Tells whether every group that waits for a promotion is promoted automatically; `false` when
    /// none waits.
    pub fn promotes_itself(&self) -> bool {
        let mut waiting = self
            .groups
            .values()
            .filter(|group| group.awaits_promotion())
            .peekable();
        waiting.peek().is_some() && waiting.all(|group| group.auto_promote)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeploymentStatus {
    Initializing,
    Pending,
    Running,
    Paused,
    Blocked,
    Unblocking,
    Successful,
    Failed,
    Cancelled,
}

impl DeploymentStatus {
    pub const ALL: [Self; 9] = [
        Self::Initializing,
        Self::Pending,
        Self::Running,
        Self::Paused,
        Self::Blocked,
        Self::Unblocking,
        Self::Successful,
        Self::Failed,
        Self::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Blocked => "blocked",
            Self::Unblocking => "unblocking",
            Self::Successful => "successful",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Tells whether the deployment is in progress.
    pub fn is_active(self) -> bool {
        !matches!(self, Self::Successful | Self::Failed | Self::Cancelled)
    }
}
