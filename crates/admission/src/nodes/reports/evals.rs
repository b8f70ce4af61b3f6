//! Evaluations that a report causes, or makes needless.

use model::job::DEFAULT_PRIORITY;
use model::{
    AllocClient, ClientStatus, DesiredStatus, EvalId, EvalStatus, Evaluation, JobKey, JobType,
    Timestamp, TriggeredBy,
};
use placement::reschedule::{Purpose, ReplacementDecision, replacement_decision};
use state::{AllocView, Entity, Key, Snapshot, Write};

/// A request to evaluate a job; requests of several allocations share one evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalRequest {
    pub job_type: JobType,
    pub priority: u8,
    pub triggered_by: TriggeredBy,
}

/// Decides whether a report causes an evaluation of the allocation's job.
pub(super) fn request(
    snapshot: &Snapshot,
    view: &AllocView,
    reported: &AllocClient,
) -> Option<EvalRequest> {
    let was_unknown = view.client_status() == ClientStatus::Unknown;
    if !reported.status.is_terminal() && !was_unknown {
        return None;
    }
    let wanted = view.alloc.desired_status == DesiredStatus::Run;
    let Some(job) = snapshot.job(&view.alloc.job_key()) else {
        // The job is purged: an allocation that should still run has to be stopped.
        return wanted.then_some(EvalRequest {
            job_type: JobType::Service,
            priority: DEFAULT_PRIORITY,
            triggered_by: TriggeredBy::JobDeregister,
        });
    };
    let request = |triggered_by| EvalRequest {
        job_type: job.value.job_type,
        priority: job.value.priority,
        triggered_by,
    };
    if was_unknown {
        return Some(request(TriggeredBy::Reconnect));
    }
    if was_stopped_by_its_node(view, reported, job.value.job_type) {
        return Some(request(TriggeredBy::AllocStop));
    }
    let newly_failed =
        reported.status == ClientStatus::Failed && view.client_status() != ClientStatus::Failed;
    if !newly_failed || view.alloc.followup_eval_id.is_some() {
        return None;
    }
    let group = job.value.task_group(&view.alloc.task_group)?;
    let policy = group.reschedule.as_ref();
    match replacement_decision(&view.alloc, Some(reported), policy, Purpose::Evaluation) {
        ReplacementDecision::From(_) => Some(request(TriggeredBy::AllocFailure)),
        ReplacementDecision::NotNeeded | ReplacementDecision::Never => None,
    }
}

/// Tells whether a service's or system job's allocation has ended although the servers want it: its node
/// stopped it, by a decision that a restored snapshot does not have, or because it had no contact for
/// `stop_on_client_after`. The scheduler has to replace it.
fn was_stopped_by_its_node(view: &AllocView, reported: &AllocClient, job_type: JobType) -> bool {
    reported.status == ClientStatus::Complete
        && !view.client_status().is_terminal()
        && view.alloc.desired_status == DesiredStatus::Run
        && matches!(job_type, JobType::Service | JobType::System)
}

/// Cancels the follow-up evaluation that would replace an unknown allocation, now that the
/// allocation reconnects and no other allocation waits for the same evaluation.
pub(super) fn cancel_followup(
    snapshot: &Snapshot,
    view: &AllocView,
    now: Timestamp,
) -> Option<(EvalId, Write)> {
    if view.client_status() != ClientStatus::Unknown {
        return None;
    }
    let eval_id = view.alloc.followup_eval_id?;
    let eval = snapshot
        .eval(eval_id)
        .filter(|eval| !eval.value.status.is_terminal())?;
    let is_shared = snapshot.allocs_by_job(&view.alloc.job_key()).any(|other| {
        other.alloc.id != view.alloc.id
            && other.alloc.followup_eval_id == Some(eval_id)
            && !other.is_terminal()
    });
    if is_shared {
        return None;
    }
    let canceled = Evaluation {
        status: EvalStatus::Canceled,
        status_description: format!("allocation {} has reconnected", view.alloc.id),
        modify_time: now,
        ..eval.value.clone()
    };
    let write = Write::Update {
        key: Key::Eval(eval_id),
        modify_index: eval.modify_index,
        entity: Entity::Eval(Box::new(canceled)),
    };
    Some((eval_id, write))
}

impl EvalRequest {
    /// Returns the evaluation of `job`.
    pub fn evaluation(
        self,
        job: &JobKey,
        id: EvalId,
        now: Timestamp,
        trace_parent: &str,
    ) -> Evaluation {
        let (job_type, priority) = (self.job_type, self.priority);
        let trigger = self.triggered_by;
        let mut eval = Evaluation::pending(id, job.clone(), job_type, priority, trigger, now);
        trace_parent.clone_into(&mut eval.trace_parent);
        eval
    }
}
