//! `kafila node drain`

use std::time::Duration;

use clap::{ArgGroup, Args};

use super::span;

/// How long allocations may take to leave unless told otherwise. Source: Nomad's command line.
const DEADLINE: Duration = Duration::from_secs(3_600);

#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("wanted").args(["enable", "disable", "monitor"]).required(true),
    group = ArgGroup::new("which").args(["id", "this"]).required(true),
    group = ArgGroup::new("time").args(["deadline", "force", "no_deadline"]),
)]
pub struct Drain {
    /// The node, or the start of its id
    pub id: Option<String>,
    /// The node of this machine: the one that has its host name
    #[arg(long = "self")]
    pub this: bool,
    /// Move its allocations to other nodes, and place nothing new on it
    #[arg(long)]
    pub enable: bool,
    /// End the drain; what has not left yet stays
    #[arg(long)]
    pub disable: bool,
    /// Watch a drain that was begun before
    #[arg(long)]
    pub monitor: bool,
    /// How long allocations may take to leave; then all that are left are stopped [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = span, conflicts_with_all = ["disable", "monitor"])]
    pub deadline: Option<Duration>,
    /// Stop everything at once
    #[arg(long, conflicts_with_all = ["disable", "monitor"])]
    pub force: bool,
    /// Let allocations take as long as they need
    #[arg(long, conflicts_with_all = ["disable", "monitor"])]
    pub no_deadline: bool,
    /// Leave the allocations of system jobs on the node
    #[arg(long, conflicts_with_all = ["disable", "monitor"])]
    pub ignore_system: bool,
    /// With -disable: place nothing new on it all the same
    #[arg(long, conflicts_with_all = ["enable", "monitor"])]
    pub keep_ineligible: bool,
    /// Why, kept with the drain
    #[arg(short = 'm', value_name = "TEXT")]
    pub message: Option<String>,
    /// More to be kept with the drain; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub meta: Vec<String>,
    /// Return once the drain is set, without watching it
    #[arg(long)]
    pub detach: bool,
    /// Do not ask whether the node that was found is the one that is meant
    #[arg(long)]
    pub yes: bool,
    /// Show full ids
    #[arg(long)]
    pub verbose: bool,
}

impl Drain {
    /// Returns the drain that is asked for, as the gateway takes it.
    ///
    /// Source: Nomad's form: nanoseconds, 0 without a deadline, below 0 at once.
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

Exit codes: 0 set, and when watched, drained; 1 canceled, no such node, several, or the gateway
did not answer; 130 interrupted: the drain goes on.";

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
    fn the_time_is_an_hour_unless_told_otherwise() {
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
    fn what_makes_no_sense_together_is_refused() {
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
