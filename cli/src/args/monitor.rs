//! `kafila monitor`, and the process that it and `kafila operator log-level` are about.

use clap::Args;
use proto::v1;

/// The process whose log is meant; by default the one at -address.
#[derive(Debug, Default, Args)]
pub struct Target {
    /// The leader of a service, such as plan-applier [default: the process at -address]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["node_id", "process"])]
    pub service: Option<String>,
    /// A node, by its ID or a unique prefix
    #[arg(long, value_name = "ID", value_parser = super::values::id, conflicts_with = "process")]
    pub node_id: Option<String>,
    /// A scheduler-worker or any other process, by its address in 'kafila operator processes'
    #[arg(long, value_name = "ADDRESS", value_parser = super::values::id)]
    pub process: Option<String>,
}

impl Target {
    pub(crate) fn to_wire(&self) -> v1::AgentTarget {
        v1::AgentTarget {
            service: self.service.clone().unwrap_or_default(),
            node_id: self.node_id.clone().unwrap_or_default(),
            process: self.process.clone().unwrap_or_default(),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Monitor {
    /// Lines of this level and above: error, warn, info, debug or trace; or levels of modules, such as
    /// info,store=debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: String,
    /// Print JSON, one object for each line
    #[arg(long)]
    pub log_json: bool,
    /// Print the source file and line that logged
    #[arg(long)]
    pub log_include_location: bool,
    /// First print the last N lines that the process printed itself, about 2000 at most
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = super::values::whole::<u32>)]
    pub recent: u32,
    #[command(flatten)]
    pub target: Target,
}

const EXAMPLES: &str = "\
The process prints no more than before: the level is that of this command alone. Any service or node
answers at its own address; a gateway also reaches the others. Lines that this command is too slow for
are dropped and counted.

Examples:
  kafila monitor                                  the gateway at -address
  kafila monitor -service=plan-applier -log-level=debug
  kafila monitor -node-id=4d2ba53b -recent=100
  kafila monitor -process=10.0.0.7:4648           a scheduler-worker, or a replica that does not lead
  kafila monitor -address=http://10.0.0.7:4648 -log-level=info,scheduler=debug -log-json

Exit codes: 130 stopped with Ctrl-C; 1 no such process, a level that is none, or no answer.";
