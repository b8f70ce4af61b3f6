//! Facts that the plugins of a node start with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use task_drivers::SupervisorCommand;

use crate::config::PluginConfig;

#[derive(Clone, Debug)]
pub struct Settings {
    pub plugin_dir: PathBuf,
    /// By file name.
    pub plugins: BTreeMap<String, PluginConfig>,
    /// Directory of the plugins' records; private to the agent.
    pub state_dir: PathBuf,
    pub node_id: String,
    pub node_name: String,
    /// Copies the output of tasks.
    pub supervisor: SupervisorCommand,
    /// Names of drivers that plugins cannot have, because the agent itself has them.
    pub built_in: BTreeSet<String>,
    pub timing: Timing,
}

/// Durations; tests shorten them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From the start of a process to the line of its handshake, and to the end of its set-up. Nomad
    /// waits for a minute; the agent's start waits for it, too.
    pub start_limit: Duration,
    /// Timeout of a call that answers from memory.
    pub quick_limit: Duration,
    /// Timeout of a call that works: a recovery, a removal, and a stop on top of its own time.
    pub work_limit: Duration,
    /// Time that a call waits for a process while there is none.
    pub ready_limit: Duration,
    /// Interval of the calls that find a process which does not answer.
    pub ping_interval: Duration,
    /// Calls in a row without an answer, after which the process is killed.
    pub pings_missed_max: u32,
    /// First and longest bound of the pause before the next process. Source: Nomad's public behaviour.
    pub backoff: (Duration, Duration),
    /// Time for a process to end when asked. Source: Nomad's public behaviour.
    pub end_limit: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            start_limit: Duration::from_secs(15),
            quick_limit: Duration::from_secs(10),
            work_limit: Duration::from_secs(60),
            ready_limit: Duration::from_secs(20),
            ping_interval: Duration::from_secs(15),
            pings_missed_max: 3,
            backoff: (Duration::from_secs(5), Duration::from_secs(120)),
            end_limit: Duration::from_secs(2),
        }
    }
}
