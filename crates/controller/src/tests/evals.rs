//! Evaluations after a change of a node.

use model::NodeStatus::{self, Disconnected, Down, Initializing, Ready};
use model::{ClientStatus, DesiredStatus, EvalId, Job, JobType, Node, TriggeredBy};
use state::{Entity, Key, Write};
use test_kit::builders::{batch, service};

use super::fleet::{Fleet, GATEWAY, SECOND, id};
use crate::evals::affects_jobs;
use crate::transition::evaluate;
use crate::{Config, Effect, Transition};

fn jobs_of(fleet: &mut Fleet, node: u128) -> Vec<String> {
    fleet
        .evals(node)
        .iter()
        .map(|eval| eval.job.job_id.to_string())
        .collect()
}

#[test]
fn each_job_on_the_node_gets_one_evaluation() {
    let mut fleet = Fleet::new(2);
    let web = Job {
        priority: 80,
        ..service("web", 2)
    };
    let sum = batch("sum", 1);
    fleet.put_job(&web);
    fleet.put_job(&sum);
    fleet.put_alloc(1, &web, 1);
    fleet.put_alloc(2, &web, 1);
    fleet.put_alloc(3, &sum, 1);
    fleet.put_alloc(4, &sum, 2);
    let evals = fleet.evals(1);
    let seen: Vec<_> = evals
        .iter()
        .map(|eval| {
            (
                &*eval.job.job_id,
                eval.job_type,
                eval.priority,
                eval.node_id,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("sum", JobType::Batch, 50, Some(id(1))),
            ("web", JobType::Service, 80, Some(id(1)))
        ]
    );
    assert!(
        evals
            .iter()
            .all(|eval| eval.triggered_by == TriggeredBy::NodeUpdate)
    );
    assert_ne!(evals[0].id, evals[1].id);
}

#[test]
fn allocations_with_work_left_cause_an_evaluation() {
    use ClientStatus::{Complete, Failed, Running};
    use DesiredStatus::{Run, Stop};
    let cases = [
        (JobType::Service, Run, Running, true),
        (JobType::Service, Run, Failed, true),
        (JobType::Service, Stop, Running, true),
        (JobType::Service, Stop, Complete, false),
        (JobType::Batch, Run, Running, true),
        (JobType::Batch, Stop, Running, true),
        (JobType::Batch, Run, Complete, false),
        (JobType::Sysbatch, Run, Running, true),
        (JobType::Sysbatch, Stop, Running, true),
        (JobType::Sysbatch, Stop, Complete, false),
        (JobType::Sysbatch, Run, Complete, false),
    ];
    for (job_type, desired, client, counts) in cases {
        let mut fleet = Fleet::new(1);
        let job = Job {
            job_type,
            ..service("web", 1)
        };
        fleet.put_job(&job);
        fleet.change_alloc(1, &job, 1, |alloc| alloc.desired_status = desired);
        fleet.report(1, client);
        assert_eq!(
            fleet.evals(1).len(),
            usize::from(counts),
            "{job_type:?} {desired:?} {client:?}"
        );
    }
}

#[test]
fn a_stopping_system_allocation_is_evaluated_until_it_has_stopped() {
    use ClientStatus::{Complete, Running};
    for (desired, client, counts) in [
        (DesiredStatus::Run, Running, false),
        (DesiredStatus::Stop, Running, true),
        (DesiredStatus::Stop, Complete, false),
    ] {
        let mut fleet = Fleet::new(1);
        let job = Job {
            job_type: JobType::System,
            stop: true,
            ..service("log", 1)
        };
        fleet.put_job(&job);
        fleet.change_alloc(1, &job, 1, |alloc| alloc.desired_status = desired);
        fleet.report(1, client);
        let evals = fleet.evals(1);
        assert_eq!(evals.len(), usize::from(counts), "{desired:?} {client:?}");
        assert!(evals.iter().all(|eval| eval.job_type == JobType::System));
    }
}

#[test]
fn a_new_leader_evaluates_allocations_that_were_stopping_when_their_node_died() {
    let mut fleet = Fleet::unheard(2);
    let job = service("web", 1);
    fleet.put_job(&job);
    fleet.change_alloc(1, &job, 1, |alloc| {
        alloc.desired_status = DesiredStatus::Stop
    });
    fleet.report(1, ClientStatus::Running);
    fleet.scheduled(&job);
    fleet.effects.clear();
    fleet.put_node(1, Down);
    fleet.elect();
    assert_eq!(fleet.effects, [Effect::Evaluate { node_id: id(1) }]);
}

#[test]
fn a_system_job_is_looked_at_wherever_it_may_run() {
    let mut fleet = Fleet::new(1);
    let system = |id: &str| Job {
        job_type: JobType::System,
        ..service(id, 1)
    };
    fleet.put_job(&system("here"));
    fleet.put_job(&Job {
        datacenters: vec!["dc2".to_owned()],
        ..system("elsewhere")
    });
    fleet.put_job(&Job {
        node_pool: "gpu".to_owned(),
        ..system("other-pool")
    });
    fleet.put_job(&Job {
        stop: true,
        ..system("stopped")
    });
    assert_eq!(jobs_of(&mut fleet, 1), ["here"]);
    // Once, though it has an allocation there too.
    fleet.put_alloc(1, &system("here"), 1);
    assert_eq!(jobs_of(&mut fleet, 1), ["here"]);
}

#[test]
fn allocations_of_a_purged_job_are_looked_at_too() {
    let mut fleet = Fleet::new(1);
    fleet.put_alloc(1, &service("gone", 1), 1);
    assert_eq!(jobs_of(&mut fleet, 1), ["gone"]);
}

#[test]
fn changes_between_down_ready_and_disconnected_are_news() {
    let news = |from: NodeStatus, to: NodeStatus| affects_jobs(from, to);
    assert!(news(Ready, Down) && news(Initializing, Down) && news(Disconnected, Down));
    assert!(news(Initializing, Ready) && news(Down, Ready));
    assert!(news(Ready, Disconnected) && news(Disconnected, Initializing));
    assert!(!news(Ready, Ready) && !news(Down, Initializing));
}

#[test]
fn a_new_leader_creates_the_evaluations_that_its_predecessor_owed() {
    let job = service("web", 1);
    let owed = Effect::Evaluate { node_id: id(1) };
    let mut fleet = Fleet::unheard(2);
    fleet.put_job(&job);
    fleet.put_alloc(1, &job, 1);
    fleet.scheduled(&job);
    fleet.effects.clear();
    fleet.put_node(1, Down);
    // The old leader died before it could write the evaluation.
    fleet.elect();
    assert_eq!(std::mem::take(&mut fleet.effects), [owed]);
    fleet.scheduled(&job);
    fleet.elect();
    assert_eq!(fleet.effects, []);
}

#[test]
fn evaluations_that_the_store_refused_are_asked_for_again() {
    let job = service("web", 1);
    let owed = || [Effect::Evaluate { node_id: id(1) }];
    let mut fleet = Fleet::new(3);
    fleet.put_job(&job);
    fleet.put_alloc(1, &job, 1);
    fleet.scheduled(&job);
    fleet.beating.remove(&1);
    fleet.pass(15 * SECOND);
    // Its status is written, and nothing else.
    assert_eq!(fleet.perform(), [(1, Down)]);
    fleet.pass(10 * SECOND);
    assert_eq!(std::mem::take(&mut fleet.effects), owed());
    // Refused again, also while no gateway reports.
    fleet.disconnect(GATEWAY);
    fleet.effects.clear();
    fleet.pass(10 * SECOND);
    assert_eq!(std::mem::take(&mut fleet.effects), owed());
    fleet.scheduled(&job);
    fleet.pass(600 * SECOND);
    assert_eq!(fleet.effects, [], "done");
    assert_eq!(fleet.liveness.next_deadline(), None);
}

/// Draws a new id for each evaluation.
fn numbered() -> impl FnMut() -> EvalId {
    let mut number = 0;
    move || {
        number += 1;
        EvalId::from_random(number)
    }
}

/// Returns the node's record in a transaction, and the number of its evaluations.
fn parts(writes: &[Write]) -> (Option<&Node>, usize) {
    let record = writes.iter().find_map(|write| match write.entity() {
        Some(Entity::Node(node)) => Some(&**node),
        _ => None,
    });
    let is_eval =
        |write: &&Write| matches!(write.key(), Key::Eval(_)) && write.expected_index() == 0;
    (record, writes.iter().filter(is_eval).count())
}

#[test]
fn a_transition_is_one_transaction_and_its_record_says_which_evaluations_do_not_fit() {
    let mut fleet = Fleet::new(1);
    for number in 0..2_000 {
        let job = service(&format!("job-{number}"), 1);
        fleet.put_alloc(number, &job, 1);
    }
    let snapshot = fleet.snapshot();
    let transition = |to, modify_index| Transition {
        node_id: id(1),
        from: Ready,
        to,
        modify_index,
    };
    let node = snapshot.node(id(1)).unwrap();
    let writes = |transition: Transition| {
        transition.writes(&Config::default(), &snapshot, fleet.now, &mut numbered())
    };
    let down = writes(transition(Down, node.modify_index));
    let (record, evals) = parts(&down);
    let record = record.unwrap();
    assert_eq!(
        (record.status, record.lacks_evals, evals),
        (Down, true, 900)
    );
    assert_eq!(down[0].expected_index(), node.modify_index);
    assert_eq!(down.len(), 901);
    let stale = writes(transition(Down, node.modify_index + 1));
    assert!(stale.is_empty(), "the node has changed since");
    let quiet = writes(Transition {
        from: Down,
        ..transition(Initializing, node.modify_index)
    });
    let (record, evals) = parts(&quiet);
    assert_eq!((record.unwrap().lacks_evals, evals), (false, 0));
}

/// The gateway that wrote the record may have ended since: nothing but the record is known.
#[test]
fn the_leader_creates_the_evaluations_that_did_not_fit_with_a_record() {
    let mut fleet = Fleet::new(1);
    for number in 0..2_000 {
        let job = service(&format!("job-{number}"), 1);
        fleet.put_alloc(number, &job, 1);
        if number < 100 {
            fleet.put_job(&job);
        }
    }
    fleet.effects.clear();
    let lacking = Node {
        lacks_evals: true,
        ..fleet.snapshot().node(id(1)).unwrap().value.clone()
    };
    fleet.write(Key::Node(id(1)), Entity::Node(lacking.into()));
    for number in 0..100 {
        fleet.scheduled(&service(&format!("job-{number}"), 1));
    }
    fleet.pass(SECOND);
    assert_eq!(
        std::mem::take(&mut fleet.effects),
        [Effect::Evaluate { node_id: id(1) }]
    );

    let snapshot = fleet.snapshot();
    let modify_index = snapshot.node(id(1)).unwrap().modify_index;
    let txns = evaluate(&snapshot, id(1), fleet.now, &mut numbered());
    let evals: Vec<usize> = txns.iter().map(|txn| parts(txn).1).collect();
    assert_eq!(evals, [900, 900, 100], "100 jobs were evaluated since");
    assert_eq!((parts(&txns[0]).0, parts(&txns[1]).0), (None, None));
    let record = parts(&txns[2]).0.unwrap();
    assert!(!record.lacks_evals);
    let update = txns[2].last().unwrap();
    assert_eq!(update.expected_index(), modify_index);

    // Until it is written, it is requested again; by the next leader as well.
    fleet.pass(10 * SECOND);
    let owed = [Effect::Evaluate { node_id: id(1) }];
    assert_eq!(std::mem::take(&mut fleet.effects), owed);
    fleet.elect();
    assert_eq!(std::mem::take(&mut fleet.effects), owed);
    let record = record.clone();
    fleet.write(Key::Node(id(1)), Entity::Node(record.into()));
    fleet.pass(600 * SECOND);
    assert_eq!(fleet.effects, []);
}
