//! Sender of reports to the servers: one batch at a time, the newest state of each allocation, retried
//! until it is acknowledged.
//!
//! [`lifecycle::ReportQueue`] decides which states to send, and under which numbers;
//! [`task_runner::Reporter`] is the runners' handle to it. A report's number is durable before it is
//! sent.

use std::time::Duration;

use gateway_calls::{Gateways, cause};
use lifecycle::{LastReport, Report};
use model::AllocId;
use node_session::Unacknowledged;
use proto::internal::v1::{AllocationReport, ReportAllocationsRequest};
use service_kit::{Backoff, CancellationToken, request};
use task_runner::BATCH_INTERVAL;
use tokio::time::{Instant, sleep_until};
use tonic::Status;
use tracing::{error, warn};

use crate::context::Context;

/// Timeout for a gateway to store a batch: it waits for its own batch and a transaction.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends batches until `ended`.
pub(crate) async fn run(context: &Context, gateways: &Gateways, ended: CancellationToken) {
    let reporter = &context.tasks.reporter;
    tokio::select! {
        () = ended.cancelled() => return,
        () = reporter.opened() => {}
    }
    let mut rng = context.tasks.ids.rng();
    let mut backoff = Backoff::default();
    let mut next = Instant::now();
    loop {
        if reporter.queue().is_empty() {
            tokio::select! {
                () = ended.cancelled() => return,
                () = reporter.queued() => continue,
            }
        }
        tokio::select! {
            () = ended.cancelled() => return,
            () = sleep_until(next) => {}
        }
        next = Instant::now() + BATCH_INTERVAL;
        let batch = reporter.queue().take();
        context
            .metrics
            .reports_pending
            .set(i64::try_from(batch.len()).unwrap_or(i64::MAX));
        // The end does not wait for the disk or a gateway: the next run sends unacknowledged
        // reports.
        let answer = tokio::select! {
            () = ended.cancelled() => return,
            answer = send_or_split(context, gateways, batch) => answer,
        };
        reporter.queue().finish_batch();
        match answer {
            Ok(()) => backoff.reset(),
            Err(status) => {
                context.metrics.report_failures.inc();
                warn!(code = ?status.code(), message = status.message(), "reports not acknowledged");
                gateways.pause(backoff.next(&mut rng), &ended).await;
            }
        }
        let waiting = i64::try_from(reporter.queue().len()).unwrap_or(i64::MAX);
        context.metrics.reports_pending.set(waiting);
    }
}

/// Sends a batch. One with a refused report is sent report by report, so that the refused one does not
/// block the others.
async fn send_or_split(
    context: &Context,
    gateways: &Gateways,
    batch: Vec<Report>,
) -> Result<(), Status> {
    let Err(status) = send(context, gateways, &batch).await else {
        return Ok(());
    };
    if cause(&status).of_batch() != Unacknowledged::Split {
        give_back(context, batch);
        return Err(status);
    }
    for (position, report) in batch.iter().enumerate() {
        let Err(status) = send(context, gateways, std::slice::from_ref(report)).await else {
            continue;
        };
        if cause(&status).of_report() != Unacknowledged::Drop {
            give_back(context, batch[position..].to_vec());
            return Err(status);
        }
        let (alloc_id, message) = (report.0, status.message());
        error!(%alloc_id, message, "the servers refuse a report as invalid; it is not sent again");
    }
    Ok(())
}

async fn send(context: &Context, gateways: &Gateways, batch: &[Report]) -> Result<(), Status> {
    let reports = batch.iter().map(|(id, client)| AllocationReport {
        alloc_id: id.to_string(),
        client: Some(client.into()),
    });
    let message = ReportAllocationsRequest {
        node_id: context.identity.node_id.to_string(),
        secret: context.identity.secret.clone(),
        reports: reports.collect(),
    };
    for (alloc_id, client) in batch {
        let last = LastReport::of(client);
        context.tasks.state.put_last_report(*alloc_id, &last).await;
    }
    // The next run of the agent must know the numbers that servers have seen.
    if !context.tasks.state.flushed().await {
        return Err(Status::unavailable("the local state cannot be written"));
    }
    context.metrics.report_batches.inc();
    let answer = gateways
        .call(async |mut client| {
            client
                .report_allocations(request(message, REPORT_TIMEOUT))
                .await
        })
        .await?;
    context
        .metrics
        .reports
        .inc_by(u64::try_from(batch.len()).unwrap_or(0));
    let newer = answer.newer_reports.iter().filter_map(|newer| {
        let alloc_id = newer.alloc_id.parse().ok()?;
        Some((alloc_id, newer.report_number))
    });
    let newer: Vec<(AllocId, u64)> = newer.collect();
    let acknowledged = context.tasks.reporter.queue().acknowledge(batch);
    for (alloc_id, digest) in acknowledged {
        if newer.iter().all(|(id, _)| *id != alloc_id) {
            context.tasks.state.put_acked(alloc_id, digest).await;
        }
    }
    if !newer.is_empty() {
        warn!(
            reports = newer.len(),
            "the servers have later reports than the ones sent"
        );
        context.tasks.reporter.queue().discarded(batch, &newer);
        context.tasks.reporter.wake();
    }
    Ok(())
}

fn give_back(context: &Context, batch: Vec<Report>) {
    context.tasks.reporter.queue().give_back(batch);
    context.tasks.reporter.wake();
}
