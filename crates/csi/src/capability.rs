//! Capabilities of volumes in the terms of the specification.

use crate::v1::VolumeCapability;
use crate::v1::volume_capability::access_mode::Mode;
use crate::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};

/// Use of a volume, in the words of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// As in `single-node-writer`.
    pub access_mode: String,
    /// `file-system` or `block-device`.
    pub attachment_mode: String,
    /// Empty: the plugin's choice.
    pub fs_type: String,
    pub mount_flags: Vec<String>,
}

/// The words of jobs for access modes. Source: the specification's names, in small letters.
const MODES: [(&str, Mode); 7] = [
    ("single-node-writer", Mode::SingleNodeWriter),
    ("single-node-reader-only", Mode::SingleNodeReaderOnly),
    ("single-node-single-writer", Mode::SingleNodeSingleWriter),
    ("single-node-multi-writer", Mode::SingleNodeMultiWriter),
    ("multi-node-reader-only", Mode::MultiNodeReaderOnly),
    ("multi-node-single-writer", Mode::MultiNodeSingleWriter),
    ("multi-node-multi-writer", Mode::MultiNodeMultiWriter),
];

impl Use {
    /// Returns the message of the specification. An unknown access mode is `UNKNOWN`, which plugins
    /// refuse.
    pub fn to_message(&self) -> VolumeCapability {
        let access_type = if self.attachment_mode == "block-device" {
            AccessType::Block(BlockVolume {})
        } else {
            AccessType::Mount(MountVolume {
                fs_type: self.fs_type.clone(),
                mount_flags: self.mount_flags.clone(),
                volume_mount_group: String::new(),
            })
        };
        let found = MODES.iter().find(|(word, _)| *word == self.access_mode);
        let mode = found.map_or(Mode::Unknown, |(_, mode)| *mode);
        VolumeCapability {
            access_mode: Some(AccessMode { mode: mode.into() }),
            access_type: Some(access_type),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_a_mount_with_its_mode_unless_it_is_a_block_device() {
        let mount = Use {
            access_mode: "multi-node-reader-only".to_owned(),
            attachment_mode: "file-system".to_owned(),
            fs_type: "ext4".to_owned(),
            mount_flags: vec!["noatime".to_owned()],
        };
        let message = mount.to_message();
        let mode = message.access_mode.map(|mode| mode.mode());
        assert_eq!(mode, Some(Mode::MultiNodeReaderOnly));
        let Some(AccessType::Mount(options)) = message.access_type else {
            panic!("it is a mount");
        };
        assert_eq!(
            (options.fs_type.as_str(), options.mount_flags.len()),
            ("ext4", 1)
        );
        let block = Use {
            access_mode: "often".to_owned(),
            attachment_mode: "block-device".to_owned(),
            ..mount
        };
        let message = block.to_message();
        assert!(matches!(message.access_type, Some(AccessType::Block(_))));
        let mode = message.access_mode.map(|mode| mode.mode());
        assert_eq!(mode, Some(Mode::Unknown));
    }
}
