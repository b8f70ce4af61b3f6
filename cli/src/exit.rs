//! The exit codes of every command, in one place, because scripts rely on them.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// It did what it was asked.
    Success = 0,
    /// Anything went wrong: usage, the gateway, nothing found, a deployment that did not succeed.
    Failure = 1,
    /// The evaluation could not place everything, and no successful deployment followed.
    PlacementFailed = 2,
    /// There is no such command.
    UnknownCommand = 127,
    /// The user stopped waiting: 128 + SIGINT, so that no script takes it for success.
    Interrupted = 130,
    /// Nobody reads the output any more: 128 + SIGPIPE.
    BrokenPipe = 141,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_know_these_numbers() {
        let numbers = [
            (Exit::Success, 0),
            (Exit::Failure, 1),
            (Exit::PlacementFailed, 2),
            (Exit::UnknownCommand, 127),
            (Exit::Interrupted, 130),
            (Exit::BrokenPipe, 141),
        ];
        for (exit, number) in numbers {
            assert_eq!(exit as u8, number);
        }
    }
}
