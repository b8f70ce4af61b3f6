//! What reconciling finds has to change, before anybody has looked for nodes.

use std::collections::BTreeMap;

use model::job::TaskGroup;
use model::plan::DeploymentUpdate;
use model::{
    AllocId, ClientStatus, Deployment, DeploymentGroup, DeploymentId, EvalId, Evaluation, Timestamp,
};
use state::AllocView;

use crate::generation::Generations;

pub(crate) const NOT_NEEDED: &str = "alloc not needed due to job update";
pub(crate) const LOST: &str = "alloc is lost since its node is down";
pub(crate) const MIGRATING: &str = "alloc is being migrated";
pub(crate) const MIGRATING_SYSTEM: &str = "alloc not needed as node is tainted";
pub(crate) const UPDATING: &str = "alloc is being updated due to job update";
pub(crate) const RESCHEDULED: &str = "alloc was rescheduled because it failed";
pub(crate) const RECONNECTED: &str = "alloc not needed due to disconnected client reconnect";

/// An allocation to stop, whatever becomes of placements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopAsk<'a> {
    pub(crate) view: &'a AllocView,
    pub(crate) description: &'static str,
    /// Set when its node cannot tell any more.
    pub(crate) client_status: Option<ClientStatus>,
    /// The evaluation that replaces it, when that has to wait.
    pub(crate) followup: Option<EvalId>,
}

impl<'a> StopAsk<'a> {
    pub(crate) fn new(view: &'a AllocView, description: &'static str) -> Self {
        Self {
            view,
            description,
            client_status: None,
            followup: None,
        }
    }

    pub(crate) fn lost(view: &'a AllocView) -> Self {
        Self {
            client_status: Some(ClientStatus::Lost),
            ..Self::new(view, LOST)
        }
    }
}

/// An allocation to place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaceAsk<'a> {
    pub(crate) name_index: u32,
    pub(crate) cause: Cause<'a>,
    /// It tries the job's version out before the others follow.
    pub(crate) is_canary: bool,
    /// Set when it gets an older version, because the newer one is still being tried out.
    pub(crate) older: Option<Older>,
}

impl<'a> PlaceAsk<'a> {
    pub(crate) fn new(name_index: u32, cause: Cause<'a>) -> Self {
        Self {
            name_index,
            cause,
            is_canary: false,
            older: None,
        }
    }
}

/// A version before the job's current one, and the deployment that brought it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Older {
    pub(crate) version: u64,
    pub(crate) deployment_id: Option<DeploymentId>,
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
    /// Its node is out of reach since then; it may come back, so it is not stopped.
    Unknown(&'a AllocView, Timestamp),
    /// It was lost, or ended where it should run for ever.
    Lost(&'a AllocView),
    Migrate(&'a AllocView),
}

impl<'a> Cause<'a> {
    pub(crate) fn previous(self) -> Option<&'a AllocView> {
        match self {
            Self::Missing => None,
            Self::Update(view)
            | Self::Reschedule(view)
            | Self::Unknown(view, _)
            | Self::Lost(view)
            | Self::Migrate(view) => Some(view),
        }
    }

    /// Returns what the previous allocation is told when this one has a place.
    pub(crate) fn stop_description(self) -> Option<&'static str> {
        match self {
            Self::Update(_) => Some(UPDATING),
            Self::Reschedule(_) => Some(RESCHEDULED),
            Self::Missing | Self::Unknown(..) | Self::Lost(_) | Self::Migrate(_) => None,
        }
    }
}

/// What is written to an allocation that goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit<'a> {
    pub(crate) view: &'a AllocView,
    /// It gets the job's current version and keeps running.
    pub(crate) in_place: bool,
    pub(crate) mark: Option<Mark>,
    /// The evaluation that looks at it again.
    pub(crate) followup: Option<EvalId>,
}

/// What the server says of an allocation whose node it cannot hear, or hears again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Unknown,
    Reconnected,
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
    pub(crate) edits: BTreeMap<AllocId, Edit<'a>>,
    /// To be put into the deployment, which is made if there is none.
    pub(crate) deployment_group: Option<DeploymentGroup>,
    /// While the job's version is tried out: who makes way for it once it is promoted.
    pub(crate) old: Vec<AllocId>,
    /// And who tries it out.
    pub(crate) tried: Vec<AllocId>,
    /// Nothing is left to do for the deployment.
    pub(crate) is_complete: bool,
    pub(crate) desired: DesiredUpdates,
}

impl<'a> GroupChanges<'a> {
    /// Returns what is to be written to `view`, which goes on.
    pub(crate) fn edit(&mut self, view: &'a AllocView) -> &mut Edit<'a> {
        self.edits.entry(view.alloc.id).or_insert(Edit {
            view,
            in_place: false,
            mark: None,
            followup: None,
        })
    }
}

/// What has to change for a job.
#[derive(Debug, Default)]
pub(crate) struct JobChanges<'a> {
    /// Ordered by name.
    pub(crate) groups: Vec<GroupChanges<'a>>,
    /// Stopped before, on nodes that will never tell that they have ended.
    pub(crate) lost_while_stopping: Vec<StopAsk<'a>>,
    /// Who stays whatever becomes of what is tried out, and who does not.
    pub(crate) generations: Generations,
    pub(crate) deployment: Option<Deployment>,
    /// The deployment as it stands, for who has to add to it.
    pub(crate) current_deployment: Option<Deployment>,
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
    pub canary: u32,
    /// Out of reach since now.
    pub disconnect: u32,
    /// Back in reach, and kept.
    pub reconnect: u32,
    /// Allocations of other jobs that make way for placements.
    pub preemptions: u32,
}
