//! Pending updates of each node's stream.
//!
//! Level, not edge: a session keeps the ids of changed allocations, and its stream looks them up
//! when it sends. So a slow node costs a set of ids, and beyond [`MAX_PENDING`] not even that: it is
//! sent all of its allocations.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{AllocId, NodeId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The number of changed allocations that a session remembers: all allocations of a normal node.
pub const MAX_PENDING: usize = 4_096;

/// The next update of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// All allocations of the node.
    Full,
    /// These allocations, which include every change up to `revision`.
    Changed {
        revision: u64,
        alloc_ids: BTreeSet<AllocId>,
    },
}

#[derive(Debug, Default)]
struct Pending {
    full: bool,
    revision: u64,
    alloc_ids: BTreeSet<AllocId>,
}

/// One open stream of a node.
#[derive(Debug, Default)]
pub struct Session {
    pending: Mutex<Pending>,
    wake: Notify,
    /// Cancelled when a newer stream of the same node replaces this one.
    pub replaced: CancellationToken,
}

impl Session {
    /// Takes the next update, waiting for one.
    pub async fn due(&self) -> Due {
        loop {
            if let Some(due) = self.take() {
                return due;
            }
            self.wake.notified().await;
        }
    }

    /// Takes the update that is due now.
    pub fn take(&self) -> Option<Due> {
        let mut pending = lock(&self.pending);
        if std::mem::take(&mut pending.full) {
            pending.alloc_ids.clear();
            return Some(Due::Full);
        }
        if pending.alloc_ids.is_empty() {
            return None;
        }
        let alloc_ids = std::mem::take(&mut pending.alloc_ids);
        Some(Due::Changed {
            revision: pending.revision,
            alloc_ids,
        })
    }

    fn note(&self, revision: u64, alloc_ids: impl IntoIterator<Item = AllocId>) {
        let mut pending = lock(&self.pending);
        pending.revision = revision.max(pending.revision);
        if !pending.full {
            pending.alloc_ids.extend(alloc_ids);
            pending.full = pending.alloc_ids.len() > MAX_PENDING;
        }
        drop(pending);
        self.wake.notify_one();
    }

    /// Requests a full update.
    pub fn note_full(&self) {
        lock(&self.pending).full = true;
        self.wake.notify_one();
    }
}

/// Every open stream, by node. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    by_node: Arc<Mutex<HashMap<NodeId, Arc<Session>>>>,
}

impl Sessions {
    /// Opens a session, which replaces the node's previous one: a node that calls again has abandoned
    /// its old stream, whether this side has noticed or not.
    pub fn open(&self, node_id: NodeId) -> OpenSession {
        let session = Arc::new(Session::default());
        if let Some(old) = lock(&self.by_node).insert(node_id, Arc::clone(&session)) {
            old.replaced.cancel();
        }
        OpenSession {
            sessions: self.clone(),
            node_id,
            session,
        }
    }

    /// Notes changes for the sessions of the affected nodes; the others cost nothing.
    pub fn note(&self, revision: u64, changed: HashMap<NodeId, BTreeSet<AllocId>>) {
        for (node_id, alloc_ids) in changed {
            let session = lock(&self.by_node).get(&node_id).cloned();
            if let Some(session) = session {
                session.note(revision, alloc_ids);
            }
        }
    }

    /// Requests a full update of one node, if it has a session.
    pub fn note_full_of(&self, node_id: NodeId) {
        let session = lock(&self.by_node).get(&node_id).cloned();
        if let Some(session) = session {
            session.note_full();
        }
    }

    /// Requests a full update of every node.
    pub fn note_full(&self) {
        let sessions: Vec<_> = lock(&self.by_node).values().cloned().collect();
        for session in sessions {
            session.note_full();
        }
    }

    pub fn count(&self) -> usize {
        lock(&self.by_node).len()
    }

    fn close(&self, node_id: NodeId, session: &Arc<Session>) {
        let mut by_node = lock(&self.by_node);
        // Not when a newer session has replaced it.
        if by_node
            .get(&node_id)
            .is_some_and(|open| Arc::ptr_eq(open, session))
        {
            by_node.remove(&node_id);
        }
    }
}

/// A session that closes when dropped.
#[derive(Debug)]
pub struct OpenSession {
    sessions: Sessions,
    node_id: NodeId,
    session: Arc<Session>,
}

impl std::ops::Deref for OpenSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.sessions.close(self.node_id, &self.session);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves nothing half done: each critical section is one step of a collection.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u128) -> NodeId {
        NodeId::from_random(number)
    }

    fn alloc(number: u128) -> AllocId {
        AllocId::from_random(number)
    }

    fn change(sessions: &Sessions, revision: u64, node_id: NodeId, allocs: &[AllocId]) {
        sessions.note(
            revision,
            HashMap::from([(node_id, allocs.iter().copied().collect())]),
        );
    }

    #[test]
    fn changes_gather_until_they_are_taken() {
        let sessions = Sessions::default();
        let session = sessions.open(node(1));
        assert_eq!(session.take(), None);
        change(&sessions, 5, node(1), &[alloc(1)]);
        change(&sessions, 6, node(1), &[alloc(1), alloc(2)]);
        change(&sessions, 7, node(2), &[alloc(3)]);
        let alloc_ids = BTreeSet::from([alloc(1), alloc(2)]);
        assert_eq!(
            session.take(),
            Some(Due::Changed {
                revision: 6,
                alloc_ids
            })
        );
        assert_eq!(session.take(), None);
    }

    #[test]
    fn a_slow_node_gets_a_full_update() {
        let sessions = Sessions::default();
        let session = sessions.open(node(1));
        for number in 0..=MAX_PENDING as u128 {
            change(&sessions, 5, node(1), &[alloc(number)]);
        }
        for number in 0..10 * MAX_PENDING as u128 {
            change(&sessions, 6, node(1), &[alloc(1_000_000 + number)]);
        }
        let remembered = lock(&session.pending).alloc_ids.len();
        assert!(remembered <= MAX_PENDING + 1, "{remembered} are remembered");
        assert_eq!(session.take(), Some(Due::Full));
        assert_eq!(session.take(), None, "and then only what changes after");
        change(&sessions, 9, node(1), &[alloc(1)]);
        assert!(matches!(
            session.take(),
            Some(Due::Changed { revision: 9, .. })
        ));
    }

    #[test]
    fn a_second_stream_of_a_node_replaces_the_first() {
        let sessions = Sessions::default();
        let first = sessions.open(node(1));
        let second = sessions.open(node(1));
        assert!(first.replaced.is_cancelled());
        drop(first);
        assert_eq!(
            sessions.count(),
            1,
            "the first one's end does not close the second"
        );
        change(&sessions, 5, node(1), &[alloc(1)]);
        assert!(second.take().is_some());
        drop(second);
        assert_eq!(sessions.count(), 0);
    }

    #[tokio::test]
    async fn a_waiting_stream_is_woken() {
        let sessions = Sessions::default();
        let session = sessions.open(node(1));
        let noting = async { change(&sessions, 5, node(1), &[alloc(1)]) };
        let (due, ()) = tokio::join!(session.due(), noting);
        assert!(matches!(due, Due::Changed { revision: 5, .. }));
        let (due, ()) = tokio::join!(session.due(), async { sessions.note_full() });
        assert_eq!(due, Due::Full);
    }

    #[test]
    fn one_node_alone_gets_a_full_update() {
        let sessions = Sessions::default();
        let (one, two) = (sessions.open(node(1)), sessions.open(node(2)));
        sessions.note_full_of(node(1));
        sessions.note_full_of(node(3));
        assert_eq!((one.take(), two.take()), (Some(Due::Full), None));
    }
}
