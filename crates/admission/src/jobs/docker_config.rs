//! Options of docker and podman tasks that a node would refuse: ports of no network block, and image names
//! with characters that no image has.
//!
//! Only registrations are checked. Nodes read stored jobs by the rules of the crate `jobspec`, which such
//! a check would make unreadable.

use model::{FieldErrors, Job, Task, TaskGroup};
use serde_json::Value;

/// Checks every task of the drivers `docker` and `podman`.
///
/// # Errors
/// One error for each port and image.
pub fn check(job: &Job) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    for group in &job.task_groups {
        let is_container = |task: &&Task| matches!(task.driver.as_str(), "docker" | "podman");
        for task in group.tasks.iter().filter(is_container) {
            let config = format!("group[{:?}].task[{:?}].config", group.name, task.name);
            check_ports(group, task, &config, &mut errors);
            check_image(task, &config, &mut errors);
        }
    }
    errors.into_result(())
}

fn check_ports(group: &TaskGroup, task: &Task, config: &str, errors: &mut FieldErrors) {
    let declared = || {
        let networks = group.networks.iter().chain(&task.resources.networks);
        networks.flat_map(|network| network.ports.iter().map(|port| port.label.as_str()))
    };
    let ports = task.config.get("ports").and_then(Value::as_array);
    for label in ports.into_iter().flatten().filter_map(Value::as_str) {
        if is_runtime(label) || declared().any(|known| known == label) {
            continue;
        }
        errors.push(
            format!("{config}.ports"),
            format!(
                "no network block of group {:?} has the port {label:?}: add port {label:?} {{}} to \
                 it.{}",
                group.name,
                suggest::hint(label, declared()),
            ),
        );
    }
}

fn check_image(task: &Task, config: &str, errors: &mut FieldErrors) {
    let image = task.config.get("image").and_then(Value::as_str);
    let Some(image) = image.filter(|image| !is_runtime(image)) else {
        return;
    };
    let name = image.strip_prefix("https://").unwrap_or(image);
    // Those of registries, paths, tags and digests, an address of IPv6 included. Where each of them may
    // stand is checked by the driver.
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-/:@[]".contains(c);
    if let Some(wrong) = name.chars().find(|c| !is_part(*c)) {
        errors.push(
            format!("{config}.image"),
            format!(
                "{image:?} has the character {wrong:?}: write [registry/]path[:tag], as in redis:7"
            ),
        );
    }
}

/// Tells whether the text is filled in on the node.
fn is_runtime(text: &str) -> bool {
    text.contains("${")
}

#[cfg(test)]
mod tests {
    use model::job::{Network, Port};
    use serde_json::json;
    use test_kit::builders;

    use super::*;

    fn job(config: Value) -> Job {
        let mut job = builders::service("web", 1);
        let group = &mut job.task_groups[0];
        group.networks = vec![Network {
            mode: "host".to_owned(),
            ports: vec![Port {
                label: "web".to_owned(),
                ..Port::default()
            }],
            ..Network::default()
        }];
        group.tasks[0].driver = "docker".to_owned();
        group.tasks[0].config = config.as_object().unwrap().clone();
        job
    }

    fn errors(config: Value) -> String {
        check(&job(config)).map_or_else(|errors| errors.to_string(), |()| String::new())
    }

    #[test]
    fn a_port_of_no_network_block_is_refused_with_the_nearest_one() {
        let said = errors(json!({"image": "redis:7", "ports": ["web", "wbe"]}));
        for part in ["config.ports", "the port \"wbe\"", "Did you mean \"web\"?"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(
            errors(json!({"image": "redis:7", "ports": ["web", "${meta.port}"]})),
            ""
        );
    }

    #[test]
    fn an_image_with_characters_that_no_image_has_is_refused() {
        for image in ["redis 7", "redis:7!", "réd:1", "<image>", "a\\b"] {
            let said = errors(json!({"image": image}));
            assert!(said.contains("config.image"), "{image}: {said}");
        }
        let digest = format!("redis@sha256:{}", "ab".repeat(32));
        for image in [
            "redis:7",
            "https://gcr.io/a/b:v1",
            "[::1]:5000/a_b/c-d",
            "a/${meta.image}",
            digest.as_str(),
        ] {
            assert_eq!(errors(json!({"image": image})), "", "{image}");
        }
    }

    #[test]
    fn tasks_of_podman_are_checked_with_its_prefix_of_images() {
        let mut job = job(json!({"image": "docker://redis:7", "ports": ["wbe"]}));
        job.task_groups[0].tasks[0].driver = "podman".to_owned();
        let said = check(&job).unwrap_err().to_string();
        assert!(said.contains("Did you mean \"web\"?"), "{said}");
        assert!(!said.contains("config.image"), "{said}");
    }

    #[test]
    fn tasks_of_other_drivers_are_not_checked() {
        let mut job = job(json!({"image": "a b", "ports": ["none"]}));
        job.task_groups[0].tasks[0].driver = "raw_exec".to_owned();
        check(&job).unwrap();
    }
}
