//! `kafila alloc fs`

use clap::Args;

use crate::args::values;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Fs {
    /// The allocation, or a unique prefix of its ID; with -job: the path
    #[arg(required_unless_present = "job", value_parser = values::id)]
    pub id: Option<String>,
    /// The directory or file, from the allocation's directory [default: that directory]
    pub path: Option<String>,
    /// Show the facts of the file or directory instead of its contents
    #[arg(long)]
    pub stat: bool,
    /// Print sizes in bytes and exact times
    #[arg(short = 'H')]
    pub machine: bool,
    /// Follow the file as it grows, until the allocation ends
    #[arg(short)]
    pub follow: bool,
    /// Print only the end: 10 lines, or as set by -n or -c
    #[arg(long)]
    pub tail: bool,
    /// Print the last N lines
    #[arg(short = 'n', value_name = "N", value_parser = values::whole::<u32>)]
    pub lines: Option<u32>,
    /// Print the last N bytes
    #[arg(short = 'c', value_name = "N", conflicts_with = "lines", value_parser = values::whole::<u64>)]
    pub bytes: Option<u64>,
    /// Use the newest running allocation of this job
    #[arg(long, value_name = "JOB", value_parser = values::id)]
    pub job: Option<String>,
    /// With -job: use this task group
    #[arg(long, value_name = "GROUP", requires = "job", value_parser = values::id)]
    pub group: Option<String>,
    /// Show full IDs
    #[arg(long)]
    pub verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  kafila alloc fs 8a3f2c1e                           the allocation's directory
  kafila alloc fs 8a3f2c1e server/local              a directory of the task server
  kafila alloc fs 8a3f2c1e server/local/app.conf     a file
  kafila alloc fs -f -tail 8a3f2c1e alloc/data/app.log
  kafila alloc fs -job web alloc/logs                newest running allocation of the job web

Symbolic links are not followed, and a task's secrets are not shown. The files are on the node until it
removes the ended allocation.

Exit codes: 0 printed; 1 no such allocation or file, a secret, or its node cannot be reached.";
