//! The process between the agent and one task: it outlives the agent, is the task's parent, owns
//! its logs, and writes down how it ended before it tells anybody.
//!
//! It is the agent's own binary, started with a hidden subcommand that calls [`main`]. It has no
//! async runtime and a handful of small threads. In reading order: [`protocol`] is what agent and
//! supervisor say to each other, [`files`] what it leaves in its directory, [`run`] its life,
//! [`task`] starts or adopts the task, [`reap`] waits for it and for what it left behind, [`logs`]
//! moves its output, [`control`] answers the agent.
//!
//! The directory is its name: an agent that was restarted finds it there, connects to the socket
//! in it, and learns what it missed. The socket's listening end is made by the agent and handed
//! over as standard input, so there is no moment at which a connection could be refused.

mod clock;
mod control;
pub(crate) mod files;
mod logs;
pub(crate) mod protocol;
mod reap;
mod run;
mod shared;
mod task;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Whether the task is to be started, or runs already and has lost its supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Start,
    Adopt,
}

/// The flag that means [`Mode::Adopt`].
pub(crate) const ADOPT_FLAG: &str = "--adopt";

/// Runs one supervisor until its task has been forgotten.
///
/// `args` are those after the subcommand: the directory, then perhaps `--adopt`. Standard input
/// is the listening socket.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let directory = args.next().map(PathBuf::from);
    let mode = match args.next() {
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
