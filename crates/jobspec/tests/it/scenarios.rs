//! Acceptance scenarios of the job specification, by their numbers, as far as they are about
//! reading and checking a job file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jobspec::{Inputs, canonicalise, parse, parse_api_json};
use model::{Job, Operator};
use serde_json::json;

use crate::support::{NOW, admit, file, parsed, spec, value_of, value_with};

fn job(text: &str) -> Job {
    admit(text).unwrap_or_else(|errors| panic!("{errors}")).job
}

fn one_line(text: &str) -> String {
    parse("file.nomad", text, &Inputs::default())
        .unwrap_err()
        .one_line_each()
}

#[test]
fn scenario_001_a_minimal_job_gets_its_defaults() {
    let job = job(&file("", "", ""));
    let group = &job.task_groups[0];
    let task = &group.tasks[0];
    assert_eq!(job.job_type.as_str(), "service");
    assert_eq!(
        (job.priority, job.datacenters.as_slice()),
        (50, &["*".to_owned()][..])
    );
    assert_eq!(
        (job.namespace.as_str(), job.region.as_str()),
        ("default", "global")
    );
    assert_eq!(
        (job.name.as_str(), job.node_pool.as_str()),
        ("a", "default")
    );
    assert_eq!((group.count, group.restart.attempts), (1, 2));
    assert_eq!(group.restart.interval, Duration::from_secs(30 * 60));
    assert_eq!(group.update.unwrap().max_parallel, 1);
    assert_eq!(group.migrate.unwrap().max_parallel, 1);
    assert!(group.reschedule.unwrap().unlimited);
    assert_eq!(group.ephemeral_disk.size_mib, 300);
    assert_eq!(
        (task.resources.cpu_mhz, task.resources.memory_mib),
        (100, 300)
    );
    assert_eq!(task.kill_timeout, Duration::from_secs(5));
    assert_eq!((task.logs.max_files, task.logs.max_file_size_mib), (10, 10));
    let on_one_line = "job \"a\" { group \"g\" { task \"t\" { driver = \"raw_exec\" } } }\n";
    assert!(one_line(on_one_line).contains("Invalid single-line block definition"));
}

#[test]
fn scenario_002_a_batch_job_gets_other_defaults() {
    let job = job(&file("  type = \"batch\"", "", ""));
    let group = &job.task_groups[0];
    assert_eq!(group.reschedule.unwrap().attempts, 1);
    assert_eq!(
        (group.restart.attempts, group.restart.interval),
        (3, Duration::from_secs(86_400))
    );
    assert_eq!((group.update, group.migrate), (None, None));
}

#[test]
fn scenario_003_a_count_of_zero_stays_zero_and_a_missing_one_is_the_least_of_scaling() {
    let count = |group: &str| job(&file("", group, "")).task_groups[0].count;
    assert_eq!(count("    count = 0"), 0);
    assert_eq!(
        count("    scaling {\n      min = 2\n      max = 4\n    }"),
        2
    );
    assert_eq!(count("    scaling {\n      max = 4\n    }"), 1);
}

#[test]
fn scenario_004_ports_are_dynamic_or_reserved() {
    let ports = |body: &str| {
        let network =
            format!("    network {{\n      port \"http\" {{\n        {body}\n      }}\n    }}");
        let spec = spec(&file("", &network, ""));
        serde_json::to_value(&spec.task_groups[0].networks).unwrap()
    };
    let dynamic = ports("to = 80");
    assert_eq!(dynamic[0]["DynamicPorts"][0]["Label"], "http");
    assert_eq!(dynamic[0]["DynamicPorts"][0]["To"], 80);
    assert_eq!(dynamic[0]["ReservedPorts"], json!(null));
    let reserved = ports("static = 8080");
    assert_eq!(reserved[0]["ReservedPorts"][0]["Label"], "http");
    assert_eq!(reserved[0]["ReservedPorts"][0]["Value"], 8080);
}

#[test]
fn scenario_005_a_config_keeps_references_and_blocks_become_lists() {
    let text = "job \"a\" {\n  group \"g\" {\n    task \"t\" {\n      driver = \"docker\"\n      config {\n        \
        args = [\"-c\", \"echo ${NOMAD_ALLOC_INDEX}\"]\n        mounts {\n          type   = \"bind\"\n          \
        source = \"a\"\n          target = \"b\"\n        }\n        check \"x\" {\n          n = 1\n        }\n      \
        }\n    }\n  }\n}\n";
    let spec = spec(text);
    let task = &spec.task_groups[0].tasks[0];
    let expected = json!({
        "args": ["-c", "echo ${NOMAD_ALLOC_INDEX}"],
        "mounts": [{"type": "bind", "source": "a", "target": "b"}],
        "check": [{"x": [{"n": 1}]}],
    });
    let config = job_fields::read_object(task.config.as_ref().unwrap()).unwrap();
    assert_eq!(Some(&config), expected.as_object());
}

#[test]
fn scenario_006_constraints_have_long_and_short_forms() {
    let constraint = |body: &str| {
        let text = file("", &format!("    constraint {{\n{body}\n    }}"), "");
        job(&text).task_groups[0].constraints[0].clone()
    };
    let long = constraint("      attribute = attr.kernel.name\n      value     = \"linux\"");
    assert_eq!(
        (long.left.as_str(), long.operator),
        ("${attr.kernel.name}", Operator::Equal)
    );
    assert_eq!(long.right, "linux");
    let hosts = constraint("      distinct_hosts = true");
    assert_eq!(
        (hosts.operator, hosts.right.as_str()),
        (Operator::DistinctHosts, "true")
    );
    let property = constraint("      distinct_property = meta.rack\n      value = 2");
    assert_eq!(property.left, "${meta.rack}");
    assert_eq!(
        (property.operator, property.right.as_str()),
        (Operator::DistinctProperty, "2")
    );
    let version = constraint("      attribute = attr.kernel.version\n      version   = \">= 4\"");
    assert_eq!(
        (version.operator, version.right.as_str()),
        (Operator::Version, ">= 4")
    );
    let is = constraint("      attribute = meta.a\n      operator = \"is\"\n      value = \"b\"");
    assert_eq!(is.operator, Operator::Equal);
}

#[test]
fn scenario_007_an_unquoted_reference_is_kept_and_an_unknown_local_is_not() {
    let text = file("", "", "      env {\n        R = meta.rack\n      }");
    assert_eq!(job(&text).task_groups[0].tasks[0].env["R"], "${meta.rack}");
    assert!(one_line(&text.replace("meta.rack", "local.typo")).contains("no local named \"typo\""));
}

#[test]
fn scenario_008_variables_override_in_order_and_lists_are_parsed() {
    let before =
        "variable \"n\" {\n  type = list(number)\n}\nvariable \"s\" {\n  type = string\n}\n";
    let text = "[1,2]".to_owned();
    let inputs = Inputs {
        variables: vec![("n".to_owned(), text.clone()), ("s".to_owned(), text)],
        ..Inputs::default()
    };
    assert_eq!(
        value_with("[length(var.n), var.s]", before, &inputs),
        Ok(json!([2, "[1,2]"]))
    );
    // The order is the subject of `variables::the_later_source_wins`.
}

#[test]
fn scenario_009_an_unset_variable_and_an_undeclared_one() {
    let text = format!(
        "variable \"x\" {{\n  type = string\n}}\n{}",
        file("", "", "")
    );
    assert!(one_line(&text).contains("Unset variable \"x\"; A used variable must be set"));
    let inputs = Inputs {
        variables: vec![("y".to_owned(), "1".to_owned())],
        ..Inputs::default()
    };
    let errors = parse("f", &file("", "", ""), &inputs).unwrap_err();
    assert!(
        errors.one_line_each().contains("Undefined -var variable"),
        "{errors}"
    );
    let lenient = Inputs {
        allow_undeclared: true,
        ..inputs
    };
    assert_eq!(parsed(&file("", "", ""), &lenient).warnings.len(), 1);
}

#[test]
fn scenario_010_a_validation_prints_its_message() {
    let before = "variable \"n\" {\n  default = 0\n  validation {\n    condition     = var.n > 0\n    \
                  error_message = \"n must be positive\"\n  }\n}\n";
    let error = value_with("var.n", before, &Inputs::default()).unwrap_err();
    assert!(
        error.contains("Invalid value for variable; n must be positive"),
        "{error}"
    );
}

#[test]
fn scenario_011_dynamic_ports_for_expressions_and_range() {
    let network = "    count = length([for n in range(3) : n])\n    network {\n      \
        dynamic \"port\" {\n        for_each = [\"a\", \"b\"]\n        labels   = [port.value]\n        \
        content {}\n      }\n    }";
    let job = job(&file("", network, ""));
    let labels: Vec<_> = job.task_groups[0].networks[0]
        .ports
        .iter()
        .map(|port| port.label.as_str())
        .collect();
    assert_eq!(labels, ["a", "b"]);
    assert_eq!(job.task_groups[0].count, 3);
    assert_eq!(
        value_of("[for n in range(3) : n * 2]"),
        Ok(json!([0, 2, 4]))
    );
}

/// A directory with the file `x`.
struct OneFile;

impl jobspec::Files for OneFile {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        match path.to_str() {
            Some("x") => Ok(b"content".to_vec()),
            _ => Err(ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, _: &Path, _: usize) -> std::io::Result<Vec<PathBuf>> {
        Ok(vec![PathBuf::from("x")])
    }

    fn working_directory(&self) -> std::io::Result<PathBuf> {
        Ok(PathBuf::from("/jobs"))
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }
}

#[test]
fn scenario_012_file_reads_where_files_can_be_read_and_says_so_elsewhere() {
    let inputs = Inputs {
        files: Some(Arc::new(OneFile)),
        ..Inputs::default()
    };
    assert_eq!(value_with("file(\"x\")", "", &inputs), Ok(json!("content")));
    assert!(
        value_of("file(\"x\")")
            .unwrap_err()
            .contains("filesystem function disabled")
    );
}

#[test]
fn scenario_013_an_indented_heredoc_keeps_inner_indentation_and_escapes() {
    let value = value_of("<<-EOF\n            a\n              b $${x}\n          EOF");
    assert_eq!(value, Ok(json!("a\n  b ${x}\n")));
}

/// The exit codes belong to the command line.
#[test]
fn scenario_014_a_misspelt_attribute_is_shown_at_its_line_and_columns() {
    let text = file("", "", "      resources {\n        memroy = 100\n      }");
    let line = one_line(&text);
    let expected = "file.nomad:11,9-15: Unsupported argument; An argument named \"memroy\" is not \
                    expected here. Did you mean \"memory\"?";
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn scenario_015_there_is_exactly_one_job() {
    let job = file("", "", "");
    let two = one_line(&format!("{job}{job}"));
    assert!(
        two.contains("Duplicate job block; Only one block of type \"job\" is allowed."),
        "{two}"
    );
    assert!(
        two.contains("Previous definition was at file.nomad:1,1-8"),
        "{two}"
    );
    assert!(one_line("locals {\n}\n").contains("Missing job block"));
}

#[test]
fn scenario_016_a_map_is_an_attribute_or_a_block_but_not_both() {
    let attribute = "      env = { A = 1 }";
    let block = "      env {\n        A = 1\n      }";
    for form in [attribute, block] {
        let spec = spec(&file("", "", form));
        let env = &spec.task_groups[0].tasks[0].env;
        assert_eq!(serde_json::to_value(env).unwrap(), json!({"A": "1"}));
    }
    let both = one_line(&file("", "", &format!("{attribute}\n{block}")));
    assert!(both.contains("Duplicate env block"), "{both}");
}

#[test]
fn scenario_017_reverse_turns_a_text_and_an_unknown_function_is_named() {
    assert_eq!(value_of("reverse(\"abc\")"), Ok(json!("cba")));
    assert!(
        value_of("foo(1)")
            .unwrap_err()
            .contains("There is no function named \"foo\".")
    );
}

#[test]
fn scenario_018_a_bare_number_is_nanoseconds_and_units_are_needed_in_text() {
    let kill_timeout = |value: &str| file("", "", &format!("      kill_timeout = {value}"));
    let task = |text: &str| job(text).task_groups[0].tasks[0].clone();
    assert_eq!(
        task(&kill_timeout("30")).kill_timeout,
        Duration::from_nanos(30)
    );
    assert_eq!(
        task(&kill_timeout("\"1m\"")).kill_timeout,
        Duration::from_secs(60)
    );
    for wrong in ["\"30\"", "\"1d\"", "true", "[]", "1.5"] {
        let line = one_line(&kill_timeout(wrong));
        assert!(
            line.contains("Unsuitable duration value"),
            "{wrong}: {line}"
        );
    }
}

/// The status code belongs to the gateway.
#[test]
fn scenario_019_durations_in_job_json_are_numbers() {
    let text = |timeout: serde_json::Value| {
        json!({"Job": {"ID": "a", "TaskGroups": [{"Name": "g", "Tasks": [{
            "Name": "t", "Driver": "raw_exec", "Config": {"command": "x"}, "KillTimeout": timeout
        }]}]}})
    };
    parse_api_json("j.json", &text(json!("30s")).to_string()).unwrap_err();
    for wrapped in [
        text(json!(30_000_000_000_i64)),
        text(json!(30_000_000_000_i64))["Job"].clone(),
    ] {
        let parsed = parse_api_json("j.json", &wrapped.to_string()).unwrap();
        let job = canonicalise(&parsed.job, NOW).unwrap().job;
        assert_eq!(
            job.task_groups[0].tasks[0].kill_timeout,
            Duration::from_secs(30)
        );
    }
}

#[test]
fn scenario_020_a_job_from_hcl_and_from_its_json_are_the_same() {
    let text = file(
        "  meta {\n    a = 1\n  }\n  update {\n    max_parallel = 2\n  }",
        "    count = 3\n    network {\n      port \"a\" {}\n    }\n    constraint {\n      \
         distinct_hosts = true\n    }\n    spread {\n      attribute = node.datacenter\n      \
         target \"dc1\" {\n        percent = 70\n      }\n    }",
        "      kill_timeout = \"20s\"\n      affinity {\n        attribute = meta.x\n        value = 1\n      }",
    );
    let from_hcl = spec(&text);
    let output = serde_json::to_string(&json!({"Job": from_hcl})).unwrap();
    let from_json = parse_api_json("j.json", &output).unwrap().job;
    let admitted = canonicalise(&from_hcl, NOW).unwrap();
    assert_eq!(canonicalise(&from_json, NOW).unwrap(), admitted);
}
