//! The mailbox between the RPC that receives gateways' messages and the leader's liveness loop.
//!
//! It is bounded by the number of nodes and gateways, not by the number of messages: the newest
//! heartbeat of a node replaces the one before, so that a slow loop neither delays a gateway nor
//! loses a heartbeat.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use controller::{Event, StreamId};
use model::NodeId;
use tokio::sync::Notify;

/// Reports that the loop has not taken yet.
#[derive(Debug, Default)]
struct Waiting {
    /// The number of the term, counted in this process: a connection of an earlier one is over.
    term: u64,
    is_open: bool,
    next_stream: u64,
    connected: Vec<StreamId>,
    /// Streams with a message, perhaps without heartbeats.
    spoke: BTreeSet<StreamId>,
    heard: HashMap<NodeId, StreamId>,
    disconnected: Vec<StreamId>,
    /// Stream → the gateway's name, as it calls itself; those of closed streams until there are too
    /// many.
    names: BTreeMap<StreamId, String>,
}

impl Waiting {
    /// Takes everything, in an order in which no stream is closed before its heartbeats count.
    fn take(&mut self) -> Vec<Event> {
        let mut by_stream: BTreeMap<StreamId, Vec<NodeId>> = BTreeMap::new();
        for stream in std::mem::take(&mut self.spoke) {
            by_stream.entry(stream).or_default();
        }
        for (node_id, stream) in self.heard.drain() {
            by_stream.entry(stream).or_default().push(node_id);
        }
        let connected = self.connected.drain(..);
        let mut events: Vec<Event> = connected
            .map(|stream| Event::Connected { stream })
            .collect();
        events.extend(by_stream.into_iter().map(|(stream, mut nodes)| {
            nodes.sort_unstable();
            Event::Heard { stream, nodes }
        }));
        let disconnected = self.disconnected.drain(..);
        events.extend(disconnected.map(|stream| Event::Disconnected { stream }));
        events
    }
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Notified when something was put in.
    arrived: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic leaves nothing half done: each use is one step of a collection.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts messages while this process leads. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    shared: Arc<Shared>,
}

impl Reports {
    /// Opens the mailbox of a new loop; it closes when the inbox is dropped.
    pub(crate) fn open(&self) -> Inbox {
        let mut waiting = self.shared.lock();
        *waiting = Waiting {
            term: waiting.term + 1,
            is_open: true,
            next_stream: waiting.next_stream,
            ..Waiting::default()
        };
        drop(waiting);
        Inbox {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Counts a gateway as connected until the result is dropped; `None` when this process does not
    /// lead.
    pub(crate) fn connect(&self) -> Option<Connection> {
        let mut waiting = self.shared.lock();
        if !waiting.is_open {
            return None;
        }
        waiting.next_stream += 1;
        let stream = StreamId(waiting.next_stream);
        waiting.connected.push(stream);
        let term = waiting.term;
        drop(waiting);
        self.shared.arrived.notify_one();
        Some(Connection {
            shared: Arc::clone(&self.shared),
            term,
            stream,
        })
    }
}

/// The receiving end.
pub(crate) struct Inbox {
    shared: Arc<Shared>,
}

impl Inbox {
    /// Waits until something has arrived since the last [`Self::take`].
    pub(crate) async fn arrived(&self) {
        self.shared.arrived.notified().await;
    }

    /// Takes everything that has arrived.
    pub(crate) fn take(&self) -> Vec<Event> {
        self.shared.lock().take()
    }

    /// Returns the name of the gateway of a stream that is open, or was until the last
    /// [`Self::take`].
    pub(crate) fn name(&self, stream: StreamId) -> String {
        let name = self.shared.lock().names.get(&stream).cloned();
        name.unwrap_or_else(|| "unknown".to_owned())
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.shared.lock().is_open = false;
    }
}

/// One gateway's connection. It belongs to one leadership term.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    term: u64,
    stream: StreamId,
}

impl Connection {
    /// Puts a gateway's message in; `false` when the term is over.
    pub(crate) fn put(&self, gateway: &str, nodes: Vec<NodeId>) -> bool {
        let mut waiting = self.shared.lock();
        if !waiting.is_open || waiting.term != self.term {
            return false;
        }
        waiting.spoke.insert(self.stream);
        let heard = nodes.into_iter().map(|node_id| (node_id, self.stream));
        waiting.heard.extend(heard);
        let name = waiting.names.entry(self.stream);
        name.or_insert_with(|| gateway.to_owned());
        drop(waiting);
        self.shared.arrived.notify_one();
        true
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        if waiting.term == self.term {
            waiting.disconnected.push(self.stream);
            // Bounded by the gateways of a cluster; a name is needed until the loop has logged it.
            if waiting.names.len() > NAMES_MAX {
                waiting.names.pop_first();
            }
        }
        drop(waiting);
        self.shared.arrived.notify_one();
    }
}

/// Names that are kept: more than a cluster has gateways. The oldest are forgotten.
const NAMES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u128) -> NodeId {
        NodeId::from_random(number)
    }

    #[test]
    fn the_newest_heartbeat_of_a_node_replaces_the_one_before() {
        let reports = Reports::default();
        assert!(reports.connect().is_none(), "no term has begun");
        let inbox = reports.open();
        let (one, other) = (reports.connect().unwrap(), reports.connect().unwrap());
        for _ in 0..10_000 {
            assert!(one.put("one", vec![node(1)]));
        }
        assert!(other.put("other", vec![node(1)]));
        assert!(other.put("other", vec![]));
        let (first, second) = (one.stream, other.stream);
        assert_eq!(
            inbox.take(),
            [
                Event::Connected { stream: first },
                Event::Connected { stream: second },
                Event::Heard {
                    stream: first,
                    nodes: vec![]
                },
                Event::Heard {
                    stream: second,
                    nodes: vec![node(1)]
                },
            ]
        );
        assert_eq!(inbox.take(), []);
        assert_eq!(inbox.name(second), "other");
    }

    #[test]
    fn heartbeats_count_before_their_stream_is_closed() {
        let reports = Reports::default();
        let inbox = reports.open();
        let connection = reports.connect().unwrap();
        let stream = connection.stream;
        connection.put("one", vec![node(1)]);
        drop(connection);
        let nodes = vec![node(1)];
        assert_eq!(
            inbox.take(),
            [
                Event::Connected { stream },
                Event::Heard { stream, nodes },
                Event::Disconnected { stream },
            ]
        );
    }

    #[test]
    fn a_connection_ends_with_its_term() {
        let reports = Reports::default();
        let inbox = reports.open();
        let connection = reports.connect().unwrap();
        drop(inbox);
        assert!(!connection.put("one", vec![node(1)]));
        assert!(reports.connect().is_none());
        let inbox = reports.open();
        assert!(!connection.put("one", vec![node(1)]), "of another term");
        drop(connection);
        assert_eq!(inbox.take(), []);
    }
}
