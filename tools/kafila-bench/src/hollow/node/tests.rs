//! A hollow node: assignments, starts, stops, reports.

use std::time::Duration;

use super::*;

const NONE: Behaviour = Behaviour {
    start_delay: 0,
    failure_rate: 0.0,
    fails_after: 0,
};
const SLOT: Slot = Slot { group: 1, index: 0 };

fn script(run_for: Option<u64>) -> Arc<Script> {
    Arc::new(Script {
        tasks: vec!["t".to_owned()],
        run_for: run_for.map(Duration::from_millis),
        exit_code: 7,
        kill_after: Duration::from_millis(20),
        ..Script::default()
    })
}

fn assigned(id: u128, index: u64) -> Assigned {
    Assigned {
        id,
        slot: SLOT,
        index,
        is_wanted: true,
        recorded: Recorded::Live,
        is_canary: false,
        deployment: None,
        report_number: 0,
        script: script(None),
    }
}

fn started(id: u128) -> Event {
    Event::Started {
        id,
        slot: SLOT,
        is_canary: false,
    }
}

fn phases(node: &mut Node, now: Millis) -> Vec<(u128, Phase, u64)> {
    let reports = node.take_reports(100, now);
    reports
        .into_iter()
        .map(|report| (report.id, report.phase, report.number))
        .collect()
}

/// A node with one running allocation, at 100.
fn running(behaviour: Behaviour, run_for: Option<u64>) -> Node {
    let mut node = Node::default();
    let script = script(run_for);
    node.assign(
        Assigned {
            script,
            ..assigned(1, 5)
        },
        behaviour,
        100,
    );
    assert_eq!(node.tick(behaviour, 100), [started(1)]);
    assert_eq!(phases(&mut node, 100), [(1, Phase::Running, 1)]);
    node
}

#[test]
fn an_unknown_assignment_is_run_ended_or_ignored() {
    let assigned_event = Event::Assigned { id: 1, slot: SLOT };
    let ended = Phase::Ended { exit_code: 0 };
    for (is_wanted, recorded, events, reports) in [
        (true, Recorded::Live, vec![assigned_event], vec![]),
        (false, Recorded::Live, vec![], vec![(1, ended, 1)]),
        (true, Recorded::Ended, vec![], vec![]),
        (true, Recorded::Lost, vec![], vec![]),
        (false, Recorded::Ended, vec![], vec![]),
    ] {
        let mut node = Node::default();
        let new = Assigned {
            is_wanted,
            recorded,
            ..assigned(1, 5)
        };
        assert_eq!(
            node.assign(new, NONE, 0),
            events,
            "{is_wanted} {recorded:?}"
        );
        assert_eq!(phases(&mut node, 0), reports, "{is_wanted} {recorded:?}");
    }
}

#[test]
fn a_start_takes_its_delay() {
    let slow = Behaviour {
        start_delay: 30,
        ..NONE
    };
    let mut node = Node::default();
    node.assign(assigned(1, 5), slow, 100);
    assert_eq!(node.next_due(), Some(130));
    assert_eq!(node.tick(slow, 129), []);
    assert_eq!(node.tick(slow, 130), [started(1)]);
}

#[test]
fn a_task_ends_by_itself_with_its_code() {
    let mut node = running(NONE, Some(50));
    assert_eq!(node.tick(NONE, 149), []);
    assert_eq!(node.tick(NONE, 150), [Event::Ended { id: 1, slot: SLOT }]);
    assert_eq!(
        phases(&mut node, 150),
        [(1, Phase::Ended { exit_code: 7 }, 2)]
    );
}

#[test]
fn a_failing_task_ends_with_code_1() {
    let failing = Behaviour {
        failure_rate: 1.0,
        fails_after: 10,
        ..NONE
    };
    let mut node = running(failing, None);
    assert_eq!(
        node.tick(failing, 110),
        [Event::Ended { id: 1, slot: SLOT }]
    );
    assert_eq!(
        phases(&mut node, 110),
        [(1, Phase::Ended { exit_code: 1 }, 2)]
    );
}

#[test]
fn a_stop_takes_the_time_of_the_kill_and_ends_well() {
    let mut node = running(NONE, None);
    let stop = Assigned {
        is_wanted: false,
        ..assigned(1, 6)
    };
    assert_eq!(node.assign(stop.clone(), NONE, 200), []);
    assert_eq!(node.tick(NONE, 219), []);
    // The same stop again starts no second wait.
    assert_eq!(node.assign(Assigned { index: 7, ..stop }, NONE, 219), []);
    assert_eq!(node.tick(NONE, 220), [Event::Ended { id: 1, slot: SLOT }]);
    assert_eq!(
        phases(&mut node, 220),
        [(1, Phase::Ended { exit_code: 0 }, 2)]
    );
}

#[test]
fn a_stop_before_the_start_runs_nothing() {
    let mut node = Node::default();
    node.assign(assigned(1, 5), NONE, 100);
    let stop = Assigned {
        is_wanted: false,
        ..assigned(1, 6)
    };
    node.assign(stop, NONE, 100);
    assert_eq!(node.tick(NONE, 100), []);
    assert_eq!(
        phases(&mut node, 100),
        [(1, Phase::Ended { exit_code: 0 }, 1)]
    );
}

#[test]
fn an_older_assignment_changes_nothing() {
    let mut node = running(NONE, None);
    let old = Assigned {
        is_wanted: false,
        ..assigned(1, 5)
    };
    node.assign(old, NONE, 200);
    assert_eq!(node.tick(NONE, 1_000), []);
    assert!(!node.has_reports());
}

#[test]
fn a_running_allocation_that_the_servers_call_lost_is_an_event() {
    let mut node = running(NONE, None);
    let lost = Assigned {
        recorded: Recorded::Lost,
        ..assigned(1, 6)
    };
    assert_eq!(
        node.assign(lost.clone(), NONE, 200),
        [Event::CalledLost { id: 1, slot: SLOT }]
    );
    // It was stopped meanwhile.
    let mut stopped = Node::default();
    assert_eq!(stopped.assign(lost, NONE, 200), []);
}

#[test]
fn health_is_reported_after_its_time_and_again_for_another_deployment() {
    let slow = Arc::new(Script {
        healthy_after: Duration::from_millis(40),
        ..Script::default()
    });
    let of = |index, deployment| Assigned {
        deployment: Some(deployment),
        script: Arc::clone(&slow),
        ..assigned(1, index)
    };
    let healthy = |node: &mut Node, now| {
        node.tick(NONE, now);
        let reports = node.take_reports(10, now);
        reports
            .iter()
            .map(|report| report.healthy_in)
            .collect::<Vec<_>>()
    };
    let mut node = Node::default();
    node.assign(of(5, 8), NONE, 100);
    assert_eq!(healthy(&mut node, 100), [None]);
    assert_eq!(healthy(&mut node, 139), []);
    assert_eq!(healthy(&mut node, 140), [Some(8)]);
    node.assign(of(6, 9), NONE, 200);
    assert_eq!(healthy(&mut node, 239), []);
    assert_eq!(healthy(&mut node, 240), [Some(9)]);
}

#[test]
fn a_report_that_was_late_is_sent_again_above_the_stored_number() {
    let mut node = running(NONE, None);
    node.report_again([(1, 9), (2, 4)]);
    assert_eq!(phases(&mut node, 100), [(1, Phase::Running, 10)]);
}

#[test]
fn a_full_list_ends_what_it_lacks() {
    let mut node = running(NONE, None);
    node.assign(
        Assigned {
            is_wanted: false,
            ..assigned(2, 5)
        },
        NONE,
        100,
    );
    assert_eq!(
        node.keep_only(&HashSet::from([2])),
        [Event::Ended { id: 1, slot: SLOT }]
    );
    assert_eq!(phases(&mut node, 100).len(), 1, "the listed one");
}

#[test]
fn a_dead_machine_runs_and_remembers_nothing() {
    let mut node = running(NONE, Some(50));
    node.advance(12);
    assert_eq!(node.die(), [Event::Ended { id: 1, slot: SLOT }]);
    assert_eq!(
        (node.revision(), node.next_due(), node.has_reports()),
        (0, None, false)
    );
    // Back, it starts what the servers still want.
    node.assign(assigned(1, 5), NONE, 300);
    assert_eq!(node.tick(NONE, 300), [started(1)]);
}

#[test]
fn revisions_do_not_go_back() {
    let mut node = Node::default();
    assert!(node.advance(5));
    assert!(node.advance(5));
    assert!(!node.advance(4));
    assert_eq!(node.revision(), 5);
}
