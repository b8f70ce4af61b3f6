//! Scaling policies, derived from the jobs.

use model::scaling::policy_id;
use model::{Indexed, Job, TaskGroup};
use state::Snapshot;
use uuid::Uuid;

use crate::prefix::{self, NotFound};

/// A group with a scaling policy.
#[derive(Clone, Copy, Debug)]
pub struct ScalingPolicy<'s> {
    pub id: Uuid,
    pub job: &'s Indexed<Job>,
    pub group: &'s TaskGroup,
}

/// Returns every scaling policy, ordered by job.
pub fn scaling_policies(snapshot: &Snapshot) -> impl Iterator<Item = ScalingPolicy<'_>> {
    snapshot.jobs().flat_map(|job| {
        let groups = job.value.task_groups.iter();
        let groups = groups.filter(|group| group.scaling.is_some());
        groups.map(move |group| ScalingPolicy {
            id: policy_id(&job.value.key(), &group.name),
            job,
            group,
        })
    })
}

/// Returns the policy whose id is `text`, or begins so.
///
/// # Errors
/// See [`prefix::find`].
pub fn scaling_policy<'s>(
    snapshot: &'s Snapshot,
    text: &str,
) -> Result<ScalingPolicy<'s>, NotFound> {
    let all: Vec<ScalingPolicy<'s>> = scaling_policies(snapshot).collect();
    let exists = |id| all.iter().any(|known| known.id == id);
    let ids = all.iter().map(|known| (known.id, known.id));
    let id = prefix::find("policy_id", "scaling policy", text, |id| id, exists, ids)?;
    let found = all.into_iter().find(|known| known.id == id);
    Ok(found.expect("its id is among them"))
}

#[cfg(test)]
mod tests {
    use model::scaling::Scaling;
    use test_kit::{Stored, builders};

    use super::*;

    #[test]
    fn each_group_with_limits_has_a_policy_that_its_id_finds() {
        let mut stored = Stored::default();
        let mut job = builders::service("web", 1);
        let mut other = job.task_groups[0].clone();
        other.name = "db".to_owned();
        other.scaling = Some(Scaling {
            enabled: true,
            min: 1,
            max: 3,
            policy: Default::default(),
        });
        job.task_groups.push(other);
        stored.put_job(&job);
        let snapshot = stored.snapshot();
        let all: Vec<_> = scaling_policies(&snapshot).collect();
        assert_eq!(all.len(), 1);
        let id = all[0].id.to_string();
        let found = scaling_policy(&snapshot, &id[..8]).unwrap();
        assert_eq!((found.id, found.group.name.as_str()), (all[0].id, "db"));
        assert!(scaling_policy(&snapshot, "ffffffff").is_err());
    }
}
