//! A node's eligibility: whether new allocations may be placed on it.

use model::{FieldErrors, Node, NodeEligibility, NodeId};
use state::{Entity, Key, Snapshot, Write};

use model::refusal::{Kind, Refusal};

use crate::nodes::node_evals::{EvalInputs, NodeWrites};

/// The reason why a node stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EligibilityRefusal {
    /// Source: Nomad's text, as far as the colon.
    #[error(
        "can not set node's scheduling eligibility to eligible while it is draining: end the drain \
         of node {name:?} with 'kafila node drain -disable'"
    )]
    Draining { name: String },
}

impl Refusal for EligibilityRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Draining { .. } => Kind::Precondition,
        }
    }
}

/// The decision on a change of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeChange {
    /// It is as requested already.
    Unchanged { modify_index: u64 },
    /// The node as it will be.
    Write { node: Box<Node>, write: Box<Write> },
}

/// The decision on a change of a node and of the jobs that it concerns.
#[derive(Clone, Debug, PartialEq)]
pub enum EvaluatedChange {
    /// The node is as requested already.
    Unchanged {
        modify_index: u64,
    },
    Write(NodeWrites),
}

impl NodeChange {
    /// Returns the writes, with evaluations of the jobs that may use the node if it is eligible; the
    /// eval-broker unblocks blocked ones itself.
    pub fn evaluated(self, snapshot: &Snapshot, inputs: &EvalInputs<'_>) -> EvaluatedChange {
        match self {
            Self::Unchanged { modify_index } => EvaluatedChange::Unchanged { modify_index },
            Self::Write { node, write } => {
                let writes = vec![*write];
                EvaluatedChange::Write(match node.eligibility {
                    NodeEligibility::Eligible => {
                        NodeWrites::with_evals(writes, snapshot, &node, inputs)
                    }
                    NodeEligibility::Ineligible => NodeWrites::without_evals(writes),
                })
            }
        }
    }
}

/// Parses an eligibility.
///
/// # Errors
/// The text is neither `eligible` nor `ineligible`.
pub fn read(text: &str) -> Result<NodeEligibility, FieldErrors> {
    let mut all = NodeEligibility::ALL.into_iter();
    all.find(|one| one.as_str() == text).ok_or_else(|| {
        let mut errors = FieldErrors::default();
        let problem = format!("{text:?} is not an eligibility: want eligible or ineligible");
        errors.push("eligibility", problem);
        errors
    })
}

/// Decides on a change of a node; `None`: there is no such node.
///
/// # Errors
/// The node is draining and would become eligible.
pub fn set(
    snapshot: &Snapshot,
    id: NodeId,
    eligibility: NodeEligibility,
) -> Result<Option<NodeChange>, EligibilityRefusal> {
    let Some(stored) = snapshot.node(id) else {
        return Ok(None);
    };
    let modify_index = stored.modify_index;
    if stored.value.eligibility == eligibility {
        return Ok(Some(NodeChange::Unchanged { modify_index }));
    }
    if stored.value.drain.is_some() && eligibility == NodeEligibility::Eligible {
        let name = stored.value.name.clone();
        return Err(EligibilityRefusal::Draining { name });
    }
    let node = Box::new(Node {
        eligibility,
        ..stored.value.clone()
    });
    let write = Box::new(Write::Update {
        key: Key::Node(id),
        modify_index,
        entity: Entity::Node(node.clone()),
    });
    Ok(Some(NodeChange::Write { node, write }))
}

#[cfg(test)]
mod tests {
    use model::{EvalId, Timestamp};
    use test_kit::{Stored, builders};

    use super::*;

    #[test]
    fn only_a_different_eligibility_is_written_and_no_other_field() {
        let mut stored = Stored::default();
        let node = builders::node(1);
        assert_eq!(node.eligibility, NodeEligibility::Eligible);
        let gone = set(&stored.snapshot(), node.id, NodeEligibility::Ineligible);
        assert_eq!(gone, Ok(None));
        stored.advance(6);
        let modify_index = stored.put_node(&node);
        let same = set(&stored.snapshot(), node.id, NodeEligibility::Eligible);
        assert_eq!(same, Ok(Some(NodeChange::Unchanged { modify_index })));
        let changed = set(&stored.snapshot(), node.id, NodeEligibility::Ineligible);
        let expected = Node {
            eligibility: NodeEligibility::Ineligible,
            ..node.clone()
        };
        let write = Write::Update {
            key: Key::Node(node.id),
            modify_index: 7,
            entity: Entity::Node(Box::new(expected.clone())),
        };
        let expected = NodeChange::Write {
            node: Box::new(expected),
            write: Box::new(write),
        };
        assert_eq!(changed, Ok(Some(expected)));
    }

    #[test]
    fn a_node_that_becomes_eligible_is_evaluated_and_another_is_not() {
        let mut stored = Stored::default();
        let mut node = builders::node(1);
        let job = builders::service("web", 1);
        stored.put_job(&job);
        stored.put_alloc(&builders::allocation(1, &job, node.id));
        let eval_id = EvalId::from_random(7);
        let inputs = EvalInputs {
            now: Timestamp(5),
            trace_parent: "",
            next_id: &|| eval_id,
        };
        let mut changed = |node: &Node, wanted| {
            stored.put_node(node);
            let snapshot = stored.snapshot();
            let change = set(&snapshot, node.id, wanted).unwrap().unwrap();
            match change.evaluated(&snapshot, &inputs) {
                EvaluatedChange::Write(changes) => Some(changes),
                EvaluatedChange::Unchanged { .. } => None,
            }
        };
        let closed = changed(&node, NodeEligibility::Ineligible).unwrap();
        assert_eq!((closed.writes.len(), closed.eval_ids), (1, vec![]));
        node.eligibility = NodeEligibility::Ineligible;
        let opened = changed(&node, NodeEligibility::Eligible).unwrap();
        let keys: Vec<&Key> = opened.writes.iter().map(Write::key).collect();
        assert_eq!(keys, [&Key::Node(node.id), &Key::Eval(eval_id)]);
        assert_eq!(opened.eval_ids, [eval_id]);
        let same = changed(&node, NodeEligibility::Ineligible);
        assert_eq!(same, None);
    }

    #[test]
    fn a_node_that_drains_does_not_become_eligible() {
        let mut stored = Stored::default();
        let mut node = builders::node(1);
        let strategy = model::DrainStrategy::new(None, false, model::Timestamp(1));
        node.begin_drain(strategy, Default::default(), model::Timestamp(1));
        let modify_index = stored.put_node(&node);
        let refused = set(&stored.snapshot(), node.id, NodeEligibility::Eligible);
        let text = refused.unwrap_err().to_string();
        let expected =
            "can not set node's scheduling eligibility to eligible while it is draining: ";
        assert!(text.starts_with(expected), "{text}");
        let same = set(&stored.snapshot(), node.id, NodeEligibility::Ineligible);
        assert_eq!(same, Ok(Some(NodeChange::Unchanged { modify_index })));
    }

    #[test]
    fn an_unknown_eligibility_is_refused_by_field() {
        assert_eq!(read("eligible"), Ok(NodeEligibility::Eligible));
        for text in ["", "Eligible", "drained"] {
            let errors = read(text).unwrap_err();
            assert_eq!(errors.0[0].field, "eligibility");
        }
    }
}
