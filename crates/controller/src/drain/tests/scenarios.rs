//! Scenarios 68 to 72, and other behaviour of a drain from its first pass to its last.

use model::{ClientStatus, DrainStatus, JobType, NodeEligibility, NodeStatus};

use super::fixture::{Fixture, HOUR, SECOND, node_id, of_type, paced};
use crate::drain::{JobMarks, MARKS_PER_LOOK};

const STOPPED: ClientStatus = ClientStatus::Complete;

/// Returns how many allocations of a job are marked, in all transactions.
fn marked_count(marks: &JobMarks) -> usize {
    marks.txns.iter().map(|txn| txn.allocs).sum()
}

#[test]
fn scenario_068_the_next_leaves_once_the_replacement_is_healthy() {
    let mut fixture = Fixture::new(3);
    let job = paced("web", 3, 1);
    fixture.put_job(&job);
    for (number, node) in [(1, 1), (2, 1), (3, 2)] {
        fixture.run(number, &job, number as u32, node);
    }
    fixture.drain(1, Some(HOUR));
    assert_eq!(fixture.step(), (vec![1], vec![]));
    assert_eq!(fixture.step(), (vec![], vec![]), "one is on the move");
    let placed = fixture.schedule(3);
    assert_eq!(fixture.step(), (vec![], vec![]));
    fixture.report(1, STOPPED, None);
    assert_eq!(fixture.step(), (vec![], vec![]));
    fixture.report_of(placed[0], ClientStatus::Running, None);
    assert_eq!(fixture.step(), (vec![], vec![]));
    fixture.report_of(placed[0], ClientStatus::Running, Some(true));
    assert_eq!(fixture.step(), (vec![2], vec![]));
    fixture.schedule(3);
    assert_eq!(fixture.step(), (vec![], vec![]), "its task still runs");
    fixture.report(2, STOPPED, None);
    assert_eq!(fixture.step(), (vec![], vec![1]));
    let node = fixture.node(1);
    assert_eq!(node.drain, None);
    assert_eq!(node.eligibility, NodeEligibility::Ineligible);
    assert_eq!(node.last_drain.unwrap().status, DrainStatus::Complete);
    assert!(fixture.draining.is_empty());
}

#[test]
fn scenario_069_an_unhealthy_replacement_blocks_the_next() {
    let mut fixture = Fixture::new(3);
    let job = paced("web", 3, 1);
    fixture.put_job(&job);
    for (number, node) in [(1, 1), (2, 1), (3, 2)] {
        fixture.run(number, &job, number as u32, node);
    }
    fixture.drain(1, Some(HOUR));
    fixture.step();
    let placed = fixture.schedule(3);
    fixture.report(1, STOPPED, None);
    fixture.report_of(placed[0], ClientStatus::Running, Some(false));
    assert_eq!(fixture.step(), (vec![], vec![]));
    fixture.report_of(placed[0], ClientStatus::Failed, Some(false));
    assert_eq!(fixture.step(), (vec![], vec![]));
    // Until the time is over.
    fixture.now = fixture.now.plus(HOUR);
    assert_eq!(fixture.look().marks.len(), 1);
}

#[test]
fn scenario_070_batch_work_runs_on_until_the_deadline() {
    let mut fixture = Fixture::new(2);
    let (sum, scan) = (
        of_type("sum", JobType::Batch),
        of_type("scan", JobType::Sysbatch),
    );
    for (number, job) in [(1, &sum), (2, &sum), (3, &scan)] {
        fixture.put_job(job);
        fixture.run(number, job, 0, 1);
    }
    fixture.drain(1, Some(HOUR));
    let look = fixture.look();
    assert_eq!((look.marks.len(), look.done.len()), (0, 0));
    assert_eq!(look.next_deadline, Some(fixture.now.plus(HOUR)));
    // An allocation that ended by itself is not marked.
    fixture.report(2, STOPPED, None);
    fixture.now = fixture.now.plus(HOUR - SECOND);
    assert_eq!(fixture.step(), (vec![], vec![]));
    fixture.now = fixture.now.plus(SECOND);
    assert_eq!(
        fixture.step(),
        (vec![3, 1], vec![]),
        "in the order of their jobs"
    );
    assert!(fixture.view(1).alloc.transition.migrate_disable_placement);
    assert!(!fixture.view(3).alloc.transition.migrate_disable_placement);
    fixture.schedule(2);
    assert_eq!(fixture.step(), (vec![], vec![]));
    fixture.report(1, STOPPED, None);
    fixture.report(3, STOPPED, None);
    assert_eq!(fixture.step(), (vec![], vec![1]));
    let events = fixture.node(1).events;
    let last = events.last().unwrap();
    assert_eq!(last.message, "Node drain complete");
    assert_eq!(last.details["deadline_reached"], "true");
}

#[test]
fn without_a_deadline_batch_and_sysbatch_work_is_waited_for() {
    let mut fixture = Fixture::new(2);
    for (number, job_type) in [(1, JobType::Batch), (2, JobType::Sysbatch)] {
        let job = of_type(&format!("job-{number}"), job_type);
        fixture.put_job(&job);
        fixture.run(number, &job, 0, 1);
    }
    fixture.drain(1, None);
    assert_eq!(fixture.look().next_deadline, None);
    fixture.now = fixture.now.plus(HOUR * 1_000);
    fixture.draining.look_again();
    assert_eq!(fixture.step(), (vec![], vec![]));
    fixture.report(1, STOPPED, None);
    assert_eq!(fixture.step(), (vec![], vec![]));
    fixture.report(2, ClientStatus::Failed, None);
    assert_eq!(fixture.step(), (vec![], vec![1]));
    assert!(fixture.node(1).events.last().unwrap().details.is_empty());
}

#[test]
fn scenario_071_a_system_allocation_goes_last_or_stays() {
    let log = of_type("log", JobType::System);
    let mut fixture = Fixture::new(2);
    fixture.put_job(&log);
    fixture.run(1, &log, 0, 1);
    fixture.drain(1, Some(HOUR));
    assert_eq!(fixture.step(), (vec![1], vec![]), "no other is there");
    fixture.schedule(2);
    fixture.report(1, STOPPED, None);
    assert_eq!(fixture.step(), (vec![], vec![1]));

    let mut fixture = Fixture::new(2);
    fixture.put_job(&log);
    fixture.run(1, &log, 0, 1);
    fixture.drain_with(1, Some(HOUR), true);
    assert_eq!(fixture.step(), (vec![], vec![1]));
    assert!(!fixture.view(1).alloc.transition.migrate);
    assert_eq!(
        fixture.node(1).last_drain.unwrap().status,
        DrainStatus::Complete
    );

    let mut fixture = Fixture::new(2);
    let web = paced("web", 1, 1);
    fixture.put_job(&log);
    fixture.put_job(&web);
    fixture.run(1, &log, 0, 1);
    fixture.run(2, &web, 0, 1);
    fixture.drain(1, Some(HOUR));
    assert_eq!(fixture.step(), (vec![2], vec![]));
    fixture.schedule(2);
    assert_eq!(fixture.step(), (vec![], vec![]), "it still runs");
    fixture.report(2, STOPPED, None);
    assert_eq!(fixture.step(), (vec![1], vec![]));
}

#[test]
fn a_plugin_of_storage_goes_after_its_users() {
    let mut fixture = Fixture::new(2);
    let mut plugin = paced("plugin", 1, 1);
    plugin.task_groups[0].tasks[0].csi_plugin = Some(model::CsiPluginTask::default());
    let web = paced("web", 1, 1);
    fixture.put_job(&plugin);
    fixture.put_job(&web);
    fixture.run(1, &plugin, 0, 1);
    fixture.run(2, &web, 0, 1);
    fixture.drain(1, Some(HOUR));
    assert_eq!(fixture.step(), (vec![2], vec![]));
    fixture.schedule(2);
    fixture.report(2, STOPPED, None);
    assert_eq!(fixture.step(), (vec![1], vec![]));
}

#[test]
fn scenario_072_without_any_time_all_leave_at_once() {
    let mut fixture = Fixture::new(2);
    let jobs = [
        paced("web", 2, 1),
        of_type("log", JobType::System),
        of_type("scan", JobType::Sysbatch),
        of_type("sum", JobType::Batch),
    ];
    let mut number = 0;
    for job in &jobs {
        fixture.put_job(job);
        for name_index in 0..2 {
            number += 1;
            fixture.run(number, job, name_index, 1);
        }
    }
    fixture.drain_with(1, Some(std::time::Duration::ZERO), true);
    let (mut marked, done) = fixture.step();
    marked.sort_unstable();
    assert_eq!(
        (marked, done),
        (vec![1, 2, 5, 6, 7, 8], vec![]),
        "but those to be ignored"
    );
    fixture.drain_with(1, Some(std::time::Duration::ZERO), false);
    let (mut marked, _) = fixture.step();
    marked.sort_unstable();
    assert_eq!(marked, [3, 4], "told anew, without an exception");
}

#[test]
fn an_idle_node_is_drained_at_once() {
    let mut fixture = Fixture::new(1);
    let job = paced("web", 1, 1);
    fixture.put_job(&job);
    fixture.run(1, &job, 0, 1);
    fixture.report(1, STOPPED, None);
    fixture.drain(1, Some(HOUR));
    assert_eq!(fixture.step(), (vec![], vec![1]));
}

#[test]
fn an_end_of_the_drain_leaves_the_rest_where_it_is() {
    let mut fixture = Fixture::new(2);
    let job = paced("web", 2, 1);
    fixture.put_job(&job);
    fixture.run(1, &job, 0, 1);
    fixture.run(2, &job, 1, 1);
    fixture.drain(1, Some(HOUR));
    assert_eq!(fixture.step().0, [1]);
    let mut node = fixture.node(1);
    node.end_drain(DrainStatus::Canceled, fixture.now);
    fixture.put_node(node);
    assert!(fixture.draining.is_empty());
    let placed = fixture.schedule(2);
    fixture.report_of(placed[0], ClientStatus::Running, Some(true));
    assert!(!fixture.draining.is_due());
    assert_eq!(fixture.step(), (vec![], vec![]));
    assert_eq!(
        fixture.node(1).events.last().unwrap().message,
        "Node drain canceled"
    );
}

#[test]
fn a_new_leader_continues_the_drains_that_it_finds() {
    let mut fixture = Fixture::new(3);
    let job = paced("web", 2, 1);
    fixture.put_job(&job);
    fixture.run(1, &job, 0, 1);
    fixture.run(2, &job, 1, 1);
    fixture.drain(1, Some(HOUR));
    fixture.step();
    let snapshot = fixture.snapshot();
    fixture.draining = Default::default();
    fixture.draining.resync(&snapshot);
    assert!(fixture.draining.is_due());
    assert_eq!(fixture.step(), (vec![], vec![]), "one is on the move");
    let placed = fixture.schedule(2);
    fixture.report_of(placed[0], ClientStatus::Running, Some(true));
    assert_eq!(fixture.step().0, [2]);
}

#[test]
fn a_mark_without_an_evaluation_gets_one() {
    let mut fixture = Fixture::new(2);
    let job = paced("web", 1, 1);
    fixture.put_job(&job);
    fixture.run(1, &job, 0, 1);
    fixture.drain(1, Some(HOUR));
    fixture.step();
    assert!(fixture.look().marks.is_empty());
    // The allocation is written after the evaluation.
    fixture.edit(1, |alloc| alloc.followup_eval_id = None);
    let look = fixture.look();
    assert_eq!(look.marks.len(), 1);
    assert_eq!(marked_count(&look.marks[0]), 0);
    fixture.step();
    assert!(fixture.look().marks.is_empty());
}

#[test]
fn a_node_that_is_down_is_drained_once_nothing_on_it_is_waited_for() {
    let mut fixture = Fixture::new(2);
    let job = paced("web", 3, 3);
    fixture.put_job(&job);
    for number in 1..=3 {
        fixture.run(number, &job, number as u32, 1);
    }
    fixture.drain(1, None);
    fixture.set_status(1, NodeStatus::Down);
    fixture.edit(1, |alloc| {
        alloc.client_status_override = Some(ClientStatus::Lost)
    });
    fixture.edit(2, |alloc| {
        alloc.client_status_override = Some(ClientStatus::Unknown)
    });
    assert_eq!(fixture.step(), (vec![3], vec![]));
    fixture.schedule(2);
    assert_eq!(fixture.step(), (vec![], vec![1]));
    assert_eq!(fixture.node(1).id, node_id(1));
}

#[test]
fn one_that_is_back_in_reach_is_not_marked_before_the_scheduler_has_seen_it() {
    let mut fixture = Fixture::new(2);
    let job = paced("web", 1, 1);
    fixture.put_job(&job);
    fixture.run(1, &job, 0, 1);
    fixture.edit(1, |alloc| {
        alloc.client_status_override = Some(ClientStatus::Unknown)
    });
    fixture.report(1, ClientStatus::Running, Some(true));
    fixture.drain(1, Some(std::time::Duration::ZERO));
    assert_eq!(fixture.step(), (vec![], vec![]));
    assert_eq!(fixture.view(1).client_status(), ClientStatus::Running);
    fixture.edit(1, |alloc| alloc.client_status_override = None);
    assert_eq!(fixture.step().0, [1]);
}

#[test]
fn one_evaluation_covers_the_new_and_the_earlier_marked_allocations_of_a_job() {
    let mut fixture = Fixture::new(2);
    let job = paced("web", 2, 1);
    fixture.put_job(&job);
    fixture.run(1, &job, 0, 1);
    fixture.run(2, &job, 1, 1);
    fixture.drain(1, Some(HOUR));
    assert_eq!(fixture.step().0, [1]);
    // The first is written after the evaluation, and the second's time is over.
    fixture.edit(1, |alloc| alloc.followup_eval_id = None);
    fixture.now = fixture.now.plus(HOUR);
    let look = fixture.look();
    assert_eq!(look.marks.len(), 1);
    assert_eq!(marked_count(&look.marks[0]), 1);
}

#[test]
fn the_next_look_is_due_when_the_first_drain_is_over() {
    for hours in [[1, 2], [2, 1]] {
        let mut fixture = Fixture::new(2);
        let job = paced("web", 2, 0);
        fixture.put_job(&job);
        for (number, hours) in (1..).zip(hours) {
            fixture.run(number, &job, number as u32, number);
            fixture.drain(number, Some(HOUR * hours));
        }
        assert_eq!(fixture.look().next_deadline, Some(fixture.now.plus(HOUR)));
    }
}

#[test]
fn one_look_marks_so_many_and_the_next_goes_on() {
    let mut fixture = Fixture::new(1);
    let each = MARKS_PER_LOOK as u128 / 2 + 1;
    for (position, id) in ["a", "b"].into_iter().enumerate() {
        let job = paced(id, each as u32, 1);
        fixture.put_job(&job);
        for number in 0..each {
            fixture.place(
                10_000 * (position as u128 + 1) + number,
                &job,
                number as u32,
                1,
            );
        }
    }
    fixture.drain(1, Some(std::time::Duration::ZERO));
    let marks = fixture.look().marks;
    let counts: Vec<usize> = marks.iter().map(marked_count).collect();
    assert_eq!(counts, [each as usize, MARKS_PER_LOOK - each as usize]);
}

#[test]
fn every_change_that_may_concern_a_drain_makes_its_check_due() {
    let mut fixture = Fixture::new(2);
    let job = paced("web", 2, 1);
    fixture.put_job(&job);
    fixture.run(1, &job, 0, 1);
    fixture.run(2, &job, 1, 2);
    assert!(!fixture.draining.is_due(), "no node drains");
    fixture.drain(1, Some(HOUR));
    let changes: [fn(&mut Fixture); 4] = [
        |fixture| fixture.report(2, ClientStatus::Running, Some(false)),
        |fixture| fixture.edit(2, |alloc| alloc.canary = true),
        |fixture| fixture.put_job(&paced("web", 3, 2)),
        |fixture| fixture.set_status(2, NodeStatus::Down),
    ];
    for (position, change) in changes.into_iter().enumerate() {
        fixture.look();
        assert!(!fixture.draining.is_due(), "{position}");
        change(&mut fixture);
        assert!(fixture.draining.is_due(), "{position}");
    }
}
