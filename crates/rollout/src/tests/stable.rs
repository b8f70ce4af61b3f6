//! A successful deployment makes its version stable, once.

use model::{DeploymentStatus, Job};
use state::Key;

use super::site::{Site, deployment_id, group, job, key};
use crate::Reason;

fn succeed(site: &mut Site) {
    site.change_deployment(|deployment| deployment.status = DeploymentStatus::Successful);
}

#[test]
fn success_marks_the_version_stable_once() {
    let mut site = Site::deploying(&job(1), group(1), 1);
    succeed(&mut site);
    let action = site.perform();
    assert_eq!(action.reason, Reason::Stable);
    let stable = action.stable.expect("a mark");
    assert_eq!(stable.value, (key(), 0));
    let version = site.snapshot().job_version(&key(), 0).unwrap().modify_index;
    assert_eq!(stable.modify_index, version);
    assert!(site.snapshot().is_stable(&key(), 0));
    site.elect();
    assert_eq!(site.actions, []);
    assert!(site.rollout.is_empty());
}

#[test]
fn a_new_leader_marks_what_the_old_one_did_not() {
    let mut site = Site::deploying(&job(1), group(1), 1);
    succeed(&mut site);
    site.actions.clear();
    site.elect();
    assert_eq!(site.action().reason, Reason::Stable);
}

#[test]
fn the_deployments_version_is_marked_not_the_newest() {
    let mut site = Site::deploying(&job(1), group(1), 1);
    site.put_job(&Job {
        version: 1,
        ..job(1)
    });
    succeed(&mut site);
    assert_eq!(site.action().stable.unwrap().value, (key(), 0));
}

#[test]
fn a_version_that_is_gone_or_anothers_is_not_marked() {
    let mut gone = Site::deploying(&job(1), group(1), 1);
    gone.delete(Key::JobVersion(key(), 0));
    succeed(&mut gone);
    assert_eq!(gone.actions, []);

    let mut purged = Site::deploying(&job(1), group(1), 1);
    purged.delete(Key::Job(key()));
    purged.actions.clear();
    purged.put_job(&job(1));
    purged.actions.clear();
    succeed(&mut purged);
    assert_eq!(purged.actions, []);
}

#[test]
fn a_deployment_that_ended_otherwise_marks_nothing() {
    for status in [DeploymentStatus::Failed, DeploymentStatus::Cancelled] {
        let mut site = Site::deploying(&job(1), group(1), 1);
        site.change_deployment(|deployment| deployment.status = status);
        assert_eq!(site.actions, [], "{status:?}");
        assert_eq!(site.rollout.next_deadline(), None);
    }
}

#[test]
fn a_deployment_that_is_collected_is_forgotten() {
    let mut site = Site::deploying(&job(1), group(1), 1);
    assert_eq!(site.rollout.len(), 1);
    site.delete(Key::Deployment(deployment_id()));
    assert!(site.rollout.is_empty());
    assert_eq!(site.rollout.next_deadline(), None);
}
