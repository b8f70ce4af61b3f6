//! Reports: which are stored, and which cause an evaluation.

use std::collections::BTreeMap;
use std::time::Duration;

use model::allocation::RescheduleEvent;
use model::{
    AllocClient, AllocId, Allocation, ClientStatus, DesiredStatus, EvalId, EvalStatus, Evaluation,
    Job, JobType, Node, NodeId, TaskEvent, TaskState, TaskStates, Timestamp, TriggeredBy,
};
use state::{Entity, Key, Snapshot, Write};
use test_kit::{Stored, builders};

use crate::nodes::reports::{
    self, ReportDecision, ReportRefusal, Reports, add, decide, newer, numbers,
};

const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

fn report(status: ClientStatus) -> AllocClient {
    AllocClient {
        status,
        ..AllocClient::default()
    }
}

/// A service with two allocations on one node.
struct Fixture {
    stored: Stored,
    job: Job,
    node: Node,
    allocs: [Allocation; 2],
}

fn fixture() -> Fixture {
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
    Fixture {
        stored,
        job,
        node,
        allocs,
    }
}

/// Checks with the size of JSON, which is how values are stored.
fn check(
    snapshot: &Snapshot,
    node_id: NodeId,
    reports: Reports,
) -> Result<(Reports, Vec<AllocId>), ReportRefusal> {
    let stored_size = |client: &AllocClient| serde_json::to_vec(client).unwrap().len();
    reports::check(snapshot, node_id, reports, stored_size)
}

impl Fixture {
    fn outcomes(&self, statuses: &[(usize, ClientStatus)]) -> Vec<ReportDecision> {
        let reports = statuses
            .iter()
            .map(|(position, status)| (self.allocs[*position].id, report(*status)))
            .collect();
        decide(&self.stored.snapshot(), &reports, NOW)
    }

    /// Returns the trigger of the evaluation that a report of `status` causes.
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
fn the_first_report_is_created_and_later_ones_update_it() {
    let mut fixture = fixture();
    let first = fixture.outcomes(&[(0, ClientStatus::Running)]);
    assert!(matches!(
        first[0].write,
        Write::Create {
            key: Key::AllocClient(_),
            ..
        }
    ));
    let stored_at = fixture
        .stored
        .put_status(fixture.allocs[0].id, ClientStatus::Running);
    let later = fixture.outcomes(&[(0, ClientStatus::Complete)]);
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
fn a_report_without_news_writes_nothing() {
    let mut fixture = fixture();
    let stored = AllocClient {
        modify_time: Timestamp(5),
        ..report(ClientStatus::Running)
    };
    fixture.stored.put_client(fixture.allocs[0].id, stored);
    assert_eq!(fixture.outcomes(&[(0, ClientStatus::Running)]), []);
}

/// A node stops what the servers want after a restored snapshot, and without contact.
#[test]
fn the_end_of_a_service_that_the_servers_want_is_evaluated() {
    use ClientStatus::{Complete, Running};
    use DesiredStatus::{Run, Stop};
    use JobType::{Batch, Service, Sysbatch, System};
    for (job_type, desired, stored, expected) in [
        (Service, Run, Some(Running), Some(TriggeredBy::AllocStop)),
        (Service, Run, None, Some(TriggeredBy::AllocStop)),
        (System, Run, Some(Running), Some(TriggeredBy::AllocStop)),
        // Their end is their success.
        (Batch, Run, Some(Running), None),
        (Sysbatch, Run, Some(Running), None),
        // The servers stopped it.
        (Service, Stop, Some(Running), None),
        // The end is known.
        (Service, Run, Some(Complete), None),
    ] {
        let mut fixture = fixture();
        fixture.job.job_type = job_type;
        fixture.stored.put_job(&fixture.job);
        fixture.edit(|alloc| alloc.desired_status = desired);
        if let Some(status) = stored {
            fixture.stored.put_status(fixture.allocs[0].id, status);
        }
        let found = fixture.trigger(Complete);
        assert_eq!(found, expected, "{job_type:?} {desired:?} {stored:?}");
    }
}

/// §7.6, row by row.
#[test]
fn a_report_from_before_the_end_does_not_undo_it() {
    use ClientStatus::{Complete, Failed, Pending, Running};
    for end in [Complete, Failed] {
        let mut fixture = fixture();
        let id = fixture.allocs[0].id;
        fixture.stored.put_client(id, report(end));
        for late in [Pending, Running, Complete, Failed] {
            assert_eq!(fixture.outcomes(&[(0, late)]), [], "{late:?} after {end:?}");
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
fn a_dropped_report_is_answered_with_the_number_of_the_later_one() {
    // (stored, submitted in the batch, the caller's own) → the later one.
    for (stored, batch, own, expected) in [
        (5, 4, 4, Some(5)),
        (5, 5, 5, None),
        (5, 6, 6, None),
        // Another submission of the same batch is newer.
        (5, 7, 6, Some(7)),
        // A node of an earlier version sends no numbers.
        (5, 0, 0, None),
    ] {
        let mut fixture = fixture();
        let id = fixture.allocs[0].id;
        fixture.stored.put_client(id, numbered(stored, "stored"));
        let reports = |number| Reports::from([(id, numbered(number, "sent"))]);
        let numbers = numbers(&fixture.stored.snapshot(), &reports(batch));
        let found = newer(&numbers, &reports(own));
        let expected: Vec<_> = expected.map(|number| (id, number)).into_iter().collect();
        assert_eq!(found, expected, "{stored} {batch} {own}");
    }
    let unknown = AllocId::from_random(99);
    let reports = Reports::from([(unknown, numbered(3, "sent"))]);
    assert_eq!(numbers(&fixture().stored.snapshot(), &reports)[&unknown], 3);
}

#[test]
fn a_report_that_comes_late_is_left_out() {
    let written = |stored: &AllocClient, report: &AllocClient| {
        let mut fixture = fixture();
        let id = fixture.allocs[0].id;
        fixture.stored.put_client(id, stored.clone());
        let reports = Reports::from([(id, report.clone())]);
        let outcomes = decide(&fixture.stored.snapshot(), &reports, NOW);
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
    assert_eq!(written(&stored, &numbered(4, "old")), None);
    assert_eq!(written(&stored, &numbered(5, "new")), None, "sent again");
    let newer = Some((6, "newer".to_owned()));
    assert_eq!(written(&stored, &numbered(6, "newer")), newer);
    let same = Some((6, "new".to_owned()));
    assert_eq!(
        written(&stored, &numbered(6, "new")),
        same,
        "5 and 6 are over"
    );
    // A node of an earlier version sends no numbers; the stored number stays.
    let unnumbered = Some((5, "whatever".to_owned()));
    assert_eq!(written(&stored, &numbered(0, "whatever")), unnumbered);
    assert_eq!(written(&stored, &numbered(0, "new")), None, "nothing new");
    let first = Some((1, "first".to_owned()));
    assert_eq!(written(&numbered(0, "old"), &numbered(1, "first")), first);
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
fn a_report_of_life_causes_no_evaluation() {
    use ClientStatus::{Failed, Pending, Running};
    for (status, want) in [
        (Pending, None),
        (Running, None),
        (Failed, Some(TriggeredBy::AllocFailure)),
    ] {
        assert_eq!(fixture().trigger(status), want, "{status:?}");
    }
}

#[test]
fn a_failure_that_cannot_be_rescheduled_causes_no_evaluation() {
    type Edit = fn(&mut Fixture);
    let edits: [(&str, Edit); 6] = [
        ("a follow-up is pending", |fixture| {
            fixture.edit(|alloc| alloc.followup_eval_id = Some(EvalId::from_random(9)));
        }),
        ("it was told to stop", |fixture| {
            fixture.edit(|alloc| alloc.desired_status = DesiredStatus::Stop);
        }),
        ("it had failed before", |fixture| {
            let failed = AllocClient {
                description: "other".into(),
                ..report(ClientStatus::Failed)
            };
            fixture.stored.put_client(fixture.allocs[0].id, failed);
        }),
        ("its group is gone", |fixture| {
            fixture.job.task_groups[0].name = "api".into();
            fixture.stored.put_job(&fixture.job);
        }),
        ("its group is not rescheduled", |fixture| {
            fixture.job.task_groups[0].reschedule = None;
            fixture.stored.put_job(&fixture.job);
        }),
        ("no attempt is left", |fixture| {
            let policy = fixture.job.task_groups[0].reschedule.as_mut().unwrap();
            (policy.unlimited, policy.attempts) = (false, 0);
            fixture.stored.put_job(&fixture.job);
        }),
    ];
    for (why, edit) in edits {
        let mut fixture = fixture();
        edit(&mut fixture);
        assert_eq!(fixture.trigger(ClientStatus::Failed), None, "{why}");
    }
}

#[test]
fn attempts_count_within_the_policys_interval() {
    for (seconds_ago, want) in [(59, None), (61, Some(TriggeredBy::AllocFailure))] {
        let mut fixture = fixture();
        let policy = fixture.job.task_groups[0].reschedule.as_mut().unwrap();
        (policy.unlimited, policy.attempts) = (false, 1);
        policy.interval = Duration::from_secs(60);
        fixture.stored.put_job(&fixture.job);
        let time = Timestamp(NOW.0 - seconds_ago * 1_000_000_000);
        let (previous_alloc, previous_node) = (fixture.allocs[1].id, fixture.node.id);
        let event = RescheduleEvent {
            time,
            previous_alloc,
            previous_node,
            delay: Duration::ZERO,
        };
        fixture.edit(|alloc| alloc.reschedules = vec![event]);
        assert_eq!(
            fixture.trigger(ClientStatus::Failed),
            want,
            "{seconds_ago} s ago"
        );
    }
}

/// The scheduler would not replace it, either.
#[test]
fn a_second_attempt_needs_a_delay_below_the_interval() {
    for (delay, want) in [(59, Some(TriggeredBy::AllocFailure)), (60, None)] {
        let mut fixture = fixture();
        let policy = fixture.job.task_groups[0].reschedule.as_mut().unwrap();
        (policy.unlimited, policy.attempts) = (false, 9);
        policy.interval = Duration::from_secs(60);
        policy.delay = Duration::from_secs(delay);
        policy.delay_function = model::job::DelayFunction::Constant;
        fixture.stored.put_job(&fixture.job);
        let event = RescheduleEvent {
            time: Timestamp(NOW.0 - 1_000_000_000),
            previous_alloc: fixture.allocs[1].id,
            previous_node: fixture.node.id,
            delay: Duration::from_secs(delay),
        };
        fixture.edit(|alloc| alloc.reschedules = vec![event]);
        let trigger = fixture.trigger(ClientStatus::Failed);
        assert_eq!(trigger, want, "{delay} s");
    }
}

#[test]
fn scenario_063_an_allocation_heard_of_again_is_a_reconnect_and_its_follow_up_is_canceled() {
    let mut fixture = fixture();
    let mut followup = builders::evaluation(9, &fixture.job);
    followup.wait_until = NOW.plus(Duration::from_secs(60));
    let modify_index = fixture.stored.put_eval(&followup);
    fixture.edit(|alloc| {
        alloc.client_status_override = Some(ClientStatus::Unknown);
        alloc.followup_eval_id = Some(followup.id);
    });
    for status in [ClientStatus::Running, ClientStatus::Failed] {
        let outcomes = fixture.outcomes(&[(0, status)]);
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
    let mut fixture = fixture();
    let followup = builders::evaluation(9, &fixture.job);
    fixture.stored.put_eval(&followup);
    for alloc in &mut fixture.allocs {
        alloc.client_status_override = Some(ClientStatus::Unknown);
        alloc.followup_eval_id = Some(followup.id);
        fixture.stored.put_alloc(alloc);
    }
    assert_eq!(
        fixture.outcomes(&[(0, ClientStatus::Running)])[0].canceled,
        None
    );
    let done = Evaluation {
        status: EvalStatus::Complete,
        ..followup
    };
    fixture.stored.put_eval(&done);
    fixture.edit(|_| {});
    assert_eq!(
        fixture.outcomes(&[(0, ClientStatus::Running)])[0].canceled,
        None,
        "it has run"
    );
}

#[test]
fn an_allocation_of_a_purged_job_causes_an_evaluation_when_it_ends() {
    for (desired, want) in [
        (DesiredStatus::Run, Some(TriggeredBy::JobDeregister)),
        (DesiredStatus::Stop, None),
    ] {
        let mut fixture = fixture();
        fixture.stored.delete(Key::Job(fixture.job.key()));
        fixture.edit(|alloc| alloc.desired_status = desired);
        assert_eq!(fixture.trigger(ClientStatus::Complete), want, "{desired:?}");
        assert_eq!(fixture.trigger(ClientStatus::Running), None, "{desired:?}");
    }
}

#[test]
fn a_reconnect_takes_precedence_in_its_job() {
    let mut fixture = fixture();
    fixture.edit(|alloc| alloc.client_status_override = Some(ClientStatus::Unknown));
    let outcomes = fixture.outcomes(&[(0, ClientStatus::Running), (1, ClientStatus::Failed)]);
    let triggers: Vec<_> = outcomes
        .iter()
        .map(|one| one.eval.unwrap().triggered_by)
        .collect();
    assert_eq!(triggers, [TriggeredBy::Reconnect; 2]);
}

#[test]
fn reports_of_another_nodes_allocations_are_refused() {
    let mut fixture = fixture();
    let other = builders::allocation(3, &fixture.job, builders::node(2).id);
    fixture.stored.put_alloc(&other);
    let reports = Reports::from([(other.id, report(ClientStatus::Running))]);
    let refused = check(&fixture.stored.snapshot(), fixture.node.id, reports).unwrap_err();
    let (alloc_id, node_id) = (other.id, other.node_id);
    assert_eq!(refused, ReportRefusal::AnotherNodes { alloc_id, node_id });
}

#[test]
fn verdicts_that_are_the_servers_are_refused() {
    let fixture = fixture();
    for status in [ClientStatus::Lost, ClientStatus::Unknown] {
        let reports = Reports::from([(fixture.allocs[0].id, report(status))]);
        let refused = check(&fixture.stored.snapshot(), fixture.node.id, reports).unwrap_err();
        let ReportRefusal::Invalid(errors) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(errors.0[0].field, "reports[0].client.status");
    }
}

#[test]
fn unknown_allocations_are_listed_and_the_rest_is_accepted() {
    let fixture = fixture();
    let ghost = builders::allocation(9, &fixture.job, fixture.node.id).id;
    let reports = Reports::from([
        (fixture.allocs[0].id, report(ClientStatus::Running)),
        (ghost, report(ClientStatus::Running)),
    ]);
    let (known, missing) = check(&fixture.stored.snapshot(), fixture.node.id, reports).unwrap();
    assert_eq!(
        known.keys().copied().collect::<Vec<_>>(),
        [fixture.allocs[0].id]
    );
    assert_eq!(missing, [ghost]);
}

#[test]
fn reports_are_cut_to_a_size_that_the_store_can_bear() {
    let fixture = fixture();
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
        task_states: [("server".to_owned(), state)].into(),
        ..report(ClientStatus::Running)
    };
    let reports = Reports::from([(fixture.allocs[0].id, client)]);
    let (known, _) = check(&fixture.stored.snapshot(), fixture.node.id, reports).unwrap();
    let client = &known[&fixture.allocs[0].id];
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
fn the_states_of_many_tasks_are_stored_with_fewer_events() {
    let fixture = fixture();
    for (tasks, kept) in [(50, 10..=10), (300, 1..=5), (2_000, 0..=0)] {
        let event = |number: usize| TaskEvent {
            event_type: format!("event-{number}"),
            message: "m".repeat(250),
            ..TaskEvent::default()
        };
        let state = TaskState {
            restarts: 3,
            events: (0..10).map(event).collect(),
            ..TaskState::default()
        };
        let states = (0..tasks).map(|number| (format!("task-{number}"), state.clone()));
        let client = AllocClient {
            task_states: states.collect(),
            ..report(ClientStatus::Complete)
        };
        let reports = Reports::from([(fixture.allocs[0].id, client)]);
        let checked = check(&fixture.stored.snapshot(), fixture.node.id, reports);
        let (known, _) = checked.unwrap();
        let client = &known[&fixture.allocs[0].id];
        assert_eq!(client.status, ClientStatus::Complete);
        assert_eq!(client.task_states.iter().count(), tasks);
        for (name, state) in client.task_states.iter() {
            assert_eq!(state.restarts, 3, "{name}");
            assert!(
                kept.contains(&state.events.len()),
                "{name}: {}",
                state.events.len()
            );
            let newest = state.events.last();
            assert!(newest.is_none_or(|event| event.event_type == "event-9"));
        }
    }
}

#[test]
fn a_report_that_cutting_does_not_help_is_refused_with_its_field() {
    let fixture = fixture();
    let long_key = TaskEvent {
        event_type: "e".repeat(1_500_000),
        details: BTreeMap::from([("k".repeat(1_500_000), "v".to_owned())]),
        ..TaskEvent::default()
    };
    let state = TaskState {
        events: vec![long_key],
        ..TaskState::default()
    };
    let with_tasks = |task_states: TaskStates| {
        let client = AllocClient {
            task_states,
            ..report(ClientStatus::Running)
        };
        let reports = Reports::from([(fixture.allocs[0].id, client)]);
        check(&fixture.stored.snapshot(), fixture.node.id, reports)
    };
    let (known, _) = with_tasks([("server".to_owned(), state)].into()).unwrap();
    let event = &known[&fixture.allocs[0].id].task_states["server"].events[0];
    assert_eq!(event.event_type.len(), 1_024);
    assert_eq!(event.details.keys().next().unwrap().len(), 1_024);
    let long_name = TaskStates::from([("n".repeat(1_500_000), TaskState::default())]);
    let many = (0..10_000).map(|number| (number.to_string(), TaskState::default()));
    for task_states in [long_name, many.collect()] {
        let Err(ReportRefusal::Invalid(errors)) = with_tasks(task_states) else {
            panic!("taken")
        };
        assert_eq!(errors.0[0].field, "reports[0].client.task_states");
    }
}

#[test]
fn health_set_by_a_user_outlives_earlier_reports() {
    let deployment_id = model::DeploymentId::from_random(7);
    let said = |healthy, ms: u64, id| {
        Some(model::DeploymentHealth {
            healthy,
            time: Timestamp::from_millis(ms),
            deployment_id: Some(id),
        })
    };
    let (own, other) = (deployment_id, model::DeploymentId::from_random(8));
    // (stored, reported, expected)
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
    for (stored, written, expected) in cases {
        let mut fixture = fixture();
        fixture.edit(|alloc| alloc.deployment_id = Some(deployment_id));
        let id = fixture.allocs[0].id;
        let client = AllocClient {
            health: stored,
            ..report(ClientStatus::Pending)
        };
        fixture.stored.put_client(id, client);
        let reports = Reports::from([(
            id,
            AllocClient {
                health: written,
                ..report(ClientStatus::Running)
            },
        )]);
        let outcomes = decide(&fixture.stored.snapshot(), &reports, NOW);
        let Write::Update { entity, .. } = &outcomes[0].write else {
            panic!("{outcomes:?}");
        };
        let Entity::AllocClient(written) = entity else {
            panic!("{entity:?}");
        };
        assert_eq!(written.health, expected, "{stored:?} {written:?}");
        assert_eq!(written.status, ClientStatus::Running);
    }
}
