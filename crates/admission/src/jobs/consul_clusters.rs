//! Named clusters of Consul, which no node has.
//!
//! Only registrations are checked. Nodes read stored jobs by the rules of the crate `jobspec`, which such
//! a check would make unreadable.

use model::consul::Consul;
use model::{FieldErrors, Job};

/// Checks the consul blocks of all groups and tasks.
///
/// # Errors
/// One error for each named cluster.
pub fn check(job: &Job) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    for group in &job.task_groups {
        let path = format!("group[{:?}]", group.name);
        check_block(group.consul.as_ref(), &path, &mut errors);
        for task in &group.tasks {
            let path = format!("{path}.task[{:?}]", task.name);
            check_block(task.consul.as_ref(), &path, &mut errors);
        }
    }
    errors.into_result(())
}

fn check_block(consul: Option<&Consul>, path: &str, errors: &mut FieldErrors) {
    let named = consul.filter(|consul| consul.cluster != Consul::DEFAULT_CLUSTER);
    if let Some(consul) = named {
        errors.push(
            format!("{path}.consul.cluster"),
            format!(
                "the cluster {:?} of Consul is not supported by this version of Kafila: remove it, each node has \
                 one Consul",
                consul.cluster
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use test_kit::builders;

    use super::*;

    #[test]
    fn a_named_cluster_is_refused_by_name() {
        let block = |cluster: &str| {
            Some(Consul {
                cluster: cluster.to_owned(),
                namespace: "apple".to_owned(),
                partition: String::new(),
            })
        };
        let mut job = builders::service("web", 1);
        job.task_groups[0].consul = block("default");
        assert!(check(&job).is_ok());
        job.task_groups[0].tasks[0].consul = block("east");
        let errors = check(&job).unwrap_err().to_string();
        assert!(
            errors.contains("task[\"server\"].consul.cluster"),
            "{errors}"
        );
        assert!(errors.contains("\"east\""), "{errors}");
    }
}
