//! Which allocations of a group are too many.

use std::cmp::Reverse;

use model::ClientStatus;
use state::AllocView;

use crate::reconcile::changes::{NOT_NEEDED, StopAsk};

/// Those with a slot, of which some may be too many.
#[derive(Debug)]
pub(crate) struct Slots<'a> {
    pub(crate) untainted: Vec<&'a AllocView>,
    pub(crate) migrate: Vec<&'a AllocView>,
    /// Failed, and due to be replaced now.
    pub(crate) reschedule: Vec<&'a AllocView>,
}

impl<'a> Slots<'a> {
    pub(crate) fn len(&self) -> u32 {
        let len = self.untainted.len() + self.migrate.len() + self.reschedule.len();
        u32::try_from(len).unwrap_or(u32::MAX)
    }

    /// Takes out whoever is beyond `count`, and returns them as stops.
    ///
    /// First to go are those that would be replaced anyway: the failed, then the migrating, then
    /// the ended and unhealthy; among equals the highest names. (Nomad looks at names alone, so it
    /// may stop a healthy allocation and keep a failed one.)
    pub(crate) fn stop_beyond(&mut self, count: u32) -> Vec<StopAsk<'a>> {
        let mut excess = self.len().saturating_sub(count);
        let mut stops = Vec::new();
        for set in [&mut self.reschedule, &mut self.migrate, &mut self.untainted] {
            if excess == 0 {
                break;
            }
            excess = take_excess(set, excess, &mut stops);
        }
        stops
    }
}

/// Takes up to `excess` out of `set`; returns how many are still too many.
fn take_excess<'a>(
    set: &mut Vec<&'a AllocView>,
    mut excess: u32,
    stops: &mut Vec<StopAsk<'a>>,
) -> u32 {
    set.sort_by_key(|view| {
        (
            Reverse(stop_rank(view)),
            Reverse(view.alloc.name_index),
            Reverse(view.create_index),
            view.alloc.id,
        )
    });
    let mut kept = Vec::with_capacity(set.len());
    for view in set.drain(..) {
        if excess == 0 {
            kept.push(view);
            continue;
        }
        excess -= 1;
        // One that was stopped before gives its slot up without being told again.
        if !view.alloc.is_server_terminal() {
            stops.push(StopAsk {
                view,
                description: NOT_NEEDED,
                client_status: None,
            });
        }
    }
    *set = kept;
    excess
}

/// Returns how little is lost by stopping `view`: more is stopped sooner.
fn stop_rank(view: &AllocView) -> u8 {
    if view.alloc.is_server_terminal() {
        3
    } else if view.client_status() == ClientStatus::Failed {
        2
    } else {
        u8::from(view.health().is_some_and(|health| !health.healthy))
    }
}
