//! Sorts a group's allocations by what their node and their transitions mean for them.

use model::{ClientStatus, NodeStatus, TaskGroup};
use state::{AllocView, Snapshot};

/// A group's allocations, each in one set, in the order they came in.
#[derive(Debug, Default)]
pub(crate) struct Sets<'a> {
    /// They have a slot, running or ended, and their node is well.
    pub(crate) untainted: Vec<&'a AllocView>,
    /// They are to leave their node.
    pub(crate) migrate: Vec<&'a AllocView>,
    /// Their node is down or gone, and they with it.
    pub(crate) lost: Vec<&'a AllocView>,
    /// Stopped before; they have no slot.
    pub(crate) ignored: Vec<&'a AllocView>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Untainted,
    Migrate,
    Lost,
    Ignored,
}

/// What an allocation's node is to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Well,
    Disconnected,
    Down,
    Gone,
}

pub(crate) fn home(snapshot: &Snapshot, view: &AllocView) -> Home {
    match snapshot
        .node(view.alloc.node_id)
        .map(|node| node.value.status)
    {
        None => Home::Gone,
        Some(NodeStatus::Down) => Home::Down,
        Some(NodeStatus::Disconnected) => Home::Disconnected,
        Some(NodeStatus::Ready | NodeStatus::Initializing) => Home::Well,
    }
}

/// Sorts `allocs` of `group`; `None`: the job has no such group any more.
pub(crate) fn classify<'a>(
    snapshot: &Snapshot,
    group: Option<&TaskGroup>,
    allocs: impl IntoIterator<Item = &'a AllocView>,
) -> Sets<'a> {
    let mut sets = Sets::default();
    for view in allocs {
        let set = match class(snapshot, group, view) {
            Class::Untainted => &mut sets.untainted,
            Class::Migrate => &mut sets.migrate,
            Class::Lost => &mut sets.lost,
            Class::Ignored => &mut sets.ignored,
        };
        set.push(view);
    }
    sets
}

fn class(snapshot: &Snapshot, group: Option<&TaskGroup>, view: &AllocView) -> Class {
    let transition = view.alloc.transition;
    if view.alloc.is_server_terminal() {
        // A drained batch allocation keeps its slot: it is not run again.
        return if transition.migrate_disable_placement {
            Class::Untainted
        } else {
            Class::Ignored
        };
    }
    if view.is_client_terminal() {
        return Class::Untainted;
    }
    let disconnect = group.and_then(|group| group.disconnect.as_ref());
    let pending = view.client_status() == ClientStatus::Pending;
    match home(snapshot, view) {
        Home::Gone => Class::Lost,
        // The job would rather have it back later than have another now.
        Home::Down if !pending && disconnect.is_some_and(|block| !block.replace) => {
            Class::Untainted
        }
        Home::Down => Class::Lost,
        Home::Disconnected => {
            let tolerated = disconnect
                .and_then(|block| block.lost_after)
                .is_some_and(|lost_after| !lost_after.is_zero());
            if pending || !tolerated {
                Class::Lost
            } else {
                Class::Untainted
            }
        }
        Home::Well if transition.migrate => Class::Migrate,
        Home::Well => Class::Untainted,
    }
}
