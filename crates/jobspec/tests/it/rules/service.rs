//! Services of groups and tasks.

use model::service::{AddressMode, CheckType, OnUpdate};

use super::check;
use crate::support::{NOW, admit, file};

const PORTS: &str = "network {\nport \"http\" {}\n}";

/// A group with a port and one service.
fn of(lines: &str) -> &'static str {
    Box::leak(format!("{PORTS}\nservice {{\nprovider = \"nomad\"\n{lines}\n}}").into())
}

/// A task with one service.
fn in_task(lines: &str) -> &'static str {
    Box::leak(format!("service {{\nprovider = \"nomad\"\n{lines}\n}}").into())
}

#[test]
#[rustfmt::skip]
fn what_a_service_is_made_of() {
    check(&[
        ("", of("name = \"a_b\""), "", "$g.service[0].name", "Service name must be valid per RFC 1123"),
        ("", of("name = \"-a\""), "", "$g.service[0].name", "Service name must be valid per RFC 1123"),
        ("", of("name = \"a${NOMAD_ALLOC_INDEX}!\""), "", "$g.service[0].name", "Service name must be valid per RFC 1123"),
        ("", of("port = \"htp\""), "", "$g.service[0].port", "port label \"htp\" referenced by services a-g does not exist"),
        ("", of("port = \"70000\""), "", "$g.service[0].port", "port 70000 must be between 1 and"),
        ("", "", in_task("port = \"http\""), "$t.service[0].port", "port label \"http\" referenced by services a-g-t does not exist"),
        ("", of("address_mode = \"driver\""), "", "$g.service[0].address_mode", "address_mode \"driver\" is for services of a task"),
        ("", of("address_mode = \"x\""), "", "$g.service[0].address_mode", "unknown address_mode \"x\""),
        ("", of("address_mode = \"host\"\naddress = \"example.com\""), "", "$g.service[0].address_mode", "excludes address"),
        ("", of("on_update = \"x\""), "", "$g.service[0].on_update", "unknown on_update \"x\""),
        ("", of("task = \"x\""), "", "$g.service[0].task", "the group has no task \"x\""),
        ("", "", in_task("task = \"x\""), "$t.service[0].task", "a service of task \"t\" cannot name task \"x\""),
        ("", "service {\nprovider = \"consul\"\ncluster = \"b\"\n}", "", "$g.service[0].cluster", "is not supported by this version of Kafila"),
        ("", "service {\nprovider = \"consul\"\nkind = \"mesh-gateway\"\n}", "", "$g.service[0].kind", "is not supported by this version of Kafila"),
        ("", "service {\nprovider = \"consul\"\ntagged_addresses {\nlan = \"192.0.2.7\"\n}\n}", "", "$g.service[0].tagged_addresses", "is not an address with a port"),
        ("", "service {\nname = \"a\"\nprovider = \"consul\"\n}\nservice {\nname = \"b\"\nprovider = \"nomad\"\n}", "", "$g.service", "Multiple service providers used"),
        ("", "service {\nprovider = \"x\"\n}", "", "$g.service[0].provider", "unknown provider \"x\""),
        ("", Box::leak(format!("{}\n{}", of("name = \"a\""), in_task("name = \"a\"")).into()), "", "$g.service[1].name", "Service \"a\" is defined twice"),
    ]);
}

#[test]
fn every_attribute_of_a_service_is_stored() {
    let all = of(r#"
      name        = "${JOB}-api"
      port        = "http"
      tags        = ["a", "b=${NOMAD_ALLOC_ID}"]
      canary_tags = ["canary"]
      address     = "${attr.unique.network.ip-address}"
      task        = "t"
      on_update   = "ignore"
      meta {
        team = "x"
      }"#);
    let admitted = admit(&file("", all, "")).unwrap();
    assert_eq!(admitted.warnings, [""; 0]);
    let group = &admitted.job.task_groups[0];
    let service = &group.services[0];
    assert_eq!(
        (service.name.as_str(), service.port.as_str()),
        ("a-api", "http")
    );
    assert_eq!(service.tags, ["a", "b=${NOMAD_ALLOC_ID}"]);
    assert_eq!(service.canary_tags, ["canary"]);
    assert_eq!(service.address, "${attr.unique.network.ip-address}");
    assert_eq!(service.address_mode, AddressMode::Auto);
    assert_eq!(
        (service.task.as_str(), service.on_update),
        ("t", OnUpdate::Ignore)
    );
    assert_eq!(service.meta["team"], "x");
    // Only nodes that register services are feasible.
    let implied = &group.constraints[0];
    assert_eq!(implied.left, "${attr.nomad.service_discovery}");
    // The stored job is read again as the same job.
    let again = jobspec::canonicalise(&job_fields::Job::from(&admitted.job), NOW);
    assert_eq!(again.unwrap().job, admitted.job);
}

#[test]
fn names_follow_from_the_names_around_a_service() {
    let job = admit(&file("", of(""), in_task(""))).unwrap().job;
    let group = &job.task_groups[0];
    assert_eq!(group.services[0].name, "a-g");
    assert_eq!(group.tasks[0].services[0].name, "a-g-t");
}

#[test]
fn a_service_without_a_provider_is_kept_by_kafila_with_a_warning() {
    let admitted = admit(&file("", "service {\nname = \"x\"\n}", "")).unwrap();
    assert_eq!(admitted.warnings.len(), 1, "{:?}", admitted.warnings);
    assert!(
        admitted.warnings[0].contains("1 service has no provider"),
        "{:?}",
        admitted.warnings
    );
    let json = serde_json::to_value(&job_fields::Job::from(&admitted.job).task_groups[0].services)
        .unwrap();
    assert_eq!(json[0]["Provider"], "nomad");
}

#[test]
fn an_explicit_consul_is_the_provider_with_its_own_attributes_and_constraint() {
    let lines = "service {\nprovider = \"consul\"\nenable_tag_override = true\ncanary_meta {\na = \"b\"\n}\n\
                 tagged_addresses {\nlan = \"192.0.2.7:80\"\n}\nweights {\npassing = 5\n}\n}";
    let admitted = admit(&file("", lines, "")).unwrap();
    assert_eq!(admitted.warnings, [""; 0]);
    let group = &admitted.job.task_groups[0];
    let service = &group.services[0];
    assert_eq!(service.provider, model::service::Provider::Consul);
    assert!(service.enable_tag_override);
    assert_eq!(service.tagged_addresses["lan"], "192.0.2.7:80");
    let weights = service.weights.unwrap();
    assert_eq!((weights.passing, weights.warning), (5, 1));
    let constraints: Vec<&str> = group
        .constraints
        .iter()
        .map(|it| it.left.as_str())
        .collect();
    assert_eq!(constraints, ["${attr.consul.version}"]);
    let wire = job_fields::Job::from(&admitted.job);
    let again = jobspec::canonicalise(&wire, model::Timestamp(1))
        .unwrap()
        .job;
    assert_eq!(again.task_groups[0].services, group.services);

    let without = lines.replace("provider = \"consul\"", "provider = \"nomad\"");
    let admitted = admit(&file("", Box::leak(without.into()), "")).unwrap();
    assert_eq!(admitted.warnings.len(), 4, "{:?}", admitted.warnings);
    let service = &admitted.job.task_groups[0].services[0];
    assert!(!service.enable_tag_override && service.weights.is_none());
}

/// A group with a port and one service with one check, and `GOOD` unless another type is given.
fn checked(lines: &str) -> &'static str {
    let lines =
        format!("port = \"http\"\ncheck {{\ninterval = \"10s\"\ntimeout = \"2s\"\n{lines}\n}}");
    of(&lines)
}

#[test]
#[rustfmt::skip]
fn an_invalid_check_names_its_attribute() {
    let c = "$g.service[0].check[0]";
    let field = |name: &str| -> &'static str { Box::leak(format!("{c}.{name}").into()) };
    check(&[
        ("", checked("type = \"x\""), "", field("type"), "invalid check type (\"x\"), must be one of"),
        ("", checked(""), "", field("type"), "must be one of"),
        ("", checked("type = \"script\"\ntask = \"t\""), "", field("command"), "script type must have a script path"),
        ("", checked("type = \"script\"\ncommand = \"/bin/x\""), "", field("task"), "must specify its task"),
        ("", checked("type = \"http\""), "", field("path"), "http type must have http path"),
        ("", checked("type = \"http\"\npath = \"http://a/b\""), "", field("path"), "has a host"),
        ("", checked("type = \"http\"\npath = \"/\"\nmethod = \"get\""), "", field("method"), "unknown method \"get\""),
        ("", checked("type = \"http\"\npath = \"/\"\nprotocol = \"ftp\""), "", field("protocol"), "unknown protocol"),
        ("", checked("type = \"http\"\npath = \"/\"\nheader {\nA = 5\n}"), "", field("header"), "must be a list of strings"),
        ("", checked("type = \"http\"\npath = \"/\"\nheader {\nÄ = [\"x\"]\n}"), "", field("header"), "is not a valid name of a header"),
        ("", checked("type = \"tcp\"\nport = \"x\""), "", field("port"), "port label \"x\""),
        ("", checked("type = \"tcp\"\nexpose = true"), "", field("expose"), "expose is not supported"),
        ("", checked("type = \"tcp\"\naddress_mode = \"driver\""), "", field("address_mode"), "is for services of a task"),
        ("", checked("type = \"tcp\"\naddress_mode = \"x\""), "", field("address_mode"), "use \"host\", \"driver\", \"alloc\" or \"alloc_ipv6\""),
        ("", checked("type = \"tcp\"\ninitial_status = \"x\""), "", field("initial_status"), "invalid initial check state"),
        ("", checked("type = \"tcp\"\non_update = \"x\""), "", field("on_update"), "unknown on_update"),
        ("", checked("type = \"tcp\"\nsuccess_before_passing = -1"), "", field("success_before_passing"), "must be between 0"),
        ("", checked("type = \"tcp\"\ncheck_restart {\nlimit = -1\n}"), "", field("check_restart.limit"), "must be between 0"),
        ("", checked("type = \"tcp\"\ntask = \"x\""), "", "$g.service[0].task", "the group has no task \"x\""),
        ("", of("check {\ntype = \"tcp\"\ninterval = \"10s\"\ntimeout = \"2s\"\n}"), "", field("port"), "check requires a port"),
        ("", of("port = \"http\"\ncheck {\ntype = \"tcp\"\ntimeout = \"2s\"\n}"), "", field("interval"), "missing required value interval. Interval cannot be less than 1s"),
        ("", of("port = \"http\"\ncheck {\ntype = \"tcp\"\ninterval = \"10s\"\ntimeout = \"500ms\"\n}"), "", field("timeout"), "timeout cannot be less than 1s"),
    ]);
}

#[test]
fn every_attribute_of_a_check_is_stored() {
    let all = checked(
        r#"
      type            = "http"
      name            = "alive"
      path            = "/health?x=${NOMAD_ALLOC_ID}"
      protocol        = "https"
      method          = "POST"
      body            = "{}"
      tls_server_name = "web.example.com"
      tls_skip_verify = true
      initial_status  = "passing"
      on_update       = "ignore"
      success_before_passing   = 3
      failures_before_critical = 2
      header {
        Authorization = ["Basic x"]
      }
      check_restart {
        limit = 3
        grace = "90s"
      }"#,
    );
    let job = admit(&file("", all, "")).unwrap().job;
    let check = &job.task_groups[0].services[0].checks[0];
    assert_eq!(
        (check.name.as_str(), check.method.as_str()),
        ("alive", "POST")
    );
    assert_eq!(check.header["Authorization"], ["Basic x"]);
    assert_eq!(
        (check.success_before_passing, check.failures_before_critical),
        (3, 2)
    );
    assert_eq!(check.on_update, OnUpdate::Ignore);
    let restart = check.check_restart.unwrap();
    assert_eq!((restart.limit, restart.grace.as_secs()), (3, 90));
    let again = jobspec::canonicalise(&job_fields::Job::from(&job), NOW);
    assert_eq!(again.unwrap().job, job);
}

#[test]
fn a_script_runs_in_the_task_that_its_check_or_service_names_without_a_port() {
    let script = |lines: &str| {
        format!(
            "{lines}\ncheck {{\ntype = \"script\"\ncommand = \"/bin/ok\"\nargs = [\"-q\", \"${{NOMAD_ALLOC_ID}}\"]\n\
             interval = \"10s\"\ntimeout = \"2s\"\n}}"
        )
    };
    let job = admit(&file("", of(&script("task = \"t\"")), ""))
        .unwrap()
        .job;
    let check = &job.task_groups[0].services[0].checks[0];
    assert_eq!(check.check_type, CheckType::Script);
    assert_eq!(
        (check.command.as_str(), check.args.join(" ")),
        ("/bin/ok", "-q ${NOMAD_ALLOC_ID}".to_owned())
    );
    let again = jobspec::canonicalise(&job_fields::Job::from(&job), NOW);
    assert_eq!(again.unwrap().job, job);
    // A service of a task needs no name.
    admit(&file("", "", in_task(&script("")))).unwrap();
}

#[test]
fn a_script_in_a_task_whose_driver_runs_no_commands_is_refused() {
    let service = "service {\nprovider = \"nomad\"\ntask = \"t\"\ncheck {\ntype = \"script\"\ncommand = \"/bin/ok\"\n\
                   interval = \"10s\"\ntimeout = \"2s\"\n}\n}";
    let with = |driver: &str, of_group: &str, of_task: &str| {
        format!(
            "job \"a\" {{\n  group \"g\" {{\n{of_group}\n    task \"t\" {{\n      driver = \"{driver}\"\n{of_task}\n\
             config {{\n{}\n}}\n    }}\n  }}\n}}\n",
            if driver == "exec" {
                "command = \"/bin/true\""
            } else {
                ""
            }
        )
    };
    admit(&with("exec", service, "")).unwrap();
    for (of_group, of_task) in [(service, ""), ("", service)] {
        let errors = admit(&with("mock_driver", of_group, of_task)).unwrap_err();
        assert!(
            errors.contains("the driver \"mock_driver\" of task \"t\" runs no commands"),
            "{errors}"
        );
    }
}

#[test]
fn a_check_inherits_from_its_service() {
    let lines = "port = \"http\"\non_update = \"ignore\"\ncheck_restart {\nlimit = 2\n}\ncheck {\ntype = \"tcp\"\ninterval = \"10s\"\ntimeout = \"2s\"\n}";
    let job = admit(&file("", of(lines), "")).unwrap().job;
    let check = &job.task_groups[0].services[0].checks[0];
    assert_eq!(check.name, "service: \"a-g\" check");
    assert_eq!(check.on_update, OnUpdate::Ignore);
    let restart = check.check_restart.unwrap();
    assert_eq!((restart.limit, restart.grace.as_secs()), (2, 1));
}

#[test]
fn address_modes_of_services_and_checks_are_stored() {
    let driver = |check: &str| {
        format!(
            "address_mode = \"driver\"\nport = \"9090\"\ncheck {{\ntype = \"tcp\"\ninterval = \"10s\"\n\
             timeout = \"2s\"\n{check}\n}}"
        )
    };
    for (check, want) in [
        ("", None),
        ("address_mode = \"auto\"", None),
        ("address_mode = \"host\"", Some(AddressMode::Host)),
        ("address_mode = \"driver\"", Some(AddressMode::Driver)),
        (
            "address_mode = \"alloc_ipv6\"",
            Some(AddressMode::AllocIpv6),
        ),
    ] {
        let admitted = admit(&file("", "", in_task(&driver(check)))).unwrap();
        let service = &admitted.job.task_groups[0].tasks[0].services[0];
        assert_eq!(service.address_mode, AddressMode::Driver);
        assert_eq!(service.checks[0].address_mode, want, "{check}");
        let again = jobspec::canonicalise(&job_fields::Job::from(&admitted.job), NOW);
        assert_eq!(again.unwrap().job, admitted.job);
        // The task's driver gives no addresses.
        let warning = "is not registered at an address of its driver";
        let found = admitted.warnings.iter().any(|it| it.contains(warning));
        assert!(found, "{:?}", admitted.warnings);
    }
}

#[test]
fn a_warning_says_that_no_driver_gives_an_address() {
    let warned = |network: &str, task: &str| {
        let text = format!(
            "job \"a\" {{\n  group \"g\" {{\n{network}\n    task \"t\" {{\n{task}\n      service {{\n\
             provider = \"nomad\"\nport = \"9090\"\naddress_mode = \"driver\"\n}}\n    }}\n  }}\n}}\n"
        );
        let warnings = admit(&text).unwrap().warnings;
        let found = warnings
            .into_iter()
            .find(|it| it.contains("address of its driver"));
        found.unwrap_or_default()
    };
    let docker = "driver = \"docker\"\nconfig {\nimage = \"redis:7\"\n}";
    let raw = "driver = \"raw_exec\"\nconfig {\ncommand = \"/bin/true\"\n}";
    assert_eq!(warned("", docker), "");
    assert!(warned("", raw).contains("\"raw_exec\" gives its tasks none"));
    let bridge = "network {\nmode = \"bridge\"\n}";
    assert!(warned(bridge, docker).contains("address_mode = \"alloc\""));
}
