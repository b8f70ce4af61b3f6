//! Affinity scores of nodes, computed once a kind where that is enough.

use state::{NodeRow, NodeTable};

use crate::rank::preferences::Preferences;

#[derive(Debug)]
pub(crate) enum Affinities {
    None,
    /// By the position of the kind.
    ByKind(Vec<f64>),
    /// By the position of the node: an affinity reads unique attributes.
    ByNode(Vec<f64>),
}

impl Affinities {
    pub(crate) fn new(table: &NodeTable, preferences: &Preferences) -> Self {
        if !preferences.has_affinities() {
            return Self::None;
        }
        if preferences.affinity_is_unique() {
            let nodes = (0..table.row_count()).map(|position| table.node(position));
            let liked =
                nodes.map(|node| node.map_or(0.0, |node| preferences.affinity(&node.value)));
            return Self::ByNode(liked.collect());
        }
        let kinds = table.kinds();
        let liked =
            kinds.map(|kind| kind.map_or(0.0, |kind| preferences.affinity(&kind.example.value)));
        Self::ByKind(liked.collect())
    }

    /// Returns the affinity score of a node; `None`: the group has no affinities.
    pub(crate) fn of(&self, position: usize, row: &NodeRow) -> Option<f64> {
        match self {
            Self::None => None,
            Self::ByKind(liked) => Some(liked[row.kind as usize]),
            Self::ByNode(liked) => Some(liked[position]),
        }
    }
}
