//! Volumes, as they are shown and as they are registered, and claims of them.

use proto::v1;
use serde::{Deserialize, Serialize};

/// The type of a volume that names none.
const DEFAULT_TYPE: &str = "host";

/// The output can be registered again: the fields that the gateway sets are ignored then.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Volume {
    #[serde(default)]
    namespace: String,
    #[serde(default, rename = "ID")]
    id: String,
    name: String,
    #[serde(default, rename = "Type")]
    volume_type: String,
    #[serde(default, rename = "NodeID")]
    node_id: String,
    #[serde(default)]
    node_pool: String,
    #[serde(default)]
    host_path: String,
    #[serde(default)]
    requested_capabilities: Vec<Capability>,
    #[serde(default)]
    state: String,
    #[serde(default)]
    create_index: u64,
    /// Unix nanoseconds, as are the other times.
    #[serde(default)]
    create_time: u64,
    #[serde(default)]
    modify_index: u64,
    #[serde(default)]
    modify_time: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Capability {
    #[serde(default)]
    attachment_mode: String,
    #[serde(default)]
    access_mode: String,
}

impl From<&v1::Volume> for Volume {
    fn from(volume: &v1::Volume) -> Self {
        let volume = volume.clone();
        let capabilities = volume.capabilities.into_iter();
        Self {
            namespace: volume.namespace,
            id: volume.id,
            name: volume.name,
            volume_type: volume.r#type,
            node_id: volume.node_id,
            node_pool: volume.node_pool,
            host_path: volume.host_path,
            requested_capabilities: capabilities
                .map(|capability| Capability {
                    attachment_mode: capability.attachment_mode,
                    access_mode: capability.access_mode,
                })
                .collect(),
            state: volume.state,
            create_index: volume.create_index,
            create_time: volume.create_time_ns,
            modify_index: volume.modify_index,
            modify_time: volume.modify_time_ns,
        }
    }
}

impl From<Volume> for v1::Volume {
    fn from(volume: Volume) -> Self {
        let volume_type = Some(volume.volume_type).filter(|name| !name.is_empty());
        let capabilities = volume.requested_capabilities.into_iter();
        Self {
            namespace: volume.namespace,
            id: volume.id,
            name: volume.name,
            r#type: volume_type.unwrap_or_else(|| DEFAULT_TYPE.to_owned()),
            node_id: volume.node_id,
            host_path: volume.host_path,
            capabilities: capabilities
                .map(|capability| v1::VolumeCapability {
                    access_mode: capability.access_mode,
                    attachment_mode: capability.attachment_mode,
                })
                .collect(),
            ..Self::default()
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Claim<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    namespace: &'a str,
    #[serde(rename = "JobID")]
    job_id: &'a str,
    task_group_name: &'a str,
    #[serde(rename = "AllocID")]
    alloc_id: &'a str,
    #[serde(rename = "VolumeID")]
    volume_id: &'a str,
    volume_name: &'a str,
    #[serde(rename = "NodeID")]
    node_id: &'a str,
    create_index: u64,
    modify_index: u64,
}

impl<'a> From<&'a v1::VolumeClaim> for Claim<'a> {
    fn from(claim: &'a v1::VolumeClaim) -> Self {
        Self {
            id: &claim.id,
            namespace: &claim.namespace,
            job_id: &claim.job_id,
            task_group_name: &claim.task_group,
            alloc_id: &claim.alloc_id,
            volume_id: &claim.volume_id,
            volume_name: &claim.volume_name,
            node_id: &claim.node_id,
            create_index: claim.create_index,
            modify_index: claim.modify_index,
        }
    }
}
