//! Rules of a job's namespace: it exists, and it allows the job's drivers and node pool.
//!
//! **Invariant**: a registration compares the default namespace, too, although that cannot be
//! deleted. Once a change of its rules is acknowledged, no registration is committed by the old
//! rules.

use std::borrow::Cow;

use model::glob::glob_matches;
use model::namespace::NodePoolRules;
use model::{FieldErrors, Job, Namespace};
use state::{Key, Snapshot, Write};

use crate::cluster::{namespaces, node_pools};

/// Returns the compares of a transaction that keeps a job alive: of its namespace and its node pool.
///
/// # Errors
/// One of them is missing, or is being deleted.
pub fn require_for_job(snapshot: &Snapshot, job: &Job) -> Result<Vec<Write>, FieldErrors> {
    let joining = format!("job {:?}", job.id);
    let mut errors = FieldErrors::default();
    let mut writes = Vec::new();
    for joined in [
        namespaces::require(snapshot, &job.namespace, "namespace", joining),
        node_pools::require_for_job(snapshot, job),
    ] {
        match joined {
            Ok(write) => writes.extend(write),
            Err(found) => errors.0.extend(found.0),
        }
    }
    errors.into_result(writes)
}

/// Returns the compares of a registration: those of [`require_for_job`], and the rules of the namespace.
///
/// # Errors
/// Everything that is missing or not allowed.
pub fn admit(snapshot: &Snapshot, job: &Job) -> Result<Vec<Write>, FieldErrors> {
    let mut errors = FieldErrors::default();
    let mut writes = require_for_job(snapshot, job).unwrap_or_else(|found| {
        errors = found;
        Vec::new()
    });
    match snapshot.namespace(&job.namespace) {
        Some(stored) => {
            check_rules(&stored.value, job, &mut errors);
            let compare = Write::RequireUnchanged {
                key: Key::Namespace(stored.value.name.clone()),
                modify_index: stored.modify_index,
            };
            if !writes.contains(&compare) {
                writes.push(compare);
            }
        }
        // Only the default namespace gets here: any other was refused above.
        None => writes.push(Write::RequireAbsent {
            key: Key::Namespace(job.namespace.clone()),
        }),
    }
    errors.into_result(writes)
}

fn check_rules(namespace: &Namespace, job: &Job, errors: &mut FieldErrors) {
    let name = &namespace.name;
    let capabilities = &namespace.capabilities;
    for group in &job.task_groups {
        for task in &group.tasks {
            let driver = &task.driver;
            if capabilities.allow_driver(driver) {
                continue;
            }
            let enabled = &capabilities.enabled_task_drivers;
            let mut enabled = enabled.iter().filter(|it| capabilities.allow_driver(it));
            let instead = match enabled.next() {
                Some(first) => enabled.fold(first.clone(), |all, one| format!("{all}, {one}")),
                None => "another".to_owned(),
            };
            let (group, task) = (&group.name, &task.name);
            errors.push(
                format!("group[{group:?}].task[{task:?}].driver"),
                format!("{driver:?} is not allowed in namespace {name:?}: want {instead}"),
            );
        }
    }
    let (rules, pool) = (&namespace.node_pools, &job.node_pool);
    if !allow_pool(rules, pool) {
        let instead = match &rules.allowed {
            Some(allowed) if !allowed.is_empty() => {
                format!("{} or {}", rules.default_pool(), allowed.join(", "))
            }
            Some(_) => rules.default_pool().to_owned(),
            None => format!("one that is none of {}", rules.denied.join(", ")),
        };
        errors.push(
            "node_pool",
            format!("{pool:?} is not allowed in namespace {name:?}: want {instead}"),
        );
    }
}

fn allow_pool(rules: &NodePoolRules, pool: &str) -> bool {
    let is_in = |patterns: &[String]| patterns.iter().any(|it| glob_matches(it, pool));
    if pool == rules.default_pool() {
        return true;
    }
    match &rules.allowed {
        Some(allowed) => is_in(allowed),
        None => !is_in(&rules.denied),
    }
}

/// Returns the job as it is registered: without a node pool of its own (`names_none`) it is in the
/// default pool of its namespace.
pub(super) fn with_node_pool<'a>(
    snapshot: &Snapshot,
    job: &'a Job,
    names_none: bool,
) -> Cow<'a, Job> {
    let stored = snapshot.namespace(&job.namespace);
    match stored.map(|stored| stored.value.node_pools.default_pool()) {
        Some(pool) if names_none && pool != job.node_pool => Cow::Owned(Job {
            node_pool: pool.to_owned(),
            ..job.clone()
        }),
        _ => Cow::Borrowed(job),
    }
}

#[cfg(test)]
mod tests;
