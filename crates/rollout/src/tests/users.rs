//! What users ask of a deployment, and what becomes of it.

use model::{
    ClientStatus, DeploymentCounts, DeploymentGroup, DeploymentStatus, DesiredStatus, Job, NodePool,
};
use state::Key;

use super::site::{MINUTE, Site, alloc_id, deployment_id, group, job, key};
use crate::user::{self, GroupProblem, Refusal, Which};
use crate::{Action, Cause, Reason, require_progress_by};

/// The group with `desired` canaries, which are the first allocations that are placed.
fn canaries(desired: u32) -> DeploymentGroup {
    DeploymentGroup {
        desired_canaries: desired,
        placed_canaries: (1..=desired).map(alloc_id).collect(),
        ..group(4)
    }
}

fn promote(site: &mut Site, which: Which<'_>) -> Result<Action, Refusal> {
    let eval_id = site.next_eval_id();
    let deployment = site.stored_deployment();
    user::promote(&site.snapshot(), &deployment, which, eval_id, site.now)
}

fn fail(site: &mut Site) -> Result<Action, Refusal> {
    let eval_id = site.next_eval_id();
    let deployment = site.stored_deployment();
    user::fail(&site.snapshot(), &deployment, eval_id, site.now)
}

fn set_health(site: &mut Site, healthy: &[u32], unhealthy: &[u32]) -> Result<Action, Refusal> {
    let ids = |numbers: &[u32]| -> Vec<_> { numbers.iter().copied().map(alloc_id).collect() };
    let eval_id = site.next_eval_id();
    let deployment = site.stored_deployment();
    let (healthy, unhealthy) = (ids(healthy), ids(unhealthy));
    let snapshot = site.snapshot();
    user::set_alloc_health(
        &snapshot,
        &deployment,
        &healthy,
        &unhealthy,
        eval_id,
        site.now,
    )
}

/// Job `web` at version 1, with version 0 stable and another.
fn second_version() -> Site {
    let mut site = Site::new(&job(4));
    site.mark_stable(0);
    let mut newer = Job {
        version: 1,
        ..job(4)
    };
    newer.meta.insert("release".to_owned(), "2".to_owned());
    site.put_job(&newer);
    site
}

#[test]
fn scenario_073_a_promotion_starts_the_clock_anew_and_makes_the_scheduler_look() {
    let mut site = Site::deploying(&job(4), canaries(1), 1);
    site.pass(MINUTE);
    site.report(1, true);
    site.perform();
    site.scheduled();
    site.pass(30 * MINUTE);
    assert_eq!(site.actions, [], "to wait for a user is no failure");
    let action = promote(&mut site, Which::All).unwrap();
    assert_eq!(action.reason, Reason::Promoted);
    let eval = action.eval.as_ref().expect("an evaluation");
    assert_eq!(eval.deployment_id, Some(deployment_id()));
    site.write_action(&action);
    let deployment = site.deployment();
    assert!(deployment.groups["web"].promoted);
    assert_eq!(deployment.status_description, "Deployment is running");
    let by = require_progress_by(&site.snapshot(), &deployment, "web").unwrap();
    assert_eq!(by, site.now.plus(10 * MINUTE));
    site.scheduled();
    site.pass(10 * MINUTE);
    assert_eq!(
        site.action().reason,
        Reason::Failed(Cause::ProgressDeadline)
    );
}

#[test]
fn fewer_healthy_canaries_than_desired_are_not_promoted() {
    let mut site = Site::deploying(&job(4), canaries(2), 2);
    site.report(1, true);
    let short = |healthy| {
        let group = "web".to_owned();
        Refusal::Groups(vec![GroupProblem::Unhealthy {
            group,
            healthy,
            desired: 2,
        }])
    };
    let refused = promote(&mut site, Which::All).unwrap_err();
    assert_eq!(refused, short(1));
    assert_eq!(
        refused.to_string(),
        "Task group \"web\" has 1/2 healthy allocations"
    );
    site.report(2, true);
    promote(&mut site, Which::All).unwrap();
    // One that has ended, or has to, or is no canary at all, is not counted.
    site.change_alloc(2, |alloc| alloc.desired_status = DesiredStatus::Stop);
    assert_eq!(promote(&mut site, Which::All).unwrap_err(), short(1));
    let said = site.snapshot().alloc(alloc_id(1)).unwrap().health();
    site.put_client(1, ClientStatus::Failed, said);
    assert_eq!(promote(&mut site, Which::All).unwrap_err(), short(0));
    site.place(3);
    site.report(3, true);
    assert_eq!(promote(&mut site, Which::All).unwrap_err(), short(0));
}

#[test]
fn a_promotion_compares_the_canaries_that_it_relies_on_and_the_job() {
    let mut site = Site::deploying(&job(4), canaries(1), 2);
    site.change_deployment(|it| {
        let group = it.groups.get_mut("web").expect("the group");
        group.placed_canaries.push(alloc_id(2));
    });
    site.report(1, true);
    site.report(2, true);
    let action = promote(&mut site, Which::All).unwrap();
    let snapshot = site.snapshot();
    let canary = snapshot.alloc(alloc_id(1)).unwrap();
    let job = snapshot.job(&key()).unwrap();
    assert_eq!(
        action.unchanged,
        [
            (Key::Job(key()), job.modify_index),
            (Key::Alloc(alloc_id(1)), canary.alloc_modify_index),
            (Key::AllocClient(alloc_id(1)), canary.client_modify_index),
        ],
        "one is enough"
    );
    let read = action.deployment.unwrap().modify_index;
    assert_eq!(read, site.stored_deployment().modify_index);
}

#[test]
fn groups_are_promoted_one_by_one() {
    let mut site = Site::deploying(&job(4), canaries(1), 2);
    site.change_deployment(|it| {
        let other = DeploymentGroup {
            placed_canaries: vec![alloc_id(2)],
            ..canaries(1)
        };
        it.groups.insert("api".to_owned(), other);
        it.groups.insert("plain".to_owned(), group(1));
    });
    site.change_alloc(2, |alloc| alloc.task_group = "api".into());
    site.report(1, true);
    let names = |names: &[&str]| -> Vec<String> { names.iter().map(|it| (*it).into()).collect() };
    let refused = promote(&mut site, Which::All).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Task group \"api\" has 0/1 healthy allocations"
    );
    let refused = promote(&mut site, Which::These(&names(&["plain", "nope"]))).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Task group \"plain\" has no canaries to promote; Task group \"nope\" is not in the \
         deployment"
    );
    let action = promote(&mut site, Which::These(&names(&["web"]))).unwrap();
    site.write_action(&action);
    let deployment = site.deployment();
    assert!(deployment.groups["web"].promoted && !deployment.groups["api"].promoted);
    assert_eq!(
        deployment.status_description,
        "Deployment is running but requires manual promotion"
    );
    let refused = promote(&mut site, Which::These(&names(&["web"]))).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Task group \"web\" is promoted already"
    );
    site.report(2, true);
    let action = promote(&mut site, Which::All).unwrap();
    site.write_action(&action);
    assert_eq!(
        promote(&mut site, Which::All).unwrap_err(),
        Refusal::NothingToPromote
    );
}

#[test]
fn scenario_077_resuming_a_paused_deployment_gives_its_groups_their_time_anew() {
    let mut site = Site::deploying(&job(4), group(4), 1);
    let paused = user::pause(&site.stored_deployment(), site.now).unwrap();
    let paused = paused.expect("it was not");
    assert!(paused.eval.is_none(), "nobody has to look");
    site.write_action(&paused);
    let deployment = site.deployment();
    assert_eq!(
        (deployment.status, &*deployment.status_description),
        (DeploymentStatus::Paused, "Deployment is paused")
    );
    assert_eq!(user::pause(&site.stored_deployment(), site.now), Ok(None));
    site.pass(60 * MINUTE);
    assert_eq!(site.actions, []);
    let resume = |site: &mut Site| {
        let eval_id = site.next_eval_id();
        let deployment = site.stored_deployment();
        user::resume(&site.snapshot(), &deployment, eval_id, site.now)
    };
    let resumed = resume(&mut site).unwrap().expect("it was paused");
    assert!(resumed.eval.is_some());
    site.write_action(&resumed);
    assert_eq!(resume(&mut site), Ok(None));
    let by = require_progress_by(&site.snapshot(), &site.deployment(), "web").unwrap();
    assert_eq!(by, site.now.plus(10 * MINUTE));
    site.scheduled();
    site.pass(9 * MINUTE);
    assert_eq!(site.actions, []);
    site.pass(MINUTE);
    assert_eq!(
        site.action().reason,
        Reason::Failed(Cause::ProgressDeadline)
    );
}

#[test]
fn a_user_who_fails_a_deployment_takes_the_job_back_where_a_group_wants_that() {
    for auto_revert in [true, false] {
        let mut site = second_version();
        site.put_deployment(DeploymentGroup {
            auto_revert,
            ..group(4)
        });
        let action = fail(&mut site).unwrap();
        assert_eq!(action.reason, Reason::Failed(Cause::User));
        let description = action.deployment.unwrap().value.status_description;
        let and = if auto_revert {
            " - rolling back to job version 0"
        } else {
            ""
        };
        assert_eq!(description, format!("Deployment marked as failed{and}"));
        let version = action.job.map(|job| job.value.version);
        assert_eq!(version, auto_revert.then_some(2));
        assert!(action.eval.is_some());
    }
}

#[test]
fn a_job_that_has_moved_on_is_not_taken_back() {
    let mut site = second_version();
    site.put_deployment(DeploymentGroup {
        auto_revert: true,
        ..canaries(1)
    });
    site.place(1);
    site.report(1, true);
    site.actions.clear();
    let third = Job {
        version: 2,
        ..job(5)
    };
    site.put_job(&third);
    let overtaken = Refusal::Overtaken {
        job_id: "web".to_owned(),
    };
    assert_eq!(promote(&mut site, Which::All), Err(overtaken));
    let action = fail(&mut site).unwrap();
    assert!(action.job.is_none());
    let read = site.snapshot().job(&key()).unwrap().modify_index;
    assert_eq!(action.unchanged, [(Key::Job(key()), read)]);
}

#[test]
fn what_has_ended_stays_as_it_is() {
    let mut site = Site::deploying(&job(1), group(1), 1);
    site.change_deployment(|it| it.status = DeploymentStatus::Failed);
    let id = site.stored_deployment().value.id;
    let way_out = format!(": {id} is failed already; 'kafila job run FILE' begins a new one");
    let text = |refused: Result<_, Refusal>| {
        let text = refused.unwrap_err().to_string();
        let what = text.strip_suffix(&way_out);
        what.unwrap_or_else(|| panic!("no way out: {text}"))
            .to_owned()
    };
    assert_eq!(
        text(promote(&mut site, Which::All).map(drop)),
        "can't promote terminal deployment"
    );
    assert_eq!(
        text(fail(&mut site).map(drop)),
        "can't fail terminal deployment"
    );
    assert_eq!(
        text(set_health(&mut site, &[1], &[]).map(drop)),
        "can't set health of allocations for a terminal deployment"
    );
    let stored = site.stored_deployment();
    assert_eq!(
        text(user::pause(&stored, site.now).map(drop)),
        "can't pause terminal deployment"
    );
    let eval_id = site.next_eval_id();
    let resumed = user::resume(&site.snapshot(), &stored, eval_id, site.now);
    assert_eq!(text(resumed.map(drop)), "can't resume terminal deployment");
}

#[test]
fn a_users_word_on_health_counts_like_a_nodes() {
    let mut site = Site::deploying(&job(2), group(2), 2);
    site.put_client(1, ClientStatus::Running, None);
    let action = set_health(&mut site, &[1, 2], &[]).unwrap();
    assert_eq!(action.reason, Reason::HealthSet);
    assert!(action.eval.is_some() && action.deployment.is_none());
    let read: Vec<_> = action.clients.iter().map(|it| it.modify_index).collect();
    assert!(read[0] > 0 && read[1] == 0, "the second has told nothing");
    site.write_action(&action);
    let counts = &site.snapshot().deployment_counts(deployment_id())["web"];
    assert_eq!(counts.healthy, 2);
    let running = site.snapshot().alloc(alloc_id(1)).unwrap().client_status();
    assert_eq!(running, ClientStatus::Running, "the rest is the node's");
    let again = set_health(&mut site, &[1, 2], &[]).unwrap();
    assert_eq!(again.clients, []);
}

#[test]
fn the_later_word_on_health_counts_whatever_the_nodes_clock_says() {
    let mut site = Site::deploying(&job(2), group(2), 1);
    let ahead = site.now.plus(60 * MINUTE);
    let said = model::DeploymentHealth {
        healthy: false,
        time: ahead,
        deployment_id: Some(deployment_id()),
    };
    site.put_client(1, ClientStatus::Running, Some(said));
    let action = set_health(&mut site, &[1], &[]).unwrap();
    let health = action.clients[0].client.health.unwrap();
    assert!(health.healthy && health.time > ahead);
}

#[test]
fn a_users_word_that_one_is_unhealthy_fails_the_deployment_at_once() {
    let mut site = second_version();
    site.put_deployment(DeploymentGroup {
        auto_revert: true,
        ..group(2)
    });
    site.place(1);
    let action = set_health(&mut site, &[], &[1]).unwrap();
    assert_eq!(action.reason, Reason::Failed(Cause::Unhealthy));
    assert_eq!(action.clients.len(), 1);
    let failed = &action.deployment.as_ref().unwrap().value;
    assert_eq!(
        failed.status_description,
        "Failed due to unhealthy allocations - rolling back to job version 0"
    );
    assert!(action.job.is_some() && action.eval.is_some());
}

#[test]
fn an_end_by_a_users_word_counts_the_word() {
    let mut site = Site::deploying(&job(3), group(3), 3);
    site.report(1, true);
    site.report(2, true);
    let action = set_health(&mut site, &[3], &[1]).unwrap();
    let ended = &action.deployment.as_ref().unwrap().value;
    let counts = DeploymentCounts {
        placed: 3,
        healthy: 2,
        unhealthy: 1,
    };
    assert_eq!(ended.groups["web"].final_counts, Some(counts));
}

#[test]
fn health_is_told_of_allocations_of_the_deployment_once_each() {
    let mut site = Site::deploying(&job(2), group(2), 2);
    let refused = |site: &mut Site, healthy: &[u32], unhealthy: &[u32]| {
        set_health(site, healthy, unhealthy).unwrap_err()
    };
    assert_eq!(refused(&mut site, &[], &[]), Refusal::NoHealth);
    assert_eq!(
        refused(&mut site, &[1], &[1]),
        Refusal::HealthTwice(alloc_id(1))
    );
    assert_eq!(
        refused(&mut site, &[9], &[]),
        Refusal::NotInDeployment(alloc_id(9))
    );
    site.change_alloc(2, |alloc| alloc.deployment_id = None);
    assert_eq!(
        refused(&mut site, &[2], &[]),
        Refusal::NotInDeployment(alloc_id(2))
    );
    site.put_client(1, ClientStatus::Failed, None);
    assert_eq!(refused(&mut site, &[1], &[]), Refusal::Ended(alloc_id(1)));
    let many: Vec<u32> = (1..=501).collect();
    assert_eq!(
        refused(&mut site, &many, &[]),
        Refusal::TooManyHealth { count: 501 }
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
        let mut site = Site::new(&old);
        site.mark_stable(0);
        site.put_job(&Job {
            version: 1,
            ..job(4)
        });
        if let Some(deleting) = deleting {
            site.put_pool(NodePool {
                deleting,
                ..NodePool::named("gpu")
            });
        }
        site.put_deployment(DeploymentGroup {
            auto_revert: true,
            ..group(4)
        });
        let action = fail(&mut site).unwrap();
        let failed = action.deployment.unwrap().value;
        assert_eq!(failed.status_description, expected);
        assert_eq!(action.job.is_some(), expected == back);
        let pool = site.snapshot().node_pool("gpu").cloned();
        let compared = action.unchanged.iter().any(|(key, modify_index)| {
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
        let mut site = second_version();
        site.put_deployment(DeploymentGroup {
            auto_revert: true,
            ..group(2)
        });
        site.change_deployment(|it| {
            it.groups.insert("api".to_owned(), group(1));
        });
        site.place(1);
        site.place(2);
        site.change_alloc(2, |alloc| alloc.task_group = "api".into());
        let action = set_health(&mut site, &[healthy], &[unhealthy]).unwrap();
        let is_asked_for = unhealthy == 1;
        assert_eq!(
            action.job.is_some(),
            is_asked_for,
            "{unhealthy} is unhealthy"
        );
    }
}
