//! Failover: changes of the leader, deposed leaders, and commits without an answer.

use model::EvalStatus;
use test_kit::builders::{batch, node, service};
use test_kit::proxy::Mode;
use test_kit::wait_for;
use tonic::Code;

use crate::suite::{Suite, WAIT_LIMIT, submit, submit_surely};

#[tokio::test]
async fn a_standby_names_the_leader() {
    let suite = Suite::start().await;
    let leader = suite.leader().await;
    let standby = suite.applier().await;
    suite.create_nodes(&[node(1)]).await;
    let eval = suite.register(1, &service("web", 1)).await;
    let plan = suite.plan(&eval).await;
    wait_for("a standby that knows the leader", WAIT_LIMIT, async || {
        let status = submit(&standby.address, &plan).await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
        status.message().contains(&leader.address).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_next_leader_knows_the_commits_of_the_last() {
    let suite = Suite::start().await;
    let first = suite.leader().await;
    let standby = suite.applier().await;
    suite.create_nodes(&[node(1)]).await;
    let mut jobs = [service("a", 1), service("b", 1)];
    for job in &mut jobs {
        job.task_groups[0].tasks[0].resources.memory_mib = 8_000;
    }
    let evals = [
        suite.register(1, &jobs[0]).await,
        suite.register(2, &jobs[1]).await,
    ];
    let plans = [suite.plan(&evals[0]).await, suite.plan(&evals[1]).await];
    submit(&first.address, &plans[0]).await.unwrap();
    first.drain.cancel();
    suite.wait_for_leader(&standby.address).await;
    let result = submit(&standby.address, &plans[1]).await.unwrap();
    assert!(result.placed.is_empty(), "the node is full: {result:?}");
}

/// A leader whose lease expired unnoticed while it could not reach the store.
#[tokio::test]
async fn scenario_093_a_deposed_leader_writes_nothing() {
    let suite = Suite::start().await;
    let proxy = suite.proxy().await;
    let first = suite.applier_at(&proxy.endpoint()).await;
    suite.wait_for_leader(&first.address).await;
    suite.create_nodes(&[node(1)]).await;
    let job = service("web", 1);
    let eval = suite.register(1, &job).await;
    let plan = suite.plan(&eval).await;
    proxy.set(Mode::Hold);
    let address = first.address.clone();
    let late = {
        let plan = plan.clone();
        tokio::spawn(async move { submit(&address, &plan).await })
    };
    let second = suite.leader().await;
    // It refuses a plan from before its term: another plan of the job may have been committed since.
    let result = submit(&second.address, &plan).await.unwrap();
    assert!(result.refused.is_some(), "{result:?}");
    let plan = suite.plan(&eval).await;
    let result = submit(&second.address, &plan).await.unwrap();
    assert_eq!(result.placed.len(), 1, "{result:?}");
    // The transaction of the first leader arrives now.
    proxy.set(Mode::Open);
    let late = late.await.unwrap();
    assert!(
        late.as_ref().is_err() || late.as_ref().unwrap().placed.is_empty(),
        "{late:?}"
    );
    let snapshot = suite.now().await;
    assert_eq!(snapshot.allocs_by_job(&job.key()).count(), 1);
    let placed = snapshot.allocs_by_job(&job.key()).next().unwrap();
    assert_eq!(placed.create_index, result.commit_index);
}

/// The transaction was executed; its answer is lost.
#[tokio::test]
async fn a_commit_with_a_lost_answer_is_not_repeated() {
    let suite = Suite::start().await;
    let proxy = suite.proxy().await;
    let first = suite.applier_at(&proxy.endpoint()).await;
    suite.wait_for_leader(&first.address).await;
    let nodes: Vec<_> = (1..=20).map(node).collect();
    suite.create_nodes(&nodes).await;
    for number in 0..3 {
        let job = batch(&format!("sum-{number}"), 10);
        let eval = suite.register(number, &job).await;
        let plan = suite.plan(&eval).await;
        let before = suite.now().await.index();
        proxy.set(Mode::HoldAnswers);
        let address = first.address.clone();
        let asking = {
            let plan = plan.clone();
            tokio::spawn(async move { submit(&address, &plan).await })
        };
        // The leader may not even have got to the store: its own reads are held too.
        let _ = tokio::time::timeout(
            std::time::Duration::from_millis(500),
            suite.replica.wait_for(before + 1, WAIT_LIMIT),
        )
        .await;
        proxy.set(Mode::Cut);
        proxy.set(Mode::Open);
        let _ = asking.await.unwrap();
        // A worker without an answer retries after reading the store.
        let snapshot = suite.now().await;
        if snapshot.eval(eval.id).unwrap().value.status != EvalStatus::Complete {
            let plan = suite.plan(&eval).await;
            submit_surely(&suite, &plan).await;
        }
        let snapshot = suite.now().await;
        let made = snapshot.allocs_by_job(&job.key()).count();
        assert_eq!(made, 10, "round {number}");
        assert!(invariants::check_snapshot(&snapshot).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_answers_plans_in_progress() {
    let suite = Suite::start().await;
    let mut leader = suite.leader().await;
    let nodes: Vec<_> = (1..=100).map(node).collect();
    suite.create_nodes(&nodes).await;
    let mut job = batch("many", 2_000);
    job.task_groups[0].tasks[0].resources.cpu_mhz = 50;
    job.task_groups[0].tasks[0].resources.memory_mib = 50;
    let eval = suite.register(1, &job).await;
    let plan = suite.plan(&eval).await;
    let address = leader.address.clone();
    let asking = tokio::spawn(async move { submit(&address, &plan).await });
    // Once the first piece is committed the plan is in progress.
    let before = suite.replica.applied();
    suite
        .replica
        .wait_for(before + 1, WAIT_LIMIT)
        .await
        .unwrap();
    leader.drain.cancel();
    let result = asking.await.unwrap().unwrap();
    assert_eq!(result.placed.len(), 2_000);
    (&mut leader.ended).await.unwrap().unwrap();
}

/// The leader loses the store at every moment of an all-at-once plan with several transactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_all_at_once_plan_is_never_committed_in_part() {
    let mut outcomes = [0, 0];
    for transactions in 1..=5 {
        let suite = Suite::start().await;
        let proxy = suite.proxy().await;
        let first = suite.applier_at(&proxy.endpoint()).await;
        suite.wait_for_leader(&first.address).await;
        let nodes: Vec<_> = (1..=60).map(node).collect();
        suite.create_nodes(&nodes).await;
        let mut job = batch("gang", 1_100);
        job.all_at_once = true;
        job.task_groups[0].tasks[0].resources.cpu_mhz = 50;
        job.task_groups[0].tasks[0].resources.memory_mib = 50;
        let eval = suite.register(1, &job).await;
        let plan = suite.plan(&eval).await;
        let before = suite.now().await.index();
        let address = first.address.clone();
        let asking = tokio::spawn(async move { submit(&address, &plan).await });
        let moment = suite.replica.wait_for(before + transactions, WAIT_LIMIT);
        moment.await.unwrap();
        proxy.set(Mode::Cut);
        drop(first);
        let _ = asking.await.unwrap();

        let second = suite.steady_leader().await;
        let snapshot = suite.now().await;
        assert_eq!(snapshot.plan_pieces().count(), 0);
        assert_eq!(snapshot.plan_commits().count(), 0);
        let placed = snapshot.allocs_by_job(&job.key()).count();
        let status = snapshot.eval(eval.id).unwrap().value.status;
        match placed {
            0 => assert_eq!(status, EvalStatus::Pending),
            all => assert_eq!((all, status), (1_100, EvalStatus::Complete)),
        }
        outcomes[usize::from(placed > 0)] += 1;
        if placed == 0 {
            let plan = suite.plan(&eval).await;
            let result = submit(&second.address, &plan).await.unwrap();
            assert_eq!(result.placed.len(), 1_100, "{result:?}");
        }
        let snapshot = suite.now().await;
        assert_eq!(snapshot.allocs_by_job(&job.key()).count(), 1_100);
        assert!(invariants::check_snapshot(&snapshot).is_empty());
    }
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
}
