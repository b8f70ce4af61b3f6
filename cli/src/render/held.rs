//! What of a service waits for its deployment, and not for nodes.
//!
//! Once the deployment of a version has failed or is paused, nothing more of that version is placed.
//! The evaluation that finds it so is complete all the same, with nothing that it could not place:
//! whoever asked for it has to be told.

use proto::v1;

use super::Style;
use crate::output::printable;

/// A deployment that holds back what its version lacks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held<'a> {
    job_id: &'a str,
    deployment: &'a v1::Deployment,
    /// Task groups that are not whole, in the job's order.
    groups: Vec<Lacking<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lacking<'a> {
    name: &'a str,
    missing: u32,
    wanted: u32,
}

impl<'a> Held<'a> {
    /// `deployments` and `allocs` are the job's, in any order; those of former jobs of the same id
    /// may be among the deployments.
    pub(crate) fn find(
        job: &'a v1::Job,
        deployments: impl IntoIterator<Item = &'a v1::Deployment>,
        allocs: &[v1::Allocation],
    ) -> Option<Self> {
        if job.r#type() != "service" || job.stop() {
            return None;
        }
        let deployment = deployments
            .into_iter()
            .filter(|it| it.job_create_index == job.create_index())
            .max_by_key(|it| it.create_index)?;
        let holds = matches!(deployment.status.as_str(), "failed" | "paused");
        if !holds || deployment.job_version != job.version() {
            return None;
        }
        let lacking = |group: &'a v1::TaskGroup| {
            let live = allocs
                .iter()
                .filter(|alloc| alloc.task_group == group.name())
                .filter(|alloc| alloc.job_version == job.version() && is_live(alloc))
                .count();
            let wanted = u32::try_from(group.count()).unwrap_or_default();
            let missing = wanted.saturating_sub(u32::try_from(live).unwrap_or(u32::MAX));
            let name = group.name();
            (missing > 0).then_some(Lacking {
                name,
                missing,
                wanted,
            })
        };
        let groups: Vec<_> = job.task_groups.iter().filter_map(lacking).collect();
        (!groups.is_empty()).then_some(Self {
            job_id: job.id(),
            deployment,
            groups,
        })
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.deployment.status == "failed"
    }

    /// Returns the whole of it in a sentence that begins with `deployment`.
    pub(crate) fn sentence(&self, style: &Style) -> String {
        let (id, version) = (style.id(&self.deployment.id), self.deployment.job_version);
        let what_next = self.what_next(style);
        let how = if self.has_failed() {
            "has failed"
        } else {
            "is paused"
        };
        format!(
            "deployment \"{id}\" of version {version} {how}, so nothing more of it is placed: \
             {what_next}"
        )
    }

    /// Returns a line for each group, and what to do.
    pub(crate) fn lines(&self, style: &Style) -> Vec<String> {
        let how = if self.has_failed() {
            "has failed, so nothing more of this version is placed"
        } else {
            "is paused"
        };
        let line = |group: &Lacking<'_>| {
            let (missing, wanted) = (group.missing, group.wanted);
            let name = printable(group.name);
            format!(
                "Task Group \"{name}\" ({missing} of {wanted} not placed): its deployment {how}"
            )
        };
        let mut lines: Vec<_> = self.groups.iter().map(line).collect();
        lines.push(format!("  -> {}", self.what_next(style)));
        lines
    }

    fn what_next(&self, style: &Style) -> String {
        if !self.has_failed() {
            let id = style.id(&self.deployment.id);
            return format!("it goes on with 'kafila deployment resume {id}'");
        }
        let job = printable(self.job_id);
        match self.deployment.job_version {
            0 => format!(
                "change the job file, then 'kafila job run FILE' ({job:?} has no earlier version)"
            ),
            _ => format!("change the job file, or 'kafila job revert {job} VERSION'"),
        }
    }
}

/// Tells whether an allocation has a place that it keeps.
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

    fn said(
        job: &v1::Job,
        deployments: &[v1::Deployment],
        allocs: &[v1::Allocation],
    ) -> Option<String> {
        let held = Held::find(job, deployments, allocs)?;
        Some(held.sentence(&style(false)))
    }

    #[test]
    fn what_lacks_for_its_deployment_is_told_with_the_way_out() {
        let (job, one) = (fixtures::job(), [fixtures::alloc()]);
        let failed = [deployment("failed", 1)];
        assert_eq!(
            said(&job, &failed, &one).unwrap(),
            "deployment \"5e6f7a8b\" of version 1 has failed, so nothing more of it is placed: \
             change the job file, or 'kafila job revert web VERSION'"
        );
        let held = Held::find(&job, &failed, &one).unwrap();
        assert_eq!(
            held.lines(&style(false))[0],
            "Task Group \"app\" (1 of 2 not placed): its deployment has failed, so nothing more \
             of this version is placed"
        );
        let paused = said(&job, &[deployment("paused", 1)], &one).unwrap();
        assert!(
            paused.ends_with("it goes on with 'kafila deployment resume 5e6f7a8b'"),
            "{paused}"
        );
        // There is nothing to go back to.
        let first = v1::Job {
            version: Some(0),
            ..job
        };
        let first = said(&first, &[deployment("failed", 0)], &[]).unwrap();
        assert!(!first.contains("revert"), "{first}");
    }

    #[test]
    fn whatever_is_whole_or_waits_for_something_else_is_not_held() {
        let job = fixtures::job();
        let whole = [fixtures::alloc(), fixtures::alloc()];
        let failed = || deployment("failed", 1);
        assert_eq!(said(&job, &[failed()], &whole), None);
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
                said(&job, std::slice::from_ref(&other), &[]),
                None,
                "{other:?}"
            );
        }
        // Only the newest counts.
        let newer = v1::Deployment {
            id: DEPLOYMENT.replace('5', "6"),
            create_index: 99,
            ..deployment("running", 1)
        };
        assert_eq!(said(&job, &[newer, failed()], &[]), None);
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
            assert_eq!(said(&other, &[failed()], &[]), None);
        }
    }

    #[test]
    fn what_ended_or_is_of_another_version_does_not_count() {
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
            assert!(said(&job, &failed, &allocs).is_some(), "{allocs:?}");
        }
    }
}
