//! What the operator of a node decides about `raw_exec`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cgroup;
use crate::globs;

/// Variables of the agent's own environment that tasks do not see: they open doors that are the
/// agent's. Source: Nomad's public default of `env.denylist`, by kind.
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

/// How a supervisor is started: a program, and what comes before the directory on its command
/// line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorCommand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

impl SupervisorCommand {
    /// The agent's own program, with the subcommand that calls [`crate::supervisor::main`].
    ///
    /// By the kernel's name for it, which stays right when the file is replaced by an upgrade.
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
    /// Where what is kept of tasks stands; the agent's alone.
    pub state_dir: PathBuf,
    /// The slice for tasks' control groups; `None`: use none.
    pub cgroup_parent: Option<String>,
    /// Patterns of variables that are not handed down; `*` is any run of characters.
    pub env_denylist: Vec<String>,
}

impl RawExecSettings {
    /// Everything at its default: enabled, control groups where the machine has them.
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
                .any(|pattern| globs::matches(pattern, name))
        };
        vars.filter(|(name, _)| !is_denied(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_agent_are_not_handed_down() {
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
