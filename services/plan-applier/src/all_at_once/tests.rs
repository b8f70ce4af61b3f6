//! All-at-once plans: pieces, commit records, former leaders, refused parts.

use applier::PlanVerification;
use model::{EvalStatus, Evaluation, Job, Node, TriggeredBy};
use store::Txn;
use test_kit::builders;
use test_kit::writes;

use super::*;
use crate::testing::{NOW, Refusals, RefusingStore, StoreFixture, TIMEOUT, Term};

const PIECES: usize = 3;
const PLACED: usize = 6;

/// A store, and a plan to be committed to it.
struct Fixture {
    ground: StoreFixture,
    eval: Evaluation,
    job: Job,
    nodes: Vec<Node>,
    pieces: Vec<Arc<Piece>>,
    /// All of the pieces in one.
    whole: Arc<Piece>,
}

impl Fixture {
    async fn start() -> Self {
        let ground = StoreFixture::start().await;
        let mut job = builders::service("web", u32::try_from(PLACED).unwrap());
        job.all_at_once = true;
        let nodes: Vec<Node> = (1..=3).map(builders::node).collect();
        let eval = ground.register(&job, &nodes).await;
        let plan = ground.plan(&eval).await;
        assert_eq!((plan.placement_count(), plan.all_at_once), (PLACED, true));
        let PlanVerification::Accepted(accepted) = applier::verify(&ground.now().await, &plan, NOW)
        else {
            panic!("refused");
        };
        Self {
            pieces: in_pieces(&accepted.pieces[0]),
            whole: Arc::clone(&accepted.pieces[0]),
            ground,
            eval,
            job,
            nodes,
        }
    }

    fn txn(&self) -> Txn {
        self.ground.txn()
    }

    async fn commit(&self, txn: &Txn) -> u64 {
        self.ground.commit(txn).await
    }

    async fn now(&self) -> Snapshot {
        self.ground.now().await
    }

    async fn lead(&self) -> Term {
        self.ground.lead().await
    }

    /// Carries out the first `transactions` of two for each piece and one for the record.
    async fn begin(&self, committer: &Committer<RefusingStore>, transactions: usize) {
        let (id, done) = (self.eval.id, "no concurrent writer");
        let mut shown = 0;
        for step in 0..transactions {
            let position = u32::try_from(step % (PIECES + 1)).unwrap();
            let written = if step < PIECES {
                committer
                    .stage_piece(id, position, &self.pieces[step])
                    .await
            } else if step == PIECES {
                committer.record(id, &self.pieces).await
            } else {
                let mut ops_max = usize::MAX;
                let moved = committer.move_one(id, position, shown, NOW, &mut ops_max);
                Written::Done(moved.await.expect(done))
            };
            let Written::Done(revision) = written else {
                panic!("{written:?}");
            };
            shown = revision;
        }
    }

    /// Returns whether the plan is committed; checks that it is so completely or not at all, and that no
    /// staged piece is left.
    async fn outcome(&self) -> bool {
        let snapshot = self.now().await;
        assert_eq!(snapshot.plan_pieces().count(), 0);
        assert_eq!(snapshot.plan_commits().count(), 0);
        let placed = snapshot.allocs_by_job(&self.job.key()).count();
        let status = snapshot.eval(self.eval.id).unwrap().value.status;
        match placed {
            0 => assert_eq!(status, EvalStatus::Pending),
            all => assert_eq!((all, status), (PLACED, EvalStatus::Complete)),
        }
        let found = invariants::check_snapshot(&snapshot);
        assert!(found.is_empty(), "{found:?}");
        placed > 0
    }

    async fn edit_node(&self, position: usize) {
        let snapshot = self.now().await;
        let stored = snapshot.node(self.nodes[position].id).unwrap();
        let mut node = stored.value.clone();
        node.status_description = "changed".to_owned();
        let mut txn = self.txn();
        txn.add(&writes::update(
            &Key::Node(node.id),
            stored.modify_index,
            &node,
        ))
        .unwrap();
        self.commit(&txn).await;
    }
}

/// Splits a piece into several, as if a transaction could hold no more.
fn in_pieces(whole: &Piece) -> Vec<Arc<Piece>> {
    let is_guard =
        |op: &&Write| matches!(op.key(), Key::Job(_) | Key::Eval(_)) && op.entity().is_none();
    let guards: Vec<Write> = whole.ops.iter().filter(is_guard).cloned().collect();
    let rest: Vec<Write> = whole
        .ops
        .iter()
        .filter(|op| !is_guard(op))
        .cloned()
        .collect();
    let pieces = rest.chunks(rest.len().div_ceil(PIECES)).map(|ops| {
        let ops = guards.iter().chain(ops).cloned().collect();
        Arc::new(Piece { ops, bytes: 0 })
    });
    let pieces: Vec<_> = pieces.collect();
    assert_eq!(pieces.len(), PIECES);
    pieces
}

#[tokio::test]
async fn a_plan_is_written_as_a_whole_and_leaves_no_traces() {
    let fixture = Fixture::start().await;
    let term = fixture.lead().await;
    let (committer, pieces) = (term.committer.clone(), fixture.pieces.clone());
    let committing = committer.commit_all_at_once(CommitId(1), fixture.eval.id, pieces, NOW);
    let event = committing.await;
    let Event::Committed { revision, .. } = event else {
        panic!("{event:?}");
    };
    assert_eq!(fixture.now().await.index(), revision);
    assert!(fixture.outcome().await);
}

/// The leader dies after each of the transactions in turn.
#[tokio::test]
async fn the_next_leader_finishes_committed_plans_and_deletes_the_pieces_of_others() {
    for transactions in 0..=2 * PIECES + 1 {
        let fixture = Fixture::start().await;
        let former = fixture.lead().await;
        fixture.begin(&former.committer, transactions).await;
        let late = former.committer.clone();
        drop(former);
        let next = fixture.lead().await;
        next.committer.finish_former_plans(NOW).await.unwrap();
        let is_committed = transactions > PIECES;
        assert_eq!(
            fixture.outcome().await,
            is_committed,
            "{transactions} transactions"
        );
        assert_eq!(next.committer.finish_former_plans(NOW).await, Some(0));
        // The former leader resumes.
        let written = late
            .stage_piece(fixture.eval.id, 9, &fixture.pieces[0])
            .await;
        assert!(matches!(written, Written::Deposed), "{written:?}");
        let written = late.record(fixture.eval.id, &fixture.pieces).await;
        assert!(matches!(written, Written::Deposed), "{written:?}");
        assert_eq!(
            fixture.outcome().await,
            is_committed,
            "{transactions} transactions"
        );
    }
}

#[tokio::test]
async fn a_change_before_the_record_prevents_the_whole_plan() {
    let fixture = Fixture::start().await;
    let term = fixture.lead().await;
    fixture.edit_node(0).await;
    let (committer, pieces) = (term.committer.clone(), fixture.pieces.clone());
    let committing = committer.commit_all_at_once(CommitId(1), fixture.eval.id, pieces, NOW);
    let event = committing.await;
    assert!(matches!(event, Event::Conflict { .. }), "{event:?}");
    assert!(!fixture.outcome().await);
}

#[tokio::test]
async fn changed_nodes_get_their_allocations_and_the_job_an_evaluation() {
    let fixture = Fixture::start().await;
    let former = fixture.lead().await;
    fixture.begin(&former.committer, PIECES + 1).await;
    fixture.edit_node(0).await;
    drop(former);
    let next = fixture.lead().await;
    next.committer.finish_former_plans(NOW).await.unwrap();
    assert!(fixture.outcome().await);
    let snapshot = fixture.now().await;
    let key = fixture.job.key();
    let looks = snapshot
        .evals_by_job(&key)
        .filter(|eval| eval.value.triggered_by == TriggeredBy::NodeUpdate);
    let statuses: Vec<_> = looks.map(|eval| eval.value.status).collect();
    assert!(!statuses.is_empty());
    assert!(statuses.iter().all(|status| *status == EvalStatus::Pending));
}

#[tokio::test]
async fn a_job_purged_after_the_record_gets_no_allocations() {
    let fixture = Fixture::start().await;
    let former = fixture.lead().await;
    fixture.begin(&former.committer, PIECES + 2).await;
    let snapshot = fixture.now().await;
    let before = snapshot.allocs().count();
    let (job, key) = (snapshot.job(&fixture.job.key()).unwrap(), fixture.job.key());
    let mut txn = fixture.txn();
    txn.add(&writes::delete(&Key::Job(key), job.modify_index))
        .unwrap();
    fixture.commit(&txn).await;
    drop(former);
    let next = fixture.lead().await;
    next.committer.finish_former_plans(NOW).await.unwrap();
    let snapshot = fixture.now().await;
    assert_eq!(snapshot.allocs().count(), before);
    assert!(before < PLACED);
    assert_eq!(snapshot.plan_pieces().count(), 0);
    assert_eq!(snapshot.plan_commits().count(), 0);
}

/// With a limit of one write per part, beside its job, its node and the progress.
const PART_MAX: usize = 6;

#[tokio::test]
async fn a_piece_too_large_for_one_transaction_is_moved_in_parts() {
    let fixture = Fixture::start().await;
    let former = fixture.lead().await;
    fixture.begin(&former.committer, PIECES + 1).await;
    drop(former);
    let next = fixture.lead().await;
    next.committer
        .writer
        .set_refusals(Refusals::AtMost(PART_MAX));
    assert!(next.committer.finish_former_plans(NOW).await.is_some());
    assert!(next.committer.metrics.staged_refused.get() > 0);
    assert!(fixture.outcome().await);
}

/// The leader dies between two parts; nothing is moved twice, and nothing is left out.
#[tokio::test]
async fn the_next_leader_resumes_within_a_piece() {
    for taken in 1..=8 {
        let fixture = Fixture::start().await;
        let former = fixture.lead().await;
        fixture.begin(&former.committer, PIECES + 1).await;
        let at_most = PART_MAX;
        former
            .committer
            .writer
            .set_refusals(Refusals::DeposedAfter { taken, at_most });
        assert_eq!(former.committer.finish_former_plans(NOW).await, None);
        let snapshot = fixture.now().await;
        let record = snapshot.plan_commit(fixture.eval.id).unwrap();
        assert!(taken > 1 || record.value.begun.is_some(), "{record:?}");
        // The moved allocations are collected, and must not come back.
        let collected = snapshot.allocs().next().map(|view| view.alloc.id);
        if let Some(view) = snapshot.allocs().next() {
            let mut txn = fixture.txn();
            txn.add(&writes::delete(
                &Key::Alloc(view.alloc.id),
                view.alloc_modify_index,
            ))
            .unwrap();
            fixture.commit(&txn).await;
        }
        drop(former);
        let next = fixture.lead().await;
        assert!(next.committer.finish_former_plans(NOW).await.is_some());
        let snapshot = fixture.now().await;
        assert_eq!(snapshot.plan_commits().count(), 0);
        assert_eq!(snapshot.plan_pieces().count(), 0);
        let there = snapshot.allocs().count();
        let expected = PLACED - usize::from(collected.is_some());
        assert_eq!(there, expected, "{taken} parts before");
    }
}

#[tokio::test]
async fn a_node_changed_between_two_parts_gets_an_evaluation_for_each() {
    let fixture = Fixture::start().await;
    let term = fixture.lead().await;
    let (committer, id) = (&term.committer, fixture.eval.id);
    let written = committer.stage_piece(id, 0, &fixture.whole).await;
    assert!(matches!(written, Written::Done(_)), "{written:?}");
    let written = committer.record(id, &[Arc::clone(&fixture.whole)]).await;
    assert!(matches!(written, Written::Done(_)), "{written:?}");
    for position in 0..fixture.nodes.len() {
        fixture.edit_node(position).await;
    }
    fixture.now().await;
    // And the evaluation.
    committer
        .writer
        .set_refusals(Refusals::AtMost(PART_MAX + 1));
    assert!(committer.finish_former_plans(NOW).await.is_some());
    assert!(fixture.outcome().await);
    let snapshot = fixture.now().await;
    let key = fixture.job.key();
    let looks = snapshot
        .evals_by_job(&key)
        .filter(|eval| eval.value.triggered_by == TriggeredBy::NodeUpdate);
    assert_eq!(looks.count(), PLACED, "one with each part");
}

#[tokio::test]
async fn a_refused_part_of_a_committed_plan_is_retried_until_accepted() {
    let fixture = Fixture::start().await;
    let term = fixture.lead().await;
    let after = PIECES + 2;
    term.committer
        .writer
        .set_refusals(Refusals::No { after, times: 2 });
    let (committer, pieces) = (term.committer.clone(), fixture.pieces.clone());
    let committing = committer.commit_all_at_once(CommitId(1), fixture.eval.id, pieces, NOW);
    let event = committing.await;
    assert!(matches!(event, Event::Committed { .. }), "{event:?}");
    assert_eq!(term.committer.metrics.staged_refused.get(), 2);
    assert!(fixture.outcome().await);
}

#[tokio::test]
async fn a_drained_process_does_not_wait_for_a_refused_part() {
    let fixture = Fixture::start().await;
    let term = fixture.lead().await;
    fixture.begin(&term.committer, PIECES + 1).await;
    let (after, times) = (0, usize::MAX);
    term.committer
        .writer
        .set_refusals(Refusals::No { after, times });
    term.committer.drain.cancel();
    let finished = tokio::time::timeout(TIMEOUT, term.committer.finish_former_plans(NOW)).await;
    assert_eq!(finished, Ok(None));
}

#[tokio::test]
async fn a_refusal_before_the_record_aborts_the_plan_with_the_reason() {
    for after in 0..=PIECES {
        let fixture = Fixture::start().await;
        let term = fixture.lead().await;
        term.committer
            .writer
            .set_refusals(Refusals::No { after, times: 1 });
        let (committer, pieces) = (term.committer.clone(), fixture.pieces.clone());
        let committing = committer.commit_all_at_once(CommitId(1), fixture.eval.id, pieces, NOW);
        let event = committing.await;
        let Event::Refused { reason, .. } = event else {
            panic!("{event:?}");
        };
        assert!(reason.contains("fence"), "{reason}");
        assert!(!fixture.outcome().await, "after {after}");
    }
}

/// Pieces left behind are not counted, so they do not prevent a term.
#[tokio::test]
async fn pieces_that_cannot_be_deleted_are_left_behind() {
    let fixture = Fixture::start().await;
    let former = fixture.lead().await;
    fixture.begin(&former.committer, PIECES).await;
    drop(former);
    let next = fixture.lead().await;
    let (after, times) = (0, usize::MAX);
    next.committer
        .writer
        .set_refusals(Refusals::No { after, times });
    assert!(next.committer.finish_former_plans(NOW).await.is_some());
    assert_eq!(fixture.now().await.plan_pieces().count(), PIECES);
    // The fence and one piece.
    next.committer.writer.set_refusals(Refusals::AtMost(2));
    assert!(next.committer.finish_former_plans(NOW).await.is_some());
    assert!(!fixture.outcome().await);
}
