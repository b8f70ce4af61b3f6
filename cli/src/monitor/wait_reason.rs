//! Reasons for which a monitor waits, with the command that shows more or ends the wait.

use proto::v1;

use crate::output::printable;
use crate::output::time::show_duration;
use crate::render::Style;

/// Returns the reason of an evaluation that has not ended.
pub(super) fn of_evaluation(style: &Style, evaluation: &v1::Evaluation) -> String {
    let id = style.id(&evaluation.id);
    let left = evaluation.wait_until_ns.saturating_sub(style.times.now_ns) / 1_000_000_000;
    match evaluation.status.as_str() {
        "blocked" => format!(
            "evaluation \"{id}\" waits for capacity. 'kafila eval explain {id}' shows what the nodes lack"
        ),
        _ if left > 0 => format!(
            "evaluation \"{id}\" is delayed and starts in {}",
            show_duration(left)
        ),
        _ => format!(
            "no scheduler has taken evaluation \"{id}\". 'kafila operator leaders' shows whether \
             leaders are missing"
        ),
    }
}

/// Returns the reason of a deployment that has not ended; `allocs` are its allocations, as far as they
/// are known.
pub(super) fn of_deployment(
    style: &Style,
    deployment: &v1::Deployment,
    allocs: &[v1::Allocation],
) -> String {
    let id = style.id(&deployment.id);
    if deployment.status == "paused" {
        return format!("the deployment is paused. 'kafila deployment resume {id}' resumes it");
    }
    let mut groups: Vec<_> = deployment.task_groups.iter().collect();
    groups.sort_by_key(|(name, _)| *name);
    let starting = groups
        .iter()
        .find(|(_, group)| group.healthy_allocs < group.placed_allocs);
    if let Some((name, group)) = starting {
        let is_starting = |alloc: &&v1::Allocation| {
            let is_healthy = alloc
                .deployment_health
                .as_ref()
                .is_some_and(|it| it.healthy);
            alloc.task_group == **name && !is_healthy && alloc.desired_status == "run"
        };
        let command = match allocs.iter().find(is_starting) {
            Some(alloc) => format!(
                "'kafila alloc status {}' shows its tasks",
                style.id(&alloc.id)
            ),
            None => format!("'kafila deployment status {id}' shows its allocations"),
        };
        return format!(
            "group {:?} has {} healthy of {} placed allocations{}. {command}",
            printable(name),
            group.healthy_allocs,
            group.placed_allocs,
            deadline(style, group)
        );
    }
    let waits_for_promotion = groups.iter().any(|(_, group)| {
        group.desired_canaries > 0
            && !group.promoted
            && !group.auto_promote
            && group.healthy_allocs >= group.desired_canaries
    });
    if waits_for_promotion {
        return format!(
            "the healthy canaries wait for their promotion. 'kafila deployment promote {id}' promotes \
             them, 'kafila deployment fail {id}' rejects them"
        );
    }
    let missing = groups.iter().find(|(_, group)| {
        let is_promoted = group.desired_canaries == 0 || group.promoted;
        let wanted = match is_promoted {
            true => group.desired_total,
            false => group.desired_canaries,
        };
        group.placed_allocs < wanted
    });
    match missing {
        Some((name, group)) => format!(
            "group {:?} has {} of {} allocations placed{}. 'kafila job status {}' shows placement \
             failures",
            printable(name),
            group.placed_allocs,
            group.desired_total,
            deadline(style, group),
            printable(&deployment.job_id)
        ),
        None => "the deployment-watcher has to complete the deployment. 'kafila operator leaders' \
                 shows whether it has a leader"
            .to_owned(),
    }
}

/// Returns the time that a group has left for progress, in words; empty: no deadline.
fn deadline(style: &Style, group: &v1::DeploymentGroup) -> String {
    let left = group
        .require_progress_by_ns
        .saturating_sub(style.times.now_ns)
        / 1_000_000_000;
    match left {
        0 => String::new(),
        _ => format!(", and {} left for progress", show_duration(left)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{ALLOC, NOW, SECOND, alloc, eval, running_deployment};
    use crate::render::tests::style;

    fn reason(change: impl Fn(&mut v1::Deployment), allocs: &[v1::Allocation]) -> String {
        let mut deployment = running_deployment();
        change(&mut deployment);
        of_deployment(&style(false), &deployment, allocs)
    }

    fn group(deployment: &mut v1::Deployment) -> &mut v1::DeploymentGroup {
        deployment.task_groups.get_mut("app").unwrap()
    }

    #[test]
    fn an_evaluation_waits_for_capacity_its_delay_or_a_scheduler() {
        let of = |status: &str, delay: u64| {
            let evaluation = v1::Evaluation {
                status: status.to_owned(),
                wait_until_ns: NOW + delay * SECOND,
                ..eval()
            };
            of_evaluation(&style(false), &evaluation)
        };
        let blocked = of("blocked", 0);
        for part in ["capacity", "'kafila eval explain 1a2b3c4d'"] {
            assert!(blocked.contains(part), "{blocked}");
        }
        assert!(of("pending", 90).ends_with("starts in 1m30s"));
        assert!(of("pending", 0).contains("kafila operator leaders"));
    }

    #[test]
    fn a_deployment_waits_for_health_with_the_allocation_to_look_at() {
        let starting = v1::Allocation {
            deployment_health: None,
            ..alloc()
        };
        let text = reason(|it| group(it).placed_allocs = 2, &[starting]);
        let command = format!("'kafila alloc status {}'", &ALLOC[..8]);
        for part in ["1 healthy of 2 placed", "9m left for progress", &command] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = reason(|it| group(it).placed_allocs = 2, &[]);
        assert!(text.contains("kafila deployment status 5e6f7a8b"), "{text}");
    }

    #[test]
    fn a_deployment_waits_for_a_promotion_capacity_or_the_user() {
        let canaries = |it: &mut v1::Deployment| {
            let group = group(it);
            group.desired_canaries = 1;
            (group.placed_allocs, group.healthy_allocs) = (1, 1);
        };
        let text = reason(canaries, &[]);
        assert!(
            text.contains("'kafila deployment promote 5e6f7a8b'"),
            "{text}"
        );
        let unplaced = |it: &mut v1::Deployment| {
            let group = group(it);
            (group.desired_total, group.placed_allocs) = (3, 1);
        };
        let text = reason(unplaced, &[]);
        for part in ["1 of 3 allocations placed", "'kafila job status web'"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = reason(|it| "paused".clone_into(&mut it.status), &[]);
        assert!(
            text.contains("'kafila deployment resume 5e6f7a8b'"),
            "{text}"
        );
        let complete = |it: &mut v1::Deployment| {
            let group = group(it);
            group.healthy_allocs = group.placed_allocs;
        };
        assert!(reason(complete, &[]).contains("deployment-watcher"));
    }
}
