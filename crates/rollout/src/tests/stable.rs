//! A successful deployment makes its version stable, once.

use model::{DeploymentStatus, Job};
use state::{Key, Write};

use super::fixture::{Fixture, deployment_id, group, job, key, unchanged};
use crate::{Action, Reason};

/// Returns the keys that an action creates.
fn marked(action: &Action) -> Vec<Key> {
    let created = action.writes.iter().filter_map(|write| match write {
        Write::Create { key, .. } => Some(key.clone()),
        _ => None,
    });
    created.collect()
}

fn succeed(fixture: &mut Fixture) {
    fixture.change_deployment(|deployment| deployment.status = DeploymentStatus::Successful);
}

#[test]
fn success_marks_the_version_stable_once() {
    let mut fixture = Fixture::deploying(&job(1), group(1), 1);
    succeed(&mut fixture);
    let action = fixture.perform();
    assert_eq!(action.reason, Reason::Stable);
    assert_eq!(marked(&action), [Key::JobStable(key(), 0)]);
    let version = fixture
        .snapshot()
        .job_version(&key(), 0)
        .unwrap()
        .modify_index;
    assert_eq!(unchanged(&action), [(Key::JobVersion(key(), 0), version)]);
    assert!(fixture.snapshot().is_stable(&key(), 0));
    fixture.elect();
    assert_eq!(fixture.actions, []);
    assert!(fixture.rollout.is_empty());
}

#[test]
fn a_new_leader_marks_versions_that_its_predecessor_did_not() {
    let mut fixture = Fixture::deploying(&job(1), group(1), 1);
    succeed(&mut fixture);
    fixture.actions.clear();
    fixture.elect();
    assert_eq!(fixture.action().reason, Reason::Stable);
}

#[test]
fn the_deployments_version_is_marked_not_the_newest() {
    let mut fixture = Fixture::deploying(&job(1), group(1), 1);
    fixture.put_job(&Job {
        version: 1,
        ..job(1)
    });
    succeed(&mut fixture);
    assert_eq!(marked(&fixture.action()), [Key::JobStable(key(), 0)]);
}

#[test]
fn a_version_that_is_gone_or_anothers_is_not_marked() {
    let mut gone = Fixture::deploying(&job(1), group(1), 1);
    gone.delete(Key::JobVersion(key(), 0));
    succeed(&mut gone);
    assert_eq!(gone.actions, []);

    let mut purged = Fixture::deploying(&job(1), group(1), 1);
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
        let mut fixture = Fixture::deploying(&job(1), group(1), 1);
        fixture.change_deployment(|deployment| deployment.status = status);
        assert_eq!(fixture.actions, [], "{status:?}");
        assert_eq!(fixture.rollout.next_deadline(), None);
    }
}

#[test]
fn a_deployment_that_is_collected_is_forgotten() {
    let mut fixture = Fixture::deploying(&job(1), group(1), 1);
    assert_eq!(fixture.rollout.len(), 1);
    fixture.delete(Key::Deployment(deployment_id()));
    assert!(fixture.rollout.is_empty());
    assert_eq!(fixture.rollout.next_deadline(), None);
}
