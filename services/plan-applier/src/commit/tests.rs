//! Every concurrent change between a plan's verification and its commit fails the transaction: each
//! compare on its own, in a store.

use applier::PlanVerification;
use model::plan::Stop;
use model::{
    AllocId, DeploymentStatus, DesiredStatus, EvalStatus, Evaluation, NodeEligibility, Plan,
};
use state::{Entity, Key, Snapshot};
use test_kit::builders;
use test_kit::writes;

use super::*;
use crate::testing::{NOW, StoreFixture, Term};

/// A store with a rollout under way, and a plan that replaces one of its allocations by another.
struct Fixture {
    ground: StoreFixture,
    plan: Plan,
    pieces: Vec<Arc<Piece>>,
}

const REPLACED: &str = "one was placed before";

impl Fixture {
    async fn start() -> (Self, Term) {
        let ground = StoreFixture::start().await;
        let mut job = builders::service("web", 1);
        job.task_groups[0].update = Some(builders::rolling_update(1));
        let first = ground.register(&job, &[builders::node(1)]).await;
        let term = ground.lead().await;
        let first = ground.plan(&first).await;
        let event = commit(&term, verified(&ground.now().await, &first)).await;
        assert!(matches!(event, Event::Committed { .. }), "{event:?}");
        let eval = builders::evaluation(2, &job);
        let mut txn = ground.txn();
        txn.add(&writes::create(&Key::Eval(eval.id), &eval))
            .unwrap();
        ground.commit(&txn).await;
        let plan = replacing(&ground.now().await, first, &eval);
        let pieces = verified(&ground.now().await, &plan);
        let fixture = Self {
            ground,
            plan,
            pieces,
        };
        (fixture, term)
    }

    /// The allocation that is replaced, and the one that replaces it.
    fn allocs(&self) -> (AllocId, AllocId) {
        let new = &self.plan.placements.values().next().expect(REPLACED)[0];
        (new.previous_alloc.expect(REPLACED), new.id)
    }
}

/// Returns a plan that stops and replaces the placements of the former plan.
fn replacing(snapshot: &Snapshot, former: Plan, eval: &Evaluation) -> Plan {
    let stored = snapshot.eval(eval.id).expect("it was made");
    let mut plan = Plan {
        eval_id: eval.id,
        eval_modify_index: stored.modify_index,
        snapshot_index: snapshot.index(),
        deployment: None,
        eval_outcome: Some(Box::new(Evaluation {
            status: EvalStatus::Complete,
            ..eval.clone()
        })),
        ..former
    };
    for (node_id, allocs) in &mut plan.placements {
        for alloc in allocs {
            let stop = Stop {
                alloc_id: alloc.id,
                description: "replaced".to_owned(),
                client_status: None,
                followup_eval_id: None,
                preempted_by: None,
            };
            plan.stops.entry(*node_id).or_default().push(stop);
            alloc.previous_alloc = Some(alloc.id);
            alloc.id = AllocId::from_random(2);
        }
    }
    assert!(plan.deployment_updates.is_empty() && plan.followup_evals.is_empty());
    plan
}

fn verified(snapshot: &Snapshot, plan: &Plan) -> Vec<Arc<Piece>> {
    let PlanVerification::Accepted(accepted) = applier::verify(snapshot, plan, NOW) else {
        panic!("refused");
    };
    assert!(accepted.rejected_nodes.is_empty());
    accepted.pieces
}

async fn commit(term: &Term, pieces: Vec<Arc<Piece>>) -> Event {
    term.committer.clone().commit(CommitId(1), pieces).await
}

/// Concurrent writes of a user, the eval-broker, a node's gateway, the cluster-controller and the
/// deployment-watcher.
fn changes(fixture: &Fixture, snapshot: &Snapshot) -> Vec<(Key, u64, Entity)> {
    let plan = &fixture.plan;
    let job = snapshot.job(&plan.job).expect(REPLACED);
    let mut changed = job.value.clone();
    changed.priority += 1;
    let eval = snapshot.eval(plan.eval_id).expect(REPLACED);
    let failed = Evaluation {
        status: EvalStatus::Failed,
        ..eval.value.clone()
    };
    let view = snapshot.alloc(fixture.allocs().0).expect(REPLACED);
    let mut marked = (*view.alloc).clone();
    marked.transition.migrate = true;
    let node = snapshot.node(marked.node_id).expect(REPLACED);
    let mut closed = node.value.clone();
    closed.eligibility = NodeEligibility::Ineligible;
    let id = marked.deployment_id.expect("it is rolled out");
    let rollout = snapshot.deployment(id).expect(REPLACED);
    let mut paused = rollout.value.clone();
    paused.status = DeploymentStatus::Paused;
    vec![
        (
            Key::Job(plan.job.clone()),
            job.modify_index,
            Entity::Job(changed.into()),
        ),
        (
            Key::Eval(failed.id),
            eval.modify_index,
            Entity::Eval(failed.into()),
        ),
        (
            Key::Alloc(marked.id),
            view.alloc_modify_index,
            Entity::Alloc(marked.into()),
        ),
        (
            Key::Node(closed.id),
            node.modify_index,
            Entity::Node(closed.into()),
        ),
        (
            Key::Deployment(id),
            rollout.modify_index,
            Entity::Deployment(paused.into()),
        ),
    ]
}

#[tokio::test]
async fn an_unchanged_state_lets_the_plan_through() {
    let (fixture, term) = Fixture::start().await;
    let event = commit(&term, fixture.pieces.clone()).await;
    assert!(matches!(event, Event::Committed { .. }), "{event:?}");
    let (old, new) = fixture.allocs();
    let snapshot = fixture.ground.now().await;
    assert!(snapshot.alloc(new).is_some());
    let old = snapshot.alloc(old).expect(REPLACED);
    assert_eq!(old.alloc.desired_status, DesiredStatus::Stop);
}

#[tokio::test]
async fn every_change_after_the_verification_fails_the_commit() {
    for position in 0..5 {
        let (fixture, term) = Fixture::start().await;
        let before = fixture.ground.now().await;
        let (key, modify_index, entity) = changes(&fixture, &before).swap_remove(position);
        let mut txn = fixture.ground.txn();
        txn.add(&writes::update(&key, modify_index, &entity))
            .unwrap();
        let changed = fixture.ground.commit(&txn).await;
        let event = commit(&term, fixture.pieces.clone()).await;
        assert!(
            matches!(event, Event::Conflict { .. }),
            "{key:?}: {event:?}"
        );
        let after = fixture.ground.now().await;
        assert_eq!(after.index(), changed, "{key:?}: nothing was written");
        assert!(after.alloc(fixture.allocs().1).is_none(), "{key:?}");
    }
}
