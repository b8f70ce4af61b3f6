//! Periodic and parameterized jobs, payloads, scaling.

use jobspec::{canonicalise, parse_api_json};
use model::{PayloadRule, Periodic};
use serde_json::json;

use super::check;
use crate::support::{NOW, admit, file};

#[test]
#[rustfmt::skip]
fn a_periodic_block_is_checked_and_completed() {
    let batch = |block: &str| -> &'static str {
        Box::leak(format!("  type = \"batch\"\n  periodic {{\n{block}\n  }}").into())
    };
    check(&[
        ("  periodic {\n    cron = \"@daily\"\n  }", "", "", "periodic",
            "Periodic can only be used with \"batch\" or \"sysbatch\" scheduler"),
        (batch(""), "", "", "periodic", "Must specify a spec"),
        (batch("cron = \"@daily\"\ncrons = [\"@daily\"]"), "", "", "periodic.crons", "Only cron or crons may be used"),
        (batch("cron = \"61 * * * *\""), "", "", "periodic.cron", "Invalid cron spec \"61 * * * *\": minute"),
        (batch("crons = [\"@daily\", \"x\"]"), "", "", "periodic.crons", "Invalid cron spec \"x\""),
        (batch("cron = \"@daily\"\ntime_zone = \"Mars/Base\""), "", "", "periodic.time_zone", "Invalid time zone \"Mars/Base\""),
    ]);
    let many = vec!["\"@daily\""; 65].join(", ");
    let many: &'static str = Box::leak(format!("crons = [{many}]").into());
    check(&[(batch(many), "", "", "periodic.crons", "has 65 expressions")]);
    for block in ["cron = \"*/5 * * * *\"\ntime_zone = \"Europe/Berlin\"", "crons = [\"0 0 * * *\", \"@every 5m\"]"] {
        admit(&file(batch(block), "", "")).unwrap();
    }
}

#[test]
#[rustfmt::skip]
fn parameters_and_payloads_of_dispatches_are_checked() {
    let batch = |block: &str| -> &'static str {
        Box::leak(format!("  type = \"batch\"\n  parameterized {{\n{block}\n  }}").into())
    };
    let payload = |file: &str| -> &'static str {
        Box::leak(format!("dispatch_payload {{\nfile = {file:?}\n}}").into())
    };
    let parent = batch("");
    check(&[
        ("  parameterized {}", "", "", "parameterized",
            "Parameterized job can only be used with \"batch\" or \"sysbatch\" scheduler"),
        (batch("payload = \"maybe\""), "", "", "parameterized.payload", "Unknown payload requirement: \"maybe\""),
        (batch("meta_required = [\"a\"]\nmeta_optional = [\"b\", \"a\"]"), "", "", "parameterized.meta_optional",
            "Required and optional meta keys should be disjoint, and \"a\" is in both"),
        (parent, "", payload(""), "$t.dispatch_payload.file", "missing"),
        (parent, "", payload("../x"), "$t.dispatch_payload.file", "escapes allocation directory"),
        (parent, "", payload("a/../../x"), "$t.dispatch_payload.file", "escapes allocation directory"),
        (parent, "", payload("/etc/x"), "$t.dispatch_payload.file", "escapes allocation directory"),
        (parent, "", payload("."), "$t.dispatch_payload.file", "escapes allocation directory"),
        (parent, "", payload("a/"), "$t.dispatch_payload.file", "escapes allocation directory"),
    ]);
    let job = admit(&file(batch("meta_required = [\"b\", \"a\", \"b\"]"), "", payload("in/put.txt"))).unwrap().job;
    let parameterized = job.parameterized.unwrap();
    assert_eq!((parameterized.payload, parameterized.meta_required), (PayloadRule::Optional, vec!["b".to_owned(), "a".to_owned()]));
    assert_eq!(job.task_groups[0].tasks[0].dispatch_payload.as_ref().unwrap().file, "in/put.txt");
    let pointless = admit(&file("  type = \"batch\"", "", payload("x"))).unwrap();
    assert!(pointless.warnings[0].contains("has no effect"), "{:?}", pointless.warnings);
}

#[test]
#[rustfmt::skip]
fn within_which_counts_a_group_is_scaled() {
    check(&[
        ("", "    scaling {}", "", "$g.scaling.max", "missing"),
        ("", "    scaling {\n      min = 3\n      max = 2\n    }\n    count = 3", "", "$g.scaling.max",
            "maximum count must not be less than minimum count: 2 < 3"),
        ("", "    count = 1\n    scaling {\n      min = 2\n      max = 4\n    }", "", "$g.count", "must not be less than minimum count"),
        ("", "    count = 5\n    scaling {\n      min = 2\n      max = 4\n    }", "", "$g.count", "must not be greater than maximum count"),
        ("", "    scaling {\n      max = 4\n      type = \"vertical_cpu\"\n    }", "", "$g.scaling.type", "Invalid group scaling type"),
        ("  type = \"system\"", "    scaling {\n      max = 1\n    }", "", "$g.scaling",
            "Task groups with job type system do not support scaling blocks"),
    ]);
    let text = "    scaling {\n      max = 4\n      policy {\n        cooldown = \"1m\"\n        check \"cpu\" {\n          x = 1\n        }\n      }\n    }";
    let job = admit(&file("", text, "")).unwrap().job;
    let scaling = job.task_groups[0].scaling.clone().unwrap();
    assert_eq!((scaling.enabled, scaling.min, scaling.max), (true, 1, 4));
    let policy = json!({"cooldown": "1m", "check": [{"cpu": [{"x": 1}]}]});
    assert_eq!(Some(&scaling.policy), policy.as_object());
}

/// Every node reads the stored job again, so it must read back unchanged.
#[test]
fn a_child_that_is_read_and_registered_again_is_unchanged() {
    let text = r#"{"Job": {"ID": "p/dispatch-1-aa", "Type": "batch", "ParentID": "p",
        "Dispatched": true, "Payload": "aGk=", "DispatchIdempotencyToken": "t1",
        "Periodic": {"Enabled": false, "Spec": "@daily", "SpecType": "cron", "TimeZone": ""},
        "ParameterizedJob": {"Payload": "", "MetaRequired": ["a"]},
        "TaskGroups": [{"Name": "g", "Count": 2, "Scaling": {"Min": 1, "Max": 3, "Policy": {}},
        "Tasks": [{"Name": "t", "Driver": "mock_driver", "DispatchPayload": {"File": "in"}}]}]}}"#;
    let parsed = parse_api_json("job.json", text).unwrap();
    let job = canonicalise(&parsed.job, NOW).unwrap().job;
    assert_eq!((job.parent_id.as_str(), job.dispatched), ("p", true));
    assert_eq!(
        (&*job.payload.0, job.dispatch_token.as_str()),
        (&b"hi"[..], "t1")
    );
    let periodic = Periodic {
        enabled: false,
        crons: vec!["@daily".to_owned()],
        is_list: false,
        prohibit_overlap: false,
        time_zone: "UTC".to_owned(),
    };
    assert_eq!(job.periodic, Some(periodic));
    let again = canonicalise(&job_fields::Job::from(&job), NOW).unwrap().job;
    assert_eq!(again, job);
    let stored = serde_json::to_string(&job).unwrap();
    assert_eq!(serde_json::from_str::<model::Job>(&stored).unwrap(), job);
}
