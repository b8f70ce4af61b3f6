//! A node's drain: begun, changed and ended by operators. The cluster-controller carries it out.

use std::collections::BTreeMap;

use model::{DrainStatus, DrainStrategy, FieldErrors, Node, NodeEligibility, NodeId, Timestamp};
use proto::drain::read_deadline;
use proto::v1;
use state::{Entity, Key, Snapshot};

use super::eligibility::Change;
use crate::writes::Write;

/// How much an operator may say about a drain, in bytes of keys and values: it is stored with the
/// node, which is read whole.
const MAX_META_BYTES: usize = 4 << 10;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    Drain {
        deadline: Option<std::time::Duration>,
        ignore_system_jobs: bool,
        meta: BTreeMap<String, String>,
    },
    NoDrain {
        mark_eligible: bool,
        meta: BTreeMap<String, String>,
    },
}

/// Reads a request, but for its node.
///
/// # Errors
/// Its meta is too large, or it wants a drain and an eligible node.
pub fn read(request: &v1::UpdateNodeDrainRequest) -> Result<Wanted, FieldErrors> {
    let mut errors = FieldErrors::default();
    let words = request.meta.iter();
    let bytes: usize = words.map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MAX_META_BYTES {
        let problem = format!("has {bytes} bytes: want at most {MAX_META_BYTES} in all");
        errors.push("meta", problem);
    }
    if request.drain_spec.is_some() && request.mark_eligible {
        errors.push(
            "mark_eligible",
            "a node that drains takes nothing new: want this only without drain_spec",
        );
    }
    let meta = request.meta.clone().into_iter().collect();
    let wanted = match &request.drain_spec {
        Some(spec) => Wanted::Drain {
            deadline: read_deadline(spec),
            ignore_system_jobs: spec.ignore_system_jobs,
            meta,
        },
        None => Wanted::NoDrain {
            mark_eligible: request.mark_eligible,
            meta,
        },
    };
    errors.into_result(wanted)
}

/// Decides on a change of a node; `None`: there is no such node.
///
/// A drain that is asked for again has its full time again: that is how it is prolonged.
pub fn set(snapshot: &Snapshot, id: NodeId, wanted: &Wanted, now: Timestamp) -> Option<Change> {
    let stored = snapshot.node(id)?;
    let modify_index = stored.modify_index;
    let mut node = Node::clone(&stored.value);
    match wanted {
        Wanted::Drain {
            deadline,
            ignore_system_jobs,
            meta,
        } => {
            let strategy = DrainStrategy::new(*deadline, *ignore_system_jobs, now);
            node.begin_drain(strategy, meta.clone(), now);
        }
        Wanted::NoDrain {
            mark_eligible,
            meta,
        } => {
            let was_draining = node.drain.is_some();
            node.end_drain(DrainStatus::Canceled, now);
            if let Some(last) = node.last_drain.as_mut().filter(|_| was_draining) {
                last.meta.extend(meta.clone());
            }
            if *mark_eligible {
                node.eligibility = NodeEligibility::Eligible;
            }
        }
    }
    if node == stored.value {
        return Some(Change::Unchanged { modify_index });
    }
    let write = Write::Update {
        key: Key::Node(id),
        modify_index,
        entity: Entity::Node(Box::new(node.clone())),
    };
    Some(Change::Write {
        node: Box::new(node),
        write: Box::new(write),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use test_kit::builders;

    use super::*;
    use crate::testing::Stored;

    const NOW: Timestamp = Timestamp(5_000_000_000);

    fn drain(deadline: Option<Duration>) -> Wanted {
        Wanted::Drain {
            deadline,
            ignore_system_jobs: false,
            meta: BTreeMap::from([("message".to_owned(), "new disks".to_owned())]),
        }
    }

    fn ended(mark_eligible: bool) -> Wanted {
        Wanted::NoDrain {
            mark_eligible,
            meta: BTreeMap::new(),
        }
    }

    /// Decides, stores what comes of it, and returns the node.
    fn changed(stored: &mut Stored, wanted: &Wanted, now: Timestamp) -> Node {
        let id = builders::node(1).id;
        match set(&stored.snapshot(), id, wanted, now).unwrap() {
            Change::Write { node, .. } => {
                stored.put_node(&node);
                *node
            }
            Change::Unchanged { .. } => panic!("nothing changed"),
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
        assert!(matches!(again, Some(Change::Unchanged { .. })), "{again:?}");
        // What has ended is not canceled once more.
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
    fn a_request_that_makes_no_sense_is_refused_by_field() {
        let request = v1::UpdateNodeDrainRequest {
            drain_spec: Some(v1::DrainSpec::default()),
            mark_eligible: true,
            meta: [("why".to_owned(), "x".repeat(MAX_META_BYTES))].into(),
            ..Default::default()
        };
        let errors = read(&request).unwrap_err();
        let fields: Vec<_> = errors.0.iter().map(|error| &*error.field).collect();
        assert_eq!(fields, ["meta", "mark_eligible"]);
        let forced = v1::UpdateNodeDrainRequest {
            drain_spec: Some(v1::DrainSpec {
                deadline_ns: i64::MIN,
                ignore_system_jobs: true,
            }),
            ..Default::default()
        };
        let expected = Wanted::Drain {
            deadline: Some(Duration::ZERO),
            ignore_system_jobs: true,
            meta: BTreeMap::new(),
        };
        assert_eq!(read(&forced), Ok(expected));
    }
}
