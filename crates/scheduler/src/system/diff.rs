//! What becomes of one live allocation of a job that wants to be everywhere.

use model::{ClientStatus, NodeEligibility};
use placement::Scope;
use state::{AllocView, Snapshot};

use crate::reconcile::changes::NOT_NEEDED;
use crate::reconcile::classify::{Home, home};
use crate::reconcile::spec_change::SpecChange;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its node is down or gone, and it with it.
    Lost,
    Stop(&'static str),
    /// Somebody wants it off its node.
    Migrate,
    /// Its node is out of reach since now.
    Disconnect,
    Ignore,
    UpdateInPlace,
    /// It is of an older version.
    Update {
        is_destructive: bool,
    },
}

/// Decides about `view`; `change` says what the job's version asks of it.
pub(super) fn step(
    snapshot: &Snapshot,
    scope: &Scope,
    is_wanted: bool,
    view: &AllocView,
    change: impl FnOnce() -> SpecChange,
) -> Step {
    let home = home(snapshot, view);
    if matches!(home, Home::Down | Home::Gone) {
        return Step::Lost;
    }
    if !is_wanted {
        return Step::Stop(NOT_NEEDED);
    }
    if view.alloc.transition.migrate {
        return Step::Migrate;
    }
    let status = view.client_status();
    match home {
        Home::Disconnected if status == ClientStatus::Running => return Step::Disconnect,
        Home::Disconnected | Home::Initializing => return Step::Ignore,
        // Its node has not told of it yet.
        _ if status == ClientStatus::Unknown => return Step::Ignore,
        _ => {}
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
        // It cannot come back here.
        SpecChange::Destructive if node.value.eligibility != NodeEligibility::Eligible => {
            Step::Stop(NOT_NEEDED)
        }
        SpecChange::Destructive => Step::Update {
            is_destructive: true,
        },
    }
}

/// Tells whether `view` was out of reach, and its node has told of it since.
pub(super) fn is_reconnecting(snapshot: &Snapshot, view: &AllocView) -> bool {
    view.alloc.client_status_override == Some(ClientStatus::Unknown)
        && view.client_status() == ClientStatus::Running
        && home(snapshot, view) == Home::Well
}
