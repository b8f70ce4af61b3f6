//! Task drivers of a node, as configured.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use task_drivers::{Driver, MockDriver, RawExec, RawExecSettings, SupervisorCommand};

use crate::config::DriversConfig;

/// Returns the drivers by name. `state_dir`: the agent's directory; `None`: only simulated tasks.
/// `own_subcommand`: the subcommand of the agent's program that runs a supervisor.
pub(super) fn drivers(
    config: &DriversConfig,
    state_dir: Option<&Path>,
    own_subcommand: &str,
) -> BTreeMap<&'static str, Arc<dyn Driver>> {
    let mut drivers: BTreeMap<&'static str, Arc<dyn Driver>> = BTreeMap::new();
    if config.mock_driver || state_dir.is_none() {
        let mock = MockDriver::default();
        drivers.insert(mock.name(), Arc::new(mock));
    }
    if let Some(state_dir) = state_dir {
        let supervisor = match config.supervisor.as_slice() {
            [] => SupervisorCommand::own_program(own_subcommand),
            [program, args @ ..] => SupervisorCommand {
                program: program.into(),
                args: args.iter().map(Into::into).collect(),
            },
        };
        let mut settings = RawExecSettings::new(supervisor, state_dir.join("tasks"));
        settings.enabled = config.raw_exec;
        let parent = Some(config.cgroup_parent.clone());
        settings.cgroup_parent = parent.filter(|parent| !parent.is_empty());
        let raw_exec = RawExec::new(settings);
        drivers.insert(raw_exec.name(), Arc::new(raw_exec));
    }
    drivers
}
