//! `kafila job restart`

use std::num::NonZeroU32;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Restart {
    /// The job, or a unique prefix of its ID
    #[arg(value_parser = crate::args::values::id)]
    pub id: String,
    /// Restart only allocations of this task group; repeatable
    #[arg(long = "group", value_name = "GROUP", action = ArgAction::Append,
          value_parser = crate::args::values::id)]
    pub groups: Vec<String>,
    /// Restart only this task; repeatable [default: all running tasks]
    #[arg(long = "task", value_name = "TASK", action = ArgAction::Append,
          value_parser = crate::args::values::id)]
    pub tasks: Vec<String>,
    /// Restart all tasks, also those that have ended, in the order of a first start
    #[arg(long, conflicts_with = "tasks")]
    pub all_tasks: bool,
    /// Allocations to restart at a time: a number, or a part of all, such as 25%
    #[arg(long, value_name = "N", default_value = "1", value_parser = batch_size)]
    pub batch_size: BatchSize,
    /// Pause between batches, such as 10s; or 'ask': wait for a confirmation
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = batch_wait)]
    pub batch_wait: BatchWait,
    /// The action after a failed restart: 'ask' on a terminal, otherwise as 'fail'
    #[arg(long, value_name = "ACTION", value_enum, default_value_t = OnError::Ask)]
    pub on_error: OnError,
    /// Stop the allocations instead, so that the scheduler replaces them; service jobs only
    #[arg(long, conflicts_with_all = ["tasks", "all_tasks"])]
    pub reschedule: bool,
    /// With -reschedule, stop the tasks without the shutdown_delay of groups and tasks; restarts in
    /// place have no delays
    #[arg(long)]
    pub no_shutdown_delay: bool,
    /// Skip all confirmations
    #[arg(long)]
    pub yes: bool,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  kafila job restart web                       one allocation after the other, in place
  kafila job restart -batch-size 25% -batch-wait 30s web
  kafila job restart -group api -task server web
  kafila job restart -reschedule web           new allocations, on any node that fits

A batch is done when its tasks run again, or with -reschedule when the replacements run.

Exit codes: 0 all restarted; 1 an error, a restart that failed, or a declined confirmation; 130 stopped
with Ctrl-C, the rest is not restarted.";

/// The number of allocations that are restarted at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSize {
    Count(NonZeroU32),
    /// 1 to 100.
    Percent(u32),
}

impl BatchSize {
    /// Returns the size of a batch of `total` allocations, at least 1.
    pub fn of(self, total: usize) -> usize {
        let size = match self {
            Self::Count(count) => usize::try_from(count.get()).unwrap_or(usize::MAX),
            Self::Percent(percent) => {
                let percent = usize::try_from(percent).unwrap_or(100);
                total.saturating_mul(percent).div_ceil(100)
            }
        };
        size.max(1)
    }
}

/// The condition for the next batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchWait {
    Ask,
    For(Duration),
}

/// The action after a failed restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    Ask,
    Fail,
}

fn batch_size(text: &str) -> Result<BatchSize, String> {
    let problem = || "expected a number of allocations such as 5, or a part such as 25%".to_owned();
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent = percent.parse().ok().filter(|it| (1..=100).contains(it));
            percent.map(BatchSize::Percent).ok_or_else(problem)
        }
        None => text.parse().map(BatchSize::Count).map_err(|_| problem()),
    }
}

fn batch_wait(text: &str) -> Result<BatchWait, String> {
    if text == "ask" {
        return Ok(BatchWait::Ask);
    }
    let duration = crate::args::values::any_duration(text);
    duration
        .map(BatchWait::For)
        .map_err(|_| "expected a duration such as 10s, or 'ask'".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_a_number_or_a_part_and_never_empty() {
        let of = |text: &str, total| batch_size(text).unwrap().of(total);
        assert_eq!(of("1", 10), 1);
        assert_eq!(of("20", 10), 20);
        assert_eq!(of("25%", 10), 3);
        assert_eq!(of("1%", 10), 1);
        assert_eq!(of("100%", 10), 10);
        for text in ["0", "-1", "0%", "101%", "%", "x", "1.5"] {
            assert!(batch_size(text).unwrap_err().contains("25%"), "{text}");
        }
    }

    #[test]
    fn a_pause_is_a_duration_or_a_question() {
        assert_eq!(batch_wait("ask"), Ok(BatchWait::Ask));
        assert_eq!(batch_wait("0s"), Ok(BatchWait::For(Duration::ZERO)));
        let day = Duration::from_secs(86_400);
        assert_eq!(batch_wait("1d"), Ok(BatchWait::For(day)));
        for text in ["5", "asks", ""] {
            assert!(batch_wait(text).unwrap_err().contains("'ask'"), "{text}");
        }
    }
}
