//! Changes of a job or group that reconciling asks for, before nodes are looked for.

use std::collections::BTreeMap;
use std::fmt;

use model::job::TaskGroup;
use model::plan::DeploymentUpdate;
use model::{
    AllocId, AllocatedPort, ClientStatus, Deployment, DeploymentGroup, DeploymentId, EvalId,
    Evaluation, Timestamp,
};
use placement::addresses::lost_port;
use state::{AllocView, Snapshot};

use crate::generation::{Generation, Generations};

pub(crate) const NOT_NEEDED: &str = "alloc not needed due to job update";
pub(crate) const LOST: &str = "alloc is lost since its node is down";
pub(crate) const MIGRATING: &str = "alloc is being migrated";
pub(crate) const MIGRATING_SYSTEM: &str = "alloc not needed as node is tainted";
pub(crate) const UPDATING: &str = "alloc is being updated due to job update";
pub(crate) const RESCHEDULED: &str = "alloc was rescheduled because it failed";
pub(crate) const RECONNECTED: &str = "alloc not needed due to disconnected client reconnect";

/// The reason of a stop, shown to people.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StopReason<'a> {
    Text(&'static str),
    /// The node no longer has the host address of this port.
    LostAddress(&'a AllocatedPort),
}

impl From<&'static str> for StopReason<'_> {
    fn from(text: &'static str) -> Self {
        Self::Text(text)
    }
}

impl fmt::Display for StopReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::LostAddress(port) => write!(
                f,
                "the node no longer has the address {} of its port {}",
                port.host_ip, port.label
            ),
        }
    }
}

/// An allocation to stop, regardless of placements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopAsk<'a> {
    pub(crate) view: &'a AllocView,
    pub(crate) reason: StopReason<'a>,
    /// Set when its node cannot report any more.
    pub(crate) client_status: Option<ClientStatus>,
    /// The evaluation that replaces it later.
    pub(crate) followup: Option<EvalId>,
}

impl<'a> StopAsk<'a> {
    pub(crate) fn new(view: &'a AllocView, reason: impl Into<StopReason<'a>>) -> Self {
        Self {
            view,
            reason: reason.into(),
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

    /// Stops an allocation that has to leave its node, or an address that its node no longer has.
    pub(crate) fn leaving(snapshot: &Snapshot, view: &'a AllocView) -> Self {
        let lost = lost_port(snapshot, view).filter(|_| !view.alloc.transition.migrate);
        Self::new(view, lost.map_or(MIGRATING.into(), StopReason::LostAddress))
    }
}

/// An allocation to place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaceAsk<'a> {
    pub(crate) name_index: u32,
    pub(crate) cause: Cause<'a>,
    /// It is a canary.
    pub(crate) is_canary: bool,
    /// The older version that it gets while a newer one is tried out.
    pub(crate) older: Option<OlderVersion>,
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

    /// Returns the generation of the allocation to place.
    pub(crate) fn generation(&self) -> Generation {
        if self.is_canary {
            Generation::Canary
        } else if self.older.is_some() {
            Generation::Outgoing
        } else {
            Generation::Stable
        }
    }
}

/// A version before the job's current one, with the deployment that rolled it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OlderVersion {
    pub(crate) version: u64,
    pub(crate) deployment_id: Option<DeploymentId>,
}

/// The cause of a placement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause<'a> {
    /// The group has too few allocations.
    Missing,
    /// The old allocation is stopped if, and only if, the new one is placed.
    Update(&'a AllocView),
    /// The same for a failed allocation, whose replacement keeps its history.
    Reschedule(&'a AllocView),
    /// Its node is disconnected since then; it may return, so the allocation is not stopped.
    Unknown(&'a AllocView, Timestamp),
    /// It was lost, or a service allocation ended.
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

    /// Returns the stop description of the predecessor once this allocation is placed.
    pub(crate) fn stop_description(self) -> Option<&'static str> {
        match self {
            Self::Update(_) => Some(UPDATING),
            Self::Reschedule(_) => Some(RESCHEDULED),
            Self::Missing | Self::Unknown(..) | Self::Lost(_) | Self::Migrate(_) => None,
        }
    }
}

/// An update of an allocation that keeps running.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit<'a> {
    pub(crate) view: &'a AllocView,
    /// It is updated in place to the job's current version.
    pub(crate) in_place: bool,
    pub(crate) mark: Option<Mark>,
    /// The follow-up evaluation.
    pub(crate) followup: Option<EvalId>,
}

/// The server's note about an allocation whose node is disconnected or has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Unknown,
    Reconnected,
}

/// The changes of one task group.
#[derive(Debug, Default)]
pub(crate) struct GroupChanges<'a> {
    pub(crate) name: String,
    /// `None`: the job has no such group any more, and nothing is placed.
    pub(crate) group: Option<&'a TaskGroup>,
    pub(crate) stops: Vec<StopAsk<'a>>,
    /// Destructive updates first: each frees resources before it needs some.
    pub(crate) places: Vec<PlaceAsk<'a>>,
    pub(crate) edits: BTreeMap<AllocId, Edit<'a>>,
    /// The group's part of the deployment, which is created if there is none.
    pub(crate) deployment_group: Option<DeploymentGroup>,
    /// While a version is tried out: the allocations replaced when it is promoted.
    pub(crate) outgoing: Vec<AllocId>,
    /// And its canaries.
    pub(crate) canaries: Vec<AllocId>,
    /// The group's part of the deployment is complete.
    pub(crate) is_complete: bool,
    pub(crate) desired: DesiredUpdates,
}

impl<'a> GroupChanges<'a> {
    /// Returns the update of `view`, which keeps running.
    pub(crate) fn edit(&mut self, view: &'a AllocView) -> &mut Edit<'a> {
        self.edits.entry(view.alloc.id).or_insert(Edit {
            view,
            in_place: false,
            mark: None,
            followup: None,
        })
    }
}

/// The changes of a job.
#[derive(Debug, Default)]
pub(crate) struct JobChanges<'a> {
    /// Ordered by name.
    pub(crate) groups: Vec<GroupChanges<'a>>,
    /// Stopped before, on nodes that cannot report their end.
    pub(crate) lost_while_stopping: Vec<StopAsk<'a>>,
    pub(crate) generations: Generations,
    pub(crate) deployment: Option<Deployment>,
    /// The stored deployment, to which canaries are added.
    pub(crate) current_deployment: Option<Deployment>,
    /// The deployment of the placements.
    pub(crate) deployment_id: Option<DeploymentId>,
    pub(crate) deployment_updates: Vec<DeploymentUpdate>,
    /// Follow-up evaluations of delayed reschedules.
    pub(crate) delayed_evals: Vec<Evaluation>,
}

/// The numbers of changes of a task group, for people.
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
    /// Disconnected now.
    pub disconnect: u32,
    /// Reconnected and kept.
    pub reconnect: u32,
    /// Victims of the group's placements.
    pub preemptions: u32,
}
