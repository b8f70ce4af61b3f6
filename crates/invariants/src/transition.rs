//! Facts of every single change, from the state before it to the state after it.

use model::{Allocation, DesiredStatus, DrainStatus, NodeEligibility, NodeStatus, TriggeredBy};
use state::{Key, Snapshot};

use crate::addresses::wrong_port;
use crate::violation::{Fact, Violation};

/// Least difference of priority between a job and its victims. Source: Nomad's public behaviour.
const PRIORITY_DELTA: u16 = 10;

/// Checks one key that changed between `before` and `after`.
pub(crate) fn check_key(
    before: &Snapshot,
    after: &Snapshot,
    key: &Key,
    found: &mut Vec<Violation>,
) {
    let broken = match key {
        Key::Eval(id) => eval_goes_back(before, after, *id),
        Key::Alloc(id) => illegal_alloc_change(before, after, *id)
            .or_else(|| misplaced_alloc(before, after, *id))
            .or_else(|| eviction_is_forgotten(before, after, *id))
            .or_else(|| evicts_wrong_victim(before, after, *id)),
        Key::AllocClient(id) => illegal_alloc_change(before, after, *id)
            .or_else(|| report_goes_back(before, after, *id)),
        Key::Deployment(id) => deployment_goes_back(before, after, *id),
        Key::Job(job) => version_jumps(before, after, job),
        Key::Election(service) => leader_is_replaced(before, after, service),
        Key::Node(id) => drain_is_forgotten(before, after, *id),
        Key::JobVersion(..)
        | Key::JobStable(..)
        | Key::JobTally(_)
        | Key::JobTags(_)
        | Key::SchedulerConfig
        | Key::NodePool(_)
        | Key::Namespace(_)
        | Key::Volume(_)
        | Key::VolumeClaim(_)
        | Key::CsiVolume(_)
        | Key::CsiAttachment(_)
        | Key::DispatchToken(..)
        | Key::ScalingEvents(..)
        | Key::PlanPiece(..)
        | Key::PlanCommit(_)
        | Key::IntroductionToken(_)
        | Key::NodeIntroduction(_)
        | Key::Services(_)
        | Key::NodeRevocation(_)
        | Key::Process(_)
        | Key::Keyring
        | Key::Variable(_)
        | Key::LockHolder(_)
        | Key::LockDelay(_) => None,
        Key::PeriodicLaunch(job) => launch_goes_back(before, after, job),
    };
    if let Some((fact, text)) = broken {
        found.push(Violation {
            revision: after.index(),
            fact,
            found: text,
        });
    }
}

fn eval_goes_back(
    before: &Snapshot,
    after: &Snapshot,
    id: model::EvalId,
) -> Option<(Fact, String)> {
    let (old, new) = (before.eval(id)?, after.eval(id)?);
    let (old, new) = (old.value.status, new.value.status);
    (old.is_terminal() && old != new).then(|| {
        (
            Fact::EndIsFinal,
            format!("evaluation {id}: {} after {}", new.as_str(), old.as_str()),
        )
    })
}

/// A launch record that goes back would repeat launches.
fn launch_goes_back(
    before: &Snapshot,
    after: &Snapshot,
    job: &model::JobKey,
) -> Option<(Fact, String)> {
    let (old, new) = (before.periodic_launch(job)?, after.periodic_launch(job)?);
    let (old, new) = (old.value.launched, new.value.launched);
    (new < old).then(|| {
        let text = format!(
            "job {job}: launched up to {} after {}",
            new.as_secs(),
            old.as_secs()
        );
        (Fact::LaunchesGoForward, text)
    })
}

fn deployment_goes_back(
    before: &Snapshot,
    after: &Snapshot,
    id: model::DeploymentId,
) -> Option<(Fact, String)> {
    let (old, new) = (before.deployment(id)?, after.deployment(id)?);
    let is_undone = |(name, group): (&String, &model::DeploymentGroup)| {
        let before = old.value.groups.get(name);
        before.is_some_and(|before| before.promoted) && !group.promoted
    };
    if new.value.groups.iter().any(is_undone) {
        let text = format!("deployment {id}: a group is not promoted any more");
        return Some((Fact::PromotionIsKept, text));
    }
    let (old, new) = (old.value.status, new.value.status);
    (!old.is_active() && old != new).then(|| {
        (
            Fact::EndIsFinal,
            format!("deployment {id}: {} after {}", new.as_str(), old.as_str()),
        )
    })
}

fn illegal_alloc_change(
    before: &Snapshot,
    after: &Snapshot,
    id: model::AllocId,
) -> Option<(Fact, String)> {
    let (old, new) = (before.alloc(id)?, after.alloc(id)?);
    let (was, is) = (&old.alloc, &new.alloc);
    let same_place = was.node_id == is.node_id
        && was.job_key() == is.job_key()
        && was.job_create_index == is.job_create_index
        && was.task_group == is.task_group
        && was.name_index == is.name_index;
    if !same_place {
        return Some((
            Fact::AllocationKeepsItsPlace,
            format!("allocation {id} became another"),
        ));
    }
    if was.is_server_terminal() && !is.is_server_terminal() {
        let text = format!("allocation {id}: run after {}", was.desired_status.as_str());
        return Some((Fact::EndIsFinal, text));
    }
    let (before, after) = (old.client_status(), new.client_status());
    (before.is_terminal() && !after.is_terminal()).then(|| {
        (
            Fact::EndIsFinal,
            format!(
                "allocation {id}: {} after {}",
                after.as_str(),
                before.as_str()
            ),
        )
    })
}

fn report_goes_back(
    before: &Snapshot,
    after: &Snapshot,
    id: model::AllocId,
) -> Option<(Fact, String)> {
    let number = |snapshot: &Snapshot| {
        let view = snapshot.alloc(id)?;
        view.client.as_ref().map(|client| client.report)
    };
    let (old, new) = (number(before)?, number(after)?);
    (new < old).then(|| {
        let text = format!("allocation {id}: report {new} after {old}");
        (Fact::ReportsInOrder, text)
    })
}

/// Checks a new allocation's job and node as of the write of the allocation.
fn misplaced_alloc(
    before: &Snapshot,
    after: &Snapshot,
    id: model::AllocId,
) -> Option<(Fact, String)> {
    let alloc = &after.alloc(id)?.alloc;
    // A plan that was committed before is moved whatever has changed since.
    if before.alloc(id).is_some() || before.plan_commit(alloc.eval_id).is_some() {
        return None;
    }
    let key = alloc.job_key();
    if let Some(job) = before.job(&key) {
        if job.value.stop {
            let text = format!("allocation {id} is of {key}, which is stopped");
            return Some((Fact::PlacedWhereAllowed, text));
        }
        let (named, created) = (alloc.job_create_index, job.create_index);
        if named != created {
            let text = format!("allocation {id} of {key} names {named}, the job has {created}");
            return Some((Fact::PlacedForItsJob, text));
        }
    }
    let node = &before.node(alloc.node_id)?.value;
    let takes_more =
        node.status == NodeStatus::Ready && node.eligibility == NodeEligibility::Eligible;
    if !takes_more {
        let (status, eligibility) = (node.status, node.eligibility);
        let text = format!(
            "allocation {id} comes to {}: {status:?}, {eligibility:?}",
            node.id
        );
        return Some((Fact::PlacedWhereAllowed, text));
    }
    let wrong = wrong_port(after, node, alloc)?;
    Some((
        Fact::PlacedWhereAllowed,
        format!("allocation {id}: {wrong}"),
    ))
}

/// A drain lost between two writers would leave a node with its allocations.
fn drain_is_forgotten(
    before: &Snapshot,
    after: &Snapshot,
    id: model::NodeId,
) -> Option<(Fact, String)> {
    let (old, new) = (before.node(id)?, after.node(id)?);
    let was = old.value.drain.filter(|_| new.value.drain.is_none())?;
    let last = new.value.last_drain.as_ref();
    let is_told = last.is_some_and(|last| {
        last.started_at == was.started_at && last.status != DrainStatus::Draining
    });
    (!is_told).then(|| {
        let text = format!("node {id}: {was:?} is over, of which is said {last:?}");
        (Fact::DrainsEnd, text)
    })
}

fn eviction_is_forgotten(
    before: &Snapshot,
    after: &Snapshot,
    id: model::AllocId,
) -> Option<(Fact, String)> {
    let alloc = &after.alloc(id)?.alloc;
    let was_evicted = before
        .alloc(id)
        .is_some_and(|view| view.alloc.desired_status == DesiredStatus::Evict);
    if was_evicted || alloc.desired_status != DesiredStatus::Evict {
        return None;
    }
    // Once its job was purged, nothing replaces it; the evaluation of a job that was registered since
    // replaces it like an older version, whether it runs or not.
    let job = alloc.job_key();
    let stored = after.job(&job)?;
    if stored.create_index != alloc.job_create_index {
        return None;
    }
    let is_followed_up = after.evals_by_job(&job).any(|eval| {
        eval.value.triggered_by == TriggeredBy::Preemption && eval.create_index == after.index()
    });
    (!is_followed_up).then(|| {
        let text = format!("allocation {id} is evicted without an evaluation of {job}");
        (Fact::EvictionHasEvaluation, text)
    })
}

/// Checks a new allocation and its victims.
fn evicts_wrong_victim(
    before: &Snapshot,
    after: &Snapshot,
    id: model::AllocId,
) -> Option<(Fact, String)> {
    let winner = &after.alloc(id)?.alloc;
    if before.alloc(id).is_some() {
        return None;
    }
    let priority = |alloc: &Allocation| {
        let version = after.job_version(&alloc.job_key(), alloc.job_version);
        version.map(|job| u16::from(job.value.priority))
    };
    let victims = winner.preempted_allocs.iter();
    let victims = victims.filter_map(|victim| after.alloc(*victim));
    for victim in victims {
        let alloc = &victim.alloc;
        let is_too_important = match (priority(winner), priority(alloc)) {
            (Some(own), Some(other)) => own < other + PRIORITY_DELTA,
            _ => false,
        };
        let is_own = alloc.job_key() == winner.job_key();
        if is_too_important || is_own || alloc.node_id != winner.node_id || !victim.is_terminal() {
            let text = format!("allocation {} is preempted by {id}", alloc.id);
            return Some((Fact::VictimsHaveLowerPriority, text));
        }
    }
    None
}

fn version_jumps(
    before: &Snapshot,
    after: &Snapshot,
    job: &model::JobKey,
) -> Option<(Fact, String)> {
    let (old, new) = (before.job(job)?, after.job(job)?);
    let same_incarnation = old.create_index == new.create_index;
    (same_incarnation && new.value.version != old.value.version + 1).then(|| {
        let text = format!(
            "{job}: version {} after {}",
            new.value.version, old.value.version
        );
        (Fact::VersionsCountUp, text)
    })
}

fn leader_is_replaced(
    before: &Snapshot,
    after: &Snapshot,
    service: &str,
) -> Option<(Fact, String)> {
    let (old, new) = (before.leader(service)?, after.leader(service)?);
    (old.create_index == new.create_index && old.value.replica != new.value.replica).then(|| {
        let (was, is) = (&old.value.replica, &new.value.replica);
        (
            Fact::OneLeaderATerm,
            format!("{service}: {is} in the term of {was}"),
        )
    })
}
