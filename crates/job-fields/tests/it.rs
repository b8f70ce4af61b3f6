//! The JSON and the messages of every declared field, and values that one of the two cannot hold.

use job_fields::fields::{self, Kind, Message};
use job_fields::{Job, Task, TaskGroup};
use prost::Message as _;
use prost_types::value::Kind as Wire;
use prost_types::{ListValue, Struct, Value as WireValue};
use serde_json::{Map, Value, json};

/// Returns a message with a value in every field, in JSON.
fn sample(message: &Message) -> Value {
    let fields = message.fields.iter().map(|field| {
        let value = match field.kind {
            Kind::Text => json!("x"),
            Kind::Whole => json!(-7),
            Kind::Unsigned => json!(7),
            Kind::Flag => json!(true),
            Kind::TextList => json!(["x", "y"]),
            Kind::TextMap => json!({"k": "v"}),
            Kind::Duration => json!(-1_500_000_000),
            Kind::Object => json!({"a": [1, 0.5, "x", {"b": null, "c": false}]}),
            Kind::Bytes => json!("aGk="),
            Kind::One(inner) => sample(inner),
            Kind::Many(inner) => json!([sample(inner)]),
            Kind::Named(inner) => json!({"n": sample(inner)}),
        };
        (field.json.to_owned(), value)
    });
    Value::Object(fields.collect())
}

#[test]
fn every_field_survives_json_and_messages() {
    let json = sample(&fields::JOB);
    let job: Job = serde_json::from_value(json.clone()).unwrap();
    let sent = Job::decode(job.encode_to_vec().as_slice()).unwrap();
    assert_eq!(sent, job);
    assert_eq!(serde_json::to_value(&sent).unwrap(), json);
}

#[test]
fn empty_null_and_absent_are_one() {
    let lists = json!({"Datacenters": [], "Meta": {}, "TaskGroups": null, "Priority": null});
    let job: Job = serde_json::from_value(lists).unwrap();
    assert_eq!(job, Job::default());
    let json = serde_json::to_value(&job).unwrap();
    let values = json.as_object().unwrap().values();
    assert!(values.into_iter().all(Value::is_null), "{json}");
}

#[test]
fn names_follow_from_the_declared_ones() {
    let of = |message: &'static Message, json: &str| {
        let mut fields = message.fields.iter();
        fields.find(|field| field.json == json).unwrap().hcl
    };
    assert_eq!(of(&fields::RESOURCES, "MemoryMaxMB"), "memory_max");
    assert_eq!(of(&fields::RESOURCES, "CPU"), "cpu");
    assert_eq!(of(&fields::JOB, "Affinities"), "affinity");
    assert_eq!(of(&fields::JOB, "TaskGroups"), "group");
    assert_eq!(of(&fields::JOB, "ParameterizedJob"), "parameterized");
    assert_eq!(of(&fields::TASK_GROUP, "Volumes"), "volume");
    assert_eq!(of(&fields::PORT, "Value"), "static");
    assert_eq!(of(&fields::JOB, "SubmitTime"), "");
}

#[test]
fn durations_are_whole_nanoseconds_of_one_sign() {
    for nanoseconds in [
        0,
        1,
        -1,
        1_500_000_000,
        -1_500_000_000,
        i64::MAX,
        i64::MIN + 1,
    ] {
        let duration = job_fields::duration(nanoseconds);
        assert_eq!(job_fields::nanoseconds(&duration), Ok(nanoseconds));
    }
    let refused = |seconds, nanos| {
        job_fields::nanoseconds(&prost_types::Duration { seconds, nanos }).unwrap_err()
    };
    assert!(refused(1, -5).contains("of the same sign as the seconds"));
    assert!(refused(0, 1_000_000_000).contains("less than a second"));
    assert!(refused(i64::MAX, 0).contains("at most 292 years"));
}

fn number(key: &str, number: f64) -> Struct {
    let value = WireValue {
        kind: Some(Wire::NumberValue(number)),
    };
    Struct {
        fields: [(key.to_owned(), value)].into(),
    }
}

#[test]
fn values_that_json_does_not_have_are_refused_with_their_path() {
    let error = job_fields::read_object(&number("port", f64::NAN)).unwrap_err();
    assert_eq!(error.to_string(), "port: NaN is not a number that JSON has");

    let mut value = WireValue {
        kind: Some(Wire::NullValue(0)),
    };
    for _ in 0..200 {
        let list = ListValue {
            values: vec![value],
        };
        value = WireValue {
            kind: Some(Wire::ListValue(list)),
        };
    }
    let deep = Struct {
        fields: [("deep".to_owned(), value)].into(),
    };
    let error = job_fields::read_object(&deep).unwrap_err();
    assert!(error.message.contains("nested too deep"), "{error}");
    assert!(error.field.starts_with("deep[0]"), "{error}");
}

#[test]
fn integers_that_a_double_cannot_hold_are_refused_from_users_and_shown_as_strings() {
    let with = |value: Value| Map::from_iter([("n".to_owned(), json!([value]))]);
    for exact in [json!(0), json!(-9_007_199_254_740_992_i64), json!(0.25)] {
        let object = job_fields::object(&with(exact.clone())).unwrap();
        assert_eq!(job_fields::read_object(&object).unwrap(), with(exact));
    }
    let large = 9_007_199_254_740_993_u64;
    let error = job_fields::object(&with(json!(large))).unwrap_err();
    assert_eq!(error.field, "n[0]");
    assert!(error.message.contains("write it in quotes"), "{error}");

    let mut stored = test_kit::builders::service("web", 1);
    stored.task_groups[0].tasks[0].config = with(json!(large));
    let shown = Job::from(&stored);
    let config = shown.task_groups[0].tasks[0].config.as_ref().unwrap();
    assert_eq!(
        job_fields::read_object(config).unwrap(),
        with(json!(large.to_string()))
    );
}

#[test]
fn any_bytes_are_read_or_refused() {
    // A task group in a job, cut off and changed at every place.
    let task = Task {
        config: Some(number("port", 80.0)),
        ..Task::default()
    };
    let group = TaskGroup {
        tasks: vec![task],
        ..TaskGroup::default()
    };
    let job = Job {
        task_groups: vec![group],
        ..Job::default()
    };
    let bytes = job.encode_to_vec();
    for end in 0..bytes.len() {
        let _ = Job::decode(&bytes[..end]);
        for value in [0, 0x7f, 0xff] {
            let mut changed = bytes.clone();
            changed[end] = value;
            if let Ok(job) = Job::decode(changed.as_slice()) {
                let _ = serde_json::to_value(&job);
            }
        }
    }
}
