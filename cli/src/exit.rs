//! Exit codes of all commands.

use std::process::ExitCode;

/// The result of a command. Of several results, the last variant of this enum wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// The command succeeded.
    Success,
    /// Any error: usage, the gateway, no match, an unsuccessful deployment.
    Failure,
    /// Failed placements without a successful deployment afterwards.
    PlacementFailed,
    /// A dry run would create or destroy allocations. Source: Nomad.
    PlanChanges,
    /// A failed dry run, distinct from one that found changes.
    PlanFailed,
    /// The exit code of a command beside a task.
    OfCommand(u8),
    /// Unknown command.
    UnknownCommand,
    /// Interrupted by the user: 128 + SIGINT.
    Interrupted,
    /// Standard output is a closed pipe: 128 + SIGPIPE.
    BrokenPipe,
}

impl Exit {
    /// Returns the exit code of `command`: failures of job plan have their own code.
    pub(crate) fn of(self, command: &str) -> Self {
        let is_plan = matches!(command, "kafila job plan" | "kafila plan");
        match self {
            Self::Failure if is_plan => Self::PlanFailed,
            other => other,
        }
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure | Self::PlanChanges => 1,
            Self::PlacementFailed => 2,
            Self::OfCommand(code) => code,
            Self::UnknownCommand => 127,
            Self::Interrupted => 130,
            Self::BrokenPipe => 141,
            Self::PlanFailed => 255,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
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
            (Exit::PlanChanges, 1),
            (Exit::PlanFailed, 255),
            (Exit::OfCommand(3), 3),
            (Exit::UnknownCommand, 127),
            (Exit::Interrupted, 130),
            (Exit::BrokenPipe, 141),
        ];
        for (exit, number) in numbers {
            assert_eq!(exit.code(), number);
        }
    }

    #[test]
    fn only_a_dry_run_fails_with_a_number_of_its_own() {
        for command in ["kafila job plan", "kafila plan"] {
            assert_eq!(Exit::Failure.of(command), Exit::PlanFailed);
            assert_eq!(Exit::PlanChanges.of(command), Exit::PlanChanges);
            assert_eq!(Exit::BrokenPipe.of(command), Exit::BrokenPipe);
        }
        assert_eq!(Exit::Failure.of("kafila job run"), Exit::Failure);
    }
}
