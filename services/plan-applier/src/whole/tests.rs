use applier::{Op, Verdict};
use model::{EvalStatus, Evaluation, Job, Node, TriggeredBy};
use test_kit::builders;

use super::*;
use crate::testing::{Ground, NOW, PATIENCE, Says, Strict, Term};

const PIECES: usize = 3;
const PLACED: usize = 6;

/// A store with a plan to be written into it, and whoever leads.
struct Site {
    ground: Ground,
    eval: Evaluation,
    job: Job,
    nodes: Vec<Node>,
    pieces: Vec<Arc<Piece>>,
    /// All of them in one.
    whole: Arc<Piece>,
}

impl Site {
    async fn start() -> Self {
        let ground = Ground::start().await;
        let mut job = builders::service("web", u32::try_from(PLACED).unwrap());
        job.all_at_once = true;
        let nodes: Vec<Node> = (1..=3).map(builders::node).collect();
        let eval = ground.register(&job, &nodes).await;
        let plan = ground.plan(&eval).await;
        assert_eq!((plan.placement_count(), plan.all_at_once), (PLACED, true));
        let Verdict::Accepted(accepted) = applier::verify(&ground.now().await, &plan, NOW) else {
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

    /// Carries out the first so many transactions, of which there are two for each piece and one for
    /// the record.
    async fn begin(&self, committer: &Committer<Strict>, transactions: usize) {
        let (id, done) = (self.eval.id, "nobody else writes");
        let mut shown = 0;
        for step in 0..transactions {
            let position = u32::try_from(step % (PIECES + 1)).unwrap();
            let written = if step < PIECES {
                committer.put_aside(id, position, &self.pieces[step]).await
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

    /// Tells whether all of the plan is there and none of its traces, or nothing of either.
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
        txn.update(&Key::Node(node.id), stored.modify_index, &node)
            .unwrap();
        self.commit(&txn).await;
    }
}

/// Cuts a piece into several, as if a transaction could hold no more.
fn in_pieces(whole: &Piece) -> Vec<Arc<Piece>> {
    let is_guard =
        |op: &&Op| matches!(op.key(), Key::Job(_) | Key::Eval(_)) && op.entity().is_none();
    let guards: Vec<Op> = whole.ops.iter().filter(is_guard).cloned().collect();
    let rest: Vec<Op> = whole
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
    let site = Site::start().await;
    let term = site.lead().await;
    let (committer, pieces) = (term.committer.clone(), site.pieces.clone());
    let committing = committer.commit_whole(CommitId(1), site.eval.id, pieces, NOW);
    let event = committing.await;
    let Event::Committed { revision, .. } = event else {
        panic!("{event:?}");
    };
    assert_eq!(site.now().await.index(), revision);
    assert!(site.outcome().await);
}

/// Whoever leads dies after each of the transactions in turn.
#[tokio::test]
async fn whenever_the_leader_dies_the_next_one_finishes_what_holds_and_clears_away_the_rest() {
    for transactions in 0..=2 * PIECES + 1 {
        let site = Site::start().await;
        let former = site.lead().await;
        site.begin(&former.committer, transactions).await;
        let late = former.committer.clone();
        drop(former);
        let next = site.lead().await;
        next.committer.settle(NOW).await.unwrap();
        let holds = transactions > PIECES;
        assert_eq!(site.outcome().await, holds, "{transactions} transactions");
        assert_eq!(next.committer.settle(NOW).await, Some(0));
        // The former one comes back to life, and goes on where it was.
        let written = late.put_aside(site.eval.id, 9, &site.pieces[0]).await;
        assert!(matches!(written, Written::Deposed), "{written:?}");
        let written = late.record(site.eval.id, &site.pieces).await;
        assert!(matches!(written, Written::Deposed), "{written:?}");
        assert_eq!(site.outcome().await, holds, "{transactions} transactions");
    }
}

#[tokio::test]
async fn what_changes_before_the_record_keeps_all_of_the_plan_away() {
    let site = Site::start().await;
    let term = site.lead().await;
    site.edit_node(0).await;
    let (committer, pieces) = (term.committer.clone(), site.pieces.clone());
    let committing = committer.commit_whole(CommitId(1), site.eval.id, pieces, NOW);
    let event = committing.await;
    assert!(matches!(event, Event::Conflict { .. }), "{event:?}");
    assert!(!site.outcome().await);
}

#[tokio::test]
async fn nodes_that_change_after_the_record_get_their_allocations_and_another_look() {
    let site = Site::start().await;
    let former = site.lead().await;
    site.begin(&former.committer, PIECES + 1).await;
    site.edit_node(0).await;
    drop(former);
    let next = site.lead().await;
    next.committer.settle(NOW).await.unwrap();
    assert!(site.outcome().await);
    let snapshot = site.now().await;
    let key = site.job.key();
    let looks = snapshot
        .evals_by_job(&key)
        .filter(|eval| eval.value.triggered_by == TriggeredBy::NodeUpdate);
    let statuses: Vec<_> = looks.map(|eval| eval.value.status).collect();
    assert!(!statuses.is_empty());
    assert!(statuses.iter().all(|status| *status == EvalStatus::Pending));
}

#[tokio::test]
async fn a_job_that_is_purged_after_the_record_gets_nothing_more() {
    let site = Site::start().await;
    let former = site.lead().await;
    site.begin(&former.committer, PIECES + 2).await;
    let snapshot = site.now().await;
    let before = snapshot.allocs().count();
    let (job, key) = (snapshot.job(&site.job.key()).unwrap(), site.job.key());
    let mut txn = site.txn();
    txn.delete(&Key::Job(key), job.modify_index).unwrap();
    site.commit(&txn).await;
    drop(former);
    let next = site.lead().await;
    next.committer.settle(NOW).await.unwrap();
    let snapshot = site.now().await;
    assert_eq!(snapshot.allocs().count(), before);
    assert!(before < PLACED);
    assert_eq!(snapshot.plan_pieces().count(), 0);
    assert_eq!(snapshot.plan_commits().count(), 0);
}

/// With a limit that lets a part have one write, its job, its node, and what says how far it is.
const PART_MAX: usize = 6;

#[tokio::test]
async fn what_is_too_large_to_be_moved_at_once_is_moved_in_parts() {
    let site = Site::start().await;
    let former = site.lead().await;
    site.begin(&former.committer, PIECES + 1).await;
    drop(former);
    let next = site.lead().await;
    next.committer.writer.says(Says::AtMost(PART_MAX));
    assert!(next.committer.settle(NOW).await.is_some());
    assert!(next.committer.metrics.staged_refused.get() > 0);
    assert!(site.outcome().await);
}

/// Whoever leads dies between two parts; nothing is moved twice, and nothing is left out.
#[tokio::test]
async fn whoever_leads_next_goes_on_within_a_piece() {
    for taken in 1..=8 {
        let site = Site::start().await;
        let former = site.lead().await;
        site.begin(&former.committer, PIECES + 1).await;
        let at_most = PART_MAX;
        former
            .committer
            .writer
            .says(Says::DeposedAfter { taken, at_most });
        assert_eq!(former.committer.settle(NOW).await, None);
        let snapshot = site.now().await;
        let record = snapshot.plan_commit(site.eval.id).unwrap();
        assert!(taken > 1 || record.value.begun.is_some(), "{record:?}");
        // What it moved, somebody collects: it is not to come back.
        let collected = snapshot.allocs().next().map(|view| view.alloc.id);
        if let Some(view) = snapshot.allocs().next() {
            let mut txn = site.txn();
            txn.delete(&Key::Alloc(view.alloc.id), view.alloc_modify_index)
                .unwrap();
            site.commit(&txn).await;
        }
        drop(former);
        let next = site.lead().await;
        assert!(next.committer.settle(NOW).await.is_some());
        let snapshot = site.now().await;
        assert_eq!(snapshot.plan_commits().count(), 0);
        assert_eq!(snapshot.plan_pieces().count(), 0);
        let there = snapshot.allocs().count();
        let expected = PLACED - usize::from(collected.is_some());
        assert_eq!(there, expected, "{taken} parts before");
    }
}

#[tokio::test]
async fn a_node_that_changes_between_two_parts_is_looked_at_for_each() {
    let site = Site::start().await;
    let term = site.lead().await;
    let (committer, id) = (&term.committer, site.eval.id);
    let written = committer.put_aside(id, 0, &site.whole).await;
    assert!(matches!(written, Written::Done(_)), "{written:?}");
    let written = committer.record(id, &[Arc::clone(&site.whole)]).await;
    assert!(matches!(written, Written::Done(_)), "{written:?}");
    for position in 0..site.nodes.len() {
        site.edit_node(position).await;
    }
    site.now().await;
    // And the evaluation.
    committer.writer.says(Says::AtMost(PART_MAX + 1));
    assert!(committer.settle(NOW).await.is_some());
    assert!(site.outcome().await);
    let snapshot = site.now().await;
    let key = site.job.key();
    let looks = snapshot
        .evals_by_job(&key)
        .filter(|eval| eval.value.triggered_by == TriggeredBy::NodeUpdate);
    assert_eq!(looks.count(), PLACED, "one with each part");
}

#[tokio::test]
async fn what_is_refused_of_a_plan_that_holds_is_tried_until_it_is_taken() {
    let site = Site::start().await;
    let term = site.lead().await;
    let after = PIECES + 2;
    term.committer.writer.says(Says::No { after, times: 2 });
    let (committer, pieces) = (term.committer.clone(), site.pieces.clone());
    let committing = committer.commit_whole(CommitId(1), site.eval.id, pieces, NOW);
    let event = committing.await;
    assert!(matches!(event, Event::Committed { .. }), "{event:?}");
    assert_eq!(term.committer.metrics.staged_refused.get(), 2);
    assert!(site.outcome().await);
}

#[tokio::test]
async fn a_process_that_is_to_end_does_not_wait_for_what_is_refused() {
    let site = Site::start().await;
    let term = site.lead().await;
    site.begin(&term.committer, PIECES + 1).await;
    let (after, times) = (0, usize::MAX);
    term.committer.writer.says(Says::No { after, times });
    term.committer.drain.cancel();
    let settled = tokio::time::timeout(PATIENCE, term.committer.settle(NOW)).await;
    assert_eq!(settled, Ok(None));
}

#[tokio::test]
async fn what_is_refused_before_the_record_is_taken_back_and_told() {
    for after in 0..=PIECES {
        let site = Site::start().await;
        let term = site.lead().await;
        term.committer.writer.says(Says::No { after, times: 1 });
        let (committer, pieces) = (term.committer.clone(), site.pieces.clone());
        let committing = committer.commit_whole(CommitId(1), site.eval.id, pieces, NOW);
        let event = committing.await;
        let Event::Refused { reason, .. } = event else {
            panic!("{event:?}");
        };
        assert!(reason.contains("fence"), "{reason}");
        assert!(!site.outcome().await, "after {after}");
    }
}

/// Nobody counts what is left behind, so it does not keep anybody from leading.
#[tokio::test]
async fn what_cannot_be_cleared_away_is_left_for_later() {
    let site = Site::start().await;
    let former = site.lead().await;
    site.begin(&former.committer, PIECES).await;
    drop(former);
    let next = site.lead().await;
    let (after, times) = (0, usize::MAX);
    next.committer.writer.says(Says::No { after, times });
    assert!(next.committer.settle(NOW).await.is_some());
    assert_eq!(site.now().await.plan_pieces().count(), PIECES);
    // The fence and one piece.
    next.committer.writer.says(Says::AtMost(2));
    assert!(next.committer.settle(NOW).await.is_some());
    assert!(!site.outcome().await);
}
