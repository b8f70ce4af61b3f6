//! Nodes out of reach whose allocations may wait, and their way back.

use model::NodeStatus::{Disconnected, Down, Initializing, Ready};
use model::{ClientStatus, DesiredStatus};

use super::fleet::{Fleet, MS, SECOND, patient_job};

#[test]
fn scenario_062_a_node_whose_alloc_may_be_out_of_reach_is_disconnected() {
    let job = patient_job(300 * SECOND);
    let mut fleet = Fleet::new(3);
    fleet.put_job(&job);
    fleet.put_alloc(1, &job, 2);
    fleet.beating.remove(&2);
    fleet.pass(15 * SECOND);
    assert_eq!(fleet.perform(), [(2, Disconnected)]);

    // The scheduler marks the allocation unknown; its time is over after five minutes.
    let since = fleet.now;
    let out_of_reach = |alloc: &mut model::Allocation| {
        alloc.client_status_override = Some(ClientStatus::Unknown);
        alloc.unknown_since = since;
    };
    fleet.change_alloc(1, &job, 2, out_of_reach);
    fleet.pass(200 * SECOND);
    // Whatever else is written of it meanwhile, such as a drain's request, gives it no more time.
    fleet.change_alloc(1, &job, 2, |alloc| {
        out_of_reach(alloc);
        alloc.transition.migrate = true;
    });
    fleet.pass(90 * SECOND);
    assert_eq!(fleet.transitions(), []);
    fleet.pass(20 * SECOND);
    assert_eq!(fleet.perform(), [(2, Down)]);
}

#[test]
fn a_node_without_waiting_allocations_goes_down() {
    let patient = patient_job(300 * SECOND);
    let impatient = test_kit::builders::service("web", 1);
    let none = patient_job(std::time::Duration::ZERO);
    let cases = [
        ("no allocation", None, DesiredStatus::Run, None),
        (
            "a job that does not wait",
            Some(&impatient),
            DesiredStatus::Run,
            None,
        ),
        (
            "a job that waits no time",
            Some(&none),
            DesiredStatus::Run,
            None,
        ),
        ("told to stop", Some(&patient), DesiredStatus::Stop, None),
        (
            "ended",
            Some(&patient),
            DesiredStatus::Run,
            Some(ClientStatus::Complete),
        ),
    ];
    for (name, job, desired, client) in cases {
        let mut fleet = Fleet::new(3);
        if let Some(job) = job {
            fleet.put_job(job);
            fleet.change_alloc(1, job, 2, |alloc| alloc.desired_status = desired);
        }
        if let Some(status) = client {
            fleet.report(1, status);
        }
        fleet.beating.remove(&2);
        fleet.pass(15 * SECOND);
        assert_eq!(fleet.perform(), [(2, Down)], "{name}");
    }
}

#[test]
fn scenario_063_a_disconnected_node_reports_before_it_is_ready() {
    let job = patient_job(300 * SECOND);
    let mut fleet = Fleet::new(3);
    fleet.put_job(&job);
    fleet.put_alloc(1, &job, 2);
    fleet.report(1, ClientStatus::Running);
    fleet.beating.remove(&2);
    fleet.pass(16 * SECOND);
    fleet.perform();
    assert_eq!(fleet.status(2), Disconnected);

    fleet.hear(&[2]);
    assert_eq!(fleet.perform(), [(2, Initializing)]);
    fleet.hear(&[2]);
    assert_eq!(fleet.transitions(), [], "it owes a report");
    fleet.report(1, ClientStatus::Running);
    fleet.hear(&[2]);
    assert_eq!(fleet.perform(), [(2, Ready)]);
}

#[test]
fn a_returned_node_without_allocations_is_ready_with_its_next_heartbeat() {
    let mut fleet = Fleet::new(3);
    fleet.put_node(2, Disconnected);
    fleet.hear(&[2]);
    assert_eq!(fleet.perform(), [(2, Initializing), (2, Ready)][..1]);
    assert_eq!(fleet.perform(), [(2, Ready)]);
}

#[test]
fn a_returned_node_with_nothing_new_to_say_is_ready_after_a_while() {
    let job = patient_job(300 * SECOND);
    let mut fleet = Fleet::new(3);
    fleet.put_job(&job);
    fleet.put_alloc(1, &job, 2);
    fleet.put_node(2, Disconnected);
    fleet.hear(&[2]);
    fleet.perform();
    assert_eq!(fleet.status(2), Initializing);
    fleet.pass(15 * SECOND - MS);
    fleet.hear(&[2]);
    assert_eq!(fleet.transitions(), []);
    fleet.pass(MS);
    fleet.hear(&[2]);
    assert_eq!(fleet.perform(), [(2, Ready)]);
}

#[test]
fn a_node_that_falls_silent_while_it_returns_goes_down() {
    let job = patient_job(300 * SECOND);
    let mut fleet = Fleet::new(3);
    fleet.put_job(&job);
    fleet.put_alloc(1, &job, 2);
    fleet.put_node(2, Disconnected);
    fleet.hear(&[2]);
    fleet.perform();
    fleet.beating.remove(&2);
    fleet.pass(15 * SECOND);
    assert_eq!(fleet.perform(), [(2, Down)]);
}
