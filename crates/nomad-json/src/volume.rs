//! Volumes, and claims of them.

use proto::v1;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Volume<'a> {
    namespace: &'a str,
    #[serde(rename = "ID")]
    id: &'a str,
    name: &'a str,
    #[serde(rename = "Type")]
    volume_type: &'a str,
    #[serde(rename = "NodeID")]
    node_id: &'a str,
    node_pool: &'a str,
    host_path: &'a str,
    requested_capabilities: Vec<Capability<'a>>,
    state: &'a str,
    create_index: u64,
    /// Unix nanoseconds, as are the other times.
    create_time: u64,
    modify_index: u64,
    modify_time: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Capability<'a> {
    attachment_mode: &'a str,
    access_mode: &'a str,
}

impl<'a> From<&'a v1::Volume> for Volume<'a> {
    fn from(volume: &'a v1::Volume) -> Self {
        let capabilities = volume.capabilities.iter();
        Self {
            namespace: &volume.namespace,
            id: &volume.id,
            name: &volume.name,
            volume_type: &volume.r#type,
            node_id: &volume.node_id,
            node_pool: &volume.node_pool,
            host_path: &volume.host_path,
            requested_capabilities: capabilities
                .map(|capability| Capability {
                    attachment_mode: &capability.attachment_mode,
                    access_mode: &capability.access_mode,
                })
                .collect(),
            state: &volume.state,
            create_index: volume.create_index,
            create_time: volume.create_time_ns,
            modify_index: volume.modify_index,
            modify_time: volume.modify_time_ns,
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
