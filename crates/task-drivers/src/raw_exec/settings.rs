//! Settings of `raw_exec`: the node operator's part.

use std::ffi::OsString;
use std::path::PathBuf;

use model::glob::glob_matches;

use crate::cgroup;

/// Variables of the agent's environment that tasks do not inherit, because they grant the agent's
/// access rights. Source: Nomad's public default of `env.denylist`, by kind.
const ENV_DENYLIST: [&str; 12] = [
    "CONSUL_TOKEN",
    "CONSUL_HTTP_TOKEN",
    "CONSUL_HTTP_TOKEN_FILE",
    "VAULT_TOKEN",
    "NOMAD_TOKEN",
    "KAFILA_*",
    "*_LICENSE*",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_METADATA_URL",
    "GOOGLE_APPLICATION_CREDENTIALS",
];

/// Command line of a supervisor: the program and its arguments before the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorCommand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

impl SupervisorCommand {
    /// The agent's own program, with the subcommand that calls [`crate::supervisor::main`].
    ///
    /// The path is the kernel's, which stays valid when an upgrade replaces the file.
    pub fn own_program(subcommand: &str) -> Self {
        Self {
            program: PathBuf::from("/proc/self/exe"),
            args: vec![subcommand.into()],
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawExecSettings {
    pub enabled: bool,
    pub supervisor: SupervisorCommand,
    /// Directory of the attempts' records; private to the agent.
    pub state_dir: PathBuf,
    /// The slice for tasks' control groups; `None`: use none.
    pub cgroup_parent: Option<String>,
    /// Patterns of variables that are not inherited; `*` matches any run of characters.
    pub env_denylist: Vec<String>,
}

impl RawExecSettings {
    /// Defaults: enabled, with control groups where the machine has them.
    pub fn new(supervisor: SupervisorCommand, state_dir: PathBuf) -> Self {
        Self {
            enabled: true,
            supervisor,
            state_dir,
            cgroup_parent: Some(cgroup::DEFAULT_PARENT.to_owned()),
            env_denylist: ENV_DENYLIST.map(str::to_owned).to_vec(),
        }
    }

    pub(super) fn host_env(
        &self,
        vars: impl Iterator<Item = (String, String)>,
    ) -> Vec<(String, String)> {
        let is_denied = |name: &str| {
            self.env_denylist
                .iter()
                .any(|pattern| glob_matches(pattern, name))
        };
        vars.filter(|(name, _)| !is_denied(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_agent_are_not_inherited() {
        let settings = RawExecSettings::new(SupervisorCommand::own_program("x"), PathBuf::new());
        let vars = [
            "PATH",
            "NOMAD_TOKEN",
            "KAFILA_CLIENT_NODE__SECRET",
            "MY_LICENSE_KEY",
            "LANG",
        ];
        let vars = vars
            .into_iter()
            .map(|name| (name.to_owned(), String::new()));
        let kept: Vec<String> = settings
            .host_env(vars)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(kept, ["PATH", "LANG"]);
    }
}
