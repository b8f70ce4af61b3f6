//! Requests that a controller plugin of a storage system answers.

use std::collections::BTreeMap;

use admission::cluster::csi::CsiRefusal;
use admission::cluster::csi::controller::{self, Ability};
use admission::cluster::csi::deregister;
use admission::jobs::alloc_node::AllocNode;
use csi::Method;
use csi::capability::Use;
use csi::v1 as wire;
use csi::v1::volume_content_source::{SnapshotSource, Type as Source, VolumeSource};
use gateway_core::{Error, Step};
use model::csi::Segments;
use model::{CsiVolume, CsiVolumeKey};
use proto::v1;
use state::Snapshot;
use tonic::Status;
use tracing::warn;

use super::query::Api;

/// A failed call: the node's or the plugin's own status.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message())]
struct Called(Status);

impl From<Called> for Error {
    fn from(called: Called) -> Self {
        // The codes of plugins say what is wrong with the request; the rest is the storage system's.
        Self::new(called.0.code(), called)
    }
}

impl Api {
    /// Lets the storage system create a volume, then registers it.
    pub(super) async fn create_csi(&self, wanted: CsiVolume) -> Result<v1::CsiVolume, Error> {
        let core = &self.gateway.core;
        let snapshot = core.fresh().await?;
        if let Some(stored) = snapshot.csi_volume(&wanted.key()) {
            // The answer of the first request was lost.
            let same = CsiVolume {
                external_id: stored.value.external_id.clone(),
                context: stored.value.context.clone(),
                capacity_bytes: stored.value.capacity_bytes,
                topologies: stored.value.topologies.clone(),
                deleting: stored.value.deleting,
                attach_count: stored.value.attach_count,
                create_time: stored.value.create_time,
                modify_time: stored.value.modify_time,
                ..wanted.clone()
            };
            if same == stored.value {
                return Ok(api_view::csi::volume(&snapshot, stored));
            }
            return Err(CsiRefusal::Exists { id: wanted.id }.into());
        }
        let node = controller::find(&snapshot, &wanted.plugin_id, Ability::Create, 0)?;
        let request = create_request(&wanted);
        let plugin_id = wanted.plugin_id.clone();
        let about = (plugin_id.as_str(), Method::CreateVolume);
        let answer: wire::CreateVolumeResponse = self.call(&node, about, &request).await?;
        let created = answer.volume.unwrap_or_default();
        if created.volume_id.is_empty() {
            let status = Status::internal(format!(
                "CSI plugin {plugin_id:?} has created a volume without an id"
            ));
            return Err(Called(status).into());
        }
        let volume = CsiVolume {
            external_id: created.volume_id,
            context: created.volume_context.into_iter().collect(),
            capacity_bytes: u64::try_from(created.capacity_bytes).unwrap_or_default(),
            topologies: created
                .accessible_topology
                .into_iter()
                .map(|topology| topology.segments.into_iter().collect())
                .collect(),
            ..wanted
        };
        let registered = self.register_csi(&volume).await;
        if let Err(error) = &registered {
            let (external_id, error) = (&volume.external_id, error.message());
            warn!(
                external_id,
                error, "a volume was created and not registered"
            );
        }
        registered
    }

    /// Lets the storage system delete a volume that nothing uses, then forgets it.
    pub(super) async fn delete_csi(&self, key: &CsiVolumeKey) -> Result<u64, Error> {
        let core = &self.gateway.core;
        let what = || format!("volume {}", key.id);
        let missing = || CsiRefusal::NoVolume(key.id.to_string());
        let marking = core.execute(what, |snapshot: &Snapshot| {
            let step = deregister::deregister(snapshot, key, false)?;
            if step.is_none() {
                return Err(missing().into());
            }
            let stored = snapshot.csi_volume(key).ok_or_else(missing)?;
            Ok(Step::Commit {
                writes: vec![deregister::mark(stored, true)],
                answer: Box::new(|revision| revision),
            })
        });
        let marked = marking.await?;
        let snapshot = core.wait_for(marked, core.deadline()).await?;
        let deleted = self.delete_marked(&snapshot, key).await;
        if let Err(error) = deleted {
            self.unmark(key).await?;
            return Err(error);
        }
        self.deregister_csi(key, false).await
    }

    async fn delete_marked(&self, snapshot: &Snapshot, key: &CsiVolumeKey) -> Result<(), Error> {
        // The mark excludes new users; this finds those that came before it.
        if let Some(admission::cluster::deletion::Deletion::TakeBack { refusal, .. }) =
            deregister::deregister(snapshot, key, false)?
        {
            return Err(refusal.into());
        }
        let stored = snapshot.csi_volume(key);
        let stored = stored.ok_or_else(|| CsiRefusal::NoVolume(key.id.to_string()))?;
        let plugin_id = &stored.value.plugin_id;
        let node = controller::find(snapshot, plugin_id, Ability::Create, 0)?;
        let request = wire::DeleteVolumeRequest {
            volume_id: stored.value.external_id.clone(),
            secrets: Default::default(),
        };
        let about = (plugin_id.as_str(), Method::DeleteVolume);
        let _: wire::DeleteVolumeResponse = self.call(&node, about, &request).await?;
        Ok(())
    }

    async fn unmark(&self, key: &CsiVolumeKey) -> Result<(), Error> {
        let what = || format!("volume {}", key.id);
        let decide = |snapshot: &Snapshot| {
            Ok(match snapshot.csi_volume(key) {
                Some(stored) if stored.value.deleting => Step::Commit {
                    writes: vec![deregister::mark(stored, false)],
                    answer: Box::new(|_| ()),
                },
                _ => Step::IfFresh(()),
            })
        };
        self.gateway.core.execute(what, decide).await
    }

    pub(super) async fn list_external_csi(
        &self,
        request: v1::ListExternalCsiVolumesRequest,
    ) -> Result<v1::ListExternalCsiVolumesResponse, Error> {
        let snapshot = self.gateway.core.snapshot(true).await?;
        let plugin_id = &request.plugin_id;
        let node = controller::find(&snapshot, plugin_id, Ability::List, 0)?;
        let listing = wire::ListVolumesRequest {
            max_entries: i32::try_from(request.per_page).unwrap_or(i32::MAX),
            starting_token: request.page_token,
        };
        let about = (plugin_id.as_str(), Method::ListVolumes);
        let answer: wire::ListVolumesResponse = self.call(&node, about, &listing).await?;
        let volumes = answer.entries.into_iter().map(|entry| {
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
        });
        Ok(v1::ListExternalCsiVolumesResponse {
            volumes: volumes.collect(),
            next_token: answer.next_token,
        })
    }

    pub(super) async fn create_csi_snapshot(
        &self,
        request: v1::CreateCsiSnapshotRequest,
    ) -> Result<v1::CreateCsiSnapshotResponse, Error> {
        let key = super::csi::key(&request.namespace, &request.volume_id);
        let snapshot = self.gateway.core.fresh().await?;
        let stored = snapshot.csi_volume(&key);
        let stored = stored.ok_or_else(|| CsiRefusal::NoVolume(request.volume_id.clone()))?;
        let plugin_id = &stored.value.plugin_id;
        let node = controller::find(&snapshot, plugin_id, Ability::Snapshot, 0)?;
        let name = match request.name.as_str() {
            // The specification needs one, by which a repetition finds the first snapshot.
            "" => format!("{}-{}", key.id, self.gateway.core.now().as_secs()),
            name => name.to_owned(),
        };
        let asked = wire::CreateSnapshotRequest {
            source_volume_id: stored.value.external_id.clone(),
            name,
            secrets: Default::default(),
            parameters: request.parameters,
        };
        let about = (plugin_id.as_str(), Method::CreateSnapshot);
        let answer: wire::CreateSnapshotResponse = self.call(&node, about, &asked).await?;
        Ok(v1::CreateCsiSnapshotResponse {
            snapshot: answer.snapshot.map(snapshot_view),
        })
    }

    pub(super) async fn delete_csi_snapshot(
        &self,
        request: v1::DeleteCsiSnapshotRequest,
    ) -> Result<v1::DeleteCsiSnapshotResponse, Error> {
        if request.snapshot_id.is_empty() {
            let message = "missing: want the storage system's id of the snapshot";
            return Err(Error::invalid_field("snapshot_id", message));
        }
        let snapshot = self.gateway.core.snapshot(true).await?;
        let plugin_id = &request.plugin_id;
        let node = controller::find(&snapshot, plugin_id, Ability::Snapshot, 0)?;
        let asked = wire::DeleteSnapshotRequest {
            snapshot_id: request.snapshot_id,
            secrets: Default::default(),
        };
        let about = (plugin_id.as_str(), Method::DeleteSnapshot);
        let _: wire::DeleteSnapshotResponse = self.call(&node, about, &asked).await?;
        Ok(v1::DeleteCsiSnapshotResponse {})
    }

    pub(super) async fn list_csi_snapshots(
        &self,
        request: v1::ListCsiSnapshotsRequest,
    ) -> Result<v1::ListCsiSnapshotsResponse, Error> {
        let snapshot = self.gateway.core.snapshot(true).await?;
        let plugin_id = &request.plugin_id;
        let node = controller::find(&snapshot, plugin_id, Ability::ListSnapshots, 0)?;
        let asked = wire::ListSnapshotsRequest {
            max_entries: i32::try_from(request.per_page).unwrap_or(i32::MAX),
            starting_token: request.page_token,
            ..wire::ListSnapshotsRequest::default()
        };
        let about = (plugin_id.as_str(), Method::ListSnapshots);
        let answer: wire::ListSnapshotsResponse = self.call(&node, about, &asked).await?;
        let snapshots = answer
            .entries
            .into_iter()
            .filter_map(|entry| entry.snapshot);
        Ok(v1::ListCsiSnapshotsResponse {
            snapshots: snapshots.map(snapshot_view).collect(),
            next_token: answer.next_token,
        })
    }

    async fn call<Q: prost::Message, A: prost::Message + Default>(
        &self,
        node: &AllocNode,
        about: (&str, Method),
        request: &Q,
    ) -> Result<A, Error> {
        let called = node_gateway::csi::call(&self.gateway.node, node, about, request).await;
        called.map_err(|status| Called(status).into())
    }
}

fn create_request(wanted: &CsiVolume) -> wire::CreateVolumeRequest {
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

fn topologies(all: &[Segments]) -> Vec<wire::Topology> {
    let all = all.iter().map(|segments| wire::Topology {
        segments: strings(segments),
    });
    all.collect()
}

fn strings(map: &BTreeMap<String, String>) -> std::collections::HashMap<String, String> {
    map.clone().into_iter().collect()
}

fn snapshot_view(snapshot: wire::Snapshot) -> v1::CsiSnapshot {
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
