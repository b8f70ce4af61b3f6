//! Pairings of callers that wait for a connection to a node with the connections that nodes open.
//!
//! Pure: times and ids are arguments. An id is 128 random bits, so that only the node that was asked knows it; it
//! is valid for this node, once, until its deadline.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use model::NodeId;

/// Timeout of a connection that a node was asked for. The node needs one round trip, or a slow link some.
pub const PAIRING_TIMEOUT: Duration = Duration::from_secs(5);
/// Pending pairings of a gateway: each is a caller that waits, at most [`PAIRING_TIMEOUT`] long.
pub const MAX_PENDING: usize = 1_024;
/// Pending pairings of one node, whose silence must not use up those of all others.
pub const MAX_PENDING_OF_NODE: usize = 32;

/// The callers that wait; `T` is where a caller gets its connection.
#[derive(Debug)]
pub struct Pairings<T> {
    by_id: HashMap<u128, Pairing<T>>,
}

#[derive(Debug)]
struct Pairing<T> {
    node_id: NodeId,
    deadline: Instant,
    caller: T,
}

/// Too many callers wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl<T> Default for Pairings<T> {
    fn default() -> Self {
        Self {
            by_id: HashMap::new(),
        }
    }
}

impl<T> Pairings<T> {
    /// Adds a caller that waits for a connection to a node. Callers whose time is over are dropped first.
    ///
    /// # Errors
    /// Too many wait, for this node or for all.
    pub fn open(
        &mut self,
        now: Instant,
        id: u128,
        node_id: NodeId,
        caller: T,
    ) -> Result<(), TooMany> {
        self.by_id.retain(|_, pairing| now < pairing.deadline);
        let of_node = self.by_id.values().filter(|it| it.node_id == node_id);
        if self.by_id.len() >= MAX_PENDING || of_node.count() >= MAX_PENDING_OF_NODE {
            return Err(TooMany);
        }
        let deadline = now + PAIRING_TIMEOUT;
        let pairing = Pairing {
            node_id,
            deadline,
            caller,
        };
        self.by_id.insert(id, pairing);
        Ok(())
    }

    /// Takes the caller that waits for this connection of this node; `None`: there is none, or not any more.
    pub fn take(&mut self, now: Instant, id: u128, node_id: NodeId) -> Option<T> {
        // Another node that guesses an id does not end the pairing.
        let pairing = self.by_id.get(&id)?;
        if pairing.node_id != node_id {
            return None;
        }
        let pairing = self.by_id.remove(&id)?;
        (now < pairing.deadline).then_some(pairing.caller)
    }

    /// Removes a caller that waits no longer.
    pub fn cancel(&mut self, id: u128) {
        self.by_id.remove(&id);
    }

    pub fn count(&self) -> usize {
        self.by_id.len()
    }
}

/// Returns an id as text: 32 hex digits.
pub fn id_to_text(id: u128) -> String {
    format!("{id:032x}")
}

/// Reads an id; `None`: it is none.
pub fn id_of_text(text: &str) -> Option<u128> {
    let is_id = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u128) -> NodeId {
        NodeId::from_random(number)
    }

    #[test]
    fn a_connection_is_paired_once_and_only_with_its_node_in_time() {
        let start = tokio::time::Instant::now().into_std();
        let last = start + PAIRING_TIMEOUT - Duration::from_millis(1);
        let late = start + PAIRING_TIMEOUT;
        for (now, id, node_id, expected) in [
            (start, 7, node(1), Some("caller")),
            (last, 7, node(1), Some("caller")),
            (late, 7, node(1), None),
            (start, 8, node(1), None),
            (start, 7, node(2), None),
        ] {
            let mut pairings = Pairings::default();
            pairings.open(start, 7, node(1), "caller").unwrap();
            assert_eq!(pairings.take(now, id, node_id), expected, "{id} {node_id}");
            // A second one of the right node gets it only if the first did not.
            let rest = pairings.take(start, 7, node(1));
            let is_left = expected.is_none() && now < late;
            assert_eq!(rest.is_some(), is_left, "{id} {node_id}");
        }
    }

    #[test]
    fn a_caller_that_is_gone_gets_nothing() {
        let start = tokio::time::Instant::now().into_std();
        let mut pairings = Pairings::default();
        pairings.open(start, 7, node(1), "caller").unwrap();
        pairings.cancel(7);
        assert_eq!(pairings.take(start, 7, node(1)), None);
        assert_eq!(pairings.count(), 0);
    }

    #[test]
    fn pending_pairings_are_few_and_make_room_when_their_time_is_over() {
        let start = tokio::time::Instant::now().into_std();
        let mut pairings = Pairings::default();
        let per_node = MAX_PENDING_OF_NODE as u128;
        let nodes = MAX_PENDING as u128 / per_node;
        for number in 0..nodes * per_node {
            let opened = pairings.open(start, number, node(number / per_node), ());
            assert_eq!(opened, Ok(()), "{number}");
        }
        for full in [node(0), node(nodes)] {
            assert_eq!(pairings.open(start, 99_999, full, ()), Err(TooMany));
        }
        pairings.take(start, 0, node(0)).unwrap();
        assert_eq!(pairings.open(start, 99_998, node(1), ()), Err(TooMany));
        assert_eq!(pairings.open(start, 99_999, node(0), ()), Ok(()));
        let later = start + PAIRING_TIMEOUT;
        assert_eq!(pairings.open(later, 100_000, node(0), ()), Ok(()));
        assert_eq!(pairings.count(), 1);
    }

    #[test]
    fn an_id_is_32_hex_digits() {
        for id in [0, 7, u128::MAX] {
            assert_eq!(id_of_text(&id_to_text(id)), Some(id));
        }
        let long = "0".repeat(33);
        for text in ["", "7", "+0000000000000000000000000000007", long.as_str()] {
            assert_eq!(id_of_text(text), None, "{text:?}");
        }
    }
}
