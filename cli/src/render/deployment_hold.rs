//! Deployment holds: placements of a service that wait for its deployment and not for nodes.
//!
//! Once the deployment of a version has failed or is paused, no more allocations of that version are
//! placed. The evaluation is complete all the same, without failed placements, so the CLI reports the
//! hold itself.

use proto::v1;

use super::Style;
use crate::output::printable;

/// A deployment that holds back the missing allocations of its version.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeploymentHold<'a> {
    job_id: &'a str,
    deployment: &'a v1::Deployment,
    /// Task groups with missing allocations, in the job's order.
    groups: Vec<IncompleteGroup<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IncompleteGroup<'a> {
    name: &'a str,
    missing: u32,
    wanted: u32,
}

impl<'a> DeploymentHold<'a> {
    /// `deployments` and `allocs` are the job's, in any order; `deployments` may include those of former
    /// jobs with the same id.
    pub(crate) fn find(
        job: &'a v1::Job,
        deployments: impl IntoIterator<Item = &'a v1::Deployment>,
        allocs: &[v1::Allocation],
    ) -> Option<Self> {
        if job.r#type() != "service" || job.stop() {
            return None;
        }
        let deployment = newest(job, deployments)?;
        if !matches!(deployment.status.as_str(), "failed" | "paused") {
            return None;
        }
        let incomplete = |group: &'a v1::TaskGroup| {
            let live = allocs
                .iter()
                .filter(|alloc| alloc.task_group == group.name())
                .filter(|alloc| alloc.job_version == job.version() && is_live(alloc))
                .count();
            let wanted = u32::try_from(group.count()).unwrap_or_default();
            let missing = wanted.saturating_sub(u32::try_from(live).unwrap_or(u32::MAX));
            let name = group.name();
            (missing > 0).then_some(IncompleteGroup {
                name,
                missing,
                wanted,
            })
        };
        let groups: Vec<_> = job.task_groups.iter().filter_map(incomplete).collect();
        (!groups.is_empty()).then_some(Self {
            job_id: job.id(),
            deployment,
            groups,
        })
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.deployment.status == "failed"
    }

    /// Returns a sentence that begins with `deployment`.
    pub(crate) fn sentence(&self, style: &Style) -> String {
        let (id, version) = (style.id(&self.deployment.id), self.deployment.job_version);
        let next_step = self.next_step(style);
        let how = if self.has_failed() {
            "has failed"
        } else {
            "is paused"
        };
        format!(
            "deployment \"{id}\" of version {version} {how} and holds back placements: {next_step}"
        )
    }

    /// Returns a line for each group, and the remedy.
    pub(crate) fn lines(&self, style: &Style) -> Vec<String> {
        let how = if self.has_failed() {
            "has failed"
        } else {
            "is paused"
        };
        let line = |group: &IncompleteGroup<'_>| {
            let (missing, wanted) = (group.missing, group.wanted);
            let name = printable(group.name);
            format!(
                "Task Group \"{name}\" ({missing} of {wanted} not placed): held back, its deployment {how}"
            )
        };
        let mut lines: Vec<_> = self.groups.iter().map(line).collect();
        lines.push(format!("  -> {}", self.next_step(style)));
        lines
    }

    fn next_step(&self, style: &Style) -> String {
        if !self.has_failed() {
            let id = style.id(&self.deployment.id);
            return format!("resume it with 'kafila deployment resume {id}'");
        }
        let job = printable(self.job_id);
        match self.deployment.job_version {
            0 => format!(
                "change the job file, then 'kafila job run FILE' ({job:?} has no earlier version), or try \
                 it again with 'kafila job run -force FILE'"
            ),
            _ => format!(
                "change the job file, or 'kafila job revert {job} VERSION', or try it again with \
                 'kafila job run -force FILE'"
            ),
        }
    }
}

/// Says that the current version's deployment has failed, although its allocations may run by now; `None`:
/// it has not.
pub(crate) fn failed_before<'a>(
    style: &Style,
    job: &v1::Job,
    deployments: impl IntoIterator<Item = &'a v1::Deployment>,
) -> Option<String> {
    let failed = newest(job, deployments).filter(|it| it.status == "failed")?;
    let (id, version) = (style.id(&failed.id), failed.job_version);
    Some(format!(
        "Deployment \"{id}\" of version {version} has failed before, and nothing has changed: change the \
         job file, or try it again with 'kafila job run -force FILE'"
    ))
}

/// Returns the newest deployment of a job, if it is of the job's current version.
fn newest<'a>(
    job: &v1::Job,
    deployments: impl IntoIterator<Item = &'a v1::Deployment>,
) -> Option<&'a v1::Deployment> {
    let own = deployments.into_iter();
    let own = own.filter(|it| it.job_create_index == job.create_index());
    let newest = own.max_by_key(|it| it.create_index)?;
    (newest.job_version == job.version()).then_some(newest)
}

/// Tells whether an allocation keeps its node.
fn is_live(alloc: &v1::Allocation) -> bool {
    let status = alloc.client_status.as_str();
    alloc.desired_status == "run" && matches!(status, "pending" | "running" | "unknown")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, DEPLOYMENT};
    use crate::render::tests::style;

    fn deployment(status: &str, job_version: u64) -> v1::Deployment {
        v1::Deployment {
            status: status.to_owned(),
            job_version,
            ..fixtures::deployment()
        }
    }

    fn sentence(
        job: &v1::Job,
        deployments: &[v1::Deployment],
        allocs: &[v1::Allocation],
    ) -> Option<String> {
        let hold = DeploymentHold::find(job, deployments, allocs)?;
        Some(hold.sentence(&style(false)))
    }

    #[test]
    fn held_back_allocations_are_reported_with_the_remedy() {
        let (job, one) = (fixtures::job(), [fixtures::alloc()]);
        let failed = [deployment("failed", 1)];
        assert_eq!(
            sentence(&job, &failed, &one).unwrap(),
            "deployment \"5e6f7a8b\" of version 1 has failed and holds back placements: change the \
             job file, or 'kafila job revert web VERSION', or try it again with 'kafila job run -force \
             FILE'"
        );
        let hold = DeploymentHold::find(&job, &failed, &one).unwrap();
        assert_eq!(
            hold.lines(&style(false))[0],
            "Task Group \"app\" (1 of 2 not placed): held back, its deployment has failed"
        );
        let paused = sentence(&job, &[deployment("paused", 1)], &one).unwrap();
        assert!(
            paused.ends_with("resume it with 'kafila deployment resume 5e6f7a8b'"),
            "{paused}"
        );
        // The first version cannot be reverted.
        let first = v1::Job {
            version: Some(0),
            ..job
        };
        let first = sentence(&first, &[deployment("failed", 0)], &[]).unwrap();
        assert!(!first.contains("revert"), "{first}");
    }

    #[test]
    fn complete_groups_and_other_deployments_are_no_hold() {
        let job = fixtures::job();
        let whole = [fixtures::alloc(), fixtures::alloc()];
        let failed = || deployment("failed", 1);
        assert_eq!(sentence(&job, &[failed()], &whole), None);
        for other in [
            deployment("running", 1),
            deployment("successful", 1),
            deployment("failed", 0),
            v1::Deployment {
                job_create_index: 3,
                ..failed()
            },
        ] {
            assert_eq!(
                sentence(&job, std::slice::from_ref(&other), &[]),
                None,
                "{other:?}"
            );
        }
        // Only the newest deployment counts.
        let newer = v1::Deployment {
            id: DEPLOYMENT.replace('5', "6"),
            create_index: 99,
            ..deployment("running", 1)
        };
        assert_eq!(sentence(&job, &[newer, failed()], &[]), None);
        for other in [
            v1::Job {
                r#type: Some("system".to_owned()),
                ..job.clone()
            },
            v1::Job {
                stop: Some(true),
                ..job.clone()
            },
        ] {
            assert_eq!(sentence(&other, &[failed()], &[]), None);
        }
    }

    #[test]
    fn terminal_allocations_and_other_versions_do_not_count() {
        let job = fixtures::job();
        let failed = [deployment("failed", 1)];
        for gone in [
            v1::Allocation {
                client_status: "failed".to_owned(),
                ..fixtures::alloc()
            },
            v1::Allocation {
                desired_status: "stop".to_owned(),
                ..fixtures::alloc()
            },
            v1::Allocation {
                job_version: 0,
                ..fixtures::alloc()
            },
        ] {
            let allocs = [fixtures::alloc(), gone];
            assert!(sentence(&job, &failed, &allocs).is_some(), "{allocs:?}");
        }
    }
}
