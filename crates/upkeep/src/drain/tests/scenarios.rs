//! Scenarios 68 to 72, and what else a drain does from its first look to its last.

use model::{ClientStatus, DrainStatus, JobType, NodeEligibility, NodeStatus};

use super::site::{HOUR, SECOND, Site, node_id, of_type, paced};
use crate::drain::MARKS_PER_LOOK;

const STOPPED: ClientStatus = ClientStatus::Complete;

#[test]
fn scenario_068_the_next_leaves_once_the_replacement_is_healthy() {
    let mut site = Site::new(3);
    let job = paced("web", 3, 1);
    site.put_job(&job);
    for (number, node) in [(1, 1), (2, 1), (3, 2)] {
        site.run(number, &job, number as u32, node);
    }
    site.drain(1, Some(HOUR));
    assert_eq!(site.step(), (vec![1], vec![]));
    assert_eq!(site.step(), (vec![], vec![]), "one is on the move");
    let placed = site.schedule(3);
    assert_eq!(site.step(), (vec![], vec![]));
    site.report(1, STOPPED, None);
    assert_eq!(site.step(), (vec![], vec![]));
    site.report_of(placed[0], ClientStatus::Running, None);
    assert_eq!(site.step(), (vec![], vec![]));
    site.report_of(placed[0], ClientStatus::Running, Some(true));
    assert_eq!(site.step(), (vec![2], vec![]));
    site.schedule(3);
    assert_eq!(site.step(), (vec![], vec![]), "its task still runs");
    site.report(2, STOPPED, None);
    assert_eq!(site.step(), (vec![], vec![1]));
    let node = site.node(1);
    assert_eq!(node.drain, None);
    assert_eq!(node.eligibility, NodeEligibility::Ineligible);
    assert_eq!(node.last_drain.unwrap().status, DrainStatus::Complete);
    assert!(site.draining.is_empty());
}

#[test]
fn scenario_069_a_replacement_that_is_unhealthy_lets_nobody_follow() {
    let mut site = Site::new(3);
    let job = paced("web", 3, 1);
    site.put_job(&job);
    for (number, node) in [(1, 1), (2, 1), (3, 2)] {
        site.run(number, &job, number as u32, node);
    }
    site.drain(1, Some(HOUR));
    site.step();
    let placed = site.schedule(3);
    site.report(1, STOPPED, None);
    site.report_of(placed[0], ClientStatus::Running, Some(false));
    assert_eq!(site.step(), (vec![], vec![]));
    site.report_of(placed[0], ClientStatus::Failed, Some(false));
    assert_eq!(site.step(), (vec![], vec![]));
    // Until the time is over.
    site.now = site.now.plus(HOUR);
    assert_eq!(site.look().marks.len(), 1);
}

#[test]
fn scenario_070_batch_work_runs_on_until_the_deadline() {
    let mut site = Site::new(2);
    let (sum, scan) = (
        of_type("sum", JobType::Batch),
        of_type("scan", JobType::Sysbatch),
    );
    for (number, job) in [(1, &sum), (2, &sum), (3, &scan)] {
        site.put_job(job);
        site.run(number, job, 0, 1);
    }
    site.drain(1, Some(HOUR));
    let look = site.look();
    assert_eq!((look.marks.len(), look.done.len()), (0, 0));
    assert_eq!(look.next_deadline, Some(site.now.plus(HOUR)));
    // What ends by itself is over.
    site.report(2, STOPPED, None);
    site.now = site.now.plus(HOUR - SECOND);
    assert_eq!(site.step(), (vec![], vec![]));
    site.now = site.now.plus(SECOND);
    assert_eq!(
        site.step(),
        (vec![3, 1], vec![]),
        "in the order of their jobs"
    );
    assert!(site.view(1).alloc.transition.migrate_disable_placement);
    assert!(!site.view(3).alloc.transition.migrate_disable_placement);
    site.schedule(2);
    assert_eq!(site.step(), (vec![], vec![]));
    site.report(1, STOPPED, None);
    site.report(3, STOPPED, None);
    assert_eq!(site.step(), (vec![], vec![1]));
    let events = site.node(1).events;
    let last = events.last().unwrap();
    assert_eq!(last.message, "Node drain complete");
    assert_eq!(last.details["deadline_reached"], "true");
}

#[test]
fn without_a_deadline_batch_and_sysbatch_work_is_waited_for() {
    let mut site = Site::new(2);
    for (number, job_type) in [(1, JobType::Batch), (2, JobType::Sysbatch)] {
        let job = of_type(&format!("job-{number}"), job_type);
        site.put_job(&job);
        site.run(number, &job, 0, 1);
    }
    site.drain(1, None);
    assert_eq!(site.look().next_deadline, None);
    site.now = site.now.plus(HOUR * 1_000);
    site.draining.look_again();
    assert_eq!(site.step(), (vec![], vec![]));
    site.report(1, STOPPED, None);
    assert_eq!(site.step(), (vec![], vec![]));
    site.report(2, ClientStatus::Failed, None);
    assert_eq!(site.step(), (vec![], vec![1]));
    assert!(site.node(1).events.last().unwrap().details.is_empty());
}

#[test]
fn scenario_071_a_system_allocation_goes_last_or_stays() {
    let log = of_type("log", JobType::System);
    let mut site = Site::new(2);
    site.put_job(&log);
    site.run(1, &log, 0, 1);
    site.drain(1, Some(HOUR));
    assert_eq!(site.step(), (vec![1], vec![]), "nobody else is there");
    site.schedule(2);
    site.report(1, STOPPED, None);
    assert_eq!(site.step(), (vec![], vec![1]));

    let mut site = Site::new(2);
    site.put_job(&log);
    site.run(1, &log, 0, 1);
    site.drain_with(1, Some(HOUR), true);
    assert_eq!(site.step(), (vec![], vec![1]));
    assert!(!site.view(1).alloc.transition.migrate);
    assert_eq!(
        site.node(1).last_drain.unwrap().status,
        DrainStatus::Complete
    );

    let mut site = Site::new(2);
    let web = paced("web", 1, 1);
    site.put_job(&log);
    site.put_job(&web);
    site.run(1, &log, 0, 1);
    site.run(2, &web, 0, 1);
    site.drain(1, Some(HOUR));
    assert_eq!(site.step(), (vec![2], vec![]));
    site.schedule(2);
    assert_eq!(site.step(), (vec![], vec![]), "it still runs");
    site.report(2, STOPPED, None);
    assert_eq!(site.step(), (vec![1], vec![]));
}

#[test]
fn scenario_072_without_any_time_all_leave_at_once() {
    let mut site = Site::new(2);
    let jobs = [
        paced("web", 2, 1),
        of_type("log", JobType::System),
        of_type("scan", JobType::Sysbatch),
        of_type("sum", JobType::Batch),
    ];
    let mut number = 0;
    for job in &jobs {
        site.put_job(job);
        for name_index in 0..2 {
            number += 1;
            site.run(number, job, name_index, 1);
        }
    }
    site.drain_with(1, Some(std::time::Duration::ZERO), true);
    let (mut marked, done) = site.step();
    marked.sort_unstable();
    assert_eq!(
        (marked, done),
        (vec![1, 2, 5, 6, 7, 8], vec![]),
        "but those to be ignored"
    );
    site.drain_with(1, Some(std::time::Duration::ZERO), false);
    let (mut marked, _) = site.step();
    marked.sort_unstable();
    assert_eq!(marked, [3, 4], "told anew, without an exception");
}

#[test]
fn an_idle_node_is_drained_at_once() {
    let mut site = Site::new(1);
    let job = paced("web", 1, 1);
    site.put_job(&job);
    site.run(1, &job, 0, 1);
    site.report(1, STOPPED, None);
    site.drain(1, Some(HOUR));
    assert_eq!(site.step(), (vec![], vec![1]));
}

#[test]
fn an_end_of_the_drain_leaves_the_rest_where_it_is() {
    let mut site = Site::new(2);
    let job = paced("web", 2, 1);
    site.put_job(&job);
    site.run(1, &job, 0, 1);
    site.run(2, &job, 1, 1);
    site.drain(1, Some(HOUR));
    assert_eq!(site.step().0, [1]);
    let mut node = site.node(1);
    node.end_drain(DrainStatus::Canceled, site.now);
    site.put_node(node);
    assert!(site.draining.is_empty());
    let placed = site.schedule(2);
    site.report_of(placed[0], ClientStatus::Running, Some(true));
    assert!(!site.draining.is_due());
    assert_eq!(site.step(), (vec![], vec![]));
    assert_eq!(
        site.node(1).events.last().unwrap().message,
        "Node drain canceled"
    );
}

#[test]
fn a_new_leader_goes_on_with_what_it_finds() {
    let mut site = Site::new(3);
    let job = paced("web", 2, 1);
    site.put_job(&job);
    site.run(1, &job, 0, 1);
    site.run(2, &job, 1, 1);
    site.drain(1, Some(HOUR));
    site.step();
    let snapshot = site.snapshot();
    site.draining = Default::default();
    site.draining.resync(&snapshot);
    assert!(site.draining.is_due());
    assert_eq!(site.step(), (vec![], vec![]), "one is on the move");
    let placed = site.schedule(2);
    site.report_of(placed[0], ClientStatus::Running, Some(true));
    assert_eq!(site.step().0, [2]);
}

#[test]
fn nobody_was_told_of_a_mark_so_somebody_is() {
    let mut site = Site::new(2);
    let job = paced("web", 1, 1);
    site.put_job(&job);
    site.run(1, &job, 0, 1);
    site.drain(1, Some(HOUR));
    site.step();
    assert!(site.look().marks.is_empty());
    // Somebody wrote the allocation after the scheduler had looked.
    site.edit(1, |alloc| alloc.followup_eval_id = None);
    let look = site.look();
    assert_eq!(look.marks.len(), 1);
    assert!(look.marks[0].allocs.is_empty());
    site.step();
    assert!(site.look().marks.is_empty());
}

#[test]
fn a_node_that_is_down_is_drained_once_nothing_on_it_is_waited_for() {
    let mut site = Site::new(2);
    let job = paced("web", 3, 3);
    site.put_job(&job);
    for number in 1..=3 {
        site.run(number, &job, number as u32, 1);
    }
    site.drain(1, None);
    site.set_status(1, NodeStatus::Down);
    site.edit(1, |alloc| {
        alloc.client_status_override = Some(ClientStatus::Lost)
    });
    site.edit(2, |alloc| {
        alloc.client_status_override = Some(ClientStatus::Unknown)
    });
    assert_eq!(site.step(), (vec![3], vec![]));
    site.schedule(2);
    assert_eq!(site.step(), (vec![], vec![1]));
    assert_eq!(site.node(1).id, node_id(1));
}

#[test]
fn one_that_is_back_in_reach_is_not_marked_before_the_scheduler_has_seen_it() {
    let mut site = Site::new(2);
    let job = paced("web", 1, 1);
    site.put_job(&job);
    site.run(1, &job, 0, 1);
    site.edit(1, |alloc| {
        alloc.client_status_override = Some(ClientStatus::Unknown)
    });
    site.report(1, ClientStatus::Running, Some(true));
    site.drain(1, Some(std::time::Duration::ZERO));
    assert_eq!(site.step(), (vec![], vec![]));
    assert_eq!(site.view(1).client_status(), ClientStatus::Running);
    site.edit(1, |alloc| alloc.client_status_override = None);
    assert_eq!(site.step().0, [1]);
}

#[test]
fn a_job_is_asked_to_look_once_for_who_leaves_and_who_was_marked_before() {
    let mut site = Site::new(2);
    let job = paced("web", 2, 1);
    site.put_job(&job);
    site.run(1, &job, 0, 1);
    site.run(2, &job, 1, 1);
    site.drain(1, Some(HOUR));
    assert_eq!(site.step().0, [1]);
    // Somebody wrote the first after the scheduler had looked, and the second's time is over.
    site.edit(1, |alloc| alloc.followup_eval_id = None);
    site.now = site.now.plus(HOUR);
    let look = site.look();
    assert_eq!(look.marks.len(), 1);
    assert_eq!(look.marks[0].allocs.len(), 1);
}

#[test]
fn the_next_look_is_due_when_the_first_drain_is_over() {
    for hours in [[1, 2], [2, 1]] {
        let mut site = Site::new(2);
        let job = paced("web", 2, 0);
        site.put_job(&job);
        for (number, hours) in (1..).zip(hours) {
            site.run(number, &job, number as u32, number);
            site.drain(number, Some(HOUR * hours));
        }
        assert_eq!(site.look().next_deadline, Some(site.now.plus(HOUR)));
    }
}

#[test]
fn one_look_marks_so_many_and_the_next_goes_on() {
    let mut site = Site::new(1);
    let each = MARKS_PER_LOOK as u128 / 2 + 1;
    for (position, id) in ["a", "b"].into_iter().enumerate() {
        let job = paced(id, each as u32, 1);
        site.put_job(&job);
        for number in 0..each {
            site.place(
                10_000 * (position as u128 + 1) + number,
                &job,
                number as u32,
                1,
            );
        }
    }
    site.drain(1, Some(std::time::Duration::ZERO));
    let marks = site.look().marks;
    let counts: Vec<usize> = marks.iter().map(|marks| marks.allocs.len()).collect();
    assert_eq!(counts, [each as usize, MARKS_PER_LOOK - each as usize]);
}

#[test]
fn whatever_may_matter_to_a_drain_makes_a_look_due() {
    let mut site = Site::new(2);
    let job = paced("web", 2, 1);
    site.put_job(&job);
    site.run(1, &job, 0, 1);
    site.run(2, &job, 1, 2);
    assert!(!site.draining.is_due(), "nobody drains");
    site.drain(1, Some(HOUR));
    let changes: [fn(&mut Site); 4] = [
        |site| site.report(2, ClientStatus::Running, Some(false)),
        |site| site.edit(2, |alloc| alloc.canary = true),
        |site| site.put_job(&paced("web", 3, 2)),
        |site| site.set_status(2, NodeStatus::Down),
    ];
    for (position, change) in changes.into_iter().enumerate() {
        site.look();
        assert!(!site.draining.is_due(), "{position}");
        change(&mut site);
        assert!(site.draining.is_due(), "{position}");
    }
}
