//! Requests that a controller plugin answers: the node whose plugin is called, and repeated creations.

use model::csi::CsiControllerInfo;
use model::{CsiVolume, Node};
use placement::csi::plugin;
use state::Snapshot;

use super::CsiRefusal;
use crate::jobs::alloc_node::AllocNode;

/// An ability of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    Create,
    Attach,
    List,
    Snapshot,
    ListSnapshots,
}

impl Ability {
    fn words(self) -> &'static str {
        match self {
            Self::Create => "create and delete volumes",
            Self::Attach => "attach volumes",
            Self::List => "list volumes",
            Self::Snapshot => "create and delete snapshots",
            Self::ListSnapshots => "list snapshots",
        }
    }

    fn is_of(self, controller: CsiControllerInfo) -> bool {
        match self {
            Self::Create => controller.creates,
            Self::Attach => controller.attaches,
            Self::List => controller.lists,
            Self::Snapshot => controller.snapshots,
            Self::ListSnapshots => controller.lists_snapshots,
        }
    }
}

/// Returns a node with a healthy controller of the plugin that has the ability. `tries` counts failed
/// calls: each try takes the next node.
///
/// # Errors
/// There is none.
pub fn find(
    snapshot: &Snapshot,
    plugin_id: &str,
    ability: Ability,
    tries: u32,
) -> Result<AllocNode, CsiRefusal> {
    let controllers = plugin::controllers(snapshot, plugin_id);
    let able = controllers.filter(|(_, controller)| ability.is_of(*controller));
    let nodes: Vec<&Node> = able.map(|(node, _)| &node.value).collect();
    let position = usize::try_from(tries).unwrap_or(0).checked_rem(nodes.len());
    let node = position.and_then(|position| nodes.get(position));
    let node = node.ok_or_else(|| CsiRefusal::NoController {
        plugin_id: plugin_id.to_owned(),
        what: ability.words(),
    })?;
    Ok(AllocNode::from(*node))
}

/// Tells whether `wanted` is what an earlier request has created, whose answer was lost: all that a
/// user chooses is the same.
pub fn is_repeated(wanted: &CsiVolume, stored: &CsiVolume) -> bool {
    let same = CsiVolume {
        external_id: stored.external_id.clone(),
        context: stored.context.clone(),
        capacity_bytes: stored.capacity_bytes,
        topologies: stored.topologies.clone(),
        deleting: stored.deleting,
        attach_count: stored.attach_count,
        create_time: stored.create_time,
        modify_time: stored.modify_time,
        ..wanted.clone()
    };
    same == *stored
}
