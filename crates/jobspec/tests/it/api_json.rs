//! The HTTP API's JSON: read, refused and ignored fields.

use jobspec::{Inputs, canonicalise, parse, parse_api_json};
use serde_json::json;

use crate::support::{NOW, file, spec};

fn job() -> serde_json::Value {
    json!({
        "ID": "a",
        "Name": "a",
        "TaskGroups": [{
            "Name": "g",
            "Tasks": [{"Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/true"}}]
        }]
    })
}

/// The job with `fields` put into its task, after which nothing is changed back.
fn with_task(fields: &serde_json::Value) -> String {
    let mut job = job();
    let task = job["TaskGroups"][0]["Tasks"][0].as_object_mut().unwrap();
    task.extend(fields.as_object().unwrap().clone());
    job.to_string()
}

#[test]
fn a_job_is_read_wrapped_or_bare_and_whatever_the_case_of_its_keys() {
    let bare = job().to_string();
    let expected = spec(&file("", "", ""));
    for text in [
        bare.clone(),
        json!({"Job": job()}).to_string(),
        json!({"job": job(), "EnforceIndex": true})
            .to_string()
            .replace("\"job\"", "\"JOB\""),
        bare.replace("TaskGroups", "taskgroups")
            .replace("\"Driver\"", "\"DRIVER\""),
    ] {
        let parsed = parse_api_json("j.json", &text).unwrap();
        assert_eq!(parsed.job, expected);
        assert_eq!(parsed.warnings, [""; 0]);
    }
    // The general entry recognises it by its keys.
    assert_eq!(
        parse("j.json", &bare, &Inputs::default()).unwrap().job,
        expected
    );
}

#[test]
fn values_of_the_wrong_type_are_refused_at_their_place() {
    for (fields, message) in [
        (
            json!({"KillTimeout": "30s"}),
            "KillTimeout: durations are integer nanoseconds in JSON job files: write a number, 30000000000 for \"30s\"",
        ),
        (json!({"KillTimeout": 1.5}), "want integer nanoseconds here"),
        (json!({"Leader": "yes"}), "Leader: want true or false here"),
        (json!({"Driver": 5}), "Driver: want a string here"),
        (
            json!({"Env": {"A": 1}}),
            "Env: want an object with string values here",
        ),
        (json!({"Config": []}), "Config: want an object here"),
        (
            json!({"Resources": {"CPU": "100"}}),
            "CPU: want an integer here",
        ),
        (json!({"Resources": []}), "a resources is a JSON object"),
        (
            json!({"Constraints": {}}),
            "Constraints is a list of objects",
        ),
    ] {
        let text = with_task(&fields);
        let errors = parse_api_json("j.json", &text).unwrap_err();
        assert!(errors.0[0].detail.contains(message), "{errors}");
        assert!(errors.0[0].column > 1);
    }
}

#[test]
fn an_unsupported_field_is_refused_unless_it_is_empty() {
    let empty = json!({
        "Templates": null, "Artifacts": [], "Vault": null, "Kind": "", "Services": null,
        "Resources": {"Cores": 0, "DiskMB": 0, "IOPS": 0, "Networks": null, "NUMA": null},
        "Consul": {"Namespace": "", "Cluster": ""},
        "Identity": {"Name": "default", "Audience": ["nomadproject.io"], "Env": false, "File": false},
        "RestartPolicy": {"RenderTemplates": false}
    });
    let parsed = parse_api_json("j.json", &with_task(&empty)).unwrap();
    assert_eq!(parsed.warnings, [""; 0]);
    canonicalise(&parsed.job, NOW).unwrap();
    for fields in [
        json!({"Services": [{"Name": "x", "Connect": {"Native": true}}]}),
        json!({"Resources": {"SecretsMB": 2}}),
        json!({"Resources": {"NUMA": {"Affinity": "require"}}}),
    ] {
        let errors = parse_api_json("j.json", &with_task(&fields)).expect_err(&fields.to_string());
        assert!(
            errors.0[0]
                .detail
                .contains("is not supported by this version of Kafila"),
            "{errors}"
        );
    }
}

#[test]
fn unknown_keys_are_ignored_with_one_warning() {
    let fields =
        json!({"Foo": 7, "Whatever": {"x": [1]}, "Drivre": "x", "Unused": null, "Leadr": false});
    let parsed = parse_api_json("j.json", &with_task(&fields)).unwrap();
    let [warning] = &parsed.warnings[..] else {
        panic!("{:?}", parsed.warnings);
    };
    assert!(
        warning.starts_with("unknown keys are ignored: "),
        "{warning}"
    );
    for part in [
        "\"Foo\" (line 1)",
        "\"Whatever\" (line 1)",
        "\"Drivre\" (line 1; did you mean \"Driver\"?)",
        "\"Leadr\" (line 1; did you mean \"Leader\"?)",
    ] {
        assert!(warning.contains(part), "{warning}");
    }
    // An empty value says nothing.
    assert!(!warning.contains("Unused"), "{warning}");
    let many: serde_json::Map<_, _> = (0..25).map(|n| (format!("x{n}"), json!(1))).collect();
    let parsed = parse_api_json("j.json", &with_task(&many.into())).unwrap();
    assert_eq!(parsed.warnings.len(), 1);
    assert!(
        parsed.warnings[0].ends_with(" and 5 more"),
        "{:?}",
        parsed.warnings
    );
}

#[test]
fn keys_that_nomad_sets_itself_are_ignored_without_a_warning() {
    let mut job = job();
    for key in [
        "ConsulNamespace",
        "NomadTokenID",
        "StatusDescription",
        "VaultNamespace",
    ] {
        job[key] = "x".into();
    }
    job["TaskGroups"][0]["Scaling"] = json!({"Namespace": "default", "Max": 3, "Min": 1});
    job["TaskGroups"][0]["Services"] = json!([{"Name": "s", "Namespace": "default"}]);
    let parsed = parse_api_json("j.json", &job.to_string()).unwrap();
    assert_eq!(parsed.warnings, [""; 0]);
}

#[test]
fn errors_of_the_job_itself_are_pointed_at_their_lines() {
    let text = serde_json::to_string_pretty(&json!({
        "ID": "a", "Priority": 500,
        "TaskGroups": [{"Name": "g", "Tasks": [{"Name": "t", "Driver": ""}]}]
    }))
    .unwrap();
    let parsed = parse_api_json("j.json", &text).unwrap();
    let errors = canonicalise(&parsed.job, NOW).unwrap_err();
    let located = parsed.places.locate(&errors);
    for error in &located.0 {
        let line = text.lines().nth(error.line - 1).unwrap();
        let named = ["Priority", "Driver"].iter().any(|key| line.contains(key));
        assert!(named, "{error}");
    }
    assert_eq!(located.0.len(), 2, "{located}");
}

#[test]
fn a_text_that_is_no_job_is_refused() {
    for (text, message) in [
        ("[]", "a job is a JSON object"),
        ("{\"Job\": 5}", "a job is a JSON object"),
        ("{", "EOF while parsing"),
        ("", "EOF while parsing"),
        ("{\"ID\": \"a\"} x", "trailing characters"),
    ] {
        let errors = parse_api_json("j.json", text).unwrap_err();
        assert!(errors.to_string().contains(message), "{text}: {errors}");
    }
}

#[test]
fn identities_are_accepted_and_their_lives_are_bounded() {
    let second = 1_000_000_000_u64;
    for (ttl, is_accepted) in [
        (0, true),
        (19 * second, false),
        (20 * second, true),
        (720 * 3_600 * second, true),
        (721 * 3_600 * second, false),
    ] {
        let identity = json!({"Name": "aws", "Audience": ["a"], "File": true, "TTL": ttl});
        let task = json!({"Identity": {"Name": "default", "Env": true}, "Identities": [identity]});
        let parsed = parse_api_json("j.json", &with_task(&task)).unwrap();
        match canonicalise(&parsed.job, NOW) {
            Ok(_) => assert!(is_accepted, "{ttl}"),
            Err(errors) => {
                let errors = errors.to_string();
                assert!(!is_accepted, "{errors}");
                assert!(
                    errors.contains("ttl: is out of range: want 20s to 720h"),
                    "{errors}"
                );
            }
        }
    }
}

#[test]
fn integers_that_a_double_cannot_hold_are_refused_with_advice() {
    let config = json!({"Config": {"args": [9_007_199_254_740_993_u64]}});
    let errors = parse_api_json("j.json", &with_task(&config)).unwrap_err();
    let detail = &errors.0[0].detail;
    assert!(
        detail.contains("args[0]: 9007199254740993 has more digits"),
        "{detail}"
    );
    assert!(detail.contains("write it in quotes"), "{detail}");
}
