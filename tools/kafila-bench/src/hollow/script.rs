//! The course of a group's tasks, read from its job: the options of `mock_driver` that need no process.

use std::time::Duration;

use prost_types::value::Kind;
use proto::v1;

/// The course of the tasks of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) tasks: Vec<String>,
    pub(crate) start_for: Duration,
    /// `None`: until it is stopped.
    pub(crate) run_for: Option<Duration>,
    pub(crate) exit_code: i32,
    /// Time from a stop to the end.
    pub(crate) kill_after: Duration,
    /// Time from the start until a deployment counts the allocation as healthy.
    pub(crate) healthy_after: Duration,
}

impl Script {
    /// The first task decides for all. A task of another driver than `mock_driver` runs until it is
    /// stopped.
    pub(crate) fn of(group: &v1::TaskGroup) -> Self {
        let update = group.update.as_ref();
        let healthy_after = update.and_then(|update| update.min_healthy_time.as_ref());
        let mut script = Self {
            tasks: group
                .tasks
                .iter()
                .map(|task| task.name().to_owned())
                .collect(),
            healthy_after: healthy_after.map(duration).unwrap_or_default(),
            ..Self::default()
        };
        let mocked = group
            .tasks
            .first()
            .filter(|task| task.driver() == "mock_driver");
        if let Some(task) = mocked {
            script.start_for = option(task, "start_block_for").unwrap_or_default();
            script.run_for = Some(option(task, "run_for").unwrap_or_default());
            script.kill_after = option(task, "kill_after").unwrap_or_default();
            script.exit_code = number(task, "exit_code").unwrap_or_default();
        }
        script
    }
}

fn field<'a>(task: &'a v1::Task, name: &str) -> Option<&'a Kind> {
    task.config.as_ref()?.fields.get(name)?.kind.as_ref()
}

fn option(task: &v1::Task, name: &str) -> Option<Duration> {
    match field(task, name)? {
        Kind::StringValue(text) => duration::parse_duration(text).ok(),
        _ => None,
    }
}

fn number(task: &v1::Task, name: &str) -> Option<i32> {
    match field(task, name)? {
        // An exit code is a small integer.
        #[expect(clippy::cast_possible_truncation, reason = "saturates")]
        Kind::NumberValue(number) => Some(*number as i32),
        _ => None,
    }
}

fn duration(wire: &prost_types::Duration) -> Duration {
    Duration::try_from(*wire).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(driver: &str, config: &[(&str, Kind)]) -> v1::TaskGroup {
        let fields = config.iter().map(|(name, kind)| {
            let kind = Some(kind.clone());
            ((*name).to_owned(), prost_types::Value { kind })
        });
        let task = v1::Task {
            name: Some("t".to_owned()),
            driver: Some(driver.to_owned()),
            config: Some(prost_types::Struct {
                fields: fields.collect(),
            }),
            ..v1::Task::default()
        };
        v1::TaskGroup {
            tasks: vec![task],
            ..v1::TaskGroup::default()
        }
    }

    #[test]
    fn the_options_of_the_mock_driver_are_the_script() {
        let text = |text: &str| Kind::StringValue(text.to_owned());
        let script = Script::of(&group(
            "mock_driver",
            &[
                ("start_block_for", text("250ms")),
                ("run_for", text("1h")),
                ("kill_after", text("2s")),
                ("exit_code", Kind::NumberValue(3.0)),
            ],
        ));
        let expected = Script {
            tasks: vec!["t".to_owned()],
            start_for: Duration::from_millis(250),
            run_for: Some(Duration::from_secs(3_600)),
            exit_code: 3,
            kill_after: Duration::from_secs(2),
            healthy_after: Duration::ZERO,
        };
        assert_eq!(script, expected);
    }

    #[test]
    fn a_mock_task_without_options_ends_at_once_and_others_run_until_stopped() {
        assert_eq!(
            Script::of(&group("mock_driver", &[])).run_for,
            Some(Duration::ZERO)
        );
        assert_eq!(Script::of(&group("raw_exec", &[])).run_for, None);
    }
}
