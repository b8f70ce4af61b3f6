//! A node's drain: started, changed and ended by operators. The cluster-controller carries it out.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{DrainStatus, DrainStrategy, FieldErrors, Node, NodeEligibility, NodeId, Timestamp};
use state::{Entity, Key, Snapshot, Write};

use super::eligibility::NodeChange;

/// The size limit of a drain's meta data, keys and values together: it is stored in the node's
/// record, which is always read whole.
const MAX_META_BYTES: usize = 4 << 10;

/// A request to change a node's drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainRequest {
    /// `None`: end the drain.
    pub drain: Option<DrainTerms>,
    /// True if the node becomes eligible again when its drain ends.
    pub mark_eligible: bool,
    pub meta: BTreeMap<String, String>,
}

/// The terms of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainTerms {
    /// `None`: without a deadline.
    pub deadline: Option<Duration>,
    pub ignore_system_jobs: bool,
}

impl DrainRequest {
    /// Checks the fields.
    ///
    /// # Errors
    /// The meta data is too large, or a node would both drain and be eligible.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        let entries = self.meta.iter();
        let bytes: usize = entries.map(|(key, value)| key.len() + value.len()).sum();
        if bytes > MAX_META_BYTES {
            let problem = format!("has {bytes} bytes: want at most {MAX_META_BYTES} in all");
            errors.push("meta", problem);
        }
        if self.drain.is_some() && self.mark_eligible {
            errors.push(
                "mark_eligible",
                "a node that drains takes nothing new: want this only without drain_spec",
            );
        }
        errors.into_result(())
    }
}

/// Decides on a change of a node; `None`: there is no such node.
///
/// A repeated drain starts with its full time: that is how a drain is prolonged.
pub fn set(
    snapshot: &Snapshot,
    id: NodeId,
    request: &DrainRequest,
    now: Timestamp,
) -> Option<NodeChange> {
    let stored = snapshot.node(id)?;
    let modify_index = stored.modify_index;
    let mut node = Node::clone(&stored.value);
    if let Some(terms) = request.drain {
        let strategy = DrainStrategy::new(terms.deadline, terms.ignore_system_jobs, now);
        node.begin_drain(strategy, request.meta.clone(), now);
    } else {
        let was_draining = node.drain.is_some();
        node.end_drain(DrainStatus::Canceled, now);
        if let Some(last) = node.last_drain.as_mut().filter(|_| was_draining) {
            last.meta.extend(request.meta.clone());
        }
        if request.mark_eligible {
            node.eligibility = NodeEligibility::Eligible;
        }
    }
    if node == stored.value {
        return Some(NodeChange::Unchanged { modify_index });
    }
    let write = Write::Update {
        key: Key::Node(id),
        modify_index,
        entity: Entity::Node(Box::new(node.clone())),
    };
    Some(NodeChange::Write {
        node: Box::new(node),
        write: Box::new(write),
    })
}

#[cfg(test)]
mod tests {
    use test_kit::{Stored, builders};

    use super::*;

    const NOW: Timestamp = Timestamp(5_000_000_000);

    fn drain(deadline: Option<Duration>) -> DrainRequest {
        DrainRequest {
            drain: Some(DrainTerms {
                deadline,
                ignore_system_jobs: false,
            }),
            mark_eligible: false,
            meta: BTreeMap::from([("message".to_owned(), "new disks".to_owned())]),
        }
    }

    fn ended(mark_eligible: bool) -> DrainRequest {
        DrainRequest {
            drain: None,
            mark_eligible,
            meta: BTreeMap::new(),
        }
    }

    /// Decides, stores the node, and returns it.
    fn changed(stored: &mut Stored, request: &DrainRequest, now: Timestamp) -> Node {
        let id = builders::node(1).id;
        match set(&stored.snapshot(), id, request, now).unwrap() {
            NodeChange::Write { node, .. } => {
                stored.put_node(&node);
                *node
            }
            NodeChange::Unchanged { .. } => panic!("nothing changed"),
        }
    }

    #[test]
    fn a_drain_begins_is_changed_and_ends() {
        let mut stored = Stored::default();
        let first = builders::node(1);
        assert_eq!(set(&stored.snapshot(), first.id, &drain(None), NOW), None);
        stored.put_node(&first);
        let hour = Duration::from_secs(3_600);
        let node = changed(&mut stored, &drain(Some(hour)), NOW);
        let strategy = node.drain.unwrap();
        assert_eq!(strategy.force_deadline, NOW.plus(hour));
        assert_eq!(strategy.started_at, NOW);
        assert_eq!(node.eligibility, NodeEligibility::Ineligible);
        let last = node.last_drain.unwrap();
        assert_eq!((last.status, last.started_at), (DrainStatus::Draining, NOW));
        assert_eq!(last.meta["message"], "new disks");

        let later = NOW.plus(hour / 2);
        let node = changed(&mut stored, &drain(Some(hour)), later);
        let strategy = node.drain.unwrap();
        assert_eq!(strategy.force_deadline, later.plus(hour), "prolonged");
        assert_eq!(strategy.started_at, NOW, "but the same drain");
        let node = changed(&mut stored, &drain(Some(Duration::ZERO)), later);
        assert!(node.drain.unwrap().is_over(later));
        let node = changed(&mut stored, &drain(None), later);
        assert!(!node.drain.unwrap().is_over(later.plus(hour * 1_000_000)));

        let node = changed(&mut stored, &ended(false), later);
        assert_eq!(node.drain, None);
        assert_eq!(node.eligibility, NodeEligibility::Ineligible);
        let last = node.last_drain.unwrap();
        assert_eq!(
            (last.status, last.updated_at),
            (DrainStatus::Canceled, later)
        );
        assert_eq!(last.meta["message"], "new disks");
        let messages: Vec<_> = node.events.iter().map(|event| &*event.message).collect();
        assert_eq!(messages[0], "Node drain strategy set");
        assert_eq!(messages[1], "Node drain strategy updated");
        assert_eq!(messages.last(), Some(&"Node drain canceled"));

        let again = set(&stored.snapshot(), first.id, &ended(false), later);
        assert!(
            matches!(again, Some(NodeChange::Unchanged { .. })),
            "{again:?}"
        );
        // A drain that has ended is not canceled again.
        let node = changed(&mut stored, &ended(true), later.plus(hour));
        assert_eq!(node.eligibility, NodeEligibility::Eligible);
        assert_eq!(node.last_drain.unwrap().updated_at, later);
    }

    #[test]
    fn only_the_newest_events_are_kept() {
        let mut stored = Stored::default();
        stored.put_node(&builders::node(1));
        let mut node = builders::node(1);
        for second in 0..25 {
            let now = NOW.plus(Duration::from_secs(second));
            node = changed(&mut stored, &drain(None), now);
        }
        assert_eq!(node.events.len(), model::drain::NODE_EVENTS_MAX);
        let newest = NOW.plus(Duration::from_secs(24));
        assert_eq!(node.events.last().unwrap().time, newest);
    }

    #[test]
    fn a_contradictory_request_is_refused_by_field() {
        let request = DrainRequest {
            mark_eligible: true,
            meta: [("why".to_owned(), "x".repeat(MAX_META_BYTES))].into(),
            ..drain(None)
        };
        let errors = request.check().unwrap_err();
        let fields: Vec<_> = errors.0.iter().map(|error| &*error.field).collect();
        assert_eq!(fields, ["meta", "mark_eligible"]);
        assert_eq!(drain(Some(Duration::ZERO)).check(), Ok(()));
    }
}
