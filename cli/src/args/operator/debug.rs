//! `kafila operator debug`

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use crate::args::values::{duration, whole};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Debug {
    /// The archive, which must not exist [default: kafila-debug-TIME.tar.gz in the current directory]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Capture the state of the cluster and the metrics at the start and after each interval of this time;
    /// Ctrl-C ends it earlier [default: capture once]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Time between two captures [default: 30s, or the duration if that is shorter]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub interval: Option<Duration>,
    /// Address of the metrics of a service or node, such as 10.0.0.7:7111; repeatable
    #[arg(long = "metrics", value_name = "HOST:PORT", action = ArgAction::Append)]
    pub metrics: Vec<String>,
    /// Most nodes whose logs are read: those with the newest failed allocations first
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<usize>)]
    pub max_nodes: usize,
    /// Log file on this machine, whose last MiB is added; repeatable
    #[arg(long = "log-file", value_name = "FILE", action = ArgAction::Append)]
    pub log_files: Vec<PathBuf>,
    /// Configuration file on this machine, added without secrets; repeatable
    #[arg(long = "config-file", value_name = "FILE", action = ArgAction::Append)]
    pub config_files: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  kafila operator debug
  kafila operator debug -metrics 10.0.0.7:7111 -metrics 10.0.0.8:7111
  kafila operator debug -duration 10m -interval 1m -metrics 10.0.0.7:7111
  kafila operator debug -log-file /var/log/kafila.log -config-file /etc/kafila/api-gateway.toml

Collects versions, leaders, processes, the scheduler configuration, counts, nodes, failed allocations
and open evaluations for a bug report, and the last lines of the logs of all services and some nodes. With
-duration these are in captures/0000, captures/0001 and so on, and the logs are read at the end. Job
specifications, environments and output of tasks are left out. What cannot be collected is named in
manifest.json. Logs have names of jobs and addresses: read them first.

Exit codes: 0 written, also when some parts are missing; 1 nothing was written, or no gateway answered
and the archive has the rest.";
