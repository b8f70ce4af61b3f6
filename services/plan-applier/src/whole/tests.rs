use std::time::Duration;

use applier::{Op, Verdict};
use embedded_etcd::EmbeddedEtcd;
use model::{EvalStatus, Evaluation, Job, LeaderInfo, Node, TriggeredBy};
use prometheus_client::registry::Registry;
use service_kit::CancellationToken;
use store::{Client, ClientOptions, Commit, ElectionOptions, Leadership, Replica, ReplicaOptions};
use test_kit::builders;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::SERVICE;
use crate::metrics::Metrics;

const PATIENCE: Duration = Duration::from_secs(20);
const NOW: Timestamp = Timestamp(5);
const PIECES: usize = 3;
const PLACED: usize = 6;

/// A store with a plan to be written into it, and whoever leads.
struct Site {
    _etcd: EmbeddedEtcd,
    client: Client,
    replica: Replica,
    eval: Evaluation,
    job: Job,
    nodes: Vec<Node>,
    pieces: Vec<Arc<Piece>>,
}

/// A term; it is given up when this is dropped.
struct Term {
    committer: Committer,
    drain: CancellationToken,
}

impl Drop for Term {
    fn drop(&mut self) {
        self.drain.cancel();
    }
}

impl Site {
    async fn start() -> Self {
        let etcd = EmbeddedEtcd::start(embedded_etcd::Config::in_memory())
            .await
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(etcd.serve(listener, CancellationToken::new()));
        let client = Client::connect(&[endpoint], ClientOptions::default())
            .await
            .unwrap();
        let drain = CancellationToken::new();
        let replica = Replica::start(client.clone(), ReplicaOptions::default(), drain);
        let mut job = builders::service("web", u32::try_from(PLACED).unwrap());
        job.all_at_once = true;
        let eval = builders::evaluation(1, &job);
        let mut site = Self {
            _etcd: etcd,
            client,
            replica,
            eval: eval.clone(),
            job: job.clone(),
            nodes: (1..=3).map(builders::node).collect(),
            pieces: Vec::new(),
        };
        let mut txn = site.txn();
        for node in &site.nodes {
            txn.create(&Key::Node(node.id), node).unwrap();
        }
        txn.create(&Key::Job(job.key()), &job).unwrap();
        txn.create(&Key::JobVersion(job.key(), 0), &job).unwrap();
        txn.create(&Key::Eval(eval.id), &eval).unwrap();
        site.commit(&txn).await;
        let snapshot = site.now().await;
        let stored = snapshot.eval(eval.id).unwrap();
        let plan = scheduler::schedule(&snapshot, stored, NOW, 7).plan;
        assert_eq!((plan.placement_count(), plan.all_at_once), (PLACED, true));
        let Verdict::Accepted(accepted) = applier::verify(&snapshot, &plan, NOW) else {
            panic!("refused");
        };
        site.pieces = in_pieces(&accepted.pieces[0]);
        site
    }

    fn txn(&self) -> Txn {
        self.client.unfenced_writer().txn()
    }

    async fn commit(&self, txn: &Txn) -> u64 {
        match self.client.unfenced_writer().commit(txn).await.unwrap() {
            Commit::Done { revision } => revision,
            Commit::Conflict(conflict) => panic!("{conflict:?}"),
        }
    }

    async fn now(&self) -> Snapshot {
        self.replica.linearizable(PATIENCE).await.unwrap()
    }

    /// Waits until nobody leads any more, and leads.
    async fn lead(&self) -> Term {
        let (tell, mut told) = mpsc::unbounded_channel::<Leadership>();
        let drain = CancellationToken::new();
        let info = LeaderInfo {
            address: "http://127.0.0.1:1".to_owned(),
            replica: "test".to_owned(),
        };
        let until = drain.clone();
        // The tests say when a term ends, not a machine that has much else to do.
        let options = ElectionOptions {
            ttl: PATIENCE * 3,
            ..ElectionOptions::new(SERVICE, info)
        };
        tokio::spawn(store::run_elected(
            options,
            self.replica.clone(),
            self.client.clone(),
            drain.clone(),
            move |leadership| {
                tell.send(leadership).unwrap();
                let until = until.clone();
                async move { until.cancelled().await }
            },
        ));
        let leadership = tokio::time::timeout(PATIENCE, told.recv()).await;
        let committer = Committer {
            writer: leadership.unwrap().unwrap().writer(&self.client),
            replica: self.replica.clone(),
            metrics: Metrics::register(&mut Registry::default()),
        };
        Term { committer, drain }
    }

    /// Carries out the first so many transactions, of which there are two for each piece and one for
    /// the record.
    async fn begin(&self, committer: &Committer, transactions: usize) {
        let (id, done) = (self.eval.id, "nobody else writes");
        let mut shown = 0;
        for step in 0..transactions {
            let position = u32::try_from(step % (PIECES + 1)).unwrap();
            let written = if step < PIECES {
                committer.put_aside(id, position, &self.pieces[step]).await
            } else if step == PIECES {
                committer.record(id, &self.pieces).await
            } else {
                let is_last = step == 2 * PIECES;
                let moved = committer.move_one(id, position, is_last, shown, NOW);
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
