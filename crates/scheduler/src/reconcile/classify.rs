//! Classification of a group's allocations by the condition of their nodes and their transitions.

use model::{AllocId, ClientStatus, TaskGroup, Timestamp};
use placement::addresses::lost_port;
use state::AllocView;

use crate::reconcile::context::Context;
use crate::reconcile::node_condition::{NodeCondition, node_condition};

/// A group's allocations, each in one set, in their original order.
#[derive(Debug, Default)]
pub(crate) struct Sets<'a> {
    /// They occupy a slot, running or ended, and their node is connected.
    pub(crate) untainted: Vec<&'a AllocView>,
    /// They have to leave their node, or an address that it no longer has.
    pub(crate) migrate: Vec<&'a AllocView>,
    /// Their node is down or gone, so they are lost.
    pub(crate) lost: Vec<&'a AllocView>,
    /// Stopped before; they occupy no slot.
    pub(crate) ignored: Vec<&'a AllocView>,
    /// Their node is disconnected now; the job allows it time to return.
    pub(crate) disconnecting: Vec<&'a AllocView>,
    /// Their node was disconnected and has reported them since.
    pub(crate) reconnecting: Vec<&'a AllocView>,
}

impl<'a> Sets<'a> {
    /// Takes out the allocations for which `belongs` holds, each into the same set.
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

    /// Takes `id` out of the sets that keep running.
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

/// Tells whether the server marks `view` unknown, or did until its node's last report.
pub(crate) fn is_marked_unknown(view: &AllocView) -> bool {
    view.alloc.client_status_override == Some(ClientStatus::Unknown) && !view.is_client_terminal()
}

/// Returns when a disconnected allocation expires as lost; `None`: never.
///
/// One that must not be replaced does not expire: it keeps its slot.
pub(crate) fn expiry(group: &TaskGroup, since: Timestamp) -> Option<Timestamp> {
    let disconnect = group.disconnect.as_ref().filter(|block| block.replace)?;
    let lost_after = disconnect
        .lost_after
        .filter(|duration| !duration.is_zero())?;
    Some(since.plus(lost_after))
}

/// Tells whether `view`, of a job of services, is to be replaced because its node no longer has the
/// address of one of its ports.
///
/// One that has failed may have failed for that reason. It is replaced at once, and this is no attempt
/// of its reschedule policy. Running work of a batch job would be lost, so it goes on.
pub(crate) fn has_lost_address(context: &Context<'_>, view: &AllocView) -> bool {
    let is_replaced = view.alloc.next_alloc.is_some() && view.is_terminal();
    !context.batch && !is_replaced && lost_port(context.snapshot, view).is_some()
}

/// Classifies `allocs` of `group`; `None`: the job has no such group any more.
pub(crate) fn classify<'a>(
    context: &Context<'_>,
    group: Option<&TaskGroup>,
    allocs: impl IntoIterator<Item = &'a AllocView>,
) -> Sets<'a> {
    let mut sets = Sets::default();
    for view in allocs {
        let set = match class(context, group, view) {
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

fn class(context: &Context<'_>, group: Option<&TaskGroup>, view: &AllocView) -> Class {
    let (snapshot, now) = (context.snapshot, context.now);
    let has_lost_address = || group.is_some() && has_lost_address(context, view);
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
        } else if status == ClientStatus::Failed && has_lost_address() {
            Class::Migrate
        } else {
            Class::Untainted
        };
    }
    let is_unknown = status == ClientStatus::Unknown;
    let expires = group.and_then(|group| expiry(group, view.alloc.unknown_since));
    if is_unknown && expires.is_some_and(|at| at <= now) {
        return Class::Lost;
    }
    match node_condition(snapshot, view) {
        NodeCondition::Gone => Class::Lost,
        NodeCondition::Down if waits(group, view) => out_of_reach(status),
        NodeCondition::Down => Class::Lost,
        NodeCondition::Disconnected => {
            let has_time = group.is_some_and(|group| expiry(group, now).is_some());
            let is_told_off = group.is_none() && is_unknown;
            if has_time && status != ClientStatus::Pending || waits(group, view) || is_told_off {
                out_of_reach(status)
            } else {
                Class::Lost
            }
        }
        NodeCondition::Ready if was_unknown && !is_unknown => Class::Reconnecting,
        NodeCondition::Ready | NodeCondition::Initializing if transition.migrate => Class::Migrate,
        // Its node has not reported it yet.
        NodeCondition::Ready if !is_unknown && has_lost_address() => Class::Migrate,
        NodeCondition::Ready | NodeCondition::Initializing => Class::Untainted,
    }
}

/// Tells whether the job waits for `view` to return instead of replacing it.
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
