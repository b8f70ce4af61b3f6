//! Registered volumes, with the state that follows from their nodes.

use model::{Indexed, Node, NodeStatus, Volume};
use proto::v1;

/// Returns a volume with the fields that depend on its node.
pub fn volume(volume: &Indexed<Volume>, node: Option<&Indexed<Node>>) -> v1::Volume {
    let is_ready = node.is_some_and(|node| node.value.status == NodeStatus::Ready);
    let state = if is_ready && !volume.value.deleting {
        "ready"
    } else {
        "unavailable"
    };
    v1::Volume {
        node_pool: node.map_or_else(String::new, |node| node.value.node_pool.clone()),
        state: state.to_owned(),
        ..volume.into()
    }
}

#[cfg(test)]
mod tests {
    use model::{Timestamp, VolumeId};
    use test_kit::builders;

    use super::*;

    fn stored<T>(value: T) -> Indexed<T> {
        Indexed {
            create_index: 1,
            modify_index: 1,
            value,
        }
    }

    #[test]
    fn a_volume_is_ready_on_a_ready_node_unless_it_is_being_deleted() {
        let node = |status| {
            stored(Node {
                status,
                node_pool: "gpu".to_owned(),
                ..builders::node(1)
            })
        };
        for (status, deleting, expected) in [
            (Some(NodeStatus::Ready), false, "ready"),
            (Some(NodeStatus::Ready), true, "unavailable"),
            (Some(NodeStatus::Down), false, "unavailable"),
            (None, false, "unavailable"),
        ] {
            let value = Volume {
                namespace: "default".to_owned(),
                name: "data".to_owned(),
                node_id: builders::node(1).id,
                id: VolumeId::from_random(1),
                host_path: "/srv/data".into(),
                capabilities: Default::default(),
                deleting,
                create_time: Timestamp(1),
                modify_time: Timestamp(1),
            };
            let node = status.map(node);
            let shown = volume(&stored(value), node.as_ref());
            assert_eq!(shown.state, expected, "{status:?} {deleting}");
            let pool = if node.is_some() { "gpu" } else { "" };
            assert_eq!(shown.node_pool, pool);
        }
    }
}
