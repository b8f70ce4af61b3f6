//! The plugin of storage that a task provides to its node.

use std::time::Duration;

use model::csi::plugin_id_problem;
use model::{CsiPluginTask, CsiPluginType};

use super::validation::{Path, Validation};

/// Source: Nomad's defaults.
const DEFAULT_MOUNT_DIR: &str = "/csi";
const DEFAULT_BASE_DIR: &str = "/local/csi";
const DEFAULT_HEALTH_TIMEOUT: Duration = Duration::from_secs(30);

const TYPES: &str = "use \"node\", \"controller\" or \"monolith\"";

pub(super) fn csi_plugin(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::CsiPluginConfig>,
) -> Option<CsiPluginTask> {
    let spec = spec?;
    let path = path.block("csi_plugin");
    let id = spec.id.clone().unwrap_or_default();
    if id.is_empty() {
        check.error(
            path.field("id"),
            "CSIPluginConfig must have a non-empty PluginID: write id = \"…\", the name that volumes \
             use",
        );
    } else if let Some(problem) = plugin_id_problem(&id) {
        check.error(path.field("id"), problem);
    }
    let word = spec.r#type.as_deref().unwrap_or_default();
    let plugin_type = CsiPluginType::parse(word).unwrap_or_else(|| {
        let message = format!("CSIPluginConfig PluginType is not valid: {word:?}: {TYPES}");
        check.error(path.field("type"), message);
        CsiPluginType::default()
    });
    let timeout = check.duration(
        path.field("health_timeout"),
        spec.health_timeout.as_ref(),
        DEFAULT_HEALTH_TIMEOUT,
    );
    Some(CsiPluginTask {
        id,
        plugin_type,
        mount_dir: directory(
            check,
            &path,
            "mount_dir",
            &spec.mount_dir,
            DEFAULT_MOUNT_DIR,
        ),
        stage_publish_base_dir: directory(
            check,
            &path,
            "stage_publish_base_dir",
            &spec.stage_publish_base_dir,
            DEFAULT_BASE_DIR,
        ),
        // The API's JSON writes 0 for the default.
        health_timeout: if timeout.is_zero() {
            DEFAULT_HEALTH_TIMEOUT
        } else {
            timeout
        },
    })
}

fn directory(
    check: &mut Validation,
    path: &Path,
    field: &str,
    value: &Option<String>,
    default: &str,
) -> String {
    let value = value.as_deref().filter(|value| !value.is_empty());
    let value = value.unwrap_or(default);
    let is_plain = value.starts_with('/') && value.split('/').all(|part| part != "..");
    if !is_plain || value.trim_matches('/').is_empty() {
        let message = format!(
            "{value:?} is no directory in the task: use a full path below /, as in {default:?}"
        );
        check.error(path.field(field), message);
    }
    value.to_owned()
}
