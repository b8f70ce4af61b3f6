//! Stops of a group's allocations beyond its count.

use std::cmp::Reverse;

use model::ClientStatus;
use state::AllocView;

use crate::reconcile::changes::{NOT_NEEDED, StopAsk};

/// Allocations with a slot.
#[derive(Debug, Default)]
pub(crate) struct Slots<'a> {
    pub(crate) untainted: Vec<&'a AllocView>,
    pub(crate) migrate: Vec<&'a AllocView>,
    /// Failed, to be replaced now.
    pub(crate) reschedule: Vec<&'a AllocView>,
    /// Disconnected, to be replaced now without a stop.
    pub(crate) unknown: Vec<&'a AllocView>,
}

impl<'a> Slots<'a> {
    pub(crate) fn len(&self) -> u32 {
        let len =
            self.untainted.len() + self.migrate.len() + self.reschedule.len() + self.unknown.len();
        u32::try_from(len).unwrap_or(u32::MAX)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a AllocView> {
        let sets = [
            &self.untainted,
            &self.migrate,
            &self.reschedule,
            &self.unknown,
        ];
        sets.into_iter().flatten().copied()
    }

    /// The sets, in the order in which they give up slots.
    fn sets(&mut self) -> [&mut Vec<&'a AllocView>; 4] {
        [
            &mut self.unknown,
            &mut self.reschedule,
            &mut self.migrate,
            &mut self.untainted,
        ]
    }

    /// Takes out the allocations beyond `count`, and returns their stops.
    ///
    /// Allocations with the name index of one of `successors` are stopped in any case: promoted
    /// canaries replace them. Beyond the count, those that would be replaced anyway go first:
    /// disconnected, failed, migrating; then ended and unhealthy ones; of equals the highest
    /// indexes. (Nomad goes by names alone, so it may stop a healthy allocation and keep a failed
    /// one.)
    pub(crate) fn stop_beyond(
        &mut self,
        count: u32,
        successors: &[&'a AllocView],
    ) -> Vec<StopAsk<'a>> {
        let mut stops = Vec::new();
        for set in self.sets() {
            let mut followed: Vec<_> = set
                .extract_if(.., |view| is_followed(view, successors))
                .collect();
            take_excess(&mut followed, u32::MAX, &mut stops);
        }
        let mut excess = self.len().saturating_sub(count);
        for set in self.sets() {
            if excess == 0 {
                break;
            }
            excess = take_excess(set, excess, &mut stops);
        }
        stops
    }
}

/// Tells whether `view` has the name index of one of `successors` without being one.
fn is_followed(view: &AllocView, successors: &[&AllocView]) -> bool {
    let is_one = |successor: &&AllocView| successor.alloc.id == view.alloc.id;
    let shares = |successor: &&AllocView| successor.alloc.name_index == view.alloc.name_index;
    successors.iter().any(shares) && !successors.iter().any(is_one)
}

/// Takes up to `excess` allocations out of `set`; returns the remaining excess.
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
        // It was stopped before, and gives up its slot without another stop.
        if !view.alloc.is_server_terminal() {
            stops.push(StopAsk::new(view, NOT_NEEDED));
        }
    }
    *set = kept;
    excess
}

/// Returns the stop rank of `view`: higher ranks are stopped first.
fn stop_rank(view: &AllocView) -> u8 {
    if view.alloc.is_server_terminal() {
        4
    } else if view.client_status() == ClientStatus::Unknown {
        3
    } else if view.client_status() == ClientStatus::Failed {
        2
    } else {
        u8::from(view.health().is_some_and(|health| !health.healthy))
    }
}
