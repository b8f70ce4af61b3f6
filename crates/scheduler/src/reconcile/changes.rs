//! What reconciling finds has to change, before anybody has looked for nodes.

use std::collections::BTreeMap;

use model::job::TaskGroup;
use model::plan::DeploymentUpdate;
use model::{ClientStatus, Deployment, DeploymentGroup, DeploymentId, EvalId, Evaluation};
use state::AllocView;

pub(crate) const NOT_NEEDED: &str = "alloc not needed due to job update";
pub(crate) const LOST: &str = "alloc is lost since its node is down";
pub(crate) const MIGRATING: &str = "alloc is being migrated";
pub(crate) const UPDATING: &str = "alloc is being updated due to job update";
pub(crate) const RESCHEDULED: &str = "alloc was rescheduled because it failed";

/// An allocation to stop, whatever becomes of placements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopAsk<'a> {
    pub(crate) view: &'a AllocView,
    pub(crate) description: &'static str,
    /// Set when its node cannot tell any more.
    pub(crate) client_status: Option<ClientStatus>,
}

/// An allocation to place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaceAsk<'a> {
    pub(crate) name_index: u32,
    pub(crate) cause: Cause<'a>,
}

/// Why something is placed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause<'a> {
    /// There are fewer than the job wants.
    Missing,
    /// The old one is stopped when, and only when, the new one has a place.
    Update(&'a AllocView),
    /// The same for a failed one, whose replacement remembers it.
    Reschedule(&'a AllocView),
    Lost(&'a AllocView),
    Migrate(&'a AllocView),
}

impl<'a> Cause<'a> {
    pub(crate) fn previous(self) -> Option<&'a AllocView> {
        match self {
            Self::Missing => None,
            Self::Update(view)
            | Self::Reschedule(view)
            | Self::Lost(view)
            | Self::Migrate(view) => Some(view),
        }
    }

    /// Returns what the previous allocation is told when this one has a place.
    pub(crate) fn stop_description(self) -> Option<&'static str> {
        match self {
            Self::Update(_) => Some(UPDATING),
            Self::Reschedule(_) => Some(RESCHEDULED),
            Self::Missing | Self::Lost(_) | Self::Migrate(_) => None,
        }
    }
}

/// What has to change for one task group.
#[derive(Debug, Default)]
pub(crate) struct GroupChanges<'a> {
    pub(crate) name: String,
    /// `None`: the job has no such group any more, so there is nothing to place.
    pub(crate) group: Option<&'a TaskGroup>,
    pub(crate) stops: Vec<StopAsk<'a>>,
    /// Destructive updates first: each gives up a place before it looks for one.
    pub(crate) places: Vec<PlaceAsk<'a>>,
    /// They get the job's current version and keep running.
    pub(crate) in_place: Vec<&'a AllocView>,
    /// They wait for these evaluations to be rescheduled.
    pub(crate) follow_ups: BTreeMap<model::AllocId, (&'a AllocView, EvalId)>,
    /// To be added to the deployment, which is made if there is none.
    pub(crate) new_deployment_group: Option<DeploymentGroup>,
    /// The update asks for canaries first, which this version does not place.
    pub(crate) needs_canaries: bool,
    /// Nothing is left to do for the deployment.
    pub(crate) is_complete: bool,
    pub(crate) desired: DesiredUpdates,
}

/// What has to change for a job.
#[derive(Debug, Default)]
pub(crate) struct JobChanges<'a> {
    /// Ordered by name.
    pub(crate) groups: Vec<GroupChanges<'a>>,
    /// Stopped before, on nodes that will never tell that they have ended.
    pub(crate) lost_while_stopping: Vec<StopAsk<'a>>,
    pub(crate) deployment: Option<Deployment>,
    /// The deployment that placements belong to.
    pub(crate) deployment_id: Option<DeploymentId>,
    pub(crate) deployment_updates: Vec<DeploymentUpdate>,
    /// To be looked at when failed allocations are due.
    pub(crate) delayed_evals: Vec<Evaluation>,
}

/// What one look at a task group wants to do, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DesiredUpdates {
    pub ignore: u32,
    pub place: u32,
    pub migrate: u32,
    pub stop: u32,
    pub in_place_update: u32,
    pub destructive_update: u32,
    pub reschedule_now: u32,
    pub reschedule_later: u32,
}
