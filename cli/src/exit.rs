//! The exit codes of every command, in one place, because scripts rely on them.

use std::process::ExitCode;

/// How a command ended; of several things that it did, the last of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// It did what it was asked.
    Success,
    /// Anything went wrong: usage, the gateway, nothing found, a deployment that did not succeed.
    Failure,
    /// The evaluation could not place everything, and no successful deployment followed.
    PlacementFailed,
    /// A dry run: allocations would be created or destroyed. Source: Nomad, whose users' pipelines
    /// tell it from success.
    PlanChanges,
    /// A dry run that failed, which must not look like one that found changes.
    PlanFailed,
    /// There is no such command.
    UnknownCommand,
    /// The user stopped waiting: 128 + SIGINT, so that no script takes it for success.
    Interrupted,
    /// Nobody reads the output any more: 128 + SIGPIPE.
    BrokenPipe,
}

impl Exit {
    /// Returns how `command` says it: one of them has a number of its own for failure.
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
