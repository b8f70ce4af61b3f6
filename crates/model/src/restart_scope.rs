//! The tasks of an allocation that a request restarts.

use crate::field_error::FieldErrors;

/// The tasks to restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestartScope {
    /// One task, if it runs.
    Task(String),
    /// All running tasks.
    Running,
    /// All tasks, dead ones included, in the order of a first start.
    All,
}

impl RestartScope {
    /// Returns the scope of a request: `task`, or without one all running tasks, or with `all_tasks`
    /// those that have ended as well.
    ///
    /// # Errors
    /// A task is named although all are requested.
    pub fn new(task: &str, all_tasks: bool) -> Result<Self, FieldErrors> {
        match (task.is_empty(), all_tasks) {
            (false, true) => {
                let mut errors = FieldErrors::default();
                let problem = "excludes all_tasks: name one task, or restart all of them";
                errors.push("task", problem);
                Err(errors)
            }
            (false, false) => Ok(Self::Task(task.to_owned())),
            (true, true) => Ok(Self::All),
            (true, false) => Ok(Self::Running),
        }
    }

    /// Returns the `task` and `all_tasks` of a request with this scope.
    pub fn to_request(&self) -> (&str, bool) {
        match self {
            Self::Task(task) => (task, false),
            Self::Running => ("", false),
            Self::All => ("", true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_restarts_one_task_or_the_running_ones_or_all() {
        use RestartScope::{All, Running, Task};
        for (task, all_tasks, scope) in [
            ("server", false, Task("server".to_owned())),
            ("", false, Running),
            ("", true, All),
        ] {
            assert_eq!(RestartScope::new(task, all_tasks).as_ref(), Ok(&scope));
            assert_eq!(scope.to_request(), (task, all_tasks));
        }
        let both = RestartScope::new("server", true).unwrap_err();
        assert_eq!(both.0[0].field, "task");
        let message = &both.0[0].message;
        assert!(message.contains("excludes all_tasks"), "{message}");
    }
}
