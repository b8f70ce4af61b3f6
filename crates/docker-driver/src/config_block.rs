//! Reads the `config` block of a task, in the options of its driver.

use task_drivers::{StartError, TaskConfig, config};

use crate::options::Options;
use crate::podman;
use crate::settings::Brand;

/// Returns the options of a task; those of podman's tasks in docker's form.
///
/// # Errors
/// The option that is unknown or of another type.
pub(crate) fn read(task: &TaskConfig, brand: Brand) -> Result<Options, StartError> {
    let config = task.config.clone();
    match brand {
        Brand::Docker => config::decode(brand.name(), config),
        Brand::Podman => {
            let options: podman::Options = config::decode(brand.name(), config)?;
            options.translate(&task.id).map_err(StartError::Config)
        }
    }
}
