//! The supervisor process between the agent and one task: it outlives the agent, is the task's
//! parent, owns the task's logs, and records the task's end before it reports it.
//!
//! It is the agent's own binary, started with a hidden subcommand that calls [`main`]. It has no
//! async runtime and a handful of small threads. In reading order: [`protocol`] between agent and
//! supervisor; [`files`] in the supervisor's directory; [`run`] is its main function; [`task`]
//! starts or adopts the task, in its [`network`] or with [`isolation`]; [`reap`] waits for the task and
//! kills its remaining processes; [`logs`] copies its output; [`control`] answers the agent. [`command`]
//! turns a process of the agent into a command beside the task, and [`own_program`] keeps the agent's program
//! from isolated tasks. [`output`] copies output alone.
//!
//! The directory identifies the supervisor: a restarted agent finds it there, connects to its socket
//! and catches up. The agent creates the listening socket and passes it as standard input, so a
//! connection is never refused while the supervisor starts.

mod clock;
pub(crate) mod command;
mod control;
pub(crate) mod files;
pub(crate) mod isolation;
mod logs;
pub(crate) mod mode;
mod network;
mod output;
mod own_program;
pub(crate) mod protocol;
mod reap;
mod run;
mod shared;
mod task;

#[cfg(test)]
pub(crate) use self::output::copy as copy_output;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use self::command::EXEC_FLAG;
use self::mode::{ADOPT_FLAG, Mode};
use crate::output_copy::COPY_FLAG;

/// Runs one supervisor until its task has been forgotten.
///
/// `args` follow the subcommand: the directory, then optionally `--adopt`. Standard input is the
/// listening socket. With `--exec` and a command line, it becomes that command beside the task; with
/// `--copy-output` it copies the output of a task that another program runs.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let directory = args.next().map(PathBuf::from);
    let mode = match args.next() {
        Some(flag) if flag == EXEC_FLAG => {
            return directory.map_or(ExitCode::from(2), |directory| {
                command::main(&directory, args)
            });
        }
        Some(flag) if flag == COPY_FLAG => {
            return match directory.map(|directory| output::run(&directory)) {
                Some(Ok(())) => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            };
        }
        None => Some(Mode::Start),
        Some(flag) if flag == ADOPT_FLAG => Some(Mode::Adopt),
        Some(_) => None,
    };
    let (Some(directory), Some(mode)) = (directory, mode) else {
        eprintln!("usage: <directory> [{ADOPT_FLAG}]; started by the agent, not by people");
        return ExitCode::from(2);
    };
    match run::run(&directory, mode) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is a file in the directory.
            eprintln!("supervisor in {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}
