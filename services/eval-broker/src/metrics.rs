//! Everything this service measures; Nomad's words where it measures the same.

use std::time::Duration;

use broker::{Delivery, ReturnReason, Stats};
use model::JobType;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabel {
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

type Seconds = Family<TypeLabel, Histogram, fn() -> Histogram>;

#[derive(Clone, Debug)]
pub struct Metrics {
    total_ready: Gauge,
    total_unacked: Gauge,
    total_pending: Gauge,
    total_waiting: Gauge,
    total_cancelable: Gauge,
    total_failing: Gauge,
    total_blocked: Gauge,
    total_escaped: Gauge,
    sessions: Gauge,
    paused: Gauge,
    ready: Family<TypeLabel, Gauge>,
    wait_time: Seconds,
    process_time: Seconds,
    response_time: Seconds,
    deliveries: Family<TypeLabel, Counter>,
    returned: Family<ReasonLabel, Counter>,
    pub(crate) failed: Counter,
    pub(crate) write_failures: Counter,
}

/// From half a millisecond, faster than a delivery over the network, to a good four minutes, longer
/// than any nack timeout.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.0005, 2.0, 20))
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let family = || Seconds::new_with_constructor(seconds);
        let metrics = Self {
            total_ready: Gauge::default(),
            total_unacked: Gauge::default(),
            total_pending: Gauge::default(),
            total_waiting: Gauge::default(),
            total_cancelable: Gauge::default(),
            total_failing: Gauge::default(),
            total_blocked: Gauge::default(),
            total_escaped: Gauge::default(),
            sessions: Gauge::default(),
            paused: Gauge::default(),
            ready: Family::default(),
            wait_time: family(),
            process_time: family(),
            response_time: family(),
            deliveries: Family::default(),
            returned: Family::default(),
            failed: Counter::default(),
            write_failures: Counter::default(),
        };
        metrics.register_levels(registry);
        metrics.register_flow(registry);
        metrics
    }

    fn register_levels(&self, registry: &mut Registry) {
        let levels = [
            ("total_ready", "Deliverable evaluations", &self.total_ready),
            (
                "total_unacked",
                "Evaluations delivered to workers",
                &self.total_unacked,
            ),
            (
                "total_pending",
                "Evaluations behind another one of their job",
                &self.total_pending,
            ),
            ("total_waiting", "Delayed evaluations", &self.total_waiting),
            (
                "total_cancelable",
                "Superseded evaluations whose cancellation is being written",
                &self.total_cancelable,
            ),
            (
                "total_failing",
                "Evaluations whose failure is being written",
                &self.total_failing,
            ),
            ("total_blocked", "Blocked evaluations", &self.total_blocked),
            (
                "total_escaped",
                "Blocked evaluations that any capacity may unblock",
                &self.total_escaped,
            ),
            ("sessions", "Connected workers", &self.sessions),
            (
                "paused",
                "1 while the scheduler configuration pauses the broker",
                &self.paused,
            ),
        ];
        for (name, help, gauge) in levels {
            registry.register(name, help, gauge.clone());
        }
        registry.register(
            "ready",
            "Deliverable evaluations, by type",
            self.ready.clone(),
        );
    }

    fn register_flow(&self, registry: &mut Registry) {
        let times = [
            (
                "wait_time",
                "Time from deliverable to the first delivery",
                &self.wait_time,
            ),
            (
                "process_time",
                "Time from the last delivery to the outcome",
                &self.process_time,
            ),
            (
                "response_time",
                "Time from deliverable to the outcome",
                &self.response_time,
            ),
        ];
        for (name, help, family) in times {
            registry.register_with_unit(name, help, Unit::Seconds, family.clone());
        }
        registry.register("deliveries", "Deliveries, by type", self.deliveries.clone());
        registry.register(
            "returned",
            "Deliveries without an outcome, by reason",
            self.returned.clone(),
        );
        registry.register(
            "failed",
            "Evaluations that reached the delivery limit",
            self.failed.clone(),
        );
        registry.register(
            "write_failures",
            "Failed writes, which are retried",
            self.write_failures.clone(),
        );
    }

    pub(crate) fn show(&self, stats: &Stats) {
        let shown = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.total_ready.set(shown(stats.ready));
        self.total_unacked.set(shown(stats.unacked));
        self.total_pending.set(shown(stats.pending));
        self.total_waiting.set(shown(stats.waiting));
        self.total_cancelable.set(shown(stats.cancelable));
        self.total_failing.set(shown(stats.failing));
        self.total_blocked.set(shown(stats.blocked));
        self.total_escaped.set(shown(stats.escaped));
        self.sessions.set(shown(stats.sessions));
        self.paused.set(stats.paused.into());
        for (job_type, ready) in JobType::ALL.into_iter().zip(stats.ready_by_type) {
            self.ready.get_or_create(&label(job_type)).set(shown(ready));
        }
    }

    pub(crate) fn delivered(&self, delivery: &Delivery) {
        let label = label(delivery.job_type);
        self.deliveries.get_or_create(&label).inc();
        if delivery.attempt == 1 {
            self.wait_time
                .get_or_create(&label)
                .observe(delivery.waited.as_secs_f64());
        }
    }

    pub(crate) fn answered(&self, job_type: JobType, processing: Duration, response: Duration) {
        let label = label(job_type);
        self.process_time
            .get_or_create(&label)
            .observe(processing.as_secs_f64());
        self.response_time
            .get_or_create(&label)
            .observe(response.as_secs_f64());
    }

    pub(crate) fn returned(&self, reason: ReturnReason) {
        let label = ReasonLabel {
            reason: reason.as_str(),
        };
        self.returned.get_or_create(&label).inc();
    }
}

fn label(job_type: JobType) -> TypeLabel {
    TypeLabel {
        r#type: job_type.as_str(),
    }
}
