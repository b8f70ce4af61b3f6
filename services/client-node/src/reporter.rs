//! Tells servers what has become of allocations: in batches, the newest state of each, until it is
//! acknowledged.
//!
//! An answer that never comes means that nobody knows: the latest state is sent again, and sending
//! it twice changes nothing. What was acknowledged is remembered on disk as a digest, so that an
//! agent that was restarted does not repeat what servers know.
//!
//! What is told of an allocation has a number, which is higher than that of whatever was told of it
//! before, so that servers can tell what comes late. It is on disk before anybody is told. A node that
//! has lost its memory goes on from the number that the servers have, which comes with the
//! assignment, or with the answer to a report that is below it.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{AllocClient, AllocId, Timestamp};
use proto::internal::v1::{AllocationReport, ReportAllocationsRequest};
use serde::{Deserialize, Serialize};
use service_kit::{Backoff, CancellationToken, request};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use tonic::{Code, Status};
use tracing::{error, warn};

use crate::context::Context;
use crate::gateways::Gateways;

/// The least time between the beginnings of two batches. The first report after a quiet while goes
/// at once; a thousand at a time make a few batches a second. Source: the blueprint's bound of
/// 50 ms; half of it, because the gateway gathers too.
const BATCH_INTERVAL: Duration = Duration::from_millis(25);
/// How many allocations one call carries: with ten events each some 4 KiB, so 1 MiB, a quarter of
/// what gRPC takes by default.
const MAX_BATCH: usize = 256;
/// How long a gateway may take to store a batch: it waits for its own batch and a transaction.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// What runners have to tell. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    pending: Arc<Mutex<Pending>>,
    wake: Arc<Notify>,
    /// Whether a server's answer has been applied: before that, what runs here may be out of date.
    is_open: Arc<watch::Sender<bool>>,
}

#[derive(Debug, Default)]
struct Pending {
    /// The newest state of each.
    reports: BTreeMap<AllocId, AllocClient>,
    /// Digests of what was acknowledged.
    acked: HashMap<AllocId, u64>,
    told: HashMap<AllocId, Told>,
    /// A batch was taken, and its answer is not yet dealt with.
    is_sending: bool,
}

/// The newest of an allocation's reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) number: u64,
    /// Of what it says; `None`: only the servers know.
    pub(crate) digest: Option<u64>,
}

impl Told {
    /// Returns the number of a report with that digest: a new one, unless it is the newest.
    fn number(&mut self, digest: u64) -> u64 {
        if self.digest != Some(digest) {
            self.number += 1;
            self.digest = Some(digest);
        }
        self.number
    }
}

impl Pending {
    /// Has a state sent, under the number that it is due.
    fn put(&mut self, alloc_id: AllocId, mut client: AllocClient) {
        let told = self.told.entry(alloc_id).or_default();
        client.report = told.number(digest(&client));
        self.reports.insert(alloc_id, client);
    }

    /// Takes note of the number that servers have; `false`: it is one that this node has given.
    fn learn(&mut self, alloc_id: AllocId, number: u64) -> bool {
        let told = self.told.entry(alloc_id).or_default();
        if number <= told.number {
            return false;
        }
        let digest = None;
        *told = Told { number, digest };
        self.acked.remove(&alloc_id);
        if let Some(client) = self.reports.remove(&alloc_id) {
            self.put(alloc_id, client);
        }
        true
    }
}

impl Reporter {
    pub(crate) fn new() -> Self {
        Self {
            pending: Arc::default(),
            wake: Arc::new(Notify::new()),
            is_open: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Takes what an earlier run of the agent knew to be acknowledged.
    pub(crate) fn remember(&self, alloc_id: AllocId, digest: u64) {
        self.lock().acked.insert(alloc_id, digest);
    }

    /// As [`Self::remember`], of what it has told last.
    pub(crate) fn remember_told(&self, alloc_id: AllocId, told: Told) {
        self.lock().told.insert(alloc_id, told);
    }

    /// Takes note of the number of the report that servers have. Returns whether this node has
    /// forgotten that it gave it, so that what servers know may be older than what is so.
    pub(crate) fn learn(&self, alloc_id: AllocId, number: u64) -> bool {
        number > 0 && self.lock().learn(alloc_id, number)
    }

    /// Has a state sent, unless it is the acknowledged one and nothing else was told since.
    pub(crate) fn offer(&self, alloc_id: AllocId, client: AllocClient) {
        let mut pending = self.lock();
        let digest = digest(&client);
        let last = pending.told.get(&alloc_id).and_then(|told| told.digest);
        let is_last = last.is_none_or(|last| last == digest);
        if is_last && pending.acked.get(&alloc_id) == Some(&digest) {
            pending.reports.remove(&alloc_id);
            return;
        }
        pending.put(alloc_id, client);
        drop(pending);
        self.wake.notify_one();
    }

    /// Has a state sent even if it is the acknowledged one: the servers may have lost it.
    pub(crate) fn offer_again(&self, alloc_id: AllocId, client: AllocClient) {
        self.lock().acked.remove(&alloc_id);
        self.offer(alloc_id, client);
    }

    /// Forgets everything that servers have acknowledged: they do not remember it either.
    pub(crate) fn distrust(&self) {
        self.lock().acked.clear();
    }

    /// Forgets an allocation that was collected.
    pub(crate) fn forget(&self, alloc_id: AllocId) {
        let mut pending = self.lock();
        pending.reports.remove(&alloc_id);
        pending.acked.remove(&alloc_id);
        pending.told.remove(&alloc_id);
    }

    /// Tells whether servers have acknowledged everything about it.
    pub(crate) fn is_acked(&self, alloc_id: AllocId) -> bool {
        let pending = self.lock();
        pending.acked.contains_key(&alloc_id) && !pending.reports.contains_key(&alloc_id)
    }

    /// Lets reports go out.
    pub(crate) fn open(&self) {
        self.is_open.send_replace(true);
    }

    /// Returns once nothing waits to be sent, and what was answered has been written down.
    pub(crate) async fn drained(&self) {
        while self.is_busy() {
            tokio::time::sleep(BATCH_INTERVAL).await;
        }
    }

    fn is_busy(&self) -> bool {
        let pending = self.lock();
        pending.is_sending || !pending.reports.is_empty()
    }

    pub(crate) fn take(&self) -> Vec<(AllocId, AllocClient)> {
        let mut pending = self.lock();
        let ids: Vec<AllocId> = pending.reports.keys().take(MAX_BATCH).copied().collect();
        pending.is_sending = !ids.is_empty();
        ids.into_iter()
            .filter_map(|id| Some((id, pending.reports.remove(&id)?)))
            .collect()
    }

    /// Takes note that the answer to a batch, or its lack, has been dealt with.
    fn sent(&self) {
        self.lock().is_sending = false;
    }

    /// Puts back what was not acknowledged, unless something newer is there.
    fn give_back(&self, batch: Vec<(AllocId, AllocClient)>) {
        let mut pending = self.lock();
        for (id, client) in batch {
            pending.reports.entry(id).or_insert(client);
        }
        drop(pending);
        self.wake.notify_one();
    }

    /// Has what was left out of a batch sent again, under higher numbers than servers have; unless
    /// they have what this node has told later.
    fn left_out(&self, batch: &[(AllocId, AllocClient)], newer: &[(AllocId, u64)]) {
        let mut pending = self.lock();
        for (alloc_id, number) in newer {
            if pending.learn(*alloc_id, *number)
                && !pending.reports.contains_key(alloc_id)
                && let Some((_, client)) = batch.iter().find(|(id, _)| id == alloc_id)
            {
                pending.put(*alloc_id, client.clone());
            }
        }
        drop(pending);
        self.wake.notify_one();
    }

    pub(crate) fn acknowledged(&self, batch: &[(AllocId, AllocClient)]) -> Vec<(AllocId, u64)> {
        let digests: Vec<_> = batch
            .iter()
            .map(|(id, client)| (*id, digest(client)))
            .collect();
        self.lock().acked.extend(digests.iter().copied());
        digests
    }

    fn len(&self) -> usize {
        self.lock().reports.len()
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        // Each critical section is a single step of a map.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a digest of what servers see. Not stable across versions of the agent: a new one sends
/// everything once.
fn digest(client: &AllocClient) -> u64 {
    // Servers put their own time there.
    let client = AllocClient {
        modify_time: Timestamp::NEVER,
        report: 0,
        ..client.clone()
    };
    let mut hasher = DefaultHasher::new();
    serde_json::to_vec(&client)
        .unwrap_or_default()
        .hash(&mut hasher);
    hasher.finish()
}

/// Sends batches until `ended`.
pub(crate) async fn run(context: &Context, gateways: &Gateways, ended: CancellationToken) {
    let reporter = &context.reporter;
    let mut is_open = reporter.is_open.subscribe();
    tokio::select! {
        () = ended.cancelled() => return,
        // The sender is the reporter's own.
        _ = is_open.wait_for(|open| *open) => {}
    }
    let mut rng = context.ids.rng();
    let mut backoff = Backoff::default();
    let mut next = Instant::now();
    loop {
        if reporter.len() == 0 {
            tokio::select! {
                () = ended.cancelled() => return,
                () = reporter.wake.notified() => continue,
            }
        }
        tokio::select! {
            () = ended.cancelled() => return,
            () = sleep_until(next) => {}
        }
        next = Instant::now() + BATCH_INTERVAL;
        let batch = reporter.take();
        context
            .metrics
            .reports_pending
            .set(i64::try_from(batch.len()).unwrap_or(i64::MAX));
        // The end does not wait for the disk or a gateway: the next run sends what was not
        // acknowledged.
        let answer = tokio::select! {
            () = ended.cancelled() => return,
            answer = send_or_split(context, gateways, batch) => answer,
        };
        reporter.sent();
        match answer {
            Ok(()) => backoff.reset(),
            Err(status) => {
                context.metrics.report_failures.inc();
                warn!(code = ?status.code(), message = status.message(), "reports not acknowledged");
                gateways.pause(backoff.next(&mut rng), &ended).await;
            }
        }
        let waiting = i64::try_from(reporter.len()).unwrap_or(i64::MAX);
        context.metrics.reports_pending.set(waiting);
    }
}

/// Sends a batch; one that is refused for what is in it is sent report by report, so that one that
/// makes no sense to the servers does not hold up the others.
async fn send_or_split(
    context: &Context,
    gateways: &Gateways,
    batch: Vec<(AllocId, AllocClient)>,
) -> Result<(), Status> {
    let Err(status) = send(context, gateways, &batch).await else {
        return Ok(());
    };
    let is_about_content = matches!(
        status.code(),
        Code::InvalidArgument | Code::PermissionDenied
    );
    if !is_about_content {
        context.reporter.give_back(batch);
        return Err(status);
    }
    for (position, report) in batch.iter().enumerate() {
        match send(context, gateways, std::slice::from_ref(report)).await {
            Ok(()) => {}
            Err(status) if matches!(status.code(), Code::InvalidArgument) => {
                let (alloc_id, message) = (report.0, status.message());
                error!(%alloc_id, message, "servers refuse a report: not sent again");
            }
            Err(status) => {
                context.reporter.give_back(batch[position..].to_vec());
                return Err(status);
            }
        }
    }
    Ok(())
}

async fn send(
    context: &Context,
    gateways: &Gateways,
    batch: &[(AllocId, AllocClient)],
) -> Result<(), Status> {
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
        let told = Told {
            number: client.report,
            digest: Some(digest(client)),
        };
        context.state.put_told(*alloc_id, &told).await;
    }
    // What servers were told must not be forgotten by the next run of the agent.
    if !context.state.flushed().await {
        return Err(Status::unavailable(
            "the local state is not written any more",
        ));
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
    let newer = answer.newer.iter().filter_map(|newer| {
        let alloc_id = newer.alloc_id.parse().ok()?;
        Some((alloc_id, newer.report))
    });
    let newer: Vec<(AllocId, u64)> = newer.collect();
    for (alloc_id, digest) in context.reporter.acknowledged(batch) {
        if newer.iter().all(|(id, _)| *id != alloc_id) {
            context.state.put_acked(alloc_id, digest).await;
        }
    }
    if !newer.is_empty() {
        warn!(
            reports = newer.len(),
            "servers have later reports than those that were sent"
        );
        context.reporter.left_out(batch, &newer);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::ClientStatus;

    use super::*;

    fn id(number: u128) -> AllocId {
        AllocId::from_random(number)
    }

    fn client(status: ClientStatus) -> AllocClient {
        AllocClient {
            status,
            ..AllocClient::default()
        }
    }

    #[test]
    fn the_newest_state_of_each_is_sent_and_a_newer_one_survives_a_failure() {
        let reporter = Reporter::new();
        reporter.offer(id(1), client(ClientStatus::Pending));
        reporter.offer(id(1), client(ClientStatus::Running));
        let batch = reporter.take();
        assert_eq!(batch, [(id(1), numbered(2, ClientStatus::Running))]);
        reporter.offer(id(1), client(ClientStatus::Complete));
        reporter.give_back(batch);
        let newest = numbered(3, ClientStatus::Complete);
        assert_eq!(reporter.take(), [(id(1), newest)]);
    }

    fn numbered(report: u64, status: ClientStatus) -> AllocClient {
        AllocClient {
            report,
            ..client(status)
        }
    }

    #[test]
    fn what_is_sent_again_has_the_number_that_it_had() {
        let reporter = Reporter::new();
        reporter.offer(id(1), client(ClientStatus::Running));
        let batch = reporter.take();
        reporter.give_back(batch.clone());
        reporter.offer(id(1), client(ClientStatus::Running));
        assert_eq!(reporter.take(), batch);
        reporter.acknowledged(&batch);
        reporter.offer_again(id(1), client(ClientStatus::Running));
        assert_eq!(reporter.take(), batch);
    }

    /// What was acknowledged is not what servers have when something else is on its way to them.
    #[test]
    fn what_is_so_again_while_something_else_is_under_way_is_told() {
        let reporter = Reporter::new();
        reporter.offer(id(1), client(ClientStatus::Pending));
        reporter.acknowledged(&reporter.take());
        reporter.offer(id(1), client(ClientStatus::Running));
        let under_way = reporter.take();
        reporter.offer(id(1), client(ClientStatus::Pending));
        reporter.acknowledged(&under_way);
        let last = numbered(3, ClientStatus::Pending);
        assert_eq!(reporter.take(), [(id(1), last)]);
    }

    #[test]
    fn numbers_go_on_from_the_last_run_and_from_what_servers_have() {
        let reporter = Reporter::new();
        let told = Told {
            number: 7,
            digest: Some(digest(&client(ClientStatus::Running))),
        };
        reporter.remember_told(id(1), told);
        reporter.offer(id(1), client(ClientStatus::Running));
        assert_eq!(reporter.take()[0].1.report, 7, "the same again");
        reporter.offer(id(1), client(ClientStatus::Complete));
        assert!(!reporter.learn(id(1), 8), "its own");
        assert_eq!(reporter.take()[0].1.report, 8);
        // One that has forgotten everything.
        let reporter = Reporter::new();
        reporter.offer(id(1), client(ClientStatus::Running));
        reporter.remember(id(1), digest(&client(ClientStatus::Pending)));
        assert!(reporter.learn(id(1), 8));
        assert!(!reporter.is_acked(id(1)));
        assert_eq!(reporter.take()[0].1.report, 9);
        reporter.offer(id(1), client(ClientStatus::Pending));
        assert_eq!(reporter.take()[0].1.report, 10);
        assert!(!reporter.learn(id(2), 0), "a gateway that does not tell");
    }

    #[test]
    fn what_was_left_out_is_sent_under_a_higher_number() {
        let reporter = Reporter::new();
        reporter.offer(id(1), client(ClientStatus::Pending));
        let batch = reporter.take();
        reporter.acknowledged(&batch);
        reporter.left_out(&batch, &[(id(1), 5)]);
        let again = reporter.take();
        assert_eq!(again, [(id(1), numbered(6, ClientStatus::Pending))]);
        // An answer that is late: what the servers have was told by this node since.
        reporter.acknowledged(&again);
        reporter.left_out(&batch, &[(id(1), 6)]);
        assert!(reporter.take().is_empty());
        // What has changed meanwhile is told instead.
        reporter.offer(id(1), client(ClientStatus::Running));
        reporter.left_out(&again, &[(id(1), 20)]);
        let newest = numbered(21, ClientStatus::Running);
        assert_eq!(reporter.take(), [(id(1), newest)]);
    }

    #[test]
    fn scenario_021_what_was_acknowledged_is_not_sent_again() {
        let reporter = Reporter::new();
        reporter.offer(id(1), client(ClientStatus::Running));
        let acked = reporter.acknowledged(&reporter.take());
        assert!(reporter.is_acked(id(1)));
        reporter.offer(id(1), client(ClientStatus::Running));
        assert!(reporter.take().is_empty());

        let restarted = Reporter::new();
        restarted.remember(id(1), acked[0].1);
        let later = AllocClient {
            modify_time: Timestamp(5),
            ..client(ClientStatus::Running)
        };
        restarted.offer(id(1), later.clone());
        assert!(restarted.take().is_empty(), "the time alone is no news");
        restarted.offer_again(id(1), later);
        assert_eq!(restarted.take().len(), 1);
        restarted.offer(id(1), client(ClientStatus::Complete));
        assert!(!restarted.is_acked(id(1)));
        restarted.forget(id(1));
        assert!(restarted.take().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_under_way_is_waited_for() {
        let reporter = Reporter::new();
        reporter.drained().await;
        reporter.offer(id(1), client(ClientStatus::Running));
        let batch = reporter.take();
        let limit = Duration::from_secs(5);
        let drained = tokio::time::timeout(limit, reporter.drained()).await;
        assert!(drained.is_err(), "nobody knows yet");
        reporter.acknowledged(&batch);
        reporter.sent();
        reporter.drained().await;
    }

    #[test]
    fn a_batch_is_bounded() {
        let reporter = Reporter::new();
        for number in 0..1_000 {
            reporter.offer(id(number), client(ClientStatus::Running));
        }
        assert_eq!(reporter.take().len(), MAX_BATCH);
        assert_eq!(reporter.len(), 1_000 - MAX_BATCH);
    }
}
