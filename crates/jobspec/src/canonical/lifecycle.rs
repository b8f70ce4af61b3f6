//! A task's `lifecycle` block: its stage, and the sidecars that main tasks wait for.

use model::Service;
use model::job::{Lifecycle, LifecycleHook, Task, WaitFor};
use model::service::OnUpdate;

use super::validation::{Path, Validation};

const HOOKS: [(&str, LifecycleHook); 3] = [
    ("prestart", LifecycleHook::Prestart),
    ("poststart", LifecycleHook::Poststart),
    ("poststop", LifecycleHook::Poststop),
];

const CONDITIONS: [(&str, Option<WaitFor>); 1] = [("healthy", Some(WaitFor::Healthy))];

pub(super) fn lifecycle(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::Lifecycle>,
) -> Option<Lifecycle> {
    let spec = spec?;
    let path = path.block("lifecycle");
    let hook = spec.hook.as_deref().unwrap_or_default();
    if hook.is_empty() {
        check.error(
            path.field("hook"),
            "no lifecycle hook provided: use prestart, poststart or poststop",
        );
        return None;
    }
    let hook = check.choice(
        path.field("hook"),
        Some(hook),
        &HOOKS,
        LifecycleHook::Prestart,
        |hook| format!("invalid hook: {hook}: use prestart, poststart or poststop"),
    );
    let sidecar = spec.sidecar.unwrap_or(false);
    let wait_for = spec.wait_for.as_deref().filter(|text| !text.is_empty());
    let field = path.field("wait_for");
    let wait_for = check.choice(field.clone(), wait_for, &CONDITIONS, None, |text| {
        format!("invalid wait_for: {text}: use healthy, or leave it out")
    });
    if wait_for.is_some() && !(hook == LifecycleHook::Prestart && sidecar) {
        let message = "main tasks wait for prestart sidecars only: write hook = \"prestart\" and \
                       sidecar = true, or leave wait_for out";
        check.error(field, message);
    }
    Some(Lifecycle {
        hook,
        sidecar,
        wait_for,
    })
}

/// Refuses to wait for tasks without a check that counts. `path` is the group's.
pub(super) fn check_awaited(
    check: &mut Validation,
    path: &Path,
    services: &[Service],
    tasks: &[Task],
) {
    for (position, task) in tasks.iter().enumerate() {
        let is_awaited = task.lifecycle.is_some_and(|it| it.wait_for.is_some());
        if !is_awaited || has_check(services, task) {
            continue;
        }
        let path = path.labelled("task", Some(&task.name), position);
        let message = format!(
            "task {0:?} has no check that can pass: add a check to one of its services, or a service of the \
             group with a check and task = {0:?}; a check with on_update = \"ignore\" does not count",
            task.name
        );
        check.error(path.block("lifecycle").field("wait_for"), message);
    }
}

/// Returns whether a check of the task counts: in its own services, or in those of the group that name it.
fn has_check(services: &[Service], task: &Task) -> bool {
    let own = task
        .services
        .iter()
        .flat_map(|service| service.checks.iter());
    let of_group = services.iter().flat_map(|service| {
        let checks = service.checks.iter();
        checks.filter(|check| {
            let mut named = [&check.task, &service.task].into_iter();
            named.find(|name| !name.is_empty()) == Some(&task.name)
        })
    });
    own.chain(of_group)
        .any(|check| check.on_update != OnUpdate::Ignore)
}
