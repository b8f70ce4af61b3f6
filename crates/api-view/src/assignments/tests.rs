//! Assignments of a node: the whole list, changes, and allocations without a job.

use std::collections::BTreeSet;

use model::{AllocClient, ClientStatus, DesiredStatus, Evaluation};
use state::Key;
use test_kit::{Stored, builders};

use super::{SentJobs, changed, full};

#[test]
fn a_node_is_sent_all_of_its_allocations_each_job_version_once_and_the_trace() {
    let (mut stored, node, other) = (Stored::default(), builders::node(1), builders::node(2));
    stored.put_node(&node);
    let mut job = builders::service("web", 3);
    stored.put_job(&job);
    job.version = 1;
    stored.put_job(&job);
    for number in 1..=3 {
        let mut alloc = builders::allocation(number, &job, node.id);
        alloc.job_version = u64::from(number == 3);
        let mut eval = builders::evaluation(number, &job);
        eval.trace_parent = format!("trace-{number}");
        stored.put_eval(&Evaluation {
            id: alloc.eval_id,
            ..eval
        });
        stored.put_alloc(&alloc);
    }
    stored.put_alloc(&builders::allocation(4, &job, other.id));

    let (snapshot, mut sent) = (stored.snapshot(), SentJobs::default());
    let update = full(&snapshot, node.id, &mut sent);
    assert_eq!((update.full, update.revision), (true, snapshot.index()));
    assert_eq!(update.assignments.len(), 3);
    let mut traces: Vec<_> = update
        .assignments
        .iter()
        .map(|one| one.trace_parent.as_str())
        .collect();
    traces.sort_unstable();
    assert_eq!(traces, ["trace-1", "trace-2", "trace-3"]);
    let mut versions: Vec<_> = update.jobs.iter().map(|job| job.version.unwrap()).collect();
    versions.sort_unstable();
    assert_eq!(versions, [0, 1]);
    let again = full(&snapshot, node.id, &mut sent);
    assert_eq!((again.assignments.len(), again.jobs.len()), (3, 0));
}

#[test]
fn a_node_without_its_database_gets_its_last_report_number() {
    let (mut stored, node, job) = (
        Stored::default(),
        builders::node(1),
        builders::batch("crunch", 1),
    );
    stored.put_job(&job);
    let alloc = builders::allocation(1, &job, node.id);
    stored.put_alloc(&alloc);
    let said = AllocClient {
        status: ClientStatus::Complete,
        report: 4,
        ..AllocClient::default()
    };
    stored.put_client(alloc.id, said);
    let update = full(&stored.snapshot(), node.id, &mut SentJobs::default());
    assert_eq!(
        update.assignments[0].report_number, 4,
        "it goes on from there"
    );
    let allocation = update.assignments[0].allocation.as_ref().unwrap();
    assert_eq!(
        allocation.client_status, "complete",
        "so it does not run it again"
    );
    assert_eq!(allocation.desired_status, "run");
}

#[test]
fn changed_allocations_are_sent_and_removed_ones_are_named() {
    let (mut stored, node, job) = (
        Stored::default(),
        builders::node(1),
        builders::service("web", 2),
    );
    stored.put_job(&job);
    let mut allocs = [1, 2].map(|number| builders::allocation(number, &job, node.id));
    for alloc in &allocs {
        stored.put_alloc(alloc);
    }
    allocs[0].desired_status = DesiredStatus::Stop;
    let revision = stored.put_alloc(&allocs[0]);
    stored.delete(Key::Alloc(allocs[1].id));
    let ids = BTreeSet::from([allocs[0].id, allocs[1].id]);
    let update = changed(&stored.snapshot(), revision, &ids, &mut SentJobs::default());
    assert_eq!((update.full, update.revision), (false, revision));
    let stopped = update.assignments[0].allocation.as_ref().unwrap();
    assert_eq!(
        (update.assignments.len(), stopped.desired_status.as_str()),
        (1, "stop")
    );
    assert_eq!(update.removed_alloc_ids, [allocs[1].id.to_string()]);
}

#[test]
fn an_allocation_of_a_purged_job_is_sent_without_it() {
    let (mut stored, node, job) = (
        Stored::default(),
        builders::node(1),
        builders::service("web", 1),
    );
    stored.put_alloc(&builders::allocation(1, &job, node.id));
    let update = full(&stored.snapshot(), node.id, &mut SentJobs::default());
    assert_eq!((update.assignments.len(), update.jobs.len()), (1, 0));
}
