//! Job status, summaries and the effective client status.

use model::{
    ClientStatus, DesiredStatus, EvalStatus, Evaluation, JobType, NodeStatus, Timestamp,
    TriggeredBy,
};

use super::{
    alloc_id, allocation, eval_id, job, job_key, machine, put_alloc, put_client, put_job, put_node,
};
use crate::{Change, Entity, JobStatus, Key, State};

fn put_eval(status: EvalStatus, index: u64) -> Change {
    let mut eval = Evaluation::pending(
        eval_id(1),
        job_key(),
        JobType::Service,
        50,
        TriggeredBy::JobRegister,
        Timestamp(1),
    );
    eval.status = status;
    Change::Put {
        key: Key::Eval(eval.id),
        entity: Entity::Eval(Box::new(eval)),
        create_index: index,
        modify_index: index,
    }
}

fn status(changes: Vec<Change>) -> Option<JobStatus> {
    let mut state = State::default();
    for (revision, change) in (1..).zip(changes) {
        state.apply(revision, [change]);
    }
    state.snapshot().job_status(&job_key())
}

#[test]
fn job_status_follows_evaluations_and_allocations() {
    let fresh = || put_job(job(false), 1);
    let placed = || put_alloc(allocation(1, 1), 3, 3);
    let cases = [
        (vec![], None),
        (vec![fresh()], Some(JobStatus::Pending)),
        (
            vec![fresh(), put_eval(EvalStatus::Pending, 2)],
            Some(JobStatus::Pending),
        ),
        (
            vec![fresh(), put_eval(EvalStatus::Blocked, 2)],
            Some(JobStatus::Pending),
        ),
        (
            vec![fresh(), put_eval(EvalStatus::Complete, 2)],
            Some(JobStatus::Dead),
        ),
        (
            vec![fresh(), put_eval(EvalStatus::Complete, 2), placed()],
            Some(JobStatus::Running),
        ),
        (
            vec![
                fresh(),
                put_eval(EvalStatus::Complete, 2),
                placed(),
                put_client(alloc_id(1), ClientStatus::Complete, 4),
            ],
            Some(JobStatus::Dead),
        ),
        (vec![put_job(job(true), 1)], Some(JobStatus::Dead)),
    ];
    for (position, (changes, expected)) in cases.into_iter().enumerate() {
        assert_eq!(status(changes), expected, "case {position}");
    }
}

#[test]
fn a_lost_allocation_stays_lost_unless_its_node_reported_an_end_before() {
    let mut lost = allocation(1, 1);
    lost.client_status_override = Some(ClientStatus::Lost);
    for (status, holds) in [
        (ClientStatus::Running, ClientStatus::Lost),
        (ClientStatus::Complete, ClientStatus::Complete),
    ] {
        let mut state = State::default();
        state.apply(1, [put_alloc(allocation(1, 1), 1, 1)]);
        state.apply(2, [put_client(alloc_id(1), status, 2)]);
        state.apply(3, [put_alloc(lost.clone(), 1, 3)]);
        assert_eq!(
            state.snapshot().alloc(alloc_id(1)).unwrap().client_status(),
            holds
        );
    }
}

#[test]
fn an_unknown_allocation_takes_its_nodes_next_report() {
    let mut unknown = allocation(1, 1);
    unknown.client_status_override = Some(ClientStatus::Unknown);
    let mut state = State::default();
    state.apply(1, [put_alloc(allocation(1, 1), 1, 1)]);
    state.apply(2, [put_client(alloc_id(1), ClientStatus::Running, 2)]);
    state.apply(3, [put_alloc(unknown, 1, 3)]);
    let view = |state: &State| state.snapshot().alloc(alloc_id(1)).unwrap().client_status();
    assert_eq!(view(&state), ClientStatus::Unknown);
    state.apply(4, [put_client(alloc_id(1), ClientStatus::Running, 4)]);
    assert_eq!(view(&state), ClientStatus::Running);
}

#[test]
fn an_allocation_on_a_lost_node_has_left_although_it_may_run() {
    // (the node is down, stopped, client status) → (may run, has left)
    let cases = [
        ((false, false, ClientStatus::Running), (true, false)),
        ((false, true, ClientStatus::Running), (true, false)),
        ((false, true, ClientStatus::Complete), (false, true)),
        ((true, false, ClientStatus::Running), (true, false)),
        ((true, false, ClientStatus::Unknown), (true, true)),
        ((true, true, ClientStatus::Pending), (false, true)),
        ((true, true, ClientStatus::Running), (true, true)),
        ((true, true, ClientStatus::Failed), (false, true)),
    ];
    for (case, expected) in cases {
        let (is_down, is_stopped, client) = case;
        let mut node = machine(1, 0, true);
        if is_down {
            node.status = NodeStatus::Down;
        }
        let mut alloc = allocation(1, 1);
        if is_stopped {
            alloc.desired_status = DesiredStatus::Stop;
        }
        let mut state = State::default();
        state.apply(1, [put_node(node, 1, 1), put_alloc(alloc, 1, 1)]);
        state.apply(2, [put_client(alloc_id(1), client, 2)]);
        let snapshot = state.snapshot();
        let view = snapshot.alloc(alloc_id(1)).unwrap();
        let found = (snapshot.may_run(view), snapshot.has_left(view));
        assert_eq!(found, expected, "{case:?}");
    }
}

#[test]
fn a_summary_counts_only_the_current_incarnation() {
    let mut former = allocation(2, 1);
    former.job_create_index = 99;
    let mut stopped_early = allocation(3, 1);
    stopped_early.desired_status = DesiredStatus::Stop;
    let mut state = State::default();
    state.apply(1, [put_job(job(false), 1)]);
    state.apply(
        2,
        [put_alloc(allocation(1, 1), 2, 2), put_alloc(former, 2, 2)],
    );
    state.apply(3, [put_alloc(stopped_early, 3, 3)]);
    state.apply(4, [put_client(alloc_id(1), ClientStatus::Running, 4)]);
    let summary = state.snapshot().job_summary(&job_key());
    assert_eq!(summary["app"].running, 1);
    assert_eq!(summary["app"].starting, 0);
}

#[test]
fn a_canceled_evaluation_does_not_count_as_queued() {
    let eval = |number: u128, status: EvalStatus, queued: u32, index: u64| {
        let mut eval = Evaluation::pending(
            eval_id(number),
            job_key(),
            JobType::Service,
            50,
            TriggeredBy::QueuedAllocs,
            Timestamp(1),
        );
        eval.status = status;
        eval.queued_allocs.insert("app".to_owned(), queued);
        Change::Put {
            key: Key::Eval(eval.id),
            entity: Entity::Eval(Box::new(eval)),
            create_index: index,
            modify_index: index,
        }
    };
    let mut state = State::default();
    state.apply(1, [put_job(job(false), 1)]);
    state.apply(2, [eval(1, EvalStatus::Blocked, 1, 2)]);
    let queued = |state: &State| state.snapshot().job_summary(&job_key())["app"].queued;
    assert_eq!(queued(&state), 1);
    // A later evaluation places the rest, and the blocked one is canceled after it.
    state.apply(3, [eval(2, EvalStatus::Complete, 0, 3)]);
    state.apply(4, [eval(1, EvalStatus::Canceled, 1, 4)]);
    assert_eq!(queued(&state), 0);
}
