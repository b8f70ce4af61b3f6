//! The job itself, and the blocks of each type of job.

use job_fields::Job;
use jobspec::{Inputs, canonicalise, parse};

use super::check;
use crate::support::{NOW, admit, file, spec};

#[test]
#[rustfmt::skip]
fn the_job_itself() {
    check(&[
        ("  id = \"\"", "", "", "id", "Missing job ID"),
        ("  id = \"a b\"", "", "", "id", "Job ID contains a space"),
        ("  id = \"*\"", "", "", "id", "a job cannot have the ID \"*\""),
        ("  id = \"..\"", "", "", "id", "a job cannot have the ID"),
        ("  id = \"-web\"", "", "", "id", "begins with a dash"),
        ("  id = \"a\\tb\"", "", "", "id", "contains a control character"),
        ("  id = \"a\\u0000\"\n  name = \"a\"", "", "", "id", "Job ID contains a null character"),
        ("  name = \"a\\u0000\"", "", "", "name", "Job name contains a null character"),
        ("  type = \"daemon\"", "", "", "type", "Invalid job type: \"daemon\""),
        ("  type = \"srevice\"", "", "", "type", "\"srevice\": use service, batch, system or sysbatch"),
        ("  type = \"_core\"", "", "", "type", "Invalid job type: \"_core\""),
        ("  priority = 0", "", "", "priority", "job priority must be between [1, 100]"),
        ("  priority = 101", "", "", "priority", "job priority must be between [1, 100]"),
        ("  priority = -9223372036854775808", "", "", "priority", "job priority must be"),
        ("  datacenters = [\"\"]", "", "", "datacenters", "Job datacenter must be non-empty string"),
        ("  group \"g\" {\n    task \"u\" {\n      driver = \"mock_driver\"\n    }\n  }", "", "",
            "$g", "group \"g\" is defined twice"),
        ("  group \"h\" {\n    count = 20001\n    task \"u\" {\n      driver = \"mock_driver\"\n    }\n  }",
            "    count = 30000", "", "group", "more than 50000"),
    ]);
    for (job, group) in [
        ("  priority = 1", ""),
        ("  priority = 100", ""),
        ("  region = \"eu\"", ""),
        ("", "    count = 50000"),
    ] {
        admit(&file(job, group, "")).unwrap();
    }
    let none = Job {
        id: Some("a".to_owned()),
        ..Default::default()
    };
    let errors = canonicalise(&none, NOW).unwrap_err();
    assert!(
        errors
            .to_string()
            .contains("group: Missing job task groups"),
        "{errors}"
    );
    assert!(
        canonicalise(&Job::default(), NOW)
            .unwrap_err()
            .to_string()
            .contains("Missing job ID")
    );
}

#[test]
#[rustfmt::skip]
fn blocks_that_the_type_of_a_job_does_not_allow_are_refused() {
    let rank = "attribute = meta.x\n      value = 1\n";
    let affinity: &'static str = Box::leak(format!("    affinity {{\n      {rank}    }}").into());
    check(&[
        ("  type = \"system\"", affinity, "",
            "$g.affinity[0]", "System jobs may not have an affinity block"),
        ("  type = \"system\"", "", affinity,
            "$t.affinity[0]", "System jobs may not have an affinity block"),
        ("  type = \"system\"\n  spread {\n    attribute = meta.x\n  }", "", "",
            "spread[0]", "System jobs may not have a spread block"),
        ("  type = \"system\"", "    count = 2", "",
            "$g.count", "Job task group g has count 2. Count cannot exceed 1 with system scheduler"),
        ("  type = \"system\"", "    reschedule {}", "",
            "$g.reschedule", "System or sysbatch jobs should not have a reschedule policy"),
        ("  type = \"sysbatch\"\n  reschedule {}", "", "",
            "reschedule", "System or sysbatch jobs should not have a reschedule policy"),
        ("  type = \"batch\"", "    update {}", "",
            "$g.update", "Job type \"batch\" does not allow update block"),
        ("  type = \"sysbatch\"\n  update {}", "", "",
            "update", "Job type \"sysbatch\" does not allow update block"),
        ("  type = \"system\"", "    migrate {}", "",
            "$g.migrate", "Job type \"system\" does not allow migrate block"),
        ("  type = \"batch\"\n  migrate {}", "", "",
            "migrate", "Job type \"batch\" does not allow migrate block"),
        ("", "    max_run_duration = \"1h\"", "",
            "$g.max_run_duration", "Job type \"service\" does not allow max_run_duration"),
        ("  type = \"batch\"", "    max_run_duration = \"0s\"", "",
            "$g.max_run_duration", "longer than zero"),
    ]);
    for (job, group) in [
        ("  type = \"system\"", "    count = 0"),
        ("  type = \"sysbatch\"", "    count = 3"),
        (
            "  type = \"sysbatch\"\n  spread {\n    attribute = meta.x\n  }",
            affinity,
        ),
        ("  type = \"batch\"", "    max_run_duration = \"1h\""),
        ("  type = \"system\"", "    update {}"),
    ] {
        admit(&file(job, group, "")).unwrap();
    }
}

#[test]
fn an_empty_list_of_datacenters_is_refused() {
    let text = file("  datacenters = []", "", "");
    let errors = parse("test.hcl", &text, &Inputs::default()).unwrap_err();
    assert!(errors.to_string().contains("Missing job datacenters"));
}

#[test]
fn messages_with_malformed_values_are_refused_with_their_paths() {
    let malformed = |seconds, nanos| Some(prost_types::Duration { seconds, nanos });
    let mut job = spec(&file("", "", ""));
    let group = &mut job.task_groups[0];
    group.shutdown_delay = malformed(i64::MAX, 0);
    let task = &mut group.tasks[0];
    task.kill_timeout = malformed(1, -5);
    let not_a_number = prost_types::Value {
        kind: Some(prost_types::value::Kind::NumberValue(f64::NAN)),
    };
    let config = task.config.as_mut().unwrap();
    config.fields.insert("command".to_owned(), not_a_number);
    let errors = canonicalise(&job, NOW).unwrap_err().to_string();
    for expected in [
        "config.command: NaN is not a number that JSON has",
        "kill_timeout: Unsuitable duration value; 1 s and -5 ns are not a duration: want less than \
         a second of nanoseconds, of the same sign as the seconds",
        "group[\"g\"].shutdown_delay: Unsuitable duration value; 9223372036854775807 s is too long: \
         want at most 292 years",
    ] {
        assert!(errors.contains(expected), "{expected}: {errors}");
    }
}

#[test]
fn the_ui_block_is_kept_and_its_limits_are_checked() {
    let ui = |body: &str| -> &'static str { format!("  ui {{\n{body}\n  }}").leak() };
    let link = "link {\nlabel = \"Runbook\"\nurl = \"https://example.com\"\n}\n";
    let long = |length: usize| ui(&format!("description = \"{}\"", "é".repeat(length)));
    check(&[
        (
            long(1_001),
            "",
            "",
            "ui.description",
            "has 1001 characters, more than 1000",
        ),
        (
            ui("link {\nurl = \"https://example.com\"\n}"),
            "",
            "",
            "ui.link[0].label",
            "missing label",
        ),
        (
            ui("link {\nlabel = \"Runbook\"\n}"),
            "",
            "",
            "ui.link[0].url",
            "missing url",
        ),
        (
            ui(&link.repeat(65)),
            "",
            "",
            "ui.link",
            "has 65 blocks, more than 64",
        ),
    ]);
    admit(&file(long(1_000), "", "")).unwrap();
    let text = ui(&format!("description = \"Shop\"\n{link}"));
    let job = admit(&file(text, "", "")).unwrap().job;
    let written = job_fields::Job::from(&job);
    assert_eq!(canonicalise(&written, NOW).unwrap().job.ui, job.ui);
    let json = serde_json::to_value(&written).unwrap();
    let want = serde_json::json!({
        "Description": "Shop", "Links": [{"Label": "Runbook", "URL": "https://example.com"}],
    });
    assert_eq!(json["UI"], want);
}
