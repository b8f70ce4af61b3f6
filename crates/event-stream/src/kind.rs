//! Types of events, derived from the changes of a write.
//!
//! Source: Nomad's public behaviour: all events of one write have the write's type. Nomad derives it
//! from the request; here the changes determine it, which every gateway can see.

use model::{EvalStatus, Evaluation, Job, Node, TriggeredBy};
use state::{Change, Entity, Key};
use store::RevisionChanges;

/// Returns the type of the events of one write.
pub fn of_write(written: &RevisionChanges) -> &'static str {
    if changes(written).any(|(_, entity)| matches!(entity, Entity::AllocClient(_))) {
        return "AllocationUpdated";
    }
    if let Some(kind) = of_job(written) {
        return kind;
    }
    if changes(written).any(|(is_new, entity)| is_plans(is_new, entity)) {
        return "PlanResult";
    }
    if let Some(kind) = of_node(written) {
        return kind;
    }
    let mut found = None;
    for (_, entity) in changes(written) {
        let kind = match entity {
            Entity::Alloc(_) => "AllocationUpdateDesiredStatus",
            Entity::Deployment(_) => "DeploymentStatusUpdate",
            Entity::NodePool(_) => "NodePoolUpserted",
            Entity::Eval(_) => found.unwrap_or("EvaluationUpdated"),
            _ => continue,
        };
        found = Some(kind);
    }
    found.unwrap_or("EvaluationUpdated")
}

/// Returns the written objects, and whether each is new.
fn changes(written: &RevisionChanges) -> impl Iterator<Item = (bool, &Entity)> {
    written.changes.iter().filter_map(|change| match change {
        Change::Put {
            entity,
            create_index,
            modify_index,
            ..
        } => Some((create_index == modify_index, entity)),
        Change::Delete { .. } => None,
    })
}

/// A registration that changes nothing writes its evaluation alone.
fn of_job(written: &RevisionChanges) -> Option<&'static str> {
    let kind = |job: &Job| {
        if job.stop {
            "JobDeregistered"
        } else {
            "JobRegistered"
        }
    };
    let mut put = changes(written).filter_map(|(_, entity)| match entity {
        Entity::Job(job) => Some(kind(job)),
        _ => None,
    });
    let of_eval = |(is_new, entity): (bool, &Entity)| match entity {
        Entity::Eval(eval) if is_new => match eval.triggered_by {
            TriggeredBy::JobRegister => Some("JobRegistered"),
            TriggeredBy::JobDeregister => Some("JobDeregistered"),
            _ => None,
        },
        _ => None,
    };
    let purged = || {
        let mut all = written.changes.iter();
        let is_purge = |change: &Change| matches!(change, Change::Delete { key: Key::Job(_) });
        all.any(is_purge).then_some("JobDeregistered")
    };
    put.next()
        .or_else(|| changes(written).find_map(of_eval))
        .or_else(purged)
}

/// Only plans place allocations, and only they complete evaluations.
fn is_plans(is_new: bool, entity: &Entity) -> bool {
    match entity {
        Entity::Alloc(_) => is_new,
        Entity::Eval(eval) => is_outcome(is_new, eval),
        _ => false,
    }
}

fn is_outcome(is_new: bool, eval: &Evaluation) -> bool {
    let is_followup = is_new && eval.status == EvalStatus::Blocked;
    is_followup || eval.status == EvalStatus::Complete
}

fn of_node(written: &RevisionChanges) -> Option<&'static str> {
    changes(written).find_map(|(is_new, entity)| match entity {
        Entity::Node(_) if is_new => Some("NodeRegistration"),
        Entity::Node(node) => {
            let before = written.nodes_before.iter().find(|it| it.id == node.id);
            Some(before.map_or("NodeStreamEvent", |before| of_node_change(before, node)))
        }
        _ => None,
    })
}

/// Returns the type of a change of a node; a registration without a change is not written.
fn of_node_change(before: &Node, after: &Node) -> &'static str {
    if before.status != after.status {
        "NodeStreamEvent"
    } else if before.eligibility != after.eligibility {
        "NodeEligibility"
    } else {
        "NodeRegistration"
    }
}
