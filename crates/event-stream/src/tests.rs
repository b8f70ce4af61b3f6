//! Events of committed writes: their types, payloads from the past, filters.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    AllocClient, AllocId, ClientStatus, EvalStatus, Evaluation, NodeEligibility, NodeStatus,
    TriggeredBy,
};
use proto::v1::{self, event::Payload};
use state::{AllocView, Change, Entity, Key};
use store::RevisionChanges;
use test_kit::{Stored, builders};

use crate::past::{MissingSides, missing_sides};
use crate::written::PastObjects;
use crate::{Filter, describe, kind};

const NOW: u64 = 50;

fn put(key: Key, entity: Entity, create_index: u64) -> Change {
    Change::Put {
        key,
        entity,
        create_index,
        modify_index: NOW,
    }
}

fn written(changes: Vec<Change>) -> RevisionChanges {
    RevisionChanges {
        revision: NOW,
        changes,
        nodes_before: Vec::new(),
    }
}

fn eval(status: EvalStatus, triggered_by: TriggeredBy, create_index: u64) -> Change {
    let eval = Evaluation {
        status,
        triggered_by,
        ..builders::evaluation(1, &builders::service("web", 1))
    };
    put(
        Key::Eval(eval.id),
        Entity::Eval(Box::new(eval)),
        create_index,
    )
}

fn job(stop: bool) -> Change {
    let mut job = builders::service("web", 1);
    job.stop = stop;
    put(Key::Job(job.key()), Entity::Job(Box::new(job)), 10)
}

fn alloc(create_index: u64) -> Change {
    let job = builders::service("web", 1);
    let alloc = builders::allocation(1, &job, builders::node(1).id);
    put(
        Key::Alloc(alloc.id),
        Entity::Alloc(Box::new(alloc)),
        create_index,
    )
}

fn client(status: ClientStatus) -> Change {
    let client = AllocClient {
        status,
        ..AllocClient::default()
    };
    put(
        Key::AllocClient(AllocId::from_random(1)),
        Entity::AllocClient(Box::new(client)),
        20,
    )
}

#[test]
fn the_type_of_a_write_follows_from_its_changes() {
    use EvalStatus::{Blocked, Canceled, Complete, Pending};
    use TriggeredBy::{AllocFailure, JobDeregister, JobRegister, NodeDrain, QueuedAllocs};
    let gone = Change::Delete {
        key: Key::Job(builders::service("web", 1).key()),
    };
    let table = [
        (
            "JobRegistered",
            vec![eval(Pending, JobRegister, NOW), job(false)],
        ),
        // The job is unchanged, but evaluated.
        ("JobRegistered", vec![eval(Pending, JobRegister, NOW)]),
        (
            "JobDeregistered",
            vec![eval(Pending, JobDeregister, NOW), job(true)],
        ),
        ("JobDeregistered", vec![gone]),
        (
            "PlanResult",
            vec![alloc(NOW), eval(Complete, JobRegister, 40)],
        ),
        // No room for anything.
        (
            "PlanResult",
            vec![
                eval(Complete, JobRegister, 40),
                eval(Blocked, QueuedAllocs, NOW),
            ],
        ),
        // Nodes' reports may ask for an evaluation.
        (
            "AllocationUpdated",
            vec![
                client(ClientStatus::Failed),
                eval(Pending, AllocFailure, NOW),
            ],
        ),
        (
            "AllocationUpdateDesiredStatus",
            vec![alloc(30), eval(Pending, NodeDrain, NOW)],
        ),
        ("EvaluationUpdated", vec![eval(Canceled, JobRegister, 40)]),
    ];
    for (want, changes) in table {
        assert_eq!(
            kind::of_write(&written(changes.clone())),
            want,
            "{changes:?}"
        );
    }
}

#[test]
fn the_type_of_a_nodes_change_follows_from_its_former_record() {
    let node = builders::node(1);
    let shown = |before: Option<model::Node>| {
        let change = put(Key::Node(node.id), Entity::Node(Box::new(node.clone())), 10);
        kind::of_write(&RevisionChanges {
            nodes_before: before.into_iter().collect(),
            ..written(vec![change])
        })
    };
    let mut before = node.clone();
    before.eligibility = NodeEligibility::Ineligible;
    assert_eq!(shown(Some(before.clone())), "NodeEligibility");
    before.status = NodeStatus::Down;
    assert_eq!(shown(Some(before)), "NodeStreamEvent");
    let mut before = node.clone();
    before.meta.insert("rack".into(), "r1".into());
    assert_eq!(shown(Some(before)), "NodeRegistration");
    assert_eq!(shown(None), "NodeStreamEvent", "it is not known any more");
}

fn shown(event: &v1::Event) -> &v1::Allocation {
    match &event.payload {
        Some(Payload::Allocation(alloc)) => alloc,
        other => panic!("an allocation: {other:?}"),
    }
}

#[test]
fn an_event_shows_both_sides_of_an_allocation() {
    let mut stored = Stored::default();
    let job = builders::service("web", 1);
    let alloc = builders::allocation(1, &job, builders::node(1).id);
    stored.put_job(&job);
    stored.put_alloc(&alloc);
    let reported = written(vec![client(ClientStatus::Running)]);
    let events = describe(&reported, &stored.snapshot(), &PastObjects::default());
    let [event] = events.as_slice() else {
        panic!("one: {events:?}");
    };
    assert_eq!(event.index, NOW);
    assert_eq!(
        (&*event.topic, &*event.r#type),
        ("Allocation", "AllocationUpdated")
    );
    assert_eq!(event.key, alloc.id.to_string());
    assert_eq!(event.filter_keys, ["web"]);
    assert_eq!(shown(event).job_id, "web");
    assert_eq!(shown(event).client_status, "running");
    assert_eq!(shown(event).modify_index, NOW);
}

#[test]
fn both_sides_of_one_allocation_in_one_write_are_one_event() {
    let events = describe(
        &written(vec![alloc(NOW), client(ClientStatus::Lost)]),
        &Stored::default().snapshot(),
        &PastObjects::default(),
    );
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(shown(&events[0]).client_status, "lost");
}

#[test]
fn an_event_of_a_collected_allocation_is_read_from_the_past() {
    let job = builders::service("web", 1);
    let alloc = builders::allocation(1, &job, builders::node(1).id);
    let known = AllocView {
        alloc: Arc::new(alloc.clone()),
        create_index: 5,
        alloc_modify_index: 5,
        client: None,
        client_modify_index: 0,
    };
    let reported = written(vec![client(ClientStatus::Complete)]);
    let snapshot = Stored::default().snapshot();
    let wanted = MissingSides {
        id: alloc.id,
        alloc: true,
        client: false,
    };
    assert_eq!(missing_sides(&reported, &snapshot), [wanted]);
    let past = PastObjects {
        allocs: BTreeMap::from([(alloc.id, known)]),
        ..PastObjects::default()
    };
    let events = describe(&reported, &snapshot, &past);
    assert_eq!(shown(&events[0]).client_status, "complete");
    assert_eq!(events[0].filter_keys, ["web"]);
    // The past does not have it, either, so there is no event.
    assert_eq!(describe(&reported, &snapshot, &PastObjects::default()), []);
}

#[test]
fn only_the_side_that_has_changed_since_is_read_from_the_past() {
    let mut stored = Stored::default();
    let job = builders::service("web", 1);
    let id = builders::allocation(1, &job, builders::node(1).id).id;
    stored.put_job(&job);
    stored.put_alloc(&builders::allocation(1, &job, builders::node(1).id));
    stored.put_status(id, ClientStatus::Running);
    let sides = |alloc, client| [MissingSides { id, alloc, client }];
    let reported = written(vec![client(ClientStatus::Running)]);
    let stopped = written(vec![alloc(10)]);
    // The replica has not reached the write yet: it may not know what came before.
    assert_eq!(
        missing_sides(&reported, &stored.snapshot()),
        sides(true, false)
    );
    assert_eq!(
        missing_sides(&stopped, &stored.snapshot()),
        sides(false, true)
    );
    // It has, and nothing else was written.
    stored.advance(NOW);
    assert_eq!(missing_sides(&reported, &stored.snapshot()), []);
    assert_eq!(missing_sides(&stopped, &stored.snapshot()), []);
    // The node has said more since.
    stored.put_status(id, ClientStatus::Complete);
    assert_eq!(missing_sides(&reported, &stored.snapshot()), []);
    assert_eq!(
        missing_sides(&stopped, &stored.snapshot()),
        sides(false, true)
    );
    // A new allocation had no other side.
    let placed = written(vec![alloc(NOW)]);
    assert_eq!(missing_sides(&placed, &stored.snapshot()), []);
    let events = describe(&placed, &stored.snapshot(), &PastObjects::default());
    assert_eq!(shown(&events[0]).client_status, "pending");
    assert_eq!(shown(&events[0]).modify_index, NOW);
}

#[test]
fn a_job_is_shown_with_the_status_that_it_had() {
    let mut stored = Stored::default();
    let running = builders::service("web", 1);
    let shown = |stored: &Stored, job: &model::Job| {
        let change = put(Key::Job(job.key()), Entity::Job(Box::new(job.clone())), 1);
        let asked = eval(EvalStatus::Pending, TriggeredBy::JobRegister, NOW);
        let events = describe(
            &written(vec![change, asked]),
            &stored.snapshot(),
            &PastObjects::default(),
        );
        match &events[0].payload {
            Some(Payload::Job(job)) => job.status.clone().unwrap(),
            other => panic!("a job: {other:?}"),
        }
    };
    stored.put_job(&running);
    stored.advance(NOW);
    // Placed later.
    let placed = builders::allocation(1, &running, builders::node(1).id);
    stored.put_alloc(&placed);
    stored.put_status(placed.id, ClientStatus::Running);
    assert_eq!(shown(&stored, &running), "pending");

    // Placed before, and over by now.
    let mut stored = Stored::default();
    stored.put_job(&running);
    stored.put_alloc(&placed);
    stored.advance(NOW);
    assert_eq!(shown(&stored, &running), "running");
    stored.put_status(placed.id, ClientStatus::Complete);
    assert_eq!(shown(&stored, &running), "running");

    // Over before.
    let mut stored = Stored::default();
    stored.put_job(&running);
    stored.put_alloc(&placed);
    stored.put_status(placed.id, ClientStatus::Complete);
    stored.advance(NOW);
    assert_eq!(shown(&stored, &running), "pending");
    let mut system = running.clone();
    system.job_type = model::JobType::System;
    assert_eq!(shown(&stored, &system), "running");
    system.stop = true;
    assert_eq!(shown(&stored, &system), "dead");
}

fn filter(namespace: &str, wanted: &[(&str, &str)]) -> Filter {
    let filters = wanted.iter().map(|(topic, key)| v1::EventFilter {
        topic: (*topic).to_owned(),
        key: (*key).to_owned(),
    });
    Filter::read(namespace.to_owned(), filters.collect()).unwrap()
}

#[test]
fn a_caller_gets_the_events_of_its_filters() {
    let event = |topic: &str, key: &str, namespace: &str, others: &[&str]| v1::Event {
        topic: topic.to_owned(),
        key: key.to_owned(),
        namespace: namespace.to_owned(),
        filter_keys: others.iter().map(|key| (*key).to_owned()).collect(),
        ..v1::Event::default()
    };
    let job = event("Job", "web", "default", &[]);
    let other = event("Job", "web", "prod", &[]);
    let alloc = event("Allocation", "a1", "default", &["web", "d1"]);
    let node = event("Node", "n1", "", &[]);
    let all = [&job, &other, &alloc, &node];
    let table: [(Filter, [bool; 4]); 8] = [
        (filter("", &[]), [true, false, true, true]),
        (filter("*", &[]), [true, true, true, true]),
        (filter("prod", &[("*", "")]), [false, true, false, true]),
        (filter("", &[("Job", "*")]), [true, false, false, false]),
        (filter("", &[("*", "web")]), [true, false, true, false]),
        (
            filter("", &[("Allocation", "d1")]),
            [false, false, true, false],
        ),
        (filter("", &[("Allocation", "d2")]), [false; 4]),
        (
            filter("*", &[("Node", "n1"), ("Job", "db")]),
            [false, false, false, true],
        ),
    ];
    for (filter, want) in table {
        assert_eq!(all.map(|event| filter.admits(event)), want, "{filter:?}");
    }
}

#[test]
fn an_unknown_topic_is_refused_with_all_topics() {
    let filters = vec![v1::EventFilter {
        topic: "Jobs".to_owned(),
        key: String::new(),
    }];
    let errors = Filter::read(String::new(), filters).unwrap_err();
    let text = errors.to_string();
    assert!(text.contains("filters[0].topic"), "{text}");
    assert!(text.contains("Job, Allocation"), "{text}");
}

#[test]
fn filters_are_limited() {
    let read = |count| {
        let filters = (0..count).map(|number| v1::EventFilter {
            topic: "Job".to_owned(),
            key: format!("job-{number}"),
        });
        Filter::read(String::new(), filters.collect())
    };
    assert!(read(256).is_ok());
    let text = read(257).unwrap_err().to_string();
    assert!(text.contains("257 are too many"), "{text}");
}

#[test]
fn an_allocation_of_a_rollout_is_found_by_it() {
    let mut stored = Stored::default();
    let job = builders::service("web", 1);
    let mut alloc = builders::allocation(1, &job, builders::node(1).id);
    let deployment_id = model::DeploymentId::from_random(7);
    alloc.deployment_id = Some(deployment_id);
    stored.put_job(&job);
    stored.put_alloc(&alloc);
    let reported = written(vec![client(ClientStatus::Running)]);
    let events = describe(&reported, &stored.snapshot(), &PastObjects::default());
    let id = deployment_id.to_string();
    assert_eq!(events[0].filter_keys, ["web", &*id]);
    assert!(filter("", &[("Allocation", &*id)]).admits(&events[0]));
}
