//! What is written for what nodes tell, and who has to look at it.

use std::collections::BTreeMap;
use std::time::Duration;

use model::allocation::RescheduleEvent;
use model::{
    AllocClient, AllocId, Allocation, ClientStatus, DesiredStatus, EvalId, EvalStatus, Evaluation,
    Job, Node, TaskEvent, TaskState, Timestamp, TriggeredBy,
};
use state::{Entity, Key};
use test_kit::builders;

use crate::nodes::reports::{Outcome, Refusal, Reports, add, check, decide, pack};
use crate::testing::Stored;
use crate::writes::Write;

const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

fn report(status: ClientStatus) -> AllocClient {
    AllocClient {
        status,
        ..AllocClient::default()
    }
}

/// A service with two allocations on one node.
struct World {
    stored: Stored,
    job: Job,
    node: Node,
    allocs: [Allocation; 2],
}

fn world() -> World {
    let (mut stored, node, job) = (
        Stored::default(),
        builders::node(1),
        builders::service("web", 2),
    );
    stored.put_node(&node);
    stored.put_job(&job);
    let allocs = [1, 2].map(|number| builders::allocation(number, &job, node.id));
    for alloc in &allocs {
        stored.put_alloc(alloc);
    }
    World {
        stored,
        job,
        node,
        allocs,
    }
}

impl World {
    fn outcomes(&self, statuses: &[(usize, ClientStatus)]) -> Vec<Outcome> {
        let reports = statuses
            .iter()
            .map(|(position, status)| (self.allocs[*position].id, report(*status)))
            .collect();
        decide(&self.stored.snapshot(), &reports, NOW)
    }

    /// Returns why the first allocation's job is looked at when its node says `status`.
    fn trigger(&self, status: ClientStatus) -> Option<TriggeredBy> {
        let outcomes = self.outcomes(&[(0, status)]);
        outcomes
            .first()
            .and_then(|outcome| outcome.eval)
            .map(|ask| ask.triggered_by)
    }

    fn edit(&mut self, edit: impl FnOnce(&mut Allocation)) {
        edit(&mut self.allocs[0]);
        self.stored.put_alloc(&self.allocs[0]);
    }
}

#[test]
fn the_first_report_is_created_and_later_ones_replace_what_they_saw() {
    let mut world = world();
    let first = world.outcomes(&[(0, ClientStatus::Running)]);
    assert!(matches!(
        first[0].write,
        Write::Create {
            key: Key::AllocClient(_),
            ..
        }
    ));
    let stored_at = world
        .stored
        .put_status(world.allocs[0].id, ClientStatus::Running);
    let later = world.outcomes(&[(0, ClientStatus::Complete)]);
    let Write::Update {
        modify_index,
        entity: Entity::AllocClient(client),
        ..
    } = &later[0].write
    else {
        panic!("{later:?}")
    };
    assert_eq!((*modify_index, client.modify_time), (stored_at, NOW));
}

#[test]
fn a_report_that_says_nothing_new_writes_nothing() {
    let mut world = world();
    let stored = AllocClient {
        modify_time: Timestamp(5),
        ..report(ClientStatus::Running)
    };
    world.stored.put_client(world.allocs[0].id, stored);
    assert_eq!(world.outcomes(&[(0, ClientStatus::Running)]), []);
}

/// §7.6, row by row.
#[test]
fn a_report_from_before_the_end_does_not_undo_it() {
    use ClientStatus::{Complete, Failed, Pending, Running};
    for end in [Complete, Failed] {
        let mut world = world();
        let id = world.allocs[0].id;
        world.stored.put_client(id, report(end));
        for late in [Pending, Running, Complete, Failed] {
            assert_eq!(world.outcomes(&[(0, late)]), [], "{late:?} after {end:?}");
        }
    }
}

fn numbered(report: u64, description: &str) -> AllocClient {
    AllocClient {
        status: ClientStatus::Running,
        description: description.to_owned(),
        report,
        ..AllocClient::default()
    }
}

#[test]
fn a_report_that_comes_late_is_left_out() {
    let told = |stored: &AllocClient, report: &AllocClient| {
        let mut world = world();
        let id = world.allocs[0].id;
        world.stored.put_client(id, stored.clone());
        let reports = Reports::from([(id, report.clone())]);
        let outcomes = decide(&world.stored.snapshot(), &reports, NOW);
        let write = outcomes.first().map(|outcome| outcome.write.clone());
        write.map(|write| match write {
            Write::Update {
                entity: Entity::AllocClient(client),
                ..
            } => (client.report, client.description),
            other => panic!("{other:?}"),
        })
    };
    let stored = numbered(5, "new");
    assert_eq!(told(&stored, &numbered(4, "old")), None);
    assert_eq!(told(&stored, &numbered(5, "new")), None, "sent again");
    let newer = Some((6, "newer".to_owned()));
    assert_eq!(told(&stored, &numbered(6, "newer")), newer);
    let same = Some((6, "new".to_owned()));
    assert_eq!(told(&stored, &numbered(6, "new")), same, "5 and 6 are over");
    // From a node of an earlier version: its reports have no order, and what had one keeps it.
    let unnumbered = Some((5, "whatever".to_owned()));
    assert_eq!(told(&stored, &numbered(0, "whatever")), unnumbered);
    assert_eq!(told(&stored, &numbered(0, "new")), None, "nothing new");
    let first = Some((1, "first".to_owned()));
    assert_eq!(told(&numbered(0, "old"), &numbered(1, "first")), first);
}

#[test]
fn of_several_reports_of_one_allocation_the_one_made_last_counts() {
    let id = AllocId::from_random(1);
    for (numbers, last) in [
        (&[1, 3, 2][..], 3),
        (&[3, 3, 1][..], 3),
        (&[2, 0][..], 0),
        (&[0, 1][..], 1),
    ] {
        let mut reports = Reports::new();
        for number in numbers {
            add(&mut reports, id, numbered(*number, ""));
        }
        assert_eq!(reports[&id].report, last, "{numbers:?}");
    }
}

#[test]
fn what_ends_or_comes_back_is_looked_at_and_nothing_else_is() {
    use ClientStatus::{Complete, Failed, Pending, Running};
    for (status, want) in [
        (Pending, None),
        (Running, None),
        (Complete, None),
        (Failed, Some(TriggeredBy::AllocFailure)),
    ] {
        assert_eq!(world().trigger(status), want, "{status:?}");
    }
}

#[test]
fn a_failure_that_cannot_be_rescheduled_is_not_looked_at() {
    type Edit = fn(&mut World);
    let edits: [(&str, Edit); 6] = [
        ("a follow-up is pending", |world| {
            world.edit(|alloc| alloc.followup_eval_id = Some(EvalId::from_random(9)));
        }),
        ("it was told to stop", |world| {
            world.edit(|alloc| alloc.desired_status = DesiredStatus::Stop);
        }),
        ("it had failed before", |world| {
            let failed = AllocClient {
                description: "other".into(),
                ..report(ClientStatus::Failed)
            };
            world.stored.put_client(world.allocs[0].id, failed);
        }),
        ("its group is gone", |world| {
            world.job.task_groups[0].name = "api".into();
            world.stored.put_job(&world.job);
        }),
        ("its group is not rescheduled", |world| {
            world.job.task_groups[0].reschedule = None;
            world.stored.put_job(&world.job);
        }),
        ("no attempt is left", |world| {
            let policy = world.job.task_groups[0].reschedule.as_mut().unwrap();
            (policy.unlimited, policy.attempts) = (false, 0);
            world.stored.put_job(&world.job);
        }),
    ];
    for (why, edit) in edits {
        let mut world = world();
        edit(&mut world);
        assert_eq!(world.trigger(ClientStatus::Failed), None, "{why}");
    }
}

#[test]
fn attempts_count_within_the_policys_interval() {
    for (seconds_ago, want) in [(59, None), (61, Some(TriggeredBy::AllocFailure))] {
        let mut world = world();
        let policy = world.job.task_groups[0].reschedule.as_mut().unwrap();
        (policy.unlimited, policy.attempts) = (false, 1);
        policy.interval = Duration::from_secs(60);
        world.stored.put_job(&world.job);
        let time = Timestamp(NOW.0 - seconds_ago * 1_000_000_000);
        let (previous_alloc, previous_node) = (world.allocs[1].id, world.node.id);
        let event = RescheduleEvent {
            time,
            previous_alloc,
            previous_node,
            delay: Duration::ZERO,
        };
        world.edit(|alloc| alloc.reschedules = vec![event]);
        assert_eq!(
            world.trigger(ClientStatus::Failed),
            want,
            "{seconds_ago} s ago"
        );
    }
}

#[test]
fn scenario_063_an_allocation_heard_of_again_is_a_reconnect_and_its_follow_up_is_canceled() {
    let mut world = world();
    let mut followup = builders::evaluation(9, &world.job);
    followup.wait_until = NOW.plus(Duration::from_secs(60));
    let modify_index = world.stored.put_eval(&followup);
    world.edit(|alloc| {
        alloc.client_status_override = Some(ClientStatus::Unknown);
        alloc.followup_eval_id = Some(followup.id);
    });
    for status in [ClientStatus::Running, ClientStatus::Failed] {
        let outcomes = world.outcomes(&[(0, status)]);
        assert_eq!(
            outcomes[0].eval.unwrap().triggered_by,
            TriggeredBy::Reconnect,
            "{status:?}"
        );
        let (id, write) = outcomes[0].canceled.as_ref().unwrap();
        assert_eq!(*id, followup.id);
        let Write::Update {
            modify_index: compared,
            entity: Entity::Eval(eval),
            ..
        } = write
        else {
            panic!("{write:?}")
        };
        assert_eq!(
            (*compared, eval.status),
            (modify_index, EvalStatus::Canceled)
        );
    }
}

#[test]
fn a_follow_up_that_another_waits_for_is_not_canceled() {
    let mut world = world();
    let followup = builders::evaluation(9, &world.job);
    world.stored.put_eval(&followup);
    for alloc in &mut world.allocs {
        alloc.client_status_override = Some(ClientStatus::Unknown);
        alloc.followup_eval_id = Some(followup.id);
        world.stored.put_alloc(alloc);
    }
    assert_eq!(
        world.outcomes(&[(0, ClientStatus::Running)])[0].canceled,
        None
    );
    let done = Evaluation {
        status: EvalStatus::Complete,
        ..followup
    };
    world.stored.put_eval(&done);
    world.edit(|_| {});
    assert_eq!(
        world.outcomes(&[(0, ClientStatus::Running)])[0].canceled,
        None,
        "it has run"
    );
}

#[test]
fn what_a_purged_job_left_running_is_stopped_when_it_ends_by_itself() {
    for (desired, want) in [
        (DesiredStatus::Run, Some(TriggeredBy::JobDeregister)),
        (DesiredStatus::Stop, None),
    ] {
        let mut world = world();
        world.stored.delete(Key::Job(world.job.key()));
        world.edit(|alloc| alloc.desired_status = desired);
        assert_eq!(world.trigger(ClientStatus::Complete), want, "{desired:?}");
        assert_eq!(world.trigger(ClientStatus::Running), None, "{desired:?}");
    }
}

#[test]
fn one_that_reconnects_decides_for_its_job() {
    let mut world = world();
    world.edit(|alloc| alloc.client_status_override = Some(ClientStatus::Unknown));
    let outcomes = world.outcomes(&[(0, ClientStatus::Running), (1, ClientStatus::Failed)]);
    let triggers: Vec<_> = outcomes
        .iter()
        .map(|one| one.eval.unwrap().triggered_by)
        .collect();
    assert_eq!(triggers, [TriggeredBy::Reconnect; 2]);
}

#[test]
fn reports_of_another_nodes_allocations_are_refused() {
    let mut world = world();
    let other = builders::allocation(3, &world.job, builders::node(2).id);
    world.stored.put_alloc(&other);
    let reports = Reports::from([(other.id, report(ClientStatus::Running))]);
    let refused = check(&world.stored.snapshot(), world.node.id, reports).unwrap_err();
    let (alloc_id, node_id) = (other.id, other.node_id);
    assert_eq!(refused, Refusal::AnotherNodes { alloc_id, node_id });
}

#[test]
fn verdicts_that_are_the_servers_are_refused() {
    let world = world();
    for status in [ClientStatus::Lost, ClientStatus::Unknown] {
        let reports = Reports::from([(world.allocs[0].id, report(status))]);
        let refused = check(&world.stored.snapshot(), world.node.id, reports).unwrap_err();
        let Refusal::Invalid(errors) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(errors.0[0].field, "reports[0].client.status");
    }
}

#[test]
fn what_is_not_known_is_named_and_the_rest_is_taken() {
    let world = world();
    let ghost = builders::allocation(9, &world.job, world.node.id).id;
    let reports = Reports::from([
        (world.allocs[0].id, report(ClientStatus::Running)),
        (ghost, report(ClientStatus::Running)),
    ]);
    let (known, missing) = check(&world.stored.snapshot(), world.node.id, reports).unwrap();
    assert_eq!(
        known.keys().copied().collect::<Vec<_>>(),
        [world.allocs[0].id]
    );
    assert_eq!(missing, [ghost]);
}

#[test]
fn reports_are_cut_to_a_size_that_the_store_can_bear() {
    let world = world();
    let event = |number: usize| TaskEvent {
        event_type: format!("event-{number}"),
        message: "ü".repeat(5_000),
        details: (0..100)
            .map(|n| (format!("key-{n:03}"), "v".repeat(5_000)))
            .collect(),
        ..TaskEvent::default()
    };
    let state = TaskState {
        events: (0..50).map(event).collect(),
        ..TaskState::default()
    };
    let client = AllocClient {
        description: "d".repeat(5_000),
        task_states: BTreeMap::from([("server".to_owned(), state)]),
        ..report(ClientStatus::Running)
    };
    let reports = Reports::from([(world.allocs[0].id, client)]);
    let (known, _) = check(&world.stored.snapshot(), world.node.id, reports).unwrap();
    let client = &known[&world.allocs[0].id];
    let events = &client.task_states["server"].events;
    assert_eq!(
        (events.len(), events[0].event_type.as_str()),
        (10, "event-40"),
        "the newest"
    );
    assert_eq!(
        (events[0].message.len(), events[0].details.len()),
        (1_024, 16)
    );
    assert!(events[0].details.values().all(|value| value.len() <= 1_024));
    assert_eq!(client.description.len(), 1_024);
}

#[test]
fn a_report_that_cutting_does_not_help_is_refused_with_its_field() {
    let world = world();
    let long_key = TaskEvent {
        event_type: "e".repeat(1_500_000),
        details: BTreeMap::from([("k".repeat(1_500_000), "v".to_owned())]),
        ..TaskEvent::default()
    };
    let state = TaskState {
        events: vec![long_key],
        ..TaskState::default()
    };
    let with_tasks = |task_states: BTreeMap<String, TaskState>| {
        let client = AllocClient {
            task_states,
            ..report(ClientStatus::Running)
        };
        let reports = Reports::from([(world.allocs[0].id, client)]);
        check(&world.stored.snapshot(), world.node.id, reports)
    };
    let (known, _) = with_tasks(BTreeMap::from([("server".to_owned(), state)])).unwrap();
    let event = &known[&world.allocs[0].id].task_states["server"].events[0];
    assert_eq!(event.event_type.len(), 1_024);
    assert_eq!(event.details.keys().next().unwrap().len(), 1_024);
    let long_name = BTreeMap::from([("n".repeat(1_500_000), TaskState::default())]);
    let many = (0..10_000).map(|number| (number.to_string(), TaskState::default()));
    for task_states in [long_name, many.collect()] {
        let Err(Refusal::Invalid(errors)) = with_tasks(task_states) else {
            panic!("taken")
        };
        assert_eq!(errors.0[0].field, "reports[0].client.task_states");
    }
}

/// Whatever slips through what is checked before.
#[tokio::test]
async fn a_report_that_no_transaction_takes_is_left_out_and_the_others_are_packed() {
    let mut outcomes = failures(1_500, 3);
    let bad = outcomes[700].alloc_id;
    let huge = AllocClient {
        description: "d".repeat(2 << 20),
        ..report(ClientStatus::Failed)
    };
    outcomes[700].write = Write::Create {
        key: Key::AllocClient(bad),
        entity: Entity::AllocClient(Box::new(huge)),
    };
    let (txns, refused) = packed(&outcomes).await;
    assert_eq!(refused, [bad]);
    let writes: usize = txns.iter().map(store::Txn::write_count).sum();
    // Each transaction has one evaluation for each of its jobs.
    assert!(
        (1_499 + 3..=1_499 + 3 * txns.len()).contains(&writes),
        "{writes}"
    );
}

/// Packs outcomes into transactions of a client that is never connected.
async fn packed(outcomes: &[Outcome]) -> (Vec<store::Txn>, Vec<AllocId>) {
    let nowhere = ["http://127.0.0.1:1".to_owned()];
    let client = store::Client::connect(&nowhere, store::ClientOptions::default())
        .await
        .unwrap();
    let writer = client.unfenced_writer();
    let mut evals = 0;
    let next_id = || {
        evals += 1;
        EvalId::from_random(evals)
    };
    let packed = pack(outcomes, NOW, "00-parent-01", || writer.txn(), next_id);
    (packed.txns, packed.refused.into_keys().collect())
}

/// Returns the outcomes of failures of `count` allocations, spread evenly over `jobs` jobs.
fn failures(count: u128, jobs: u128) -> Vec<Outcome> {
    let (mut stored, node) = (Stored::default(), builders::node(1));
    let mut reports = Reports::new();
    for number in 1..=count {
        let job = builders::service(&format!("job-{}", number % jobs), 1);
        if number <= jobs {
            stored.put_job(&job);
        }
        let alloc = builders::allocation(number, &job, node.id);
        stored.put_alloc(&alloc);
        reports.insert(alloc.id, report(ClientStatus::Failed));
    }
    decide(&stored.snapshot(), &reports, NOW)
}

#[tokio::test]
async fn transactions_stay_within_their_limits_and_each_has_its_evaluations() {
    for (count, jobs) in [(10, 1), (998, 3), (1_500, 1), (1_500, 1_500), (3_000, 7)] {
        let outcomes = failures(count, jobs);
        assert_eq!(outcomes.len() as u128, count);
        let (txns, refused) = packed(&outcomes).await;
        assert_eq!(refused, []);
        let writes: usize = txns.iter().map(store::Txn::write_count).sum();
        let evals = writes - outcomes.len();
        assert!(
            txns.iter().all(|txn| txn.op_count() <= 1_000),
            "{count} of {jobs} jobs"
        );
        if jobs == 1 {
            assert_eq!(evals, txns.len(), "each transaction has its own: {count}");
        }
        // Ordered by job, so at a cut one job's reports are in two transactions, with one each.
        let want = usize::try_from(jobs).unwrap()..=usize::try_from(jobs).unwrap() + txns.len() - 1;
        assert!(
            want.contains(&evals),
            "{count} of {jobs} jobs: {evals} evaluations"
        );
    }
}

#[tokio::test]
async fn nothing_to_say_makes_no_transaction() {
    assert!(packed(&[]).await.0.is_empty());
}

#[test]
fn a_users_word_on_health_outlives_reports_that_know_nothing_of_it() {
    let deployment_id = model::DeploymentId::from_random(7);
    let said = |healthy, ms: u64, id| {
        Some(model::DeploymentHealth {
            healthy,
            time: Timestamp::from_millis(ms),
            deployment_id: Some(id),
        })
    };
    let (own, other) = (deployment_id, model::DeploymentId::from_random(8));
    // (stored, told by the node, what counts)
    let cases = [
        (said(true, 5, own), None, said(true, 5, own)),
        (said(true, 5, own), said(false, 4, own), said(true, 5, own)),
        (said(true, 5, own), said(false, 6, own), said(false, 6, own)),
        (
            said(true, 5, own),
            said(false, 6, other),
            said(true, 5, own),
        ),
        (
            said(true, 5, other),
            said(false, 4, own),
            said(false, 4, own),
        ),
        (said(true, 5, other), None, None),
        (None, said(false, 4, own), said(false, 4, own)),
    ];
    for (stored, told, expected) in cases {
        let mut world = world();
        world.edit(|alloc| alloc.deployment_id = Some(deployment_id));
        let id = world.allocs[0].id;
        let client = AllocClient {
            health: stored,
            ..report(ClientStatus::Pending)
        };
        world.stored.put_client(id, client);
        let reports = Reports::from([(
            id,
            AllocClient {
                health: told,
                ..report(ClientStatus::Running)
            },
        )]);
        let outcomes = decide(&world.stored.snapshot(), &reports, NOW);
        let Write::Update { entity, .. } = &outcomes[0].write else {
            panic!("{outcomes:?}");
        };
        let Entity::AllocClient(written) = entity else {
            panic!("{entity:?}");
        };
        assert_eq!(written.health, expected, "{stored:?} {told:?}");
        assert_eq!(written.status, ClientStatus::Running);
    }
}
