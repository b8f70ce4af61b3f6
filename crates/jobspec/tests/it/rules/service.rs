//! Services of groups and tasks.

use model::service::{AddressMode, OnUpdate};

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
        ("", of("address_mode = \"driver\""), "", "$g.service[0].address_mode", "address_mode \"driver\" is not supported by this version of Kafila"),
        ("", of("address_mode = \"x\""), "", "$g.service[0].address_mode", "unknown address_mode \"x\""),
        ("", of("address_mode = \"host\"\naddress = \"example.com\""), "", "$g.service[0].address_mode", "excludes address"),
        ("", of("on_update = \"x\""), "", "$g.service[0].on_update", "unknown on_update \"x\""),
        ("", of("task = \"x\""), "", "$g.service[0].task", "the group has no task \"x\""),
        ("", "", in_task("task = \"x\""), "$t.service[0].task", "a service of task \"t\" cannot name task \"x\""),
        ("", "service {\nprovider = \"consul\"\n}", "", "$g.service[0].provider", "Consul is not supported by this version of Kafila"),
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
    let again = jobspec::canonicalise(&spec::Job::from(&admitted.job), NOW);
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
    let json =
        serde_json::to_value(&spec::Job::from(&admitted.job).task_groups[0].services).unwrap();
    assert_eq!(json[0]["Provider"], "nomad");
}
