//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Puts a load on a cluster, measures it, and checks that nothing is lost, doubled or called down that
/// lives.
///
/// The nodes of the load are hollow: thousands of them share this process and speak the protocol of
/// nodes, and their tasks only take time. The report goes to standard output. The exit code is 1 after
/// a violation, 2 after an error.
#[derive(Clone, Debug, Parser)]
#[command(name = "kafila-bench", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) load: Load,
}

const EXAMPLES: &str = "\
Examples:
  kafila-bench fleet -suite -nodes=500 -jobs=100 -count=1000
  kafila-bench storm -suite -nodes=5000 -jobs=100 -count=1000 -share=0.3
  kafila-bench idle -address=http://10.0.0.1:4646 -nodes=5000 -pids=etcd=1201,gateway=1240
  kafila-bench fleet -suite -out=target/fleet     with plots beside the report

Long flags take one dash or two.";

const CLUSTER: &str = "Cluster";
const NODES: &str = "Hollow nodes";

/// Flags of every load.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// Start etcd with fsync and one process of each service, and stop them afterwards
    #[arg(long, global = true, conflicts_with = "address", help_heading = CLUSTER)]
    pub(crate) suite: bool,
    /// Address of the gateway; several with commas [default: KAFILA_ADDR, else
    /// http://127.0.0.1:4646]
    #[arg(long, global = true, value_name = "ADDR", help_heading = CLUSTER)]
    pub(crate) address: Option<String>,
    /// Certificates of the authorities of the gateway's certificate, as PEM [default: KAFILA_CACERT]
    #[arg(long, global = true, value_name = "FILE", help_heading = CLUSTER)]
    pub(crate) ca_cert: Option<PathBuf>,
    /// Client certificate, as PEM [default: KAFILA_CLIENT_CERT]
    #[arg(long, global = true, value_name = "FILE", help_heading = CLUSTER)]
    pub(crate) client_cert: Option<PathBuf>,
    /// Private key of the client certificate, as PEM [default: KAFILA_CLIENT_KEY]
    #[arg(long, global = true, value_name = "FILE", help_heading = CLUSTER)]
    pub(crate) client_key: Option<PathBuf>,
    /// Name that the gateway's certificate must carry [default: KAFILA_TLS_SERVER_NAME, else the host]
    #[arg(long, global = true, value_name = "NAME", help_heading = CLUSTER)]
    pub(crate) tls_server_name: Option<String>,
    /// Accept any certificate of the gateway; insecure [also: KAFILA_SKIP_VERIFY]
    #[arg(long, global = true, help_heading = CLUSTER)]
    pub(crate) tls_skip_verify: bool,
    /// Processes to measure, beside those of -suite
    #[arg(long, global = true, value_name = "NAME=PID", value_delimiter = ',',
          value_parser = named_pid, help_heading = CLUSTER)]
    pub(crate) pids: Vec<(String, u32)>,
    /// Number of hollow nodes. 0: the cluster's own nodes, which need mock_driver (fleet only)
    #[arg(long, global = true, value_name = "N", default_value_t = 100, help_heading = NODES)]
    pub(crate) nodes: u32,
    /// Number of racks, in meta.rack
    #[arg(long, global = true, value_name = "N", default_value_t = 25,
          value_parser = clap::value_parser!(u32).range(1..), help_heading = NODES)]
    pub(crate) racks: u32,
    /// Time from an assignment to the start of its tasks
    #[arg(long, global = true, value_name = "DURATION", default_value = "0s",
          value_parser = duration, help_heading = NODES)]
    pub(crate) start_delay: Duration,
    /// Share of the allocations that fail, 0 to 1
    #[arg(long, global = true, value_name = "SHARE", default_value_t = 0.0,
          value_parser = share, help_heading = NODES)]
    pub(crate) failure_rate: f64,
    /// Time from the start of tasks to their failure
    #[arg(long, global = true, value_name = "DURATION", default_value = "5s",
          value_parser = duration, help_heading = NODES)]
    pub(crate) fails_after: Duration,
    /// Directory for report.md and its plots
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Longest time that a step of the load may take
    #[arg(long, global = true, value_name = "DURATION", default_value = "10m",
          value_parser = duration)]
    pub(crate) limit: Duration,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Load {
    /// Register jobs with many allocations, until all of them run
    Fleet(Fleet),
    /// Register nodes, and nothing else
    Idle(Idle),
    /// Register jobs of one allocation at a rate
    Stream(Stream),
    /// Run a fleet, and update jobs, drain nodes and end nodes
    Churn(Churn),
    /// Run a fleet, and end a share of its nodes at once
    Storm(Storm),
}

impl Load {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Fleet(_) => "fleet",
            Self::Idle(_) => "idle",
            Self::Stream(_) => "stream",
            Self::Churn(_) => "churn",
            Self::Storm(_) => "storm",
        }
    }
}

/// The jobs of a load.
#[derive(Clone, Debug, Args)]
pub(crate) struct Fleet {
    /// Number of jobs
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) jobs: u32,
    /// Allocations of each job
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) count: u32,
    /// Type of the jobs
    #[arg(long, value_enum, default_value_t = Kind::Batch)]
    pub(crate) r#type: Kind,
    /// Time after which the tasks end well
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
    pub(crate) run_for: Duration,
    /// Spread the allocations of each job over the racks
    #[arg(long)]
    pub(crate) spread: bool,
    /// Prefer a quarter of the nodes
    #[arg(long)]
    pub(crate) affinity: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Batch,
    Service,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Idle {
    /// Time to measure
    #[arg(long = "for", value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) length: Duration,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Stream {
    /// Jobs a second
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) rate: u32,
    /// Time for which jobs are registered
    #[arg(long = "for", value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) length: Duration,
    /// Time after which the task of a job ends
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) run_for: Duration,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Churn {
    #[command(flatten)]
    pub(crate) fleet: Fleet,
    /// Jobs to update a second
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) updates: u32,
    /// Time for which the fleet is disturbed
    #[arg(long = "for", value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub(crate) length: Duration,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Storm {
    #[command(flatten)]
    pub(crate) fleet: Fleet,
    /// Share of the nodes that end, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.3, value_parser = share)]
    pub(crate) share: f64,
}

fn duration(text: &str) -> Result<Duration, String> {
    duration::parse_setting(text).map_err(|error| error.to_string())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text
        .parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1, for example 0.3".to_owned())
}

fn named_pid(text: &str) -> Result<(String, u32), String> {
    let pair = text.split_once('=');
    let pair = pair.and_then(|(name, pid)| Some((name.to_owned(), pid.parse().ok()?)));
    pair.ok_or_else(|| "expected NAME=PID, for example etcd=1201".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_or_refused_with_an_example() {
        assert_eq!(named_pid("etcd=12"), Ok(("etcd".to_owned(), 12)));
        assert!(named_pid("12").unwrap_err().contains("etcd=1201"));
        assert_eq!(share("0.25"), Ok(0.25));
        for wrong in ["1.1", "-0.1", "NaN", "x"] {
            assert!(share(wrong).unwrap_err().contains("0.3"), "{wrong}");
        }
    }

    #[test]
    fn the_declaration_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
