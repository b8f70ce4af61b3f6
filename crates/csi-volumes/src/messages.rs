//! Messages of the Container Storage Interface from and to volumes.

use std::collections::BTreeMap;

use csi::capability::Use;
use csi::v1 as wire;
use csi::v1::volume_content_source::{SnapshotSource, Type as Source, VolumeSource};
use model::CsiVolume;
use model::csi::Segments;
use proto::v1;

pub(crate) fn create_request(wanted: &CsiVolume) -> wire::CreateVolumeRequest {
    let capabilities = wanted.capabilities.iter().map(|capability| {
        let usage = Use {
            access_mode: capability.access_mode.as_str().to_owned(),
            attachment_mode: capability.attachment_mode.as_str().to_owned(),
            fs_type: wanted.mount_options.fs_type.clone(),
            mount_flags: wanted.mount_options.mount_flags.clone(),
        };
        usage.to_message()
    });
    let source = if !wanted.clone_id.is_empty() {
        let volume_id = wanted.clone_id.clone();
        Some(Source::Volume(VolumeSource { volume_id }))
    } else if !wanted.snapshot_id.is_empty() {
        let snapshot_id = wanted.snapshot_id.clone();
        Some(Source::Snapshot(SnapshotSource { snapshot_id }))
    } else {
        None
    };
    let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let has_range = wanted.capacity_min_bytes > 0 || wanted.capacity_max_bytes > 0;
    let has_topology =
        !wanted.required_topologies.is_empty() || !wanted.preferred_topologies.is_empty();
    wire::CreateVolumeRequest {
        name: wanted.name.clone(),
        capacity_range: has_range.then(|| wire::CapacityRange {
            required_bytes: bytes(wanted.capacity_min_bytes),
            limit_bytes: bytes(wanted.capacity_max_bytes),
        }),
        volume_capabilities: capabilities.collect(),
        parameters: strings(&wanted.parameters),
        secrets: Default::default(),
        volume_content_source: source.map(|source| wire::VolumeContentSource {
            r#type: Some(source),
        }),
        accessibility_requirements: has_topology.then(|| wire::TopologyRequirement {
            requisite: topologies(&wanted.required_topologies),
            preferred: topologies(&wanted.preferred_topologies),
        }),
        mutable_parameters: Default::default(),
    }
}

/// Returns the volume that a storage system has created for `wanted`; `None`: the answer has no id.
pub(crate) fn created(wanted: CsiVolume, answer: wire::CreateVolumeResponse) -> Option<CsiVolume> {
    let created = answer.volume.unwrap_or_default();
    let topologies = created.accessible_topology.into_iter();
    (!created.volume_id.is_empty()).then(|| CsiVolume {
        external_id: created.volume_id,
        context: created.volume_context.into_iter().collect(),
        capacity_bytes: u64::try_from(created.capacity_bytes).unwrap_or_default(),
        topologies: topologies
            .map(|topology| topology.segments.into_iter().collect())
            .collect(),
        ..wanted
    })
}

pub(crate) fn external_volume(entry: wire::list_volumes_response::Entry) -> v1::ExternalCsiVolume {
    let volume = entry.volume.unwrap_or_default();
    let status = entry.status.unwrap_or_default();
    let condition = status.volume_condition.unwrap_or_default();
    let source = volume.content_source.and_then(|source| source.r#type);
    let (clone_id, snapshot_id) = match source {
        Some(Source::Volume(source)) => (source.volume_id, String::new()),
        Some(Source::Snapshot(source)) => (String::new(), source.snapshot_id),
        None => Default::default(),
    };
    v1::ExternalCsiVolume {
        external_id: volume.volume_id,
        capacity_bytes: u64::try_from(volume.capacity_bytes).unwrap_or_default(),
        context: volume.volume_context,
        clone_id,
        snapshot_id,
        attached_node_ids: status.published_node_ids,
        abnormal: condition.abnormal,
        status: condition.message,
    }
}

pub(crate) fn snapshot_view(snapshot: wire::Snapshot) -> v1::CsiSnapshot {
    let time = snapshot.creation_time.unwrap_or_default();
    let seconds = u64::try_from(time.seconds).unwrap_or_default();
    let nanos = u64::try_from(time.nanos).unwrap_or_default();
    v1::CsiSnapshot {
        id: snapshot.snapshot_id,
        external_volume_id: snapshot.source_volume_id,
        size_bytes: u64::try_from(snapshot.size_bytes).unwrap_or_default(),
        create_time_ns: seconds.saturating_mul(1_000_000_000).saturating_add(nanos),
        ready: snapshot.ready_to_use,
    }
}

fn topologies(all: &[Segments]) -> Vec<wire::Topology> {
    let all = all.iter().map(|segments| wire::Topology {
        segments: strings(segments),
    });
    all.collect()
}

fn strings(map: &BTreeMap<String, String>) -> std::collections::HashMap<String, String> {
    map.clone().into_iter().collect()
}
