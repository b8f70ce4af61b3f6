//! Periodic jobs over a store, with real controllers and the real clock.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{Job, Periodic, PeriodicLaunch, Timestamp};
use state::{Key, Snapshot};
use test_kit::builders;
use test_kit::writes;

use crate::suite::Suite;

fn now() -> Timestamp {
    let now = Timestamp(service_kit::Clock::real().now());
    Timestamp::from_secs(now.as_secs())
}

fn every_second() -> Job {
    let mut job = builders::batch("p", 1);
    job.submit_time = now();
    job.periodic = Some(Periodic {
        enabled: true,
        crons: vec!["* * * * * * *".to_owned()],
        is_list: false,
        prohibit_overlap: false,
        time_zone: "UTC".to_owned(),
    });
    job
}

async fn register(suite: &Suite, job: &Job, launched: Timestamp) {
    suite
        .commit(|txn| {
            txn.add(&writes::create(&Key::Job(job.key()), job)).unwrap();
            txn.add(&writes::create(&Key::JobVersion(job.key(), 0), job))
                .unwrap();
            let record = PeriodicLaunch { launched };
            txn.add(&writes::create(&Key::PeriodicLaunch(job.key()), &record))
                .unwrap();
        })
        .await;
}

/// The times that children were launched for.
fn launched(snapshot: &Snapshot) -> Vec<u64> {
    let parent = every_second().key();
    let children = snapshot.children(&parent);
    let time = |child: &Job| {
        child
            .id
            .strip_prefix("p/periodic-")
            .unwrap()
            .parse()
            .unwrap()
    };
    children.map(|child| time(&child.value)).collect()
}

#[tokio::test]
async fn a_child_comes_with_its_evaluation_and_two_controllers_launch_each_time_once() {
    let suite = Suite::start().await;
    register(&suite, &every_second(), now()).await;
    let first = suite.controller().await;
    let _second = suite.controller().await;
    suite
        .wait("three launches", |snapshot| {
            (launched(snapshot).len() >= 3).then_some(())
        })
        .await;
    // The other takes over, and goes on where the first one was.
    first.drain.cancel();
    let so_far = launched(&suite.now().await).len();
    suite
        .wait("two more", |snapshot| {
            (launched(snapshot).len() >= so_far + 2).then_some(())
        })
        .await;
    let snapshot = suite.now().await;
    let times = launched(&snapshot);
    let distinct: BTreeSet<_> = times.iter().collect();
    assert_eq!(distinct.len(), times.len());
    for child in snapshot.children(&every_second().key()) {
        let key = child.value.key();
        let evals = snapshot.evals_by_job(&key);
        let evals: Vec<_> = evals
            .map(|eval| (eval.create_index, eval.value.triggered_by))
            .collect();
        assert_eq!(
            evals,
            [(child.create_index, model::TriggeredBy::PeriodicJob)]
        );
    }
    let record = snapshot.periodic_launch(&every_second().key()).unwrap();
    assert_eq!(
        record.value.launched.as_secs(),
        *times.iter().max().unwrap()
    );
}

#[tokio::test]
async fn missed_launches_are_made_up_once() {
    let suite = Suite::start().await;
    let mut job = every_second();
    job.periodic.as_mut().unwrap().crons = vec!["@hourly".to_owned()];
    let yesterday = now().as_secs() - 86_400;
    register(&suite, &job, Timestamp::from_secs(yesterday)).await;
    let _controller = suite.controller().await;
    let times = suite
        .wait("a launch", |snapshot| {
            let times = launched(snapshot);
            (!times.is_empty()).then_some(times)
        })
        .await;
    assert_eq!(times.len(), 1);
    assert!(times[0] % 3_600 == 0 && times[0] + 3_600 >= now().as_secs());
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(
        launched(&suite.now().await).len() <= 2,
        "an hour may have begun"
    );
}
