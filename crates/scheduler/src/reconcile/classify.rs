//! Sorts a group's allocations by what their node and their transitions mean for them.

use model::{AllocId, ClientStatus, NodeStatus, TaskGroup, Timestamp};
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
    /// Their node is out of reach since now; the job gives it time to come back.
    pub(crate) disconnecting: Vec<&'a AllocView>,
    /// Their node was out of reach and has told of them since.
    pub(crate) reconnecting: Vec<&'a AllocView>,
}

impl<'a> Sets<'a> {
    /// Takes out those that `belongs` says yes to, each into the same set.
    pub(crate) fn split_off(&mut self, belongs: impl Fn(&AllocView) -> bool) -> Self {
        let split = |set: &mut Vec<&'a AllocView>| {
            let (own, others): (Vec<_>, _) = set.drain(..).partition(|view| belongs(view));
            *set = others;
            own
        };
        Self {
            untainted: split(&mut self.untainted),
            migrate: split(&mut self.migrate),
            lost: split(&mut self.lost),
            ignored: split(&mut self.ignored),
            disconnecting: split(&mut self.disconnecting),
            reconnecting: split(&mut self.reconnecting),
        }
    }

    /// Takes `id` out of whatever goes on.
    pub(crate) fn drop(&mut self, id: AllocId) {
        let sets = [
            &mut self.untainted,
            &mut self.migrate,
            &mut self.disconnecting,
        ];
        for set in sets {
            set.retain(|view| view.alloc.id != id);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Untainted,
    Migrate,
    Lost,
    Ignored,
    Disconnecting,
    Reconnecting,
}

/// What an allocation's node is to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Well,
    /// It is back, but takes no changes yet.
    Initializing,
    Disconnected,
    Down,
    Gone,
}

impl Home {
    /// Tells whether the node is there.
    pub(crate) fn is_well(self) -> bool {
        matches!(self, Self::Well | Self::Initializing)
    }
}

pub(crate) fn home(snapshot: &Snapshot, view: &AllocView) -> Home {
    match snapshot
        .node(view.alloc.node_id)
        .map(|node| node.value.status)
    {
        None => Home::Gone,
        Some(NodeStatus::Down) => Home::Down,
        Some(NodeStatus::Disconnected) => Home::Disconnected,
        Some(NodeStatus::Ready) => Home::Well,
        Some(NodeStatus::Initializing) => Home::Initializing,
    }
}

/// Tells whether the server calls `view` unknown, or did when its node was heard of last.
pub(crate) fn is_marked_unknown(view: &AllocView) -> bool {
    view.alloc.client_status_override == Some(ClientStatus::Unknown) && !view.is_client_terminal()
}

/// Returns when an allocation out of reach is given up for lost; `None`: never.
///
/// One that must not be replaced is not given up either: then nothing would hold its place.
pub(crate) fn expiry(group: &TaskGroup, since: Timestamp) -> Option<Timestamp> {
    let disconnect = group.disconnect.as_ref().filter(|block| block.replace)?;
    let lost_after = disconnect.lost_after.filter(|span| !span.is_zero())?;
    Some(since.plus(lost_after))
}

/// Sorts `allocs` of `group`; `None`: the job has no such group any more.
pub(crate) fn classify<'a>(
    snapshot: &Snapshot,
    now: Timestamp,
    group: Option<&TaskGroup>,
    allocs: impl IntoIterator<Item = &'a AllocView>,
) -> Sets<'a> {
    let mut sets = Sets::default();
    for view in allocs {
        let set = match class(snapshot, now, group, view) {
            Class::Untainted => &mut sets.untainted,
            Class::Migrate => &mut sets.migrate,
            Class::Lost => &mut sets.lost,
            Class::Ignored => &mut sets.ignored,
            Class::Disconnecting => &mut sets.disconnecting,
            Class::Reconnecting => &mut sets.reconnecting,
        };
        set.push(view);
    }
    sets
}

fn class(
    snapshot: &Snapshot,
    now: Timestamp,
    group: Option<&TaskGroup>,
    view: &AllocView,
) -> Class {
    let transition = view.alloc.transition;
    if view.alloc.is_server_terminal() {
        // A drained batch allocation keeps its slot: it is not run again.
        return if transition.migrate_disable_placement {
            Class::Untainted
        } else {
            Class::Ignored
        };
    }
    let status = view.client_status();
    let was_unknown = view.alloc.client_status_override == Some(ClientStatus::Unknown);
    if status.is_terminal() {
        return if was_unknown && status == ClientStatus::Failed {
            Class::Reconnecting
        } else {
            Class::Untainted
        };
    }
    let is_unknown = status == ClientStatus::Unknown;
    let expires = group.and_then(|group| expiry(group, view.alloc.unknown_since));
    if is_unknown && expires.is_some_and(|at| at <= now) {
        return Class::Lost;
    }
    match home(snapshot, view) {
        Home::Gone => Class::Lost,
        Home::Down if waits(group, view) => out_of_reach(status),
        Home::Down => Class::Lost,
        Home::Disconnected => {
            let has_time = group.is_some_and(|group| expiry(group, now).is_some());
            let is_told_off = group.is_none() && is_unknown;
            if has_time && status != ClientStatus::Pending || waits(group, view) || is_told_off {
                out_of_reach(status)
            } else {
                Class::Lost
            }
        }
        Home::Well if was_unknown && !is_unknown => Class::Reconnecting,
        Home::Well | Home::Initializing if transition.migrate => Class::Migrate,
        Home::Well | Home::Initializing => Class::Untainted,
    }
}

/// Tells whether the job would rather have `view` back some day than have another.
fn waits(group: Option<&TaskGroup>, view: &AllocView) -> bool {
    let disconnect = group.and_then(|group| group.disconnect.as_ref());
    let replaces = disconnect.is_none_or(|block| block.replace);
    !replaces && view.client_status() != ClientStatus::Pending
}

fn out_of_reach(status: ClientStatus) -> Class {
    if status == ClientStatus::Unknown {
        Class::Untainted
    } else {
        Class::Disconnecting
    }
}
