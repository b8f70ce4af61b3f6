//! Decision about one live allocation of a system or sysbatch job.

use model::{ClientStatus, NodeEligibility};
use placement::Scope;
use placement::addresses::lost_port;
use state::{AllocView, Snapshot};

use crate::reconcile::changes::NOT_NEEDED;
use crate::reconcile::node_condition::{NodeCondition, node_condition};
use crate::reconcile::spec_change::SpecChange;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its node is down or gone, so it is lost.
    Lost,
    Stop(&'static str),
    /// A drain or a user moves it off its node.
    Migrate,
    /// Its node no longer has the address of one of its ports.
    LeaveAddress,
    /// Its node is disconnected now.
    Disconnect,
    Ignore,
    UpdateInPlace,
    /// It has an older version.
    Update {
        is_destructive: bool,
    },
}

/// Decides about `view`; `change` compares its version with the job's. With `can_return` it can be
/// placed on its node again, with other addresses.
pub(super) fn step(
    snapshot: &Snapshot,
    scope: &Scope,
    is_wanted: bool,
    can_return: bool,
    view: &AllocView,
    change: impl FnOnce() -> SpecChange,
) -> Step {
    let node_condition = node_condition(snapshot, view);
    if matches!(node_condition, NodeCondition::Down | NodeCondition::Gone) {
        return Step::Lost;
    }
    if !is_wanted {
        return Step::Stop(NOT_NEEDED);
    }
    if view.alloc.transition.migrate {
        return Step::Migrate;
    }
    let status = view.client_status();
    match node_condition {
        NodeCondition::Disconnected if status == ClientStatus::Running => return Step::Disconnect,
        NodeCondition::Disconnected | NodeCondition::Initializing => return Step::Ignore,
        // Its node has not reported it yet.
        _ if status == ClientStatus::Unknown => return Step::Ignore,
        _ => {}
    }
    if can_return && lost_port(snapshot, view).is_some() {
        return Step::LeaveAddress;
    }
    let Some(node) = snapshot.node(view.alloc.node_id) else {
        return Step::Lost;
    };
    match change() {
        SpecChange::None if scope.contains(&node.value) => Step::Ignore,
        SpecChange::None => Step::Stop(NOT_NEEDED),
        SpecChange::InPlace => Step::Update {
            is_destructive: false,
        },
        // It could not be placed on its node again.
        SpecChange::Destructive if node.value.eligibility != NodeEligibility::Eligible => {
            Step::Stop(NOT_NEEDED)
        }
        SpecChange::Destructive => Step::Update {
            is_destructive: true,
        },
    }
}

/// Tells whether the node of `view` was disconnected and has reported it since.
pub(super) fn is_reconnecting(snapshot: &Snapshot, view: &AllocView) -> bool {
    view.alloc.client_status_override == Some(ClientStatus::Unknown)
        && view.client_status() == ClientStatus::Running
        && node_condition(snapshot, view) == NodeCondition::Ready
}
