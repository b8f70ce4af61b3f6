//! Group commit: independent requests that come in together share one transaction of the store.
//!
//! A transaction costs etcd a consensus round and a write to disk, and each replica a message and a new
//! snapshot, however little it writes. So requests that come in while a commit is under way make up
//! the next one, as reports of nodes do. A lone request is committed at once.
//!
//! **Invariant**: a member of a group has the outcome that its own transaction would have had at the
//! revision of the group's: its compares are among the group's, and if one of them fails, its
//! conflict has that compare. Members whose compares hold are committed again without it.
//! **Invariant**: an outcome that is unknown is unknown for every member.

mod pace;

use std::collections::VecDeque;

use state::Key;
use store::{Commit, Conflict, Txn, Writer};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::metrics::Metrics;
use pace::Pace;

/// Requests in the queue: those of a few groups. Further ones wait for room, which their deadlines
/// bound.
const QUEUE: usize = 1_024;
/// Operations of a group: a registration has five, so some hundred requests. Beyond it a transaction
/// only takes longer.
const MAX_OPERATIONS: usize = 500;
/// Bytes of a group, half of what a transaction may have.
const MAX_BYTES: usize = state::entity::TRANSACTION_BYTES / 2;

/// A transaction that waits for its group.
struct Member {
    txn: Txn,
    /// The keys that it compares, to find its part of a conflict.
    keys: Vec<Key>,
    deadline: Instant,
    reply: oneshot::Sender<Result<Commit, Error>>,
}

/// A handle of the loop that commits groups. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct GroupCommit {
    members: mpsc::Sender<Member>,
}

impl GroupCommit {
    /// Starts the loop among `loops`; it ends with `stop`.
    pub(crate) fn start(
        writer: Writer,
        metrics: Metrics,
        stop: CancellationToken,
        loops: &mut JoinSet<()>,
    ) -> Self {
        let (members, receiver) = mpsc::channel(QUEUE);
        loops.spawn(run(writer, metrics, receiver, stop));
        Self { members }
    }

    /// Commits a transaction together with others that come in at the same time, and determines its
    /// outcome when the answer does not come.
    ///
    /// # Errors
    /// See [`Writer::commit_surely`]; the loop has ended.
    pub(crate) async fn commit(&self, txn: Txn, deadline: Instant) -> Result<Commit, Error> {
        let (reply, answer) = oneshot::channel();
        let member = Member {
            keys: txn.compared_keys().cloned().collect(),
            txn,
            deadline,
            reply,
        };
        match timeout_at(deadline, self.members.send(member)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(Error::draining()),
            Err(_) => return Err(Error::overloaded("too many requests wait for the store")),
        }
        match timeout_at(deadline, answer).await {
            Ok(Ok(outcome)) => outcome,
            // The loop ended, or the time did: it may be in a group that is under way.
            Ok(Err(_)) | Err(_) => Err(unanswered()),
        }
    }
}

async fn run(
    writer: Writer,
    metrics: Metrics,
    mut receiver: mpsc::Receiver<Member>,
    stop: CancellationToken,
) {
    let mut waiting = VecDeque::new();
    let mut pace = Pace::default();
    loop {
        if waiting.is_empty() {
            let member = tokio::select! {
                biased;
                member = receiver.recv() => member,
                () = stop.cancelled() => return,
            };
            let Some(member) = member else { return };
            waiting.push_back(member);
        }
        while let Ok(member) = receiver.try_recv() {
            waiting.push_back(member);
        }
        let Some((txn, members)) = next_group(&mut waiting) else {
            continue;
        };
        let (size, began) = (members.len(), Instant::now());
        metrics
            .commit_group
            .observe(u32::try_from(size).map_or(f64::MAX, f64::from));
        commit(&writer, txn, members).await;
        let next = pace.next_after(size, began, Instant::now());
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep_until(next) => {}
        }
    }
}

/// Takes the next group from the front of the queue, and its transaction; `None` when nothing is
/// left of the queue. A member that does not fit with the ones before it begins the next group.
fn next_group(waiting: &mut VecDeque<Member>) -> Option<(Txn, Vec<Member>)> {
    // A caller that has given up before its transaction is sent gets nothing committed.
    waiting.retain(|member| !member.reply.is_closed());
    let first = waiting.pop_front()?;
    let (mut txn, mut members) = (first.txn.clone(), vec![first]);
    while let Some(next) = waiting.front() {
        let has_room = txn.op_count() + next.txn.op_count() <= MAX_OPERATIONS
            && txn.byte_count() + next.txn.byte_count() <= MAX_BYTES;
        // Two requests about one object have compares that contradict each other, or write it twice.
        if !has_room || txn.merge(&next.txn).is_err() {
            break;
        }
        members.extend(waiting.pop_front());
    }
    Some((txn, members))
}

/// Commits a group, and answers its members.
async fn commit(writer: &Writer, mut txn: Txn, mut members: Vec<Member>) {
    loop {
        let deadlines = members.iter().map(|member| member.deadline);
        let Some(deadline) = deadlines.min() else {
            return;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let conflict = match writer.commit_surely(&txn, left).await {
            Ok(Commit::Done { revision }) => {
                for member in members {
                    // The caller may have given up.
                    let _ = member.reply.send(Ok(Commit::Done { revision }));
                }
                return;
            }
            Ok(Commit::Conflict(conflict)) => conflict,
            Err(error) => return fail(members, error),
        };
        let (lost, rest) = divide(members, &conflict);
        for (member, conflict) in lost {
            let _ = member.reply.send(Ok(Commit::Conflict(conflict)));
        }
        let mut rest = rest.into_iter();
        let Some(first) = rest.next() else { return };
        txn = first.txn.clone();
        members = vec![first];
        for member in rest {
            match txn.merge(&member.txn) {
                Ok(_) => members.push(member),
                // They fitted together before.
                Err(error) => drop(member.reply.send(Err(store::Error::from(error).into()))),
            }
        }
    }
}

/// Returns the members with a failed compare, each with its part of the conflict, and the others.
fn divide(members: Vec<Member>, conflict: &Conflict) -> (Vec<(Member, Conflict)>, Vec<Member>) {
    let (mut lost, mut rest) = (Vec::new(), Vec::new());
    for member in members {
        let failed = conflict.failed.iter();
        let own = failed.filter(|failed| member.keys.contains(&failed.key));
        let own: Vec<_> = own.cloned().collect();
        if own.is_empty() {
            rest.push(member);
        } else {
            let own = Conflict {
                revision: conflict.revision,
                failed: own,
            };
            lost.push((member, own));
        }
    }
    if lost.is_empty() {
        // Each compare is a member's. If etcd names none that failed, every member decides again.
        let all = rest.drain(..).map(|member| (member, conflict.clone()));
        lost.extend(all);
    }
    (lost, rest)
}

/// Answers every member with the error of the group.
fn fail(members: Vec<Member>, error: store::Error) {
    let error = Error::from(error);
    for member in members {
        let own = error.with_cause(error.message());
        let _ = member.reply.send(Err(own));
    }
}

/// Returns the error of a request whose commit may be under way.
fn unanswered() -> Error {
    let doing = "commit a transaction";
    let source = None;
    store::Error::Unknown { doing, source }.into()
}

#[cfg(test)]
mod tests;
