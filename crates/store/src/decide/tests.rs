//! Scripts of snapshots, decisions and commits.

use std::cell::RefCell;
use std::sync::Mutex;

use state::{Key, State, Write};
use tokio::time::Instant;

use super::*;
use crate::keys::Keyspace;
use crate::txn::{Expected, Limits};
use crate::writer::{Conflict, FailedCompare};

/// The results of commits in order, and what was asked.
struct Script {
    commits: Mutex<Vec<Commit>>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    fn new(mut commits: Vec<Commit>) -> Self {
        commits.reverse();
        Self {
            commits: Mutex::new(commits),
            asked: Mutex::default(),
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn at(revision: u64) -> Snapshot {
    let mut state = State::default();
    state.advance(revision);
    state.snapshot()
}

impl Transactor for Script {
    type Error = &'static str;

    async fn fresh(&self) -> Result<Snapshot, Self::Error> {
        self.asked.lock().unwrap().push("fresh".to_owned());
        Ok(at(5))
    }

    async fn wait_for(&self, revision: u64) -> Result<Snapshot, Self::Error> {
        let asked = format!("wait for {revision}");
        self.asked.lock().unwrap().push(asked);
        Ok(at(revision))
    }

    async fn commit(&self, _: &Txn) -> Result<Commit, Self::Error> {
        self.asked.lock().unwrap().push("commit".to_owned());
        self.commits.lock().unwrap().pop().ok_or("out of reach")
    }
}

fn done(revision: u64) -> Commit {
    Commit::Done { revision }
}

fn conflict(revision: u64) -> Commit {
    Commit::Conflict(Conflict {
        revision,
        failed: vec![FailedCompare {
            key: Key::SchedulerConfig,
            expected: Expected::Absent,
            create_revision: 1,
            mod_revision: 1,
        }],
    })
}

fn txn() -> Txn {
    let mut txn = Txn::new(Keyspace::default(), Limits::DEFAULT);
    let write = Write::RequireAbsent {
        key: Key::SchedulerConfig,
    };
    txn.add(&write).unwrap();
    txn
}

fn commit(txns: usize, needs_fresh: bool) -> Decision<u64> {
    Decision::Commit {
        txns: (0..txns).map(|_| txn()).collect(),
        needs_fresh,
        answer: Box::new(|revision| revision),
    }
}

/// Runs one script; returns the result, the requests, and the indexes of the decisions' snapshots.
async fn run(
    commits: Vec<Commit>,
    decide: impl Fn(u64) -> Result<Decision<u64>, &'static str>,
) -> (Result<Option<u64>, &'static str>, Vec<String>, Vec<u64>) {
    let script = Script::new(commits);
    let indexes = RefCell::new(Vec::new());
    let result = decide_and_commit(&script, at(1), 4, |snapshot| {
        indexes.borrow_mut().push(snapshot.index());
        decide(snapshot.index())
    });
    let result = result.await;
    (result, script.asked(), indexes.into_inner())
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_decided_again_on_the_state_that_caused_it() {
    let (result, asked, indexes) = run(vec![conflict(7), done(9)], |_| Ok(commit(1, false))).await;
    assert_eq!(result, Ok(Some(9)));
    assert_eq!(asked, ["commit", "wait for 7", "commit"]);
    assert_eq!(indexes, [1, 7]);
}

#[tokio::test(start_paused = true)]
async fn refusals_and_final_answers_of_an_old_snapshot_are_confirmed_in_a_fresh_one() {
    let refuse = |index| match index {
        1 => Err("unknown"),
        _ => Ok(Decision::IfFresh(3)),
    };
    let (result, asked, _) = run(vec![], refuse).await;
    assert_eq!((result, asked), (Ok(Some(3)), vec!["fresh".to_owned()]));
    let (result, asked, _) = run(vec![], |_| Err("unknown")).await;
    assert_eq!((result, asked.len()), (Err("unknown"), 1));
    let (result, asked, _) = run(vec![], |_| Ok(Decision::Known(4))).await;
    assert_eq!((result, asked.len()), (Ok(Some(4)), 0));
    let (result, asked, _) = run(vec![done(8)], |_| Ok(commit(1, true))).await;
    assert_eq!(result, Ok(Some(8)));
    assert_eq!(asked, ["fresh", "commit"]);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_halfway_keeps_the_revision_of_the_commits_before() {
    let left = RefCell::new(2);
    let decide = |_| Ok(commit(left.replace(0), false));
    let (result, asked, _) = run(vec![done(9), conflict(8)], decide).await;
    assert_eq!(result, Ok(Some(9)), "nothing is left to commit");
    assert_eq!(asked, ["commit", "commit", "wait for 9"]);
}

#[tokio::test(start_paused = true)]
async fn conflicts_without_end_are_given_up_after_pauses() {
    let began = Instant::now();
    let conflicts = (7..20).map(conflict).collect();
    let (result, asked, _) = run(conflicts, |_| Ok(commit(1, false))).await;
    assert_eq!(result, Ok(None));
    let commits = asked.iter().filter(|asked| *asked == "commit");
    assert_eq!(commits.count(), 4);
    // Three pauses: at least half of each bound.
    assert!(began.elapsed() >= crate::retry::CONFLICT.0 * 7 / 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_commit_is_not_repeated() {
    let (result, asked, _) = run(vec![], |_| Ok(commit(2, false))).await;
    assert_eq!((result, asked.len()), (Err("out of reach"), 1));
}
