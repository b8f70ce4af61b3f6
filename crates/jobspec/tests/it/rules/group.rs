//! Groups, their networks and names.

use std::time::Duration;

use jobspec::MAX_TOTAL_COUNT;
use model::job::ReconcileChoice;

use super::check;
use crate::support::{admit, file};

#[test]
#[rustfmt::skip]
fn groups() {
    check(&[
        ("", "    count = -1", "", "$g.count", "Task group count can't be negative"),
        ("", "    count = 4294967296", "", "$g.count", "must be between 0 and 50000"),
        ("", "    shutdown_delay = \"-1s\"", "",
            "$g.shutdown_delay", "ShutdownDelay must be a positive value"),
        ("", "    ephemeral_disk {\n      size = 5\n    }", "      logs {\n        disabled = true\n      }",
            "$g.ephemeral_disk.size", "minimum DiskMB value is 10; got 5"),
        ("", "    task \"t\" {\n      driver = \"mock_driver\"\n    }", "",
            "$t", "task \"t\" is defined twice"),
        ("", "    task \"u\" {\n      driver = \"mock_driver\"\n      leader = true\n    }", "      leader = true",
            "$g.task", "Only one task may be marked as leader"),
        ("", "", "      lifecycle {\n        hook = \"prestart\"\n      }",
            "$g.task", "Task group g must have at least one main task"),
        ("", "    disconnect {\n      lost_after = \"1h\"\n      stop_on_client_after = \"1h\"\n    }", "",
            "$g.disconnect", "Disconnect cannot be configured with both lost_after and stop_after"),
        ("", "    disconnect {\n      lost_after = \"-1h\"\n    }", "",
            "$g.disconnect.lost_after", "lost_after cannot be a negative duration"),
        ("  type = \"system\"", "    disconnect {\n      stop_on_client_after = \"1h\"\n    }", "",
            "$g.disconnect.stop_on_client_after", "stop_after can only be used with service or batch job types"),
        ("", "    disconnect {\n      reconcile = \"best\"\n    }", "",
            "$g.disconnect.reconcile", "reconcile option is invalid: best"),
    ]);
    let none = "    disconnect {\n      lost_after = \"0s\"\n      stop_on_client_after = \"0s\"\n    }";
    let disconnect = admit(&file("", none, "")).unwrap().job.task_groups[0].disconnect.unwrap();
    // Lost at once is the rule anyway; stopped at once is not.
    assert_eq!((disconnect.lost_after, disconnect.stop_on_client_after), (None, Some(Duration::ZERO)));
    let disconnect =
        "    disconnect {\n      lost_after = \"1h\"\n      reconcile = \"keep_original\"\n    }";
    let job = admit(&file("", disconnect, "")).unwrap().job;
    let disconnect = job.task_groups[0].disconnect.unwrap();
    assert_eq!(
        (disconnect.lost_after, disconnect.replace),
        (Some(Duration::from_secs(3_600)), true)
    );
    assert_eq!(disconnect.reconcile, ReconcileChoice::KeepOriginal);
    assert_eq!(MAX_TOTAL_COUNT, 50_000);
}

#[test]
#[rustfmt::skip]
fn networks_and_ports() {
    let port = |body: &str| -> &'static str {
        format!("    network {{\n      port \"x\" {{\n        {body}\n      }}\n    }}").leak()
    };
    let p = "$g.network[0].port[\"x\"]";
    let field = |name: &str| -> &'static str { format!("{p}.{name}").leak() };
    check(&[
        ("", "    network {\n      mode = \"cni/\"\n    }", "",
            "$g.network[0].mode", "names no network"),
        ("", "    network {\n      mode = \"cni/a/b\"\n    }", "",
            "$g.network[0].mode", "has no \"/\""),
        ("", "    network {\n      mode = \"bridge\"\n      hostname = \"a_b\"\n    }", "",
            "$g.network[0].hostname", "Hostname is not a valid DNS name"),
        ("", "    network {\n      mode = \"bridge\"\n      hostname = \"-a\"\n    }", "",
            "$g.network[0].hostname", "Hostname is not a valid DNS name"),
        ("", "    network {\n      mode = \"hots\"\n    }", "",
            "$g.network[0].mode", "unknown network mode \"hots\""),
        ("", port("to = 70000"), "", field("to"), "Port x (70000) cannot be greater than 65535"),
        ("", port("static = 65536"), "",
            field("static"), "Port x (65536) cannot be greater than 65535"),
        ("", port("static = -5"), "", field("static"), "Port x (-5) cannot be negative"),
        ("", port("ignore_collision = true"), "",
            field("ignore_collision"), "only a static port can ignore collisions"),
        ("", port("to = -2"), "", field("to"), "Port x (-2) cannot be negative"),
        ("", "    network {\n      port \"x\" {}\n      port \"x\" {}\n    }", "",
            p, "Port label x already in use by"),
        ("", "    network {\n      port \"x\" {\n        static = 80\n      }\n      port \"y\" {\n        static = 80\n      }\n    }", "",
            "$g.network[0].port[\"y\"].static", "Static port 80 already reserved by x"),
    ]);
    for body in [
        "to = -1",
        "to = 0",
        "static = 0",
        "static = 65535",
        "host_network = \"public\"",
        "host_network = \"${meta.network}\"",
        "static = 53\n        ignore_collision = true",
    ] {
        admit(&file("", port(body), "")).unwrap();
    }
    for mode in ["host", "bridge", "none", "cni/lan"] {
        let settings = "hostname = \"web-${NOMAD_ALLOC_INDEX}.lan\"\n dns {\n servers = [\"9.9.9.9\"]\n }\n cni {\n \
                        args = { a = \"b\" }\n }";
        let network = format!("    network {{\n mode = \"{mode}\"\n {settings}\n }}");
        let admitted = admit(&file("", network.leak(), "")).unwrap();
        let network = &admitted.job.task_groups[0].networks[0];
        assert_eq!(network.mode, mode);
        assert_eq!(network.hostname, "web-${NOMAD_ALLOC_INDEX}.lan");
        assert_eq!(network.dns.as_ref().unwrap().servers, ["9.9.9.9"]);
        let said = admitted.warnings.join(" ");
        assert_eq!(said.contains("without effect"), mode == "host", "{said}");
    }
    let two = "    network {\n      port \"x\" {\n        static = 80\n      }\n      port \"y\" {\n        \
               static = 80\n        host_network = \"other\"\n      }\n    }";
    admit(&file("", two, "")).unwrap();
}

#[test]
fn networks_of_tasks() {
    let resources = |group: &str, ports: &[&[&str]]| {
        let tasks = ports.iter().enumerate().map(|(position, ports)| {
            format!(
                "task \"t{position}\" {{\n driver = \"mock_driver\"\n resources {{\n network {{\n mode = \
                 \"bridge\"\n mbits = 10\n {}\n }}\n }}\n }}\n",
                ports.join("\n")
            )
        });
        let tasks: String = tasks.collect();
        admit(&format!(
            "job \"j\" {{\n group \"g\" {{\n network {{\n {group}\n }}\n {tasks}\n }}\n}}"
        ))
    };
    let http = "port \"http\" {}";
    // Two tasks may use one label.
    let admitted = resources("", &[&[http, "port \"db\" { static = 5432 }"], &[http]]).unwrap();
    let networks = &admitted.job.task_groups[0].tasks[0].resources.networks;
    assert_eq!(
        (networks[0].mode.as_str(), networks[0].mbits),
        ("bridge", Some(10))
    );
    let ports: Vec<_> = networks[0]
        .ports
        .iter()
        .map(|port| (&*port.label, port.static_port))
        .collect();
    assert_eq!(ports, [("db", Some(5432)), ("http", None)]);
    let said = admitted.warnings.join(" ");
    assert!(
        said.contains("Task \"g.t1\": the network block in resources is deprecated"),
        "{said}"
    );
    let refused = [
        (
            "",
            vec![[http, http]],
            "task[\"t0\"].resources.network[0].port[\"http\"]: Port label http already in use",
        ),
        (
            http,
            vec![[http, ""]],
            "Port label http already in use by group[\"g\"].network[0].port[\"http\"]",
        ),
        (
            "port \"a\" { static = 80 }",
            vec![["port \"b\" { static = 80 }", ""]],
            "task[\"t0\"].resources.network[0].port[\"b\"].static: Static port 80 already reserved by a",
        ),
        (
            "",
            vec![
                ["port \"a\" { static = 80 }", ""],
                ["port \"a\" { static = 80 }", ""],
            ],
            "task[\"t1\"].resources.network[0].port[\"a\"].static: Static port 80 already reserved by a",
        ),
    ];
    for (group, tasks, problem) in refused {
        let tasks: Vec<&[&str]> = tasks.iter().map(|ports| ports.as_slice()).collect();
        let error = resources(group, &tasks).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn names_become_directories() {
    for (name, message) in [
        ("a/b", "Task group name cannot include slashes"),
        ("..", "cannot be named"),
        ("", "Missing task group name"),
    ] {
        let text = file("", "", "").replace("group \"g\"", &format!("group \"{name}\""));
        let error = admit(&text).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_task_right_in_a_job_becomes_a_group_before_the_others() {
    let task = "  task \"solo\" {\n    driver = \"mock_driver\"\n    lifecycle {\n      hook = \"poststop\"\n    }\n  }";
    let error = admit(&file(task, "", "")).unwrap_err();
    assert!(
        error.contains("Task group solo must have at least one main task"),
        "{error}"
    );
    let job = admit(&file(
        &task.replace("lifecycle {\n      hook = \"poststop\"\n    }", ""),
        "",
        "",
    ))
    .unwrap()
    .job;
    let names: Vec<_> = job
        .task_groups
        .iter()
        .map(|group| group.name.as_str())
        .collect();
    assert_eq!(names, ["solo", "g"]);
    assert_eq!(job.task_groups[0].tasks[0].name, "solo");
}
