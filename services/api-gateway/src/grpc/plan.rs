//! `kafila.v1.Jobs.Plan`: a registration, tried out.

use model::EvalId;
use proto::v1;
use state::Snapshot;
use tokio::time::Instant;
use tracing::{Instrument as _, info, info_span};

use super::Api;
use super::jobs::{names_no_pool, nanoseconds, next_launch, read_spec};
use crate::admission::Stamp;
use crate::admission::plan::{self, DryRun};
use crate::error::Error;
use crate::reads::view;
use crate::settings::namespaces;
use crate::writes::into_txn;

/// The evaluation that is never written, and the seed of its choices: always the same, so that a
/// plan says the same as long as nothing is written. The run of the job has a seed of its own.
const DRY: u128 = 0;
const SEED: u64 = 0;

impl Api {
    pub(super) async fn plan_job(
        &self,
        request: v1::PlanJobRequest,
    ) -> Result<v1::PlanJobResponse, Error> {
        let gateway = &self.gateway;
        let began = Instant::now();
        let now = gateway.now();
        let spec = read_spec(request.job)?;
        let admitted = jobspec::canonicalise(&spec, now)?;
        let key = admitted.job.key();
        // What is planned is checked against later by its index, so it must be the newest.
        let snapshot = gateway.fresh().await?;
        let index = snapshot.index();
        let stamp = Stamp {
            eval_id: EvalId::from_random(DRY),
            now,
            trace_parent: String::new(),
        };
        let job = namespaces::with_node_pool(&snapshot, &admitted.job, names_no_pool(&spec));
        let job = job.into_owned();
        let proposal = plan::propose(&snapshot, &job, &stamp)?;
        into_txn(gateway.writer.txn(), &proposal.writes).map_err(Error::TooLarge)?;
        let before = snapshot.clone();
        let next_periodic_launch_ns = nanoseconds(next_launch(&job, now));
        let run = move || plan::dry_run(&snapshot, &job, proposal, &stamp, SEED, request.diff);
        let ended = gateway
            .dry_runs
            .run(gateway.config.request_timeout, run)
            .instrument(info_span!("schedule", index))
            .await;
        // Those that came too late count too: they are what an operator looks for.
        gateway.metrics.dry_runs.inc();
        let took = began.elapsed();
        gateway.metrics.dry_run_seconds.observe(took.as_secs_f64());
        let found = ended??;
        info!(
            namespace = %key.namespace, job_id = %key.job_id, index,
            failed_task_groups = found.failed_task_groups.len(), "job tried out"
        );
        Ok(v1::PlanJobResponse {
            warnings: admitted.warnings,
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
    let preempted = preempted.map(|view| view::allocation(snapshot, view));
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
