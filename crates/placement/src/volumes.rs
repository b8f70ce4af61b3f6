//! Host volumes: directories of a node that a group asks for by name.

use model::job::VolumeRequest;
use model::{Node, TaskGroup};

/// What a group asks of a node's volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeAsks {
    asks: Vec<VolumeRequest>,
}

impl VolumeAsks {
    /// What is shown for a node that lacks one.
    pub const REASON: &'static str = "missing compatible host volumes";

    pub fn of_group(group: &TaskGroup) -> Self {
        Self {
            asks: group.volumes.values().cloned().collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    /// Tells whether allocations of the group ask for volumes of their own, so that what holds for
    /// one need not hold for another.
    pub fn differ_by_alloc(&self) -> bool {
        self.asks.iter().any(|ask| ask.per_alloc)
    }

    /// Tells whether `node` has what any allocation of the group asks for.
    pub fn pass_for_all(&self, node: &Node) -> bool {
        let mut asks = self.asks.iter().filter(|ask| !ask.per_alloc);
        asks.all(|ask| has(node, ask, &ask.source))
    }

    /// Tells whether `node` has what the allocation with this number in its name asks for.
    pub fn pass(&self, node: &Node, name_index: u32) -> bool {
        let mut asks = self.asks.iter();
        asks.all(|ask| has(node, ask, &ask.source_for(name_index)))
    }

    /// Returns the volumes that `node` lacks and that this allocation alone asks for: for people.
    pub fn missing_own<'a>(
        &'a self,
        node: &'a Node,
        name_index: u32,
    ) -> impl Iterator<Item = String> + 'a {
        let asks = self.asks.iter().filter(|ask| ask.per_alloc);
        asks.filter_map(move |ask| {
            let source = ask.source_for(name_index);
            (!has(node, ask, &source)).then(|| source.into_owned())
        })
    }
}

/// A volume of the node's configuration holds no claims, so nothing can be sticky to it.
fn has(node: &Node, ask: &VolumeRequest, source: &str) -> bool {
    let volume = node.host_volumes.get(source);
    volume.is_some_and(|volume| !ask.sticky && (ask.read_only || !volume.read_only))
}

#[cfg(test)]
mod tests {
    use model::job::VolumeType;
    use model::node::HostVolume;
    use test_kit::builders;

    use super::*;

    fn node(volumes: &[(&str, bool)]) -> Node {
        let mut node = builders::node(1);
        for (name, read_only) in volumes {
            let volume = HostVolume {
                path: format!("/srv/{name}"),
                read_only: *read_only,
            };
            node.host_volumes.insert((*name).to_owned(), volume);
        }
        node
    }

    fn asks(edit: impl FnOnce(&mut VolumeRequest)) -> VolumeAsks {
        let mut ask = VolumeRequest {
            volume_type: VolumeType::Host,
            source: "data".into(),
            read_only: false,
            sticky: false,
            per_alloc: false,
        };
        edit(&mut ask);
        VolumeAsks { asks: vec![ask] }
    }

    #[test]
    fn scenario_114_a_volume_is_writable_only_if_the_node_says_so_and_never_sticky() {
        let (writable, read_only) = (node(&[("data", false)]), node(&[("data", true)]));
        for (asks, on_writable, on_read_only) in [
            (asks(|_| {}), true, false),
            (asks(|ask| ask.read_only = true), true, true),
            (asks(|ask| ask.sticky = true), false, false),
            (asks(|ask| ask.source = "logs".into()), false, false),
        ] {
            let answers = (asks.pass_for_all(&writable), asks.pass_for_all(&read_only));
            assert_eq!(answers, (on_writable, on_read_only), "{asks:?}");
            assert_eq!(asks.pass(&writable, 3), on_writable, "{asks:?}");
        }
    }

    #[test]
    fn a_volume_per_allocation_goes_by_the_number_in_the_name() {
        let asks = asks(|ask| ask.per_alloc = true);
        let node = node(&[("data[1]", false)]);
        assert!(asks.differ_by_alloc() && asks.pass_for_all(&node));
        assert!(asks.pass(&node, 1) && !asks.pass(&node, 0) && !asks.pass(&node, 11));
    }
}
