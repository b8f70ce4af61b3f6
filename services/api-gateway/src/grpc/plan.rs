//! `kafila.v1.Jobs.Plan`: a dry run of a registration.

use admission::jobs::RequestContext;
use admission::jobs::register::propose_dry_run;
use dry_run::{DryRun, dry_run};
use gateway_core::Error;
use model::EvalId;
use proto::v1;
use state::Snapshot;
use store::SizeClass;
use tokio::time::Instant;
use tracing::{Instrument as _, info, info_span};

use super::job_answers::nanoseconds;
use super::query::Api;

/// The id of the evaluation, which is never written, and the seed of the scheduler. Both are constant,
/// so that a plan does not change while the state does not. An evaluation has a seed of its own.
const DRY: u128 = 0;
const SEED: u64 = 0;

impl Api {
    pub(super) async fn plan_job(
        &self,
        request: v1::PlanJobRequest,
    ) -> Result<v1::PlanJobResponse, Error> {
        let gateway = &self.gateway;
        let began = Instant::now();
        let now = gateway.core.now();
        let submitted = self.submitted(request.job.as_ref(), now)?;
        let key = submitted.key();
        // The caller may register with this index later, so the state has to be fresh.
        let snapshot = gateway.core.fresh().await?;
        let index = snapshot.index();
        let context = RequestContext {
            eval_id: EvalId::from_random(DRY),
            now,
            trace_parent: String::new(),
        };
        let job = submitted.in_pool(&snapshot).into_owned();
        let proposal = propose_dry_run(&snapshot, &job, &context)?;
        // A registration would be refused alike.
        gateway.core.transaction(SizeClass::New, &proposal.writes)?;
        let before = snapshot.clone();
        let next_periodic_launch_ns = nanoseconds(proposal.next_launch);
        let run = move || dry_run(&snapshot, &job, proposal, &context, SEED, request.diff);
        let ended = gateway
            .dry_runs
            .run(gateway.core.request_timeout(), run)
            .instrument(info_span!("schedule", index))
            .await;
        // Timeouts count, too: they are what an operator looks for.
        gateway.metrics.dry_runs.inc();
        let took = began.elapsed();
        gateway.metrics.dry_run_seconds.observe(took.as_secs_f64());
        let found = ended??;
        info!(
            namespace = %key.namespace, job_id = %key.job_id, index,
            failed_task_groups = found.failed_task_groups.len(), "dry run of a job"
        );
        Ok(v1::PlanJobResponse {
            warnings: submitted.warnings,
            index,
            next_periodic_launch_ns,
            ..answer(&before, &found)
        })
    }
}

fn answer(snapshot: &Snapshot, found: &DryRun) -> v1::PlanJobResponse {
    let updates = found.updates.iter();
    let updates = updates.map(|(group, updates)| (group.clone(), updates.into()));
    let preempted = found.preempted.iter();
    let preempted = preempted.map(|view| api_view::allocation(snapshot, view));
    let failed = found.failed_task_groups.iter();
    let failed = failed.map(|(group, metric)| (group.clone(), metric.into()));
    v1::PlanJobResponse {
        annotations: Some(v1::PlanAnnotations {
            desired_updates: updates.collect(),
            preempted_allocations: preempted.collect(),
        }),
        failed_task_groups: failed.collect(),
        job_modify_index: found.job_modify_index,
        created_evaluations: found.created_evals.iter().map(Into::into).collect(),
        diff: found.diff.as_ref().map(Into::into),
        ..v1::PlanJobResponse::default()
    }
}
