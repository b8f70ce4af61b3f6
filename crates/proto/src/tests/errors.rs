//! Errors name the field by its path and say what would be right.

use model::spec::{self, Span};
use model::{AllocClient, Allocation, FieldErrors, Plan};
use prost_types::value::Kind;
use prost_types::{Struct, Value};

use super::draw::Draw;
use super::nouns;
use crate::json::{self, LargeInteger};
use crate::{internal, v1};

fn lines(errors: &FieldErrors) -> Vec<String> {
    errors.0.iter().map(ToString::to_string).collect()
}

fn number(key: &str, number: f64) -> Struct {
    let value = Value {
        kind: Some(Kind::NumberValue(number)),
    };
    Struct {
        fields: [(key.to_owned(), value)].into(),
    }
}

#[test]
fn a_job_lists_every_error_with_its_path() {
    let bad_span = prost_types::Duration {
        seconds: 1,
        nanos: -5,
    };
    let long_span = prost_types::Duration {
        seconds: i64::MAX,
        nanos: 0,
    };
    let task = v1::Task {
        config: Some(number("port", f64::NAN)),
        kill_timeout: Some(bad_span),
        ..v1::Task::default()
    };
    let group = v1::TaskGroup {
        tasks: vec![v1::Task::default(), task],
        restart: Some(v1::RestartPolicy {
            delay: Some(long_span),
            ..Default::default()
        }),
        ..v1::TaskGroup::default()
    };
    let job = v1::Job {
        task_groups: vec![v1::TaskGroup::default(), group],
        ..Default::default()
    };

    let errors = spec::Job::try_from(job).unwrap_err();
    assert_eq!(
        lines(&errors),
        [
            "job.task_groups[1].tasks[1].config.port: NaN is not a number that JSON has",
            "job.task_groups[1].tasks[1].kill_timeout: 1 s and -5 ns are not a duration: want \
             less than a second of nanoseconds, of the same sign as the seconds",
            "job.task_groups[1].restart.delay: 9223372036854775807 s is too long: want at most \
             292 years",
        ]
    );
}

#[test]
fn a_config_that_nests_without_end_is_refused() {
    let mut value = Value {
        kind: Some(Kind::NullValue(0)),
    };
    for _ in 0..200 {
        let list = prost_types::ListValue {
            values: vec![value],
        };
        value = Value {
            kind: Some(Kind::ListValue(list)),
        };
    }
    let config = Struct {
        fields: [("deep".to_owned(), value)].into(),
    };
    let task = v1::Task {
        config: Some(config),
        ..v1::Task::default()
    };
    let group = v1::TaskGroup {
        tasks: vec![task],
        ..v1::TaskGroup::default()
    };
    let job = v1::Job {
        task_groups: vec![group],
        ..v1::Job::default()
    };
    let errors = spec::Job::try_from(job).unwrap_err();
    assert!(errors.0[0].message.contains("nested too deep"), "{errors}");
    assert!(
        errors.0[0]
            .field
            .starts_with("job.task_groups[0].tasks[0].config.deep[0]")
    );
}

#[test]
fn texts_are_parsed_by_the_callers_function_and_its_errors_are_placed() {
    let parse = |text: &str| match text {
        "30s" => Ok(30_000_000_000),
        _ => Err(format!("{text:?} is not a duration")),
    };
    let group = spec::TaskGroup {
        shutdown_delay: Some(Span::Text("30s".to_owned())),
        max_run_duration: Some(Span::Text("soon".to_owned())),
        ..spec::TaskGroup::default()
    };
    let job = spec::Job {
        task_groups: Some(vec![group]),
        ..spec::Job::default()
    };
    let errors = v1::Job::from_spec(&job, &parse).unwrap_err();
    assert_eq!(
        lines(&errors),
        ["job.task_groups[0].max_run_duration: \"soon\" is not a duration"]
    );
    let errors = v1::Job::try_from(&job).unwrap_err();
    assert_eq!(
        errors.0.len(),
        2,
        "a plain conversion parses nothing: {errors}"
    );
}

#[test]
fn integers_that_a_double_cannot_hold_are_refused_from_users_and_shown_as_strings() {
    let spec_with = |value: serde_json::Value| {
        let config = [("n".to_owned(), value)].into_iter().collect();
        let task = spec::Task {
            config: Some(config),
            ..spec::Task::default()
        };
        let group = spec::TaskGroup {
            tasks: Some(vec![task]),
            ..spec::TaskGroup::default()
        };
        spec::Job {
            task_groups: Some(vec![group]),
            ..spec::Job::default()
        }
    };
    let exact = spec_with((1_u64 << 53).into());
    let wire = v1::Job::try_from(&exact).unwrap();
    assert_eq!(spec::Job::try_from(wire).unwrap(), exact);

    let large = spec_with(((1_u64 << 53) + 1).into());
    let errors = v1::Job::try_from(&large).unwrap_err();
    assert_eq!(
        lines(&errors),
        [
            "job.task_groups[0].tasks[0].config.n: 9007199254740993 has more digits than a double \
          can hold (2^53): write it in quotes"
        ]
    );

    let config = [("n".to_owned(), ((1_u64 << 53) + 1).into())]
        .into_iter()
        .collect();
    let shown = json::write_object(&config, LargeInteger::AsString).unwrap();
    let digits = Kind::StringValue("9007199254740993".to_owned());
    assert_eq!(shown.fields["n"].kind, Some(digits));
}

#[test]
fn unknown_words_are_answered_with_the_known_ones() {
    let wire = v1::AllocClient {
        status: "runing".to_owned(),
        ..v1::AllocClient::default()
    };
    let errors = AllocClient::try_from(wire).unwrap_err();
    assert_eq!(
        lines(&errors),
        [
            "client.status: \"runing\" is not known here: want one of pending, running, complete, \
          failed, lost, unknown"
        ]
    );
}

#[test]
fn an_error_deep_in_a_plan_has_its_whole_path() {
    let mut draw = Draw::new(7);
    let mut plan = internal::v1::Plan::from(&nouns::plan(&mut draw));
    let mut alloc = v1::Allocation::from(&nouns::allocation(&mut draw));
    alloc.resources.as_mut().unwrap().ports = vec![v1::AllocatedPort {
        value: 70_000,
        ..v1::AllocatedPort::default()
    }];
    plan.placements = vec![alloc];
    let errors = Plan::try_from(plan).unwrap_err();
    assert_eq!(
        lines(&errors),
        ["plan.placements[0].resources.ports[0].value: 70000 is too large: want at most 65535"]
    );
}

#[test]
fn a_missing_id_says_what_an_id_looks_like() {
    let errors = Allocation::try_from(v1::Allocation::default()).unwrap_err();
    assert!(lines(&errors)[0].starts_with("allocation.id: \"\" is not the id of an allocation"));
}
