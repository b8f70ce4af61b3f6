//! Cores, devices and memory beyond the request.

use model::{MemoryMax, Operator};

use crate::support::{admit, file};

#[test]
fn cores_stand_for_cpu() {
    for (block, cpu_mhz, cores) in [
        ("", 100, 0),
        ("cores = 2", 0, 2),
        ("cores = 0", 100, 0),
        ("cores = 2\n cpu = 0", 0, 2),
    ] {
        let task = format!("resources {{\n {block}\n }}");
        let job = admit(&file("", "", &task)).unwrap().job;
        let resources = &job.task_groups[0].tasks[0].resources;
        assert_eq!(
            (resources.cpu_mhz, resources.cores),
            (cpu_mhz, cores),
            "{block}"
        );
    }
}

#[test]
fn memory_may_be_without_a_limit() {
    for (max, want) in [
        ("-1", MemoryMax::Unlimited),
        ("300", MemoryMax::Mib(300)),
        ("0", MemoryMax::AsAsked),
    ] {
        let task = format!("resources {{\n memory_max = {max}\n }}");
        let job = admit(&file("", "", &task)).unwrap().job;
        assert_eq!(
            job.task_groups[0].tasks[0].resources.memory_max, want,
            "{max}"
        );
    }
}

#[test]
fn a_device_is_asked_for_with_what_it_has_to_be() {
    let task = r#"
      resources {
        device "gpu" {
        }
        device "nvidia/gpu" {
          count = 2
          constraint {
            attribute = "${device.attr.memory}"
            operator  = ">="
            value     = "8 GiB"
          }
          affinity {
            attribute = device.model
            value     = "a100"
            weight    = 75
          }
        }
      }"#;
    let job = admit(&file("", "", task)).unwrap().job;
    let [any, large] = job.task_groups[0].tasks[0].resources.devices.as_slice() else {
        panic!("two devices");
    };
    assert_eq!((any.name.as_str(), any.count), ("gpu", 1));
    assert_eq!((large.name.as_str(), large.count), ("nvidia/gpu", 2));
    let constraint = &large.constraints[0];
    assert_eq!(constraint.left, "${device.attr.memory}");
    assert_eq!(constraint.operator, Operator::GreaterOrEqual);
    assert_eq!(large.affinities[0].left, "${device.model}");
    assert_eq!(large.affinities[0].weight, 75);
}

/// The HTTP API's form, and back.
#[test]
fn json_says_the_same() {
    let json = serde_json::json!({
        "Cores": 2,
        "MemoryMB": 300,
        "MemoryMaxMB": -1,
        "Devices": [{
            "Name": "gpu",
            "Count": 2,
            "Constraints": [{"LTarget": "${device.vendor}", "Operand": "=", "RTarget": "nvidia"}],
            "Affinities": [],
        }],
    });
    let read: job_fields::Resources = serde_json::from_value(json.clone()).unwrap();
    let task = "resources {\n cores = 2\n memory_max = -1\n device \"gpu\" {\n count = 2\n \
                constraint {\n attribute = device.vendor\n value = \"nvidia\"\n }\n }\n }";
    let job = admit(&file("", "", task)).unwrap().job;
    let shown = job_fields::Resources::from(&job.task_groups[0].tasks[0].resources);
    assert_eq!(
        job_fields::Resources {
            cpu_mhz: Some(0),
            disk_mib: Some(0),
            ..read
        },
        shown
    );
}
