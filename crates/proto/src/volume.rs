//! Registered volumes, and claims on them.

use model::{
    AccessMode, AttachmentMode, Capability, FieldErrors, Indexed, Namespace, NodeId, Timestamp,
    Volume, VolumeClaim, VolumeId,
};

use crate::fields::{At as _, Read};
use crate::v1;

/// Reads a registration. The id may be missing; times are set by the servers.
impl TryFrom<v1::Volume> for Volume {
    type Error = FieldErrors;

    fn try_from(wire: v1::Volume) -> Result<Self, FieldErrors> {
        read(wire).at("volume")
    }
}

fn read(wire: v1::Volume) -> Read<Volume> {
    let mut errors = FieldErrors::default();
    if wire.r#type != Volume::TYPE {
        let message = format!(
            "{:?} is not a type of volumes that this version of Kafila knows: want \"host\"",
            wire.r#type
        );
        errors.push("type", message);
    }
    let node_id = wire.node_id.parse::<NodeId>().unwrap_or_else(|error| {
        let message = if wire.node_id.is_empty() {
            "missing: want the id of the node that has the directory, as in 'kafila node status \
             -verbose'"
                .to_owned()
        } else {
            error.to_string()
        };
        errors.push("node_id", message);
        NodeId::default()
    });
    let id = match wire.id.as_str() {
        "" => VolumeId::default(),
        text => text.parse().unwrap_or_else(|error: model::ids::InvalidId| {
            errors.push("id", error.to_string());
            VolumeId::default()
        }),
    };
    let modes = AccessModes {
        parse: AccessMode::parse_of_host,
        words: AccessMode::words_of_host,
    };
    let capabilities = read_capabilities(&wire.capabilities, &modes, &mut errors);
    errors.into_result(())?;
    let namespace = if wire.namespace.is_empty() {
        Namespace::DEFAULT.to_owned()
    } else {
        wire.namespace
    };
    let volume = Volume {
        namespace,
        name: wire.name,
        node_id,
        id,
        host_path: wire.host_path,
        capabilities,
        deleting: false,
        create_time: Timestamp::NEVER,
        modify_time: Timestamp::NEVER,
    };
    volume.check()?;
    Ok(volume)
}

impl From<&Volume> for v1::Volume {
    fn from(volume: &Volume) -> Self {
        let capabilities = volume.capabilities.iter();
        Self {
            namespace: volume.namespace.clone(),
            id: volume.id.to_string(),
            name: volume.name.clone(),
            r#type: Volume::TYPE.to_owned(),
            node_id: volume.node_id.to_string(),
            host_path: volume.host_path.clone(),
            capabilities: capabilities
                .map(|capability| v1::VolumeCapability {
                    access_mode: capability.access_mode.as_str().to_owned(),
                    attachment_mode: capability.attachment_mode.as_str().to_owned(),
                })
                .collect(),
            create_time_ns: volume.create_time.0,
            modify_time_ns: volume.modify_time.0,
            ..Self::default()
        }
    }
}

impl From<&Indexed<Volume>> for v1::Volume {
    fn from(volume: &Indexed<Volume>) -> Self {
        Self {
            create_index: volume.create_index,
            modify_index: volume.modify_index,
            ..Self::from(&volume.value)
        }
    }
}

impl From<&Indexed<VolumeClaim>> for v1::VolumeClaim {
    fn from(claim: &Indexed<VolumeClaim>) -> Self {
        let value = &claim.value;
        Self {
            id: value.id().to_string(),
            namespace: value.namespace.clone(),
            job_id: value.job_id.clone(),
            task_group: value.task_group.clone(),
            alloc_id: value.alloc_id.to_string(),
            volume_id: value.volume_id.to_string(),
            volume_name: value.volume_name.clone(),
            node_id: value.node_id.to_string(),
            create_index: claim.create_index,
            modify_index: claim.modify_index,
        }
    }
}

/// The access modes that a kind of volume may have, as words of requests.
pub(crate) struct AccessModes {
    pub(crate) parse: fn(&str) -> Option<AccessMode>,
    /// All words, for messages.
    pub(crate) words: fn() -> String,
}

/// Reads capabilities, and adds the problem of each that is invalid.
pub(crate) fn read_capabilities(
    wire: &[v1::VolumeCapability],
    modes: &AccessModes,
    errors: &mut FieldErrors,
) -> Vec<Capability> {
    let mut capabilities = Vec::with_capacity(wire.len());
    for (position, wire) in wire.iter().enumerate() {
        let path = |field: &str| format!("capability[{position}].{field}");
        let access_mode = (modes.parse)(&wire.access_mode);
        if access_mode.is_none() {
            let (word, words) = (&wire.access_mode, (modes.words)());
            let message = format!("{word:?} is not an access mode: want one of {words}");
            errors.push(path("access_mode"), message);
        }
        let attachment_mode = match wire.attachment_mode.as_str() {
            "" => Some(AttachmentMode::FileSystem),
            word => AttachmentMode::parse(word),
        };
        if attachment_mode.is_none() {
            let (word, words) = (&wire.attachment_mode, AttachmentMode::words());
            let message = format!("{word:?} is not an attachment mode: want one of {words}");
            errors.push(path("attachment_mode"), message);
        }
        if let (Some(access_mode), Some(attachment_mode)) = (access_mode, attachment_mode) {
            capabilities.push(Capability {
                access_mode,
                attachment_mode,
            });
        }
    }
    capabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire() -> v1::Volume {
        v1::Volume {
            namespace: "web".to_owned(),
            id: VolumeId::from_random(1).to_string(),
            name: "data".to_owned(),
            r#type: Volume::TYPE.to_owned(),
            node_id: NodeId::from_random(2).to_string(),
            host_path: "/srv/data".to_owned(),
            capabilities: vec![v1::VolumeCapability {
                access_mode: "single-node-single-writer".to_owned(),
                attachment_mode: "file-system".to_owned(),
            }],
            ..v1::Volume::default()
        }
    }

    #[test]
    fn a_volume_survives_the_wire() {
        let volume = Volume::try_from(wire()).unwrap();
        assert_eq!(v1::Volume::from(&volume), wire());
        let mut short = wire();
        short.namespace.clear();
        short.id.clear();
        short.capabilities[0].attachment_mode.clear();
        let volume = Volume::try_from(short).unwrap();
        assert_eq!(volume.namespace, "default");
        assert_eq!(volume.id, VolumeId::default());
        assert_eq!(v1::Volume::from(&volume).capabilities, wire().capabilities);
    }

    #[test]
    fn invalid_fields_are_named_with_the_accepted_values() {
        let mut wrong = wire();
        wrong.r#type = "csi".to_owned();
        wrong.node_id.clear();
        wrong.id = "x".to_owned();
        wrong.capabilities[0].access_mode = "alone".to_owned();
        wrong.capabilities[0].attachment_mode = "glue".to_owned();
        let errors = Volume::try_from(wrong).unwrap_err();
        let fields: Vec<_> = errors.0.iter().map(|error| error.field.as_str()).collect();
        let want = [
            "volume.type",
            "volume.node_id",
            "volume.id",
            "volume.capability[0].access_mode",
            "volume.capability[0].attachment_mode",
        ];
        assert_eq!(fields, want);
        assert!(
            errors.0.iter().all(|error| error.message.contains("want")),
            "{errors}"
        );
        let mut nameless = wire();
        nameless.name.clear();
        let errors = Volume::try_from(nameless).unwrap_err();
        assert_eq!(errors.0[0].field, "volume.name");
    }
}
