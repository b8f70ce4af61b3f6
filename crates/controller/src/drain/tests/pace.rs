//! Healthy allocations, and the order in which allocations leave.

use model::ClientStatus::Running;
use model::Job;

use super::fixture::{Fixture, HOUR, paced};

/// Marks of one look at a node with `on_node` allocations of a service, each with its node's
/// report, and healthy ones elsewhere up to the count.
fn marked(job: &Job, on_node: &[Option<bool>]) -> Vec<u128> {
    let mut fixture = Fixture::new(2);
    fixture.put_job(job);
    for position in 0..job.task_groups[0].count {
        let number = u128::from(position) + 1;
        let verdict = on_node.get(position as usize).copied();
        fixture.run(number, job, position, if verdict.is_some() { 1 } else { 2 });
        if let Some(verdict) = verdict {
            fixture.report(number, Running, verdict);
        }
    }
    fixture.drain(1, Some(HOUR));
    fixture.step().0
}

#[test]
fn as_many_leave_as_the_pace_allows() {
    let well = [Some(true); 5];
    for max_parallel in 0..7 {
        let expected: Vec<u128> = (1..=u128::from(max_parallel.min(5))).collect();
        assert_eq!(marked(&paced("web", 5, max_parallel), &well), expected);
    }
}

#[test]
fn an_unhealthy_allocation_migrates_first_and_takes_the_slot_of_a_healthy_one() {
    let job = paced("web", 5, 2);
    assert_eq!(marked(&job, &[Some(true), Some(true), Some(false)]), [3, 1]);
    let many = [Some(true), Some(false), Some(false), Some(false)];
    assert_eq!(marked(&job, &many), [2, 3]);
}

#[test]
fn an_allocation_without_health_stays_and_counts_as_migrating() {
    let job = paced("web", 3, 1);
    assert_eq!(marked(&job, &[Some(true), None]), []);
    assert_eq!(marked(&paced("web", 3, 2), &[Some(true), None]), [1]);
}

#[test]
fn a_group_below_its_count_migrates_nothing() {
    let mut fixture = Fixture::new(2);
    let job = paced("web", 3, 1);
    fixture.put_job(&job);
    fixture.run(1, &job, 0, 1);
    fixture.run(2, &job, 1, 2);
    fixture.drain(1, Some(HOUR));
    assert_eq!(fixture.step().0, []);
    fixture.place(3, &job, 2, 2);
    assert_eq!(fixture.step().0, []);
    fixture.report(3, Running, Some(true));
    assert_eq!(fixture.step().0, [1]);
}

#[test]
fn groups_and_jobs_have_a_pace_each() {
    let mut fixture = Fixture::new(2);
    for (position, id) in ["a", "b"].into_iter().enumerate() {
        let mut job = paced(id, 2, 1);
        let mut other = job.task_groups[0].clone();
        other.name = "other".to_owned();
        job.task_groups.push(other);
        fixture.put_job(&job);
        let first = 10 * position as u128;
        for number in 1..=2 {
            fixture.run(first + number, &job, number as u32, 1);
            fixture.run(first + number + 2, &job, number as u32, 1);
            fixture.edit(first + number + 2, |alloc| {
                alloc.task_group = "other".into()
            });
        }
    }
    fixture.drain(1, Some(HOUR));
    let mut marked = fixture.step().0;
    marked.sort_unstable();
    assert_eq!(marked, [1, 3, 11, 13]);
}

#[test]
fn two_draining_nodes_share_one_pace() {
    let mut fixture = Fixture::new(3);
    let job = paced("web", 4, 1);
    fixture.put_job(&job);
    for number in 1..=4 {
        fixture.run(number, &job, number as u32, number % 2 + 1);
    }
    fixture.drain(1, Some(HOUR));
    fixture.drain(2, Some(HOUR));
    assert_eq!(fixture.step().0.len(), 1);
    assert_eq!(fixture.step().0, []);
}

#[test]
fn a_canary_stands_beside_the_count_and_leaves_last() {
    let mut fixture = Fixture::new(3);
    let job = paced("web", 2, 2);
    fixture.put_job(&job);
    fixture.run(1, &job, 0, 1);
    fixture.run(2, &job, 1, 2);
    for number in [3, 4] {
        fixture.run(number, &job, 0, 1);
        fixture.try_out(number, &job);
    }
    fixture.drain(1, Some(HOUR));
    assert_eq!(fixture.step().0, [1, 3]);
    assert_eq!(fixture.step().0, []);
}

#[test]
fn a_promoted_canary_counts_as_any_other_allocation() {
    let mut fixture = Fixture::new(3);
    let job = paced("web", 3, 1);
    fixture.put_job(&job);
    for number in 1..=3 {
        fixture.run(number, &job, number as u32 - 1, 1);
        fixture.try_out(number, &job);
    }
    fixture.drain(1, None);
    fixture.promote(&job);
    assert_eq!(fixture.step().0, [1]);
    // Nor does anything hold them up once their deployment is forgotten.
    let mut fixture = Fixture::new(3);
    fixture.put_job(&job);
    for number in 1..=3 {
        fixture.run(number, &job, number as u32 - 1, 1);
        fixture.edit(number, |alloc| alloc.canary = true);
    }
    fixture.drain(1, None);
    assert_eq!(fixture.step().0, [1]);
}

#[test]
fn an_unwanted_allocation_is_not_paced() {
    let job = paced("web", 3, 1);
    let shrunk = |edit: fn(&mut Job)| {
        let mut fixture = Fixture::new(2);
        fixture.put_job(&job);
        for number in 1..=3 {
            fixture.run(number, &job, number as u32, 1);
        }
        let mut changed = job.clone();
        changed.version = 1;
        edit(&mut changed);
        fixture.put_job(&changed);
        fixture.drain(1, Some(HOUR));
        fixture.step().0
    };
    assert_eq!(shrunk(|_| {}), [1]);
    assert_eq!(shrunk(|job| job.stop = true), [1, 2, 3]);
    assert_eq!(
        shrunk(|job| job.task_groups[0].name = "new".to_owned()),
        [1, 2, 3]
    );
    // Nor does the pace of another job hold that has come under the same name.
    let mut fixture = Fixture::new(2);
    fixture.put_job(&job);
    for number in 1..=3 {
        fixture.run(number, &job, number as u32, 1);
    }
    fixture.purge(&job);
    fixture.put_job(&job);
    fixture.drain(1, Some(HOUR));
    assert_eq!(fixture.step().0, [1, 2, 3]);
}

#[test]
fn an_allocation_past_its_deadline_counts_as_migrating() {
    let mut fixture = Fixture::new(3);
    let job = paced("web", 3, 1);
    fixture.put_job(&job);
    for number in 1..=3 {
        fixture.run(number, &job, number as u32, number);
    }
    fixture.drain(1, Some(std::time::Duration::ZERO));
    fixture.drain(2, Some(HOUR));
    assert_eq!(fixture.step().0, [1]);
    assert_eq!(fixture.step().0, []);
}
