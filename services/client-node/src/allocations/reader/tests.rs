//! Valid and invalid assignments on the wire.

use lifecycle::assignment::changes;
use lifecycle::{Changes, Known};
use model::{AllocId, DesiredStatus, NodeId};
use test_kit::builders;

use super::*;

fn id(number: u128) -> AllocId {
    AllocId::from_random(number)
}

/// Allocations on the node, as (number, modify index).
fn known(of: &[(u128, u64)]) -> BTreeMap<AllocId, Known> {
    let job = Arc::new(builders::batch("sum", 1));
    of.iter()
        .map(|(number, modify_index)| {
            let known = Known {
                alloc: Arc::new(builders::allocation(*number, &job, NodeId::from_random(1))),
                job: Arc::clone(&job),
                modify_index: *modify_index,
            };
            (id(*number), known)
        })
        .collect()
}

/// Reads a full list of one allocation, whose job the servers do not have.
fn read_jobless(modify_index: u64, edit: impl FnOnce(&mut Allocation)) -> Update {
    let job = builders::batch("sum", 1);
    let mut alloc = builders::allocation(1, &job, NodeId::from_random(1));
    edit(&mut alloc);
    let mut wire = v1::Allocation::from(&alloc);
    wire.alloc_modify_index = modify_index;
    let assignment = WireAssignment {
        report_number: 0,
        allocation: Some(wire),
        trace_parent: String::new(),
        volume_paths: HashMap::new(),
    };
    Reader::default().read(AllocationsUpdate {
        revision: modify_index,
        full: true,
        assignments: vec![assignment],
        ..AllocationsUpdate::default()
    })
}

#[test]
fn a_job_is_read_as_it_is_stored() {
    for job in [builders::service("web", 2), builders::batch("sum", 1)] {
        let admitted = jobspec::canonicalise(&v1::Job::from(&job), Timestamp(9)).unwrap();
        let mut job = admitted.job;
        job.version = 3;
        assert_eq!(read_job(&v1::Job::from(&job)).unwrap(), job);
    }
}

#[test]
fn an_invalid_assignment_is_reported_as_failed_and_not_taken_for_collected() {
    let job = builders::batch("sum", 1);
    let alloc = builders::allocation(1, &job, NodeId::from_random(1));
    let mut reader = Reader::default();
    let assignment = WireAssignment {
        report_number: 6,
        allocation: Some(v1::Allocation::from(&alloc)),
        trace_parent: String::new(),
        volume_paths: HashMap::new(),
    };
    let wire = AllocationsUpdate {
        revision: 4,
        full: true,
        assignments: vec![assignment],
        ..AllocationsUpdate::default()
    };
    let read = reader.read(wire.clone());
    assert!(read.assigned.is_empty() && read.is_full);
    assert_eq!(read.numbers, BTreeMap::from([(alloc.id, 6)]));
    assert!(
        read.invalid[0].reason.contains("version 0 cannot be read"),
        "{:?}",
        read.invalid
    );
    let found = changes(&BTreeMap::new(), 0, read.clone()).unwrap();
    assert_eq!(found.invalid.len(), 1);
    let found = changes(&known(&[(1, 2)]), 0, read).unwrap();
    assert_eq!(
        found,
        Changes::default(),
        "the running allocation is unchanged"
    );
    let jobs = vec![v1::Job::from(&job)];
    let read = reader.read(AllocationsUpdate {
        jobs,
        ..wire.clone()
    });
    assert!(read.assigned.len() == 1 && read.invalid.is_empty());
    assert_eq!(
        reader.read(wire).assigned.len(),
        1,
        "one job per stream is enough"
    );
}

#[test]
fn a_list_with_a_nameless_assignment_removes_nothing() {
    let wire = AllocationsUpdate {
        revision: 4,
        full: true,
        assignments: vec![WireAssignment::default()],
        ..AllocationsUpdate::default()
    };
    let read = Reader::default().read(wire);
    assert!(read.is_full, "the servers answered");
    let found = changes(&known(&[(1, 2)]), 0, read).unwrap();
    assert_eq!(
        found,
        Changes::default(),
        "the nameless one may be allocation 1"
    );
}

#[test]
fn a_stop_is_valid_without_the_job() {
    let stop = |alloc: &mut Allocation| alloc.desired_status = DesiredStatus::Stop;
    let known = known(&[(1, 5)]);
    let found = changes(&known, 5, read_jobless(6, stop)).unwrap();
    assert!(found.invalid.is_empty());
    let [stopped] = found.updated.as_slice() else {
        panic!("{found:?}")
    };
    assert!(stopped.alloc.is_server_terminal());
    assert_eq!(stopped.job, known[&id(1)].job, "the known job stays");
    let found = changes(&known, 5, read_jobless(5, stop)).unwrap();
    assert_eq!(found, Changes::default(), "not newer");
    let other = |alloc: &mut Allocation| alloc.job_version = 7;
    let found = changes(&known, 5, read_jobless(6, other)).unwrap();
    assert_eq!(
        found,
        Changes::default(),
        "the running allocation is unchanged"
    );
}

#[test]
fn the_end_of_an_allocation_of_a_purged_job_is_no_problem() {
    let stopped = |alloc: &mut Allocation| alloc.desired_status = DesiredStatus::Stop;
    let stopped = read_jobless(6, stopped).invalid.remove(0);
    assert!(is_end_without_job(&stopped));
    let mut read = read_jobless(6, |_| {}).invalid.remove(0);
    assert!(!is_end_without_job(&read), "it should run");
    read.is_client_terminal = true;
    assert!(is_end_without_job(&read), "it has ended");
    read.jobless = None;
    assert!(!is_end_without_job(&read), "more than its job is missing");
}

#[test]
fn a_failure_that_servers_know_is_not_reported_again() {
    let mut read = read_jobless(6, |_| {});
    assert_eq!(
        changes(&BTreeMap::new(), 5, read.clone())
            .unwrap()
            .invalid
            .len(),
        1
    );
    read.invalid[0].is_client_terminal = true;
    let found = changes(&BTreeMap::new(), 5, read).unwrap();
    assert_eq!(found, Changes::default());
}
