//! Explanations of evaluations through the API.

use proto::v1;
use tonic::{Code, Status};

use crate::support::{Suite, alloc, ask, job, node};

async fn try_explain(
    suite: &Suite,
    eval_id: &str,
    node_id: &str,
) -> Result<v1::ExplainEvaluationResponse, Status> {
    let request = v1::ExplainEvaluationRequest {
        eval_id: eval_id.to_owned(),
        node_id: node_id.to_owned(),
        ..Default::default()
    };
    let answer = suite.evaluations(0).explain(ask(request)).await;
    answer.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn blockers_of_nodes_are_explained_with_the_change_that_removes_them() {
    let suite = Suite::start(1).await;
    let (mut small, mut other) = (node(1), node(2));
    small.resources.cpu_mhz = 700;
    small.node_class = "small".to_owned();
    other.datacenter = "dc2".to_owned();
    suite.put_node(&small).await;
    suite.put_node(&other).await;
    let mut job = job("web");
    job.datacenters = vec!["dc1".to_owned()];
    job.task_groups[0].tasks[0].resources.cpu_mhz = 1_000;
    let registered = suite.register(&job).await;
    let node_id = other.id.to_string();
    let answer = try_explain(&suite, &registered.eval_id[..8], &node_id[..])
        .await
        .unwrap();
    let (meta, eval) = (answer.meta.unwrap(), answer.evaluation.unwrap());
    assert_eq!((&eval.id, eval.snapshot_index), (&registered.eval_id, 0));
    let explanation = answer.explanation.unwrap();
    // The answer carries the revision of the explained state.
    assert_eq!(explanation.index, meta.index);
    assert!(explanation.index >= registered.index);
    assert_eq!(explanation.job_version, Some(0));
    let [group] = &explanation.groups[..] else {
        panic!("{explanation:?}")
    };
    assert_eq!((group.wanted, group.missing, group.live), (2, 2, 0));
    assert_eq!(group.question, "unplaced");
    let counts = v1::VerdictCounts {
        out_of_scope: 1,
        exhausted: 1,
        ..Default::default()
    };
    assert_eq!(group.counts, Some(counts));
    let nearest = group.nearest.as_ref().unwrap();
    assert_eq!((&*nearest.node_name, &*nearest.class), ("n1", "small"));
    let [blocker] = &nearest.blockers[..] else {
        panic!("{nearest:?}")
    };
    assert_eq!((blocker.missing, &*blocker.unit), (300, "MHz"));
    let change = "cpu: ask 300 MHz less, node n1 has 700 MHz in all";
    assert_eq!(blocker.change, change);
    let asked = group.node.as_ref().unwrap();
    assert_eq!(
        (&asked.node_id, &*asked.verdict),
        (&node_id, "out-of-scope")
    );
    // The same evaluation is explained with the new node.
    suite.put_node(&node(3)).await;
    let answer = try_explain(&suite, &eval.id, "").await.unwrap();
    let group = answer.explanation.unwrap().groups.remove(0);
    assert_eq!((group.would_place, group.missing), (2, 0));
    assert_eq!(group.chosen.unwrap().node_name, "n3");
    assert_eq!(group.node, None);
}

#[tokio::test]
async fn a_placed_allocation_is_explained_by_scores() {
    let (suite, mut job, node_1) = (Suite::start(1).await, job("web"), node(1));
    job.task_groups[0].count = 1;
    suite.put_node(&node_1).await;
    suite.put_node(&node(2)).await;
    let registered = suite.register(&job).await;
    let placed = alloc(1, &job, &node_1, registered.index);
    suite.put_alloc(&placed).await;
    let answer = try_explain(&suite, &registered.eval_id, "").await.unwrap();
    let group = answer.explanation.unwrap().groups.remove(0);
    assert_eq!((group.live, group.missing, group.would_place), (1, 0, 0));
    // Another evaluation placed it, as far as its record goes.
    assert_eq!(group.question, "running");
    assert_eq!(group.alloc_id, placed.id.to_string());
    assert_eq!(group.chosen.unwrap().node_name, "n1");
    let best = group.classes[0].best.as_ref().unwrap();
    // Both nodes are otherwise empty: the tie is broken at random.
    assert_eq!((&*best.node_name, best.gap_per_mille), ("n2", Some(0)));
}

#[tokio::test]
async fn unknown_things_are_errors_and_a_stopped_job_is_not() {
    let suite = Suite::start(1).await;
    let registered = suite.register(&job("web")).await;
    for (eval_id, node_id, code, part) in [
        ("ffffffff", "", Code::NotFound, "no evaluation"),
        (&*registered.eval_id, "eeee", Code::NotFound, "no node"),
        ("", "", Code::InvalidArgument, "eval_id"),
        ("not hex", "", Code::InvalidArgument, "eval_id"),
        (&registered.eval_id, "?", Code::InvalidArgument, "node_id"),
    ] {
        let status = try_explain(&suite, eval_id, node_id).await.unwrap_err();
        assert_eq!(status.code(), code, "{eval_id:?} {node_id:?}: {status}");
        assert!(status.message().contains(part), "{status}");
    }
    let stop = v1::DeregisterJobRequest {
        job_id: "web".to_owned(),
        ..Default::default()
    };
    suite.jobs(0).deregister(ask(stop)).await.unwrap();
    let answer = try_explain(&suite, &registered.eval_id, "").await.unwrap();
    let explanation = answer.explanation.unwrap();
    assert_eq!(explanation.empty_reason, "the job is stopped");
    assert!(explanation.groups.is_empty());
}
