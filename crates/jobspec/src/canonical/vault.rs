//! The vault block of a task. Those of groups and jobs are part of their tasks by now.

use model::template::ChangeMode;
use model::vault::Vault;
use model::{Constraint, Job, Operator, Task};

use super::signal;
use super::validation::{Path, Validation};

const DEFAULT_SIGNAL: &str = "SIGHUP";

pub(super) fn vault(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::Vault>,
) -> Option<Vault> {
    let spec = spec?;
    let path = path.block("vault");
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let modes = [ChangeMode::Restart, ChangeMode::Signal, ChangeMode::Noop];
    let modes = modes.map(|mode| (mode.as_str(), mode));
    let given = spec.change_mode.as_deref().filter(|mode| !mode.is_empty());
    let change_mode = check.choice(
        path.field("change_mode"),
        given,
        &modes,
        ChangeMode::Restart,
        |mode| format!("Unknown change mode {mode:?}: use restart, signal or noop"),
    );
    let signal = spec
        .change_signal
        .as_deref()
        .filter(|signal| !signal.is_empty());
    let change_signal = signal.unwrap_or(DEFAULT_SIGNAL).to_uppercase();
    if let Some(problem) = signal::problem(&change_signal) {
        check.error(path.field("change_signal"), problem);
    }
    let cluster = spec
        .cluster
        .as_deref()
        .filter(|cluster| !cluster.is_empty());
    if let Some(cluster) = cluster.filter(|cluster| *cluster != Vault::DEFAULT_CLUSTER) {
        let problem = format!(
            "Vault cluster {cluster:?} is not known, because nodes have one Vault: use \"default\""
        );
        check.error(path.field("cluster"), problem);
    }
    Some(Vault {
        policies: spec.policies.clone(),
        role: text(&spec.role),
        namespace: text(&spec.namespace),
        cluster: cluster.unwrap_or(Vault::DEFAULT_CLUSTER).to_owned(),
        env: spec.env.unwrap_or(true),
        disable_file: spec.disable_file.unwrap_or(false),
        change_mode,
        change_signal,
        allow_token_expiration: spec.allow_token_expiration.unwrap_or(false),
    })
}

/// Adds the constraint that a node has reached a Vault, if a task has a vault block, unless it is there.
///
/// Source: Nomad's implied constraint.
pub(super) fn imply(constraints: &mut Vec<Constraint>, tasks: &[Task]) {
    if tasks.iter().all(|task| task.vault.is_none()) {
        return;
    }
    let implied = Constraint {
        left: "${attr.vault.version}".to_owned(),
        operator: Operator::Semver,
        right: ">= 0.6.1".to_owned(),
    };
    if !constraints.contains(&implied) {
        constraints.push(implied);
    }
}

/// Warns of policies, which are the role's.
pub(super) fn warn(check: &mut Validation, job: &Job) {
    for task in job.task_groups.iter().flat_map(|group| &group.tasks) {
        let Some(vault) = task
            .vault
            .as_ref()
            .filter(|vault| !vault.policies.is_empty())
        else {
            continue;
        };
        let role = match vault.role.as_str() {
            "" => "the node's default role, or name another in vault.role".to_owned(),
            role => format!("the role {role:?}"),
        };
        check.warn(format!(
            "Task {:?}: vault.policies has no effect, because the task logs in with its identity and its policies are \
             those of the role. Give the policies to {role}, and remove them from the job",
            task.name
        ));
    }
}
