//! Volumes of the type `csi`: access and attachment modes, and options of the mount.

use model::job::VolumeType;
use model::{AccessMode, AttachmentMode, MountOptions};

use super::super::validation::{Path, Validation};

/// The modes of jobs. Source: Nomad's public documentation.
const MODES: [AccessMode; 5] = [
    AccessMode::SingleNodeReaderOnly,
    AccessMode::SingleNodeWriter,
    AccessMode::MultiNodeReaderOnly,
    AccessMode::MultiNodeSingleWriter,
    AccessMode::MultiNodeMultiWriter,
];

/// Reads the access mode of a group with `count` allocations.
pub(super) fn access_mode(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::VolumeRequest,
    count: u32,
) -> Option<AccessMode> {
    let words = || MODES.map(AccessMode::as_str).join(", ");
    let field = path.field("access_mode");
    let word = spec.access_mode.as_deref().unwrap_or_default();
    if word.is_empty() {
        let message = format!(
            "CSI volumes must have an access mode: use one of {}",
            words()
        );
        check.error(field, message);
        return None;
    }
    let mode = AccessMode::parse(word).filter(|mode| MODES.contains(mode));
    let Some(mode) = mode else {
        let message = format!("unknown access_mode {word:?}: use one of {}", words());
        check.error(field, message);
        return None;
    };
    if mode.is_reader_only() && !spec.read_only.unwrap_or(false) {
        let message =
            format!("access_mode {word:?} needs read_only = true: set it, or use another mode");
        check.error(&field, message);
    }
    let is_shared = count > 1 && !spec.per_alloc.unwrap_or(false);
    let is_for_one = !mode.is_multi_node() || mode == AccessMode::MultiNodeSingleWriter;
    if is_shared && is_for_one {
        let message = format!(
            "access_mode {word:?} does not suit a group with count {count}: set per_alloc = true for a \
             volume each, or use \"multi-node-multi-writer\""
        );
        check.error(&field, message);
    }
    Some(mode)
}

pub(super) fn attachment_mode(
    check: &mut Validation,
    path: &Path,
    word: Option<&str>,
) -> Option<AttachmentMode> {
    let field = path.field("attachment_mode");
    let word = word.unwrap_or_default();
    if word.is_empty() {
        let message = "CSI volumes must have an attachment mode: use \"file-system\"";
        check.error(field, message);
        return None;
    }
    let mode = AttachmentMode::parse(word);
    match mode {
        Some(AttachmentMode::FileSystem) => {}
        Some(AttachmentMode::BlockDevice) => check.error(
            field,
            "attachment_mode \"block-device\" is not supported by this version of Kafila: use \
             \"file-system\"",
        ),
        None => {
            let message = format!("unknown attachment_mode {word:?}: use \"file-system\"");
            check.error(field, message);
        }
    }
    mode
}

/// Reads the options of a mount, which directories of nodes do not have.
pub(super) fn mount_options(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::CsiMountOptions>,
    volume_type: VolumeType,
) -> MountOptions {
    let Some(spec) = spec else {
        return MountOptions::default();
    };
    if volume_type == VolumeType::Host {
        let message = "host volumes are directories and are not mounted with options: remove the \
                       block";
        check.error(path.field("mount_options"), message);
    }
    MountOptions {
        fs_type: spec.fs_type.clone().unwrap_or_default(),
        mount_flags: spec.mount_flags.clone(),
    }
}
