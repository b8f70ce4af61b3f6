//! Queries of introduction tokens, and of the nodes that have used one.

use std::sync::Arc;

use model::{Indexed, IntroductionToken, IntroductionTokenId, NodeId, NodeIntroduction};

use crate::snapshot::Snapshot;

impl Snapshot {
    pub fn introduction_token(
        &self,
        id: IntroductionTokenId,
    ) -> Option<&Arc<Indexed<IntroductionToken>>> {
        self.tables().introductions.tokens.get(&id)
    }

    /// Returns every token ordered by id, expired ones included.
    pub fn introduction_tokens(&self) -> impl Iterator<Item = &Arc<Indexed<IntroductionToken>>> {
        self.tables().introductions.tokens.values()
    }

    /// Returns the introduction of a node; `None`: its certificate is from elsewhere.
    pub fn node_introduction(&self, id: NodeId) -> Option<&Arc<Indexed<NodeIntroduction>>> {
        self.tables().introductions.nodes.get(&id)
    }

    /// Returns every introduced node ordered by id, registered or not.
    pub fn node_introductions(
        &self,
    ) -> impl Iterator<Item = (NodeId, &Arc<Indexed<NodeIntroduction>>)> {
        let nodes = self.tables().introductions.nodes.iter();
        nodes.map(|(id, introduction)| (*id, introduction))
    }
}
