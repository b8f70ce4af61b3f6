//! Registrations as a Consul agent gets them from Nomad for the same job, member by member.

use serde_json::{Value, json};

use model::{AllocatedPort, NodeId};
use test_kit::builders;

use super::*;

const JOB: &str = r#"
job "shop" {
  group "web" {
    network {
      port "http" {}
      port "admin" {
        static = 23456
      }
    }
    service {
      provider    = "consul"
      name        = "shop-web"
      port        = "http"
      tags        = ["v1", "env-${NOMAD_ALLOC_INDEX}"]
      canary_tags = ["canary"]
      meta {
        owner = "team-a"
        alloc = "${NOMAD_ALLOC_NAME}"
      }
      canary_meta {
        owner = "canary"
      }
      check {
        name     = "alive"
        type     = "http"
        path     = "/health"
        interval = "10s"
        timeout  = "2s"
        method   = "POST"
        body     = "x"
        header {
          X-A = ["b"]
        }
        check_restart {
          limit = 3
          grace = "5s"
        }
      }
      check {
        name                     = "admin"
        type                     = "tcp"
        port                     = "admin"
        interval                 = "15s"
        timeout                  = "2s"
        success_before_passing   = 2
        failures_before_critical = 3
        initial_status           = "warning"
      }
      check {
        name         = "grpc"
        type         = "grpc"
        grpc_service = "svc.Health"
        grpc_use_tls = true
        interval     = "10s"
        timeout      = "2s"
      }
      check {
        name            = "secure"
        type            = "http"
        protocol        = "https"
        tls_skip_verify = true
        path            = "/"
        interval        = "10s"
        timeout         = "2s"
        on_update       = "ignore_warnings"
      }
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
      }
      service {
        provider            = "consul"
        name                = "shop-task"
        port                = "admin"
        address_mode        = "host"
        enable_tag_override = true
        check {
          type     = "script"
          command  = "/bin/true"
          interval = "5s"
          timeout  = "2s"
        }
        check {
          name         = "by host"
          type         = "tcp"
          interval     = "10s"
          timeout      = "2s"
          address_mode = "host"
        }
      }
      service {
        provider = "consul"
        name     = "noport"
        tags     = ["x"]
      }
      service {
        name = "kept-by-kafila"
      }
    }
  }
}
"#;

fn assignment(text: &str) -> Assignment {
    let file = jobspec::parse("f", text, &jobspec::Inputs::default()).unwrap();
    let job = jobspec::canonicalise(&file.job, model::Timestamp(1))
        .unwrap()
        .job;
    let mut alloc = builders::allocation(1, &job, NodeId::from_random(1));
    let port = |label: &str, value| AllocatedPort {
        label: label.to_owned(),
        value,
        to: value,
        host_ip: "127.0.0.1".to_owned(),
        ignore_collision: false,
        task: String::new(),
    };
    alloc.resources.ports = vec![port("http", 23_255), port("admin", 23_456)];
    Assignment {
        alloc: Arc::new(alloc),
        job: Arc::new(job),
        modify_index: 5,
        trace_parent: String::new(),
        volume_paths: BTreeMap::new(),
    }
}

fn built(assignment: &Assignment, tags: &[&str]) -> AllocRegistrations {
    let owners = [ServiceOwner::Group, ServiceOwner::Task("t".to_owned())];
    let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
    let facts = NodeFacts::new(&builders::node(1), "global");
    build(assignment, &owners, &facts, |_| None, &tags)
}

/// The bodies, with `CheckID` shortened to its fixed part.
fn bodies(built: &AllocRegistrations) -> Vec<Value> {
    let bodies = built.registrations.iter().map(|registration| {
        let mut body = serde_json::to_value(registration).unwrap();
        for check in body["Checks"].as_array_mut().unwrap() {
            let id = check["CheckID"].as_str().unwrap();
            assert_eq!(id.len(), "_nomad-check-".len() + 40);
            assert!(id.starts_with("_nomad-check-"), "{id}");
            check["CheckID"] = "_nomad-check-".into();
        }
        body
    });
    bodies.collect()
}

#[test]
fn registrations_have_the_members_that_others_rely_on() {
    let assignment = assignment(JOB);
    let alloc_id = assignment.alloc.id;
    let id = "_nomad-check-";
    let web = json!({
        "ID": format!("_nomad-task-{alloc_id}-group-web-shop-web-http"),
        "Name": "shop-web",
        "Tags": ["v1", "env-0"],
        "Port": 23_255,
        "Address": "127.0.0.1",
        "Meta": {"alloc": "shop.web[0]", "external-source": "nomad", "owner": "team-a"},
        "Check": null,
        "Checks": [
            {"CheckID": id, "Name": "alive", "Interval": "10s", "Timeout": "2s",
                "HTTP": "http://127.0.0.1:23255/health", "Header": {"X-A": ["b"]}, "Method": "POST", "Body": "x"},
            {"CheckID": id, "Name": "admin", "Interval": "15s", "Timeout": "2s", "TCP": "127.0.0.1:23456",
                "Status": "warning", "SuccessBeforePassing": 2, "FailuresBeforeCritical": 3},
            {"CheckID": id, "Name": "grpc", "Interval": "10s", "Timeout": "2s",
                "GRPC": "127.0.0.1:23255/svc.Health", "GRPCUseTLS": true},
            {"CheckID": id, "Name": "secure", "Interval": "10s", "Timeout": "2s",
                "HTTP": "https://127.0.0.1:23255/", "TLSSkipVerify": true},
        ],
    });
    let task = json!({
        "ID": format!("_nomad-task-{alloc_id}-t-shop-task-admin"),
        "Name": "shop-task",
        "Port": 23_456,
        "Address": "127.0.0.1",
        "EnableTagOverride": true,
        "Meta": {"external-source": "nomad"},
        "Check": null,
        "Checks": [
            {"CheckID": id, "Name": "service: \"shop-task\" check", "Timeout": "2s", "TTL": "36s"},
            {"CheckID": id, "Name": "by host", "Interval": "10s", "Timeout": "2s", "TCP": "127.0.0.1:23456"},
        ],
    });
    let noport = json!({
        "ID": format!("_nomad-task-{alloc_id}-t-noport-"),
        "Name": "noport",
        "Tags": ["x"],
        "Meta": {"external-source": "nomad"},
        "Check": null,
        "Checks": [],
    });
    let built = built(&assignment, &[]);
    assert_eq!(bodies(&built), [web, task, noport]);
    assert_eq!(built.check_ids.len(), 6);
}

#[test]
fn a_changed_tag_keeps_the_ids_of_checks_and_a_changed_check_does_not() {
    let first = assignment(JOB);
    let ids = |text: &str| {
        let mut other = assignment(text);
        other.alloc = Arc::clone(&first.alloc);
        let mut ids: Vec<String> = built(&other, &[]).check_ids.into_values().collect();
        ids.sort();
        ids
    };
    let before = ids(JOB);
    assert_eq!(ids(&JOB.replace("\"v1\"", "\"v2\"")), before);
    let changed = ids(&JOB.replace("\"/health\"", "\"/ready\""));
    let kept = changed.iter().filter(|id| before.contains(id));
    assert_eq!(kept.count(), before.len() - 1);
}

#[test]
fn a_canary_has_its_own_tags_and_meta_until_its_promotion() {
    let mut assignment = assignment(JOB);
    Arc::make_mut(&mut assignment.alloc).canary = true;
    let canary = &built(&assignment, &["${attr.unique.hostname}-all"]).registrations[0];
    assert_eq!(
        canary.tags.len(),
        2,
        "the node's tags stay: {:?}",
        canary.tags
    );
    assert_eq!(canary.tags[0], "canary");
    assert_eq!(canary.meta["owner"], "canary");
    assert!(!canary.meta.contains_key("alloc"));
    Arc::make_mut(&mut assignment.alloc).canary = false;
    let promoted = &built(&assignment, &[]).registrations[0];
    assert_eq!(promoted.tags, ["v1", "env-0"]);
    assert_eq!(promoted.id, canary.id);
}

#[test]
fn tagged_addresses_and_weights_are_registered_and_a_check_without_an_address_is_not() {
    let text = JOB
        .replace(
            "canary_tags = [\"canary\"]",
            "tagged_addresses {\nlan = \"[2001:db8::7]:${NOMAD_PORT_admin}\"\n}\nweights {\npassing = 5\n}",
        )
        .replace("static = 23456", "static = 23456\nto = 80")
        .replace("path     = \"/health\"", "path = \"health\"\naddress_mode = \"alloc\"");
    let built = built(&assignment(&text), &[]);
    let body = &bodies(&built)[0];
    let lan = &body["TaggedAddresses"]["lan"];
    assert_eq!(lan["Address"], "2001:db8::7");
    assert_eq!(body["Weights"], json!({"Passing": 5, "Warning": 1}));
    assert_eq!(body["Checks"].as_array().unwrap().len(), 3);
}
