//! Tasks, their resources, logs and lifecycles.

use model::Operator;
use model::job::{LifecycleHook, WaitFor};

use super::check;
use crate::support::{admit, file};

/// A service of a task with a check.
const CHECK: &str = r#"
      service {
        name = "u"
        port = "8080"
        check {
          type     = "tcp"
          interval = "10s"
          timeout  = "2s"
        }
      }"#;

/// A service of a group with a check of the task TASK.
const GROUP_CHECK: &str = r#"
    service {
      name = "u"
      port = "8080"
      check {
        type     = "tcp"
        task     = "TASK"
        interval = "10s"
        timeout  = "2s"
      }
    }"#;

/// A task with a lifecycle, and with these services.
fn waiting(hook: &str, sidecar: bool, wait_for: &str, services: &str) -> String {
    format!(
        "    task \"u\" {{\n      driver = \"mock_driver\"{services}\n      lifecycle {{\n        \
         hook = {hook:?}\n        sidecar = {sidecar}\n        wait_for = {wait_for:?}\n      }}\n    }}"
    )
}

#[test]
fn a_sidecar_with_a_check_of_its_own_or_of_the_group_may_be_awaited() {
    for group in [
        waiting("prestart", true, "healthy", CHECK),
        waiting("prestart", true, "healthy", "") + &GROUP_CHECK.replace("TASK", "u"),
    ] {
        let job = admit(&file("", &group, "")).unwrap().job;
        let task = job.task_groups[0].task("u").unwrap();
        assert_eq!(task.lifecycle.unwrap().wait_for, Some(WaitFor::Healthy));
        let json = serde_json::to_value(job_fields::Job::from(&job)).unwrap();
        let tasks = json["TaskGroups"][0]["Tasks"].as_array().unwrap();
        assert!(
            tasks
                .iter()
                .any(|it| it["Lifecycle"]["WaitFor"] == "healthy")
        );
    }
}

#[test]
fn only_prestart_sidecars_with_a_check_are_awaited() {
    let ignored = CHECK.replace("type ", "on_update = \"ignore\"\n          type ");
    let of_other = waiting("prestart", true, "healthy", "") + &GROUP_CHECK.replace("TASK", "t");
    let no_check = "task \"u\" has no check that can pass: add a check to one of its services, or a \
                    service of the group with a check and task = \"u\"";
    for (group, problem) in [
        (
            waiting("poststart", true, "healthy", CHECK),
            "write hook = \"prestart\" and sidecar = true, or leave wait_for out",
        ),
        (
            waiting("prestart", false, "healthy", CHECK),
            "main tasks wait for prestart sidecars only",
        ),
        (
            waiting("prestart", true, "running", CHECK),
            "invalid wait_for: running: use healthy, or leave it out",
        ),
        (waiting("prestart", true, "healthy", ""), no_check),
        (waiting("prestart", true, "healthy", &ignored), no_check),
        (of_other, no_check),
    ] {
        let error = admit(&file("", &group, "")).unwrap_err();
        assert!(
            error.contains("task[\"u\"].lifecycle.wait_for"),
            "{group}: {error}"
        );
        assert!(error.contains(problem), "{group}: {error}");
    }
}

#[test]
fn a_tasks_name_fits_in_a_file_name() {
    let with = |length: usize| {
        let name = "t".repeat(length);
        admit(&file("", "", "").replace("task \"t\"", &format!("task \"{name}\"")))
    };
    assert!(with(200).is_ok());
    let error = with(201).unwrap_err();
    assert!(
        error.contains("Task name has 201 bytes, more than 200: shorten it"),
        "{error}"
    );
}

#[test]
#[rustfmt::skip]
fn tasks() {
    check(&[
        ("", "    task \"alloc\" {\n      driver = \"mock_driver\"\n    }", "",
            "$g.task[\"alloc\"].name", "Task cannot be named \"alloc\""),
        ("", "    task \"a\\\\b\" {\n      driver = \"mock_driver\"\n    }", "",
            "$g.task[\"a\\\\b\"].name", "Task name cannot include slashes"),
        ("", "    task \".\" {\n      driver = \"mock_driver\"\n    }", "",
            "$g.task[\".\"].name", "Task cannot be named \".\""),
        ("", "    task \"u\" {\n    }", "", "$g.task[\"u\"].driver", "Missing task driver"),
        ("", "", "      env {\n        A = \"b\\u0000\"\n      }", "$t.env", "the value of \"A\" cannot include null"),
        ("", "", "      env = {\n        \"a\\u0000\" = \"b\"\n      }", "$t.env", "the name \"a\\0\" cannot include null"),
        ("", "", "      meta {\n        a = \"\\u0000\"\n      }", "$t.meta", "the value of \"a\" cannot include null"),
        ("", "    meta {\n      a = \"\\u0000\"\n    }", "", "$g.meta", "the value of \"a\" cannot include null"),
        ("  meta {\n    a = \"\\u0000\"\n  }", "", "", "meta", "the value of \"a\" cannot include null"),
        ("", "", "      kill_timeout = \"-1s\"", "$t.kill_timeout", "must not be negative"),
        ("", "", "      kill_timeout = \"11m\"",
            "$t.kill_timeout", "KillTimout (11m0s) longer than the group's ProgressDeadline (10m0s)"),
        ("", "", "      kill_signal = \"SIGFOO\"", "$t.kill_signal", "unknown signal \"SIGFOO\""),
        ("", "", "      kill_signal = \"int\"", "$t.kill_signal", "did you mean \"SIGINT\"?"),
        ("", "", "      shutdown_delay = \"-1s\"",
            "$t.shutdown_delay", "ShutdownDelay must be a positive value"),
        ("", "    task \"u\" {\n      driver = \"mock_driver\"\n      lifecycle {\n      }\n    }", "",
            "$g.task[\"u\"].lifecycle.hook", "no lifecycle hook provided"),
        ("", "    task \"u\" {\n      driver = \"mock_driver\"\n      lifecycle {\n        hook = \"before\"\n      }\n    }", "",
            "$g.task[\"u\"].lifecycle.hook", "invalid hook: before"),
        ("", "    task \"u\" {\n      driver = \"mock_driver\"\n      leader = true\n      lifecycle {\n        hook = \"prestart\"\n      }\n    }", "",
            "$g.task[\"u\"].leader", "cannot be the leader"),
        ("", "", "      resources {\n        cpu = 0\n      }",
            "$t.resources.cpu", "minimum CPU value is 1; got 0"),
        ("", "", "      resources {\n        memory = 9\n      }",
            "$t.resources.memory", "minimum MemoryMB value is 10; got 9"),
        ("", "", "      resources {\n        memory = -5\n      }",
            "$t.resources.memory", "must be between 10 and 4294967295; got -5"),
        ("", "", "      resources {\n        cpu = 5000000000\n      }",
            "$t.resources.cpu", "must be between 1 and 4294967295; got 5000000000"),
        ("", "", "      resources {\n        memory_max = 100\n      }",
            "$t.resources.memory_max", "MemoryMaxMB value (100) should be larger than MemoryMB value (300)"),
        ("", "", "      resources {\n        memory_max = -2\n      }",
            "$t.resources.memory_max", "or -1 for no limit; got -2"),
        ("", "", "      resources {\n        cores = 2\n        cpu = 100\n      }",
            "$t.resources.cores", "Task can only ask for 'cpu' or 'cores' resource, not both"),
        ("", "", "      resources {\n        cores = -1\n      }",
            "$t.resources.cores", "must be between 0 and"),
        ("", "", "      resources {\n        device \"gpu\" {\n          count = 0\n        }\n      }",
            "$t.resources.device[\"gpu\"].count", "invalid request of zero devices"),
        ("", "", "      resources {\n        device \"nvidia/\" {\n        }\n      }",
            "$t.resources.device[\"nvidia/\"].name", "has an empty part"),
        ("", "", "      resources {\n        device \"gpu\" {\n          constraint {\n            attribute = attr.kernel.name\n            value = \"x\"\n          }\n        }\n      }",
            "$t.resources.device[\"gpu\"].constraint[0].attribute", "is not known of a device"),
        ("", "", "      resources {\n        device \"gpu\" {\n          affinity {\n            attribute = device.modell\n            value = \"x\"\n          }\n        }\n      }",
            "$t.resources.device[\"gpu\"].affinity[0].attribute", "with ids, model, vendor or type"),
        ("", "", "      resources {\n        cpu = -1\n      }",
            "$t.resources.cpu", "must be between 1 and"),
        ("", "", "      logs {\n        max_files = 0\n      }",
            "$t.logs.max_files", "minimum number of files is 1; got 0"),
        ("", "", "      logs {\n        max_file_size = 0\n      }",
            "$t.logs.max_file_size", "minimum file size is 1MB; got 0"),
        ("", "", "      logs {\n        max_files = 30\n      }",
            "$t.logs", "log storage (300 MB) must be less than requested disk capacity (300 MB)"),
        ("", "", "      constraint {\n        distinct_hosts = true\n      }",
            "$t.constraint[0]", "Constraint 1 has disallowed Operand at task level: distinct_hosts"),
    ]);
    for task in [
        "      logs {\n        max_files = 30\n        disabled = true\n      }",
        "      kill_signal = \"SIGUSR1\"",
        "      kill_timeout = \"10m\"",
    ] {
        admit(&file("", "", task)).unwrap();
    }
    admit(&file(
        "",
        "    update {\n      progress_deadline = \"0s\"\n    }",
        "      kill_timeout = \"11m\"",
    ))
    .unwrap();
    admit(&file(
        "  type = \"batch\"",
        "",
        "      kill_timeout = \"11m\"",
    ))
    .unwrap();
}

#[test]
fn lifecycles_are_read() {
    let group = "    task \"u\" {\n      driver = \"mock_driver\"\n      lifecycle {\n        hook = \"poststart\"\n        sidecar = true\n      }\n    }";
    let job = admit(&file("", group, "")).unwrap().job;
    let task = job.task_groups[0].task("u").unwrap();
    let lifecycle = task.lifecycle.unwrap();
    assert_eq!(
        (lifecycle.hook, lifecycle.sidecar),
        (LifecycleHook::Poststart, true)
    );
}

#[test]
fn the_signals_of_a_groups_tasks_are_demanded_of_its_node() {
    let other =
        "    task \"u\" {\n      driver = \"mock_driver\"\n      kill_signal = \"SIGHUP\"\n    }";
    let text = file("", other, "      kill_signal = \"SIGUSR1\"");
    let constraints = admit(&text).unwrap().job.task_groups[0].constraints.clone();
    let [only] = &constraints[..] else {
        panic!("{constraints:?}")
    };
    assert_eq!(
        (only.left.as_str(), only.operator),
        ("${attr.os.signals}", Operator::SetContains)
    );
    assert_eq!(only.right, "SIGHUP,SIGUSR1");
    assert!(
        admit(&file("", "", "")).unwrap().job.task_groups[0]
            .constraints
            .is_empty()
    );
}

#[test]
#[rustfmt::skip]
fn identities_and_policies() {
    check(&[
        ("", "", "      identity {\n        name = \"a b\"\n      }",
            "$t.identity[0].name", "Invalid identity name \"a b\""),
        ("", "", "      identity {\n        name = \"a\"\n      }\n      identity {\n        name = \"a\"\n      }",
            "$t.identity[1].name", "there are two identities \"a\""),
        ("", "", "      identity {\n        change_mode = \"script\"\n      }",
            "$t.identity.change_mode", "Invalid change mode \"script\""),
        ("", "", "      identity {\n        change_mode = \"signal\"\n      }",
            "$t.identity.change_signal", "change_signal must be specified"),
        ("", "", "      identity {\n        filepath = \"../../x\"\n      }",
            "$t.identity.filepath", "filepath escapes allocation directory"),
        ("", "", "      identity {\n        ttl = \"-1s\"\n      }",
            "$t.identity.ttl", "Identity TTL must be a positive value"),
        ("", "", "      identity {\n        aud = [\"\"]\n      }",
            "$t.identity.aud", "an audience is empty"),
        ("", "", "      scaling \"mem\" {\n        min = 9\n        max = 8\n      }",
            "$t.scaling[0].max", "the largest amount 8 is less than the smallest"),
    ]);
}
