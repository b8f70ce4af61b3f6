//! Requests of users for a deployment.

use model::{
    ClientStatus, DeploymentCounts, DeploymentGroup, DeploymentStatus, DesiredStatus, Job, NodePool,
};
use state::Key;

use super::fixture::{
    Fixture, MINUTE, alloc_id, clients, deployment_id, expected_index, group, job, key, unchanged,
};
use crate::requests::{self, DeploymentRefusal, GroupProblem, PromotedGroups};
use crate::{Action, Cause, Reason, require_progress_by};

/// The group with `desired` canaries, which are the first allocations that are placed.
fn canaries(desired: u32) -> DeploymentGroup {
    DeploymentGroup {
        desired_canaries: desired,
        placed_canaries: (1..=desired).map(alloc_id).collect(),
        ..group(4)
    }
}

fn promote(fixture: &mut Fixture, which: PromotedGroups<'_>) -> Result<Action, DeploymentRefusal> {
    let eval_id = fixture.next_eval_id();
    let deployment = fixture.stored_deployment();
    requests::promote(
        &fixture.snapshot(),
        &deployment,
        which,
        eval_id,
        fixture.now,
    )
}

fn fail(fixture: &mut Fixture) -> Result<Action, DeploymentRefusal> {
    let eval_id = fixture.next_eval_id();
    let deployment = fixture.stored_deployment();
    requests::fail(&fixture.snapshot(), &deployment, eval_id, fixture.now)
}

fn set_health(
    fixture: &mut Fixture,
    healthy: &[u32],
    unhealthy: &[u32],
) -> Result<Action, DeploymentRefusal> {
    let ids = |numbers: &[u32]| -> Vec<_> { numbers.iter().copied().map(alloc_id).collect() };
    let eval_id = fixture.next_eval_id();
    let deployment = fixture.stored_deployment();
    let (healthy, unhealthy) = (ids(healthy), ids(unhealthy));
    let snapshot = fixture.snapshot();
    requests::set_alloc_health(
        &snapshot,
        &deployment,
        &healthy,
        &unhealthy,
        eval_id,
        fixture.now,
    )
}

/// Job `web` at version 1, with version 0 stable and another.
fn second_version() -> Fixture {
    let mut fixture = Fixture::new(&job(4));
    fixture.mark_stable(0);
    let mut newer = Job {
        version: 1,
        ..job(4)
    };
    newer.meta.insert("release".to_owned(), "2".to_owned());
    fixture.put_job(&newer);
    fixture
}

#[test]
fn scenario_073_a_promotion_starts_the_clock_anew_and_makes_the_scheduler_look() {
    let mut fixture = Fixture::deploying(&job(4), canaries(1), 1);
    fixture.pass(MINUTE);
    fixture.report(1, true);
    fixture.perform();
    fixture.scheduled();
    fixture.pass(30 * MINUTE);
    assert_eq!(fixture.actions, [], "to wait for a user is no failure");
    let action = promote(&mut fixture, PromotedGroups::All).unwrap();
    assert_eq!(action.reason, Reason::Promoted);
    let eval = action.eval().expect("an evaluation");
    assert_eq!(eval.deployment_id, Some(deployment_id()));
    fixture.write_action(&action);
    let deployment = fixture.deployment();
    assert!(deployment.groups["web"].promoted);
    assert_eq!(deployment.status_description, "Deployment is running");
    let by = require_progress_by(&fixture.snapshot(), &deployment, "web").unwrap();
    assert_eq!(by, fixture.now.plus(10 * MINUTE));
    fixture.scheduled();
    fixture.pass(10 * MINUTE);
    assert_eq!(
        fixture.action().reason,
        Reason::Failed(Cause::ProgressDeadline)
    );
}

#[test]
fn fewer_healthy_canaries_than_desired_are_not_promoted() {
    let mut fixture = Fixture::deploying(&job(4), canaries(2), 2);
    fixture.report(1, true);
    let short = |healthy| {
        let group = "web".to_owned();
        DeploymentRefusal::Groups(vec![GroupProblem::Unhealthy {
            group,
            healthy,
            desired: 2,
        }])
    };
    let refused = promote(&mut fixture, PromotedGroups::All).unwrap_err();
    assert_eq!(refused, short(1));
    assert_eq!(
        refused.to_string(),
        "Task group \"web\" has 1/2 healthy allocations"
    );
    fixture.report(2, true);
    promote(&mut fixture, PromotedGroups::All).unwrap();
    // One that has ended, or has to, or is no canary at all, is not counted.
    fixture.change_alloc(2, |alloc| alloc.desired_status = DesiredStatus::Stop);
    assert_eq!(
        promote(&mut fixture, PromotedGroups::All).unwrap_err(),
        short(1)
    );
    let said = fixture.snapshot().alloc(alloc_id(1)).unwrap().health();
    fixture.put_client(1, ClientStatus::Failed, said);
    assert_eq!(
        promote(&mut fixture, PromotedGroups::All).unwrap_err(),
        short(0)
    );
    fixture.place(3);
    fixture.report(3, true);
    assert_eq!(
        promote(&mut fixture, PromotedGroups::All).unwrap_err(),
        short(0)
    );
}

#[test]
fn a_promotion_compares_the_canaries_that_it_relies_on_and_the_job() {
    let mut fixture = Fixture::deploying(&job(4), canaries(1), 2);
    fixture.change_deployment(|it| {
        let group = it.groups.get_mut("web").expect("the group");
        group.placed_canaries.push(alloc_id(2));
    });
    fixture.report(1, true);
    fixture.report(2, true);
    let action = promote(&mut fixture, PromotedGroups::All).unwrap();
    let snapshot = fixture.snapshot();
    let canary = snapshot.alloc(alloc_id(1)).unwrap();
    let job = snapshot.job(&key()).unwrap();
    assert_eq!(
        unchanged(&action),
        [
            (Key::Job(key()), job.modify_index),
            (Key::Alloc(alloc_id(1)), canary.alloc_modify_index),
            (Key::AllocClient(alloc_id(1)), canary.client_modify_index),
        ],
        "one is enough"
    );
    let read = expected_index(&action, &Key::Deployment(deployment_id()));
    assert_eq!(read, Some(fixture.stored_deployment().modify_index));
}

#[test]
fn groups_are_promoted_one_by_one() {
    let mut fixture = Fixture::deploying(&job(4), canaries(1), 2);
    fixture.change_deployment(|it| {
        let other = DeploymentGroup {
            placed_canaries: vec![alloc_id(2)],
            ..canaries(1)
        };
        it.groups.insert("api".to_owned(), other);
        it.groups.insert("plain".to_owned(), group(1));
    });
    fixture.change_alloc(2, |alloc| alloc.task_group = "api".into());
    fixture.report(1, true);
    let names = |names: &[&str]| -> Vec<String> { names.iter().map(|it| (*it).into()).collect() };
    let refused = promote(&mut fixture, PromotedGroups::All).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Task group \"api\" has 0/1 healthy allocations"
    );
    let refused = promote(
        &mut fixture,
        PromotedGroups::Named(&names(&["plain", "nope"])),
    )
    .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Task group \"plain\" has no canaries to promote; Task group \"nope\" is not in the \
         deployment"
    );
    let action = promote(&mut fixture, PromotedGroups::Named(&names(&["web"]))).unwrap();
    fixture.write_action(&action);
    let deployment = fixture.deployment();
    assert!(deployment.groups["web"].promoted && !deployment.groups["api"].promoted);
    assert_eq!(
        deployment.status_description,
        "Deployment is running but requires manual promotion"
    );
    let refused = promote(&mut fixture, PromotedGroups::Named(&names(&["web"]))).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Task group \"web\" is promoted already"
    );
    fixture.report(2, true);
    let action = promote(&mut fixture, PromotedGroups::All).unwrap();
    fixture.write_action(&action);
    assert_eq!(
        promote(&mut fixture, PromotedGroups::All).unwrap_err(),
        DeploymentRefusal::NothingToPromote
    );
}

#[test]
fn scenario_077_resuming_a_paused_deployment_gives_its_groups_their_time_anew() {
    let mut fixture = Fixture::deploying(&job(4), group(4), 1);
    let paused = requests::pause(&fixture.stored_deployment(), fixture.now).unwrap();
    let paused = paused.expect("it was not");
    assert!(paused.eval().is_none(), "no evaluation is needed");
    fixture.write_action(&paused);
    let deployment = fixture.deployment();
    assert_eq!(
        (deployment.status, &*deployment.status_description),
        (DeploymentStatus::Paused, "Deployment is paused")
    );
    assert_eq!(
        requests::pause(&fixture.stored_deployment(), fixture.now),
        Ok(None)
    );
    fixture.pass(60 * MINUTE);
    assert_eq!(fixture.actions, []);
    let resume = |fixture: &mut Fixture| {
        let eval_id = fixture.next_eval_id();
        let deployment = fixture.stored_deployment();
        requests::resume(&fixture.snapshot(), &deployment, eval_id, fixture.now)
    };
    let resumed = resume(&mut fixture).unwrap().expect("it was paused");
    assert!(resumed.eval().is_some());
    fixture.write_action(&resumed);
    assert_eq!(resume(&mut fixture), Ok(None));
    let by = require_progress_by(&fixture.snapshot(), &fixture.deployment(), "web").unwrap();
    assert_eq!(by, fixture.now.plus(10 * MINUTE));
    fixture.scheduled();
    fixture.pass(9 * MINUTE);
    assert_eq!(fixture.actions, []);
    fixture.pass(MINUTE);
    assert_eq!(
        fixture.action().reason,
        Reason::Failed(Cause::ProgressDeadline)
    );
}

#[test]
fn a_deployment_failed_by_a_user_is_reverted_with_auto_revert() {
    for auto_revert in [true, false] {
        let mut fixture = second_version();
        fixture.put_deployment(DeploymentGroup {
            auto_revert,
            ..group(4)
        });
        let action = fail(&mut fixture).unwrap();
        assert_eq!(action.reason, Reason::Failed(Cause::User));
        let description = &action.deployment().unwrap().status_description;
        let and = if auto_revert {
            " - rolling back to job version 0"
        } else {
            ""
        };
        assert_eq!(description, &format!("Deployment marked as failed{and}"));
        let version = action.job().map(|job| job.version);
        assert_eq!(version, auto_revert.then_some(2));
        assert!(action.eval().is_some());
    }
}

#[test]
fn a_job_that_has_moved_on_is_not_taken_back() {
    let mut fixture = second_version();
    fixture.put_deployment(DeploymentGroup {
        auto_revert: true,
        ..canaries(1)
    });
    fixture.place(1);
    fixture.report(1, true);
    fixture.actions.clear();
    let third = Job {
        version: 2,
        ..job(5)
    };
    fixture.put_job(&third);
    let overtaken = DeploymentRefusal::Overtaken {
        job_id: "web".to_owned(),
    };
    assert_eq!(promote(&mut fixture, PromotedGroups::All), Err(overtaken));
    let action = fail(&mut fixture).unwrap();
    assert!(action.job().is_none());
    let read = fixture.snapshot().job(&key()).unwrap().modify_index;
    assert_eq!(unchanged(&action), [(Key::Job(key()), read)]);
}

#[test]
fn an_ended_deployment_stays_as_it_is() {
    let mut fixture = Fixture::deploying(&job(1), group(1), 1);
    fixture.change_deployment(|it| it.status = DeploymentStatus::Failed);
    let id = fixture.stored_deployment().value.id;
    let way_out = format!(": {id} is failed already; 'kafila job run FILE' begins a new one");
    let text = |refused: Result<_, DeploymentRefusal>| {
        let text = refused.unwrap_err().to_string();
        let what = text.strip_suffix(&way_out);
        what.unwrap_or_else(|| panic!("no way out: {text}"))
            .to_owned()
    };
    assert_eq!(
        text(promote(&mut fixture, PromotedGroups::All).map(drop)),
        "can't promote terminal deployment"
    );
    assert_eq!(
        text(fail(&mut fixture).map(drop)),
        "can't fail terminal deployment"
    );
    assert_eq!(
        text(set_health(&mut fixture, &[1], &[]).map(drop)),
        "can't set health of allocations for a terminal deployment"
    );
    let stored = fixture.stored_deployment();
    assert_eq!(
        text(requests::pause(&stored, fixture.now).map(drop)),
        "can't pause terminal deployment"
    );
    let eval_id = fixture.next_eval_id();
    let resumed = requests::resume(&fixture.snapshot(), &stored, eval_id, fixture.now);
    assert_eq!(text(resumed.map(drop)), "can't resume terminal deployment");
}

#[test]
fn a_users_word_on_health_counts_like_a_nodes() {
    let mut fixture = Fixture::deploying(&job(2), group(2), 2);
    fixture.put_client(1, ClientStatus::Running, None);
    let action = set_health(&mut fixture, &[1, 2], &[]).unwrap();
    assert_eq!(action.reason, Reason::HealthSet);
    assert!(action.eval().is_some() && action.deployment().is_none());
    let read: Vec<u64> = clients(&action).iter().map(|(_, index)| *index).collect();
    assert!(read[0] > 0 && read[1] == 0, "the second has told nothing");
    fixture.write_action(&action);
    let counts = &fixture.snapshot().deployment_counts(deployment_id())["web"];
    assert_eq!(counts.healthy, 2);
    let running = fixture
        .snapshot()
        .alloc(alloc_id(1))
        .unwrap()
        .client_status();
    assert_eq!(running, ClientStatus::Running, "the rest is the node's");
    let again = set_health(&mut fixture, &[1, 2], &[]).unwrap();
    assert_eq!(clients(&again), []);
}

#[test]
fn the_later_word_on_health_counts_whatever_the_nodes_clock_says() {
    let mut fixture = Fixture::deploying(&job(2), group(2), 1);
    let ahead = fixture.now.plus(60 * MINUTE);
    let said = model::DeploymentHealth {
        healthy: false,
        time: ahead,
        deployment_id: Some(deployment_id()),
    };
    fixture.put_client(1, ClientStatus::Running, Some(said));
    let action = set_health(&mut fixture, &[1], &[]).unwrap();
    let health = clients(&action)[0].0.health.unwrap();
    assert!(health.healthy && health.time > ahead);
}

#[test]
fn a_users_word_that_one_is_unhealthy_fails_the_deployment_at_once() {
    let mut fixture = second_version();
    fixture.put_deployment(DeploymentGroup {
        auto_revert: true,
        ..group(2)
    });
    fixture.place(1);
    let action = set_health(&mut fixture, &[], &[1]).unwrap();
    assert_eq!(action.reason, Reason::Failed(Cause::Unhealthy));
    assert_eq!(clients(&action).len(), 1);
    let failed = action.deployment().unwrap();
    assert_eq!(
        failed.status_description,
        "Failed due to unhealthy allocations - rolling back to job version 0"
    );
    assert!(action.job().is_some() && action.eval().is_some());
}

#[test]
fn an_end_by_a_users_word_counts_the_word() {
    let mut fixture = Fixture::deploying(&job(3), group(3), 3);
    fixture.report(1, true);
    fixture.report(2, true);
    let action = set_health(&mut fixture, &[3], &[1]).unwrap();
    let ended = action.deployment().unwrap();
    let counts = DeploymentCounts {
        placed: 3,
        healthy: 2,
        unhealthy: 1,
    };
    assert_eq!(ended.groups["web"].final_counts, Some(counts));
}

#[test]
fn health_is_set_once_for_each_allocation_of_the_deployment() {
    let mut fixture = Fixture::deploying(&job(2), group(2), 2);
    let refused = |fixture: &mut Fixture, healthy: &[u32], unhealthy: &[u32]| {
        set_health(fixture, healthy, unhealthy).unwrap_err()
    };
    assert_eq!(refused(&mut fixture, &[], &[]), DeploymentRefusal::NoHealth);
    assert_eq!(
        refused(&mut fixture, &[1], &[1]),
        DeploymentRefusal::HealthTwice(alloc_id(1))
    );
    assert_eq!(
        refused(&mut fixture, &[9], &[]),
        DeploymentRefusal::NotInDeployment(alloc_id(9))
    );
    fixture.change_alloc(2, |alloc| alloc.deployment_id = None);
    assert_eq!(
        refused(&mut fixture, &[2], &[]),
        DeploymentRefusal::NotInDeployment(alloc_id(2))
    );
    fixture.put_client(1, ClientStatus::Failed, None);
    assert_eq!(
        refused(&mut fixture, &[1], &[]),
        DeploymentRefusal::Ended(alloc_id(1))
    );
    let many: Vec<u32> = (1..=501).collect();
    assert_eq!(
        refused(&mut fixture, &many, &[]),
        DeploymentRefusal::TooManyHealth { count: 501 }
    );
}

#[test]
fn a_job_goes_back_only_to_a_node_pool_that_is_there() {
    let gone = "Deployment marked as failed - not rolling back to stable job version 0 as its \
                node pool \"gpu\" is gone";
    let back = "Deployment marked as failed - rolling back to job version 0";
    let cases = [(None, gone), (Some(true), gone), (Some(false), back)];
    for (deleting, expected) in cases {
        let old = Job {
            node_pool: "gpu".to_owned(),
            ..job(4)
        };
        let mut fixture = Fixture::new(&old);
        fixture.mark_stable(0);
        fixture.put_job(&Job {
            version: 1,
            ..job(4)
        });
        if let Some(deleting) = deleting {
            fixture.put_pool(NodePool {
                deleting,
                ..NodePool::named("gpu")
            });
        }
        fixture.put_deployment(DeploymentGroup {
            auto_revert: true,
            ..group(4)
        });
        let action = fail(&mut fixture).unwrap();
        let failed = action.deployment().unwrap();
        assert_eq!(failed.status_description, expected);
        assert_eq!(action.job().is_some(), expected == back);
        let pool = fixture.snapshot().node_pool("gpu").cloned();
        let compared = unchanged(&action).iter().any(|(key, modify_index)| {
            *key == Key::NodePool("gpu".to_owned())
                && pool
                    .as_ref()
                    .is_some_and(|it| it.modify_index == *modify_index)
        });
        assert_eq!(compared, expected == back, "a pool may go meanwhile");
    }
}

#[test]
fn a_word_that_one_is_healthy_takes_no_job_back() {
    for (healthy, unhealthy) in [(1, 2), (2, 1)] {
        let mut fixture = second_version();
        fixture.put_deployment(DeploymentGroup {
            auto_revert: true,
            ..group(2)
        });
        fixture.change_deployment(|it| {
            it.groups.insert("api".to_owned(), group(1));
        });
        fixture.place(1);
        fixture.place(2);
        fixture.change_alloc(2, |alloc| alloc.task_group = "api".into());
        let action = set_health(&mut fixture, &[healthy], &[unhealthy]).unwrap();
        let is_asked_for = unhealthy == 1;
        assert_eq!(
            action.job().is_some(),
            is_asked_for,
            "{unhealthy} is unhealthy"
        );
    }
}
