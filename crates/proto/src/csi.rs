//! Volumes of storage systems, and the plugins of nodes.

use std::collections::HashMap;

use model::csi::{
    CsiControllerInfo, CsiNodeInfo, CsiPluginInfo, CsiVolume, MountOptions, Segments,
};
use model::{
    AccessMode, CsiAttachment, CsiAttachmentKey, FieldErrors, Indexed, Namespace, Timestamp,
};

use crate::fields::{Read, id_or_empty, optional_id};
use crate::v1;
use crate::volume::{AccessModes, read_capabilities};

/// Reads a volume as users describe it. Times are set by the servers.
impl From<v1::CsiVolume> for CsiVolumeRead {
    fn from(wire: v1::CsiVolume) -> Self {
        Self(read(wire))
    }
}

/// A volume as users describe it, or its invalid fields.
#[derive(Debug)]
pub struct CsiVolumeRead(Result<CsiVolume, FieldErrors>);

impl CsiVolumeRead {
    /// Returns a valid volume; `is_new`: the storage system has yet to create it. Paths begin at the
    /// volume.
    ///
    /// # Errors
    /// All invalid fields.
    pub fn checked(self, is_new: bool) -> Result<CsiVolume, FieldErrors> {
        let volume = self.0?;
        volume.check(is_new)?;
        Ok(volume)
    }
}

fn read(wire: v1::CsiVolume) -> Result<CsiVolume, FieldErrors> {
    let mut errors = FieldErrors::default();
    let modes = AccessModes {
        parse: AccessMode::parse,
        words: AccessMode::words,
    };
    let capabilities = read_capabilities(&wire.capabilities, &modes, &mut errors);
    errors.into_result(())?;
    let or = |text: String, other: &str| {
        if text.is_empty() {
            other.to_owned()
        } else {
            text
        }
    };
    Ok(CsiVolume {
        namespace: or(wire.namespace, Namespace::DEFAULT),
        name: or(wire.name, &wire.id),
        id: wire.id,
        external_id: wire.external_id,
        plugin_id: wire.plugin_id,
        capabilities,
        mount_options: MountOptions {
            fs_type: wire.fs_type,
            mount_flags: wire.mount_flags,
        },
        parameters: wire.parameters.into_iter().collect(),
        context: wire.context.into_iter().collect(),
        capacity_bytes: wire.capacity_bytes,
        capacity_min_bytes: wire.capacity_min_bytes,
        capacity_max_bytes: wire.capacity_max_bytes,
        clone_id: wire.clone_id,
        snapshot_id: wire.snapshot_id,
        topologies: segments(wire.topologies),
        required_topologies: segments(wire.required_topologies),
        preferred_topologies: segments(wire.preferred_topologies),
        deleting: false,
        attach_count: 0,
        create_time: Timestamp::NEVER,
        modify_time: Timestamp::NEVER,
    })
}

fn segments(wire: Vec<v1::CsiTopology>) -> Vec<Segments> {
    let wire = wire.into_iter();
    wire.map(|one| one.segments.into_iter().collect()).collect()
}

fn topologies(all: &[Segments]) -> Vec<v1::CsiTopology> {
    let all = all.iter().map(|one| v1::CsiTopology {
        segments: one.clone().into_iter().collect(),
    });
    all.collect()
}

impl From<&Indexed<CsiVolume>> for v1::CsiVolume {
    fn from(stored: &Indexed<CsiVolume>) -> Self {
        let volume = &stored.value;
        let capabilities = volume.capabilities.iter();
        Self {
            namespace: volume.namespace.clone(),
            id: volume.id.clone(),
            name: volume.name.clone(),
            external_id: volume.external_id.clone(),
            plugin_id: volume.plugin_id.clone(),
            capabilities: capabilities
                .map(|capability| v1::VolumeCapability {
                    access_mode: capability.access_mode.as_str().to_owned(),
                    attachment_mode: capability.attachment_mode.as_str().to_owned(),
                })
                .collect(),
            fs_type: volume.mount_options.fs_type.clone(),
            mount_flags: volume.mount_options.mount_flags.clone(),
            parameters: volume.parameters.clone().into_iter().collect(),
            context: volume.context.clone().into_iter().collect(),
            capacity_bytes: volume.capacity_bytes,
            capacity_min_bytes: volume.capacity_min_bytes,
            capacity_max_bytes: volume.capacity_max_bytes,
            clone_id: volume.clone_id.clone(),
            snapshot_id: volume.snapshot_id.clone(),
            topologies: topologies(&volume.topologies),
            required_topologies: topologies(&volume.required_topologies),
            preferred_topologies: topologies(&volume.preferred_topologies),
            create_time_ns: volume.create_time.0,
            modify_time_ns: volume.modify_time.0,
            create_index: stored.create_index,
            modify_index: stored.modify_index,
            ..Self::default()
        }
    }
}

impl From<(&CsiAttachmentKey, &CsiAttachment)> for v1::CsiAttachment {
    fn from((key, attachment): (&CsiAttachmentKey, &CsiAttachment)) -> Self {
        Self {
            node_id: key.node_id.to_string(),
            state: attachment.state.as_str().to_owned(),
            alloc_id: attachment.alloc_id.to_string(),
            error: attachment.error.clone(),
            failures: attachment.failures,
        }
    }
}

pub(crate) fn read_plugin(wire: v1::CsiPluginInfo) -> Read<CsiPluginInfo> {
    Ok(CsiPluginInfo {
        provider: wire.provider,
        provider_version: wire.provider_version,
        alloc_id: optional_id(&wire.alloc_id)?.unwrap_or_default(),
        healthy: wire.healthy,
        description: wire.description,
        needs_controller: wire.needs_controller,
        controller: wire.controller.map(|wire| CsiControllerInfo {
            creates: wire.creates,
            attaches: wire.attaches,
            attaches_read_only: wire.attaches_read_only,
            lists: wire.lists,
            snapshots: wire.snapshots,
            lists_snapshots: wire.lists_snapshots,
            clones: wire.clones,
        }),
        node: wire.node.map(|wire| CsiNodeInfo {
            node_id: wire.node_id,
            max_volumes: wire.max_volumes,
            topology: wire.topology.into_iter().collect(),
            stages: wire.stages,
        }),
    })
}

impl From<&CsiPluginInfo> for v1::CsiPluginInfo {
    fn from(info: &CsiPluginInfo) -> Self {
        let alloc_id = Some(info.alloc_id).filter(|id| *id != model::AllocId::default());
        Self {
            provider: info.provider.clone(),
            provider_version: info.provider_version.clone(),
            alloc_id: id_or_empty(alloc_id),
            healthy: info.healthy,
            description: info.description.clone(),
            needs_controller: info.needs_controller,
            controller: info.controller.map(|info| v1::CsiControllerInfo {
                creates: info.creates,
                attaches: info.attaches,
                attaches_read_only: info.attaches_read_only,
                lists: info.lists,
                snapshots: info.snapshots,
                lists_snapshots: info.lists_snapshots,
                clones: info.clones,
            }),
            node: info.node.as_ref().map(|info| v1::CsiNodeInfo {
                node_id: info.node_id.clone(),
                max_volumes: info.max_volumes,
                topology: info.topology.clone().into_iter().collect(),
                stages: info.stages,
            }),
        }
    }
}

pub(crate) fn plugins<'a>(
    plugins: impl IntoIterator<Item = (&'a String, &'a CsiPluginInfo)>,
) -> HashMap<String, v1::CsiPluginInfo> {
    let plugins = plugins.into_iter();
    plugins
        .map(|(id, info)| (id.clone(), info.into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire() -> v1::CsiVolume {
        v1::CsiVolume {
            namespace: "web".to_owned(),
            id: "data".to_owned(),
            name: "Data".to_owned(),
            external_id: "vol-1".to_owned(),
            plugin_id: "ebs".to_owned(),
            capabilities: vec![v1::VolumeCapability {
                access_mode: "multi-node-multi-writer".to_owned(),
                attachment_mode: "file-system".to_owned(),
            }],
            fs_type: "ext4".to_owned(),
            mount_flags: vec!["noatime".to_owned()],
            parameters: [("type".to_owned(), "gp3".to_owned())].into(),
            context: [("k".to_owned(), "v".to_owned())].into(),
            capacity_bytes: 3,
            capacity_min_bytes: 2,
            capacity_max_bytes: 4,
            clone_id: "vol-0".to_owned(),
            topologies: vec![v1::CsiTopology {
                segments: [("zone".to_owned(), "a".to_owned())].into(),
            }],
            ..v1::CsiVolume::default()
        }
    }

    #[test]
    fn a_volume_survives_the_wire() {
        let value = CsiVolumeRead::from(wire()).checked(false).unwrap();
        let stored = Indexed {
            create_index: 0,
            modify_index: 0,
            value,
        };
        assert_eq!(v1::CsiVolume::from(&stored), wire());
        let short = v1::CsiVolume {
            namespace: String::new(),
            name: String::new(),
            ..wire()
        };
        let volume = CsiVolumeRead::from(short).checked(false).unwrap();
        assert_eq!(
            (volume.namespace.as_str(), volume.name.as_str()),
            ("default", "data")
        );
    }

    #[test]
    fn invalid_capabilities_are_named() {
        let mut wrong = wire();
        wrong.capabilities[0].access_mode = "alone".to_owned();
        wrong.capabilities[0].attachment_mode = "glue".to_owned();
        let errors = CsiVolumeRead::from(wrong).checked(false).unwrap_err();
        let fields: Vec<_> = errors.0.iter().map(|error| error.field.as_str()).collect();
        let want = ["capability[0].access_mode", "capability[0].attachment_mode"];
        assert_eq!(fields, want);
    }
}
