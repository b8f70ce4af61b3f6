//! `kafila node drain`

use std::time::Duration;

use clap::{ArgGroup, Args};

use crate::args::values::duration;

/// Default deadline of a drain. Source: Nomad's command line.
const DEADLINE: Duration = Duration::from_secs(3_600);

#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("wanted").args(["enable", "disable", "monitor"]).required(true),
    group = ArgGroup::new("which").args(["id", "this"]).required(true),
    group = ArgGroup::new("time").args(["deadline", "force", "no_deadline"]),
)]
pub struct Drain {
    /// The node, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: Option<String>,
    /// The node whose name is the host name of this machine
    #[arg(long = "self")]
    pub this: bool,
    /// Start a drain: migrate all allocations and accept no new ones
    #[arg(long)]
    pub enable: bool,
    /// End the drain; remaining allocations stay
    #[arg(long)]
    pub disable: bool,
    /// Watch a drain in progress
    #[arg(long)]
    pub monitor: bool,
    /// Stop the remaining allocations after this time, for example 12h or 1d [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with_all = ["disable", "monitor"])]
    pub deadline: Option<Duration>,
    /// Stop all allocations immediately
    #[arg(long, conflicts_with_all = ["disable", "monitor"])]
    pub force: bool,
    /// Set no deadline
    #[arg(long, conflicts_with_all = ["disable", "monitor"])]
    pub no_deadline: bool,
    /// Leave allocations of system jobs on the node
    #[arg(long, conflicts_with_all = ["disable", "monitor"])]
    pub ignore_system: bool,
    /// With -disable: keep the node ineligible for new allocations
    #[arg(long, conflicts_with_all = ["enable", "monitor"])]
    pub keep_ineligible: bool,
    /// Reason, stored with the drain
    #[arg(short = 'm', value_name = "TEXT")]
    pub message: Option<String>,
    /// Metadata, stored with the drain; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub meta: Vec<String>,
    /// Return without watching the drain
    #[arg(long)]
    pub detach: bool,
    /// Skip the confirmation of the node
    #[arg(long)]
    pub yes: bool,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
}

impl Drain {
    /// Returns the deadline in the form of the RPC.
    ///
    /// Source: Nomad's form: nanoseconds, 0 for no deadline, below 0 for an immediate stop.
    pub(crate) fn deadline_ns(&self) -> i64 {
        if self.no_deadline {
            return 0;
        }
        let deadline = match self.deadline {
            _ if self.force => Duration::ZERO,
            given => given.unwrap_or(DEADLINE),
        };
        proto::drain::write_deadline(Some(deadline))
    }
}

const EXAMPLES: &str = "\
Examples:
  kafila node drain -enable 4d2ba53b
  kafila node drain -enable -deadline 10m -m 'new disks' 4d2ba53b
  kafila node drain -enable -force -detach 4d2ba53b
  kafila node drain -monitor 4d2ba53b
  kafila node drain -disable 4d2ba53b

Exit codes: 0 set, and if watched, drained; 1 canceled, no such node, ambiguous, or the gateway did
not answer; 130 stopped watching with Ctrl-C, the drain continues.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, Root};

    fn read(words: &[&str]) -> Result<Drain, clap::Error> {
        let words = ["kafila", "node", "drain"].iter().chain(words);
        let cli = <crate::args::Cli as clap::Parser>::try_parse_from(words)?;
        match cli.command {
            Root::Client(Command::Node(crate::args::node::Command::Drain(args))) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_default_deadline_is_an_hour() {
        let ns = |words: &[&str]| read(words).unwrap().deadline_ns();
        assert_eq!(ns(&["--enable", "4d2b"]), 3_600_000_000_000);
        assert_eq!(
            ns(&["--enable", "--deadline", "90s", "4d2b"]),
            90_000_000_000
        );
        assert_eq!(ns(&["--enable", "--force", "4d2b"]), -1_000_000_000);
        assert_eq!(ns(&["--enable", "--no-deadline", "4d2b"]), 0);
    }

    #[test]
    fn conflicting_flags_are_refused() {
        for words in [
            &["4d2b"][..],
            &["--enable"],
            &["--enable", "--disable", "4d2b"],
            &["--enable", "--monitor", "4d2b"],
            &["--enable", "--self", "4d2b"],
            &["--enable", "--force", "--no-deadline", "4d2b"],
            &["--disable", "--deadline", "1h", "4d2b"],
            &["--disable", "--ignore-system", "4d2b"],
            &["--enable", "--keep-ineligible", "4d2b"],
        ] {
            assert!(read(words).is_err(), "{words:?}");
        }
        assert!(read(&["--disable", "--keep-ineligible", "--self"]).is_ok());
    }
}
