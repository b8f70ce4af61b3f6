//! Reads the `config` block of a task, in the options of its driver.

use task_drivers::{StartError, TaskConfig, config};

use crate::options::Options;
use crate::podman;
use crate::settings::EngineKind;

/// Returns the options of a task; those of podman's tasks in docker's form.
///
/// # Errors
/// The option that is unknown or of another type.
pub(crate) fn read(task: &TaskConfig, kind: EngineKind) -> Result<Options, StartError> {
    let config = task.config.clone();
    match kind {
        EngineKind::Docker => config::decode(kind.name(), config),
        EngineKind::Podman => {
            let options: podman::Options = config::decode(kind.name(), config)?;
            options.translate(&task.id).map_err(StartError::Config)
        }
    }
}
