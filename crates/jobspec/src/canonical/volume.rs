//! Volumes that a group asks for, and where its tasks find them.
//!
//! The rules of directories of nodes are here; those of storage systems' volumes in `csi`.

mod csi;

use std::collections::BTreeMap;

use model::job::{JobType, VolumeMount, VolumeRequest, VolumeType};
use model::{AccessMode, AttachmentMode};

use super::validation::{Path, Validation};

/// The facts of group and job that the checks of a volume need.
#[derive(Clone, Copy)]
pub(super) struct GroupFacts {
    pub(super) job_type: JobType,
    /// Updates of the group try new versions out beside old ones.
    pub(super) canaries: bool,
    pub(super) count: u32,
}

/// Checks a group's volume requests.
pub(super) fn volumes(
    check: &mut Validation,
    path: &Path,
    specs: &BTreeMap<String, job_fields::VolumeRequest>,
    group: GroupFacts,
) -> BTreeMap<String, VolumeRequest> {
    let volumes = specs.iter().map(|(name, spec)| {
        let path = path.labelled("volume", Some(name), 0);
        (name.clone(), volume(check, &path, spec, group))
    });
    volumes.collect()
}

fn volume(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::VolumeRequest,
    group: GroupFacts,
) -> VolumeRequest {
    let volume_type = match spec.r#type.as_deref().unwrap_or_default() {
        "host" => VolumeType::Host,
        "csi" => VolumeType::Csi,
        unknown => {
            let message =
                format!("volume has unrecognized type {unknown}: use type = \"host\" or \"csi\"");
            check.error(path.field("type"), message);
            VolumeType::Host
        }
    };
    let source = spec.source.clone().unwrap_or_default();
    if source.is_empty() {
        let message = "volume has an empty source: name a volume of 'kafila volume status', or of the nodes' configuration";
        check.error(path.field("source"), message);
    }
    let (sticky, per_alloc) = (
        spec.sticky.unwrap_or(false),
        spec.per_alloc.unwrap_or(false),
    );
    if per_alloc {
        let field = path.field("per_alloc");
        if group.job_type.is_per_node() {
            let message = "volume cannot be per_alloc for system or sysbatch jobs: leave it out, \
                           each node has one allocation";
            check.error(&field, message);
        }
        if group.canaries {
            let message = "volume cannot be per_alloc when canaries are in use: leave one of \
                           them out";
            check.error(&field, message);
        }
        if sticky {
            let message = "volume cannot be per_alloc and sticky at the same time: leave one of \
                           them out";
            check.error(&field, message);
        }
    }
    let read_only = spec.read_only.unwrap_or(false);
    let (access_mode, attachment_mode) = match volume_type {
        VolumeType::Host => (
            access_mode(check, path, spec.access_mode.as_deref(), read_only),
            attachment_mode(check, path, spec.attachment_mode.as_deref()),
        ),
        VolumeType::Csi => {
            if sticky {
                let message = "CSI volumes cannot be sticky: leave it out, a replacement gets the \
                               same volume on any node";
                check.error(path.field("sticky"), message);
            }
            (
                csi::access_mode(check, path, spec, group.count),
                csi::attachment_mode(check, path, spec.attachment_mode.as_deref()),
            )
        }
    };
    VolumeRequest {
        volume_type,
        source,
        read_only,
        sticky,
        per_alloc,
        access_mode,
        attachment_mode,
        mount_options: csi::mount_options(check, path, spec.mount_options.as_ref(), volume_type),
    }
}

/// An empty word is none, as in the API's JSON.
fn access_mode(
    check: &mut Validation,
    path: &Path,
    word: Option<&str>,
    read_only: bool,
) -> Option<AccessMode> {
    let word = word.filter(|word| !word.is_empty())?;
    let field = path.field("access_mode");
    let words = AccessMode::words_of_host();
    let Some(mode) = AccessMode::parse_of_host(word) else {
        let message = if word.starts_with("multi-node-") {
            format!(
                "host volumes are on one node, so access_mode cannot be {word:?}: use one of {words}"
            )
        } else {
            format!("unknown access_mode {word:?}: use one of {words}")
        };
        check.error(field, message);
        return None;
    };
    match mode {
        AccessMode::SingleNodeReaderOnly if !read_only => check.error(
            field,
            format!("access_mode {word:?} needs read_only = true: set it, or use another mode"),
        ),
        AccessMode::SingleNodeWriter if read_only => check.error(
            field,
            format!(
                "a volume with access_mode {word:?} cannot be read_only: use \
                 \"single-node-reader-only\""
            ),
        ),
        _ => {}
    }
    Some(mode)
}

fn attachment_mode(
    check: &mut Validation,
    path: &Path,
    word: Option<&str>,
) -> Option<AttachmentMode> {
    let word = word.filter(|word| !word.is_empty())?;
    let mode = AttachmentMode::parse(word);
    let field = path.field("attachment_mode");
    match mode {
        Some(AttachmentMode::FileSystem) => {}
        Some(AttachmentMode::BlockDevice) => check.error(
            field,
            "host volumes are directories: use \"file-system\", or leave it out",
        ),
        None => {
            let message = format!("unknown attachment_mode {word:?}: use \"file-system\"");
            check.error(field, message);
        }
    }
    mode
}

/// Checks where a task finds volumes of its group.
pub(super) fn mounts(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::VolumeMount],
    volumes: &BTreeMap<String, VolumeRequest>,
) -> Vec<VolumeMount> {
    let specs = specs.iter().enumerate();
    let mounts = specs.map(|(position, spec)| {
        let path = path.at("volume_mount", position);
        let volume = spec.volume.clone().unwrap_or_default();
        if !volumes.contains_key(&volume) {
            let message = format!(
                "Volume Mount ({position}) references undefined volume {volume}: write volume \
                 {volume:?} {{ … }} in the group"
            );
            check.error(path.field("volume"), message);
        }
        let destination = spec.destination.clone().unwrap_or_default();
        if destination.is_empty() {
            let message = format!(
                "Volume Mount ({position}) has an empty destination: name a path that the task sees"
            );
            check.error(path.field("destination"), message);
        }
        let propagation = spec.propagation_mode.as_deref().unwrap_or_default();
        if !matches!(propagation, "" | "private") {
            let known = matches!(propagation, "host-to-task" | "bidirectional");
            let message = if known {
                format!(
                    "propagation_mode {propagation:?} is not supported by this version of \
                     Kafila: use \"private\", or leave it out"
                )
            } else {
                format!("unknown propagation_mode {propagation:?}: use \"private\"")
            };
            check.error(path.field("propagation_mode"), message);
        }
        VolumeMount {
            volume,
            destination,
            read_only: spec.read_only.unwrap_or(false),
        }
    });
    mounts.collect()
}
