//! Jobs by status, and the allocations of each job: computed from the replica at each scrape, by the
//! leader alone.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use state::{JobStatus, Snapshot};
use store::Replica;

use crate::etcd::Leads;

/// Reads the jobs of the newest snapshot.
#[derive(Debug)]
pub(crate) struct Jobs {
    replica: Replica,
    leads: Leads,
    /// Most jobs with series of their own.
    max: usize,
}

/// The series of one task group: namespace, job, task group, count by status.
type Group = ([String; 3], [(&'static str, u32); 7]);

/// The numbers of one scrape.
#[derive(Debug, Default, PartialEq, Eq)]
struct Numbers {
    pending: i64,
    running: i64,
    dead: i64,
    groups: Vec<Group>,
    /// Jobs without series of their own, because there are too many.
    omitted: i64,
}

impl Jobs {
    pub(crate) fn new(replica: Replica, leads: Leads, max: u32) -> Self {
        Self {
            replica,
            leads,
            max: usize::try_from(max).unwrap_or(usize::MAX),
        }
    }
}

/// Counts the jobs. Children of periodic and parameterized jobs are counted by status only: there is no
/// limit to their number. The first `max` others by namespace and id have series of their own.
fn count(snapshot: &Snapshot, max: usize) -> Numbers {
    let mut numbers = Numbers::default();
    let mut own = 0;
    for job in snapshot.jobs() {
        let key = job.value.key();
        match snapshot.job_status(&key) {
            Some(JobStatus::Pending) => numbers.pending += 1,
            Some(JobStatus::Running) => numbers.running += 1,
            Some(JobStatus::Dead) => numbers.dead += 1,
            None => continue,
        }
        if !job.value.parent_id.is_empty() {
            continue;
        }
        own += 1;
        if own > max {
            numbers.omitted += 1;
            continue;
        }
        for (group, summary) in snapshot.job_summary(&key) {
            let labels = [key.namespace.to_string(), key.job_id.to_string(), group];
            let counts = [
                ("queued", summary.queued),
                ("starting", summary.starting),
                ("running", summary.running),
                ("complete", summary.complete),
                ("failed", summary.failed),
                ("lost", summary.lost),
                ("unknown", summary.unknown),
            ];
            numbers.groups.push((labels, counts));
        }
    }
    numbers
}

impl Collector for Jobs {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if self.max == 0 || !self.leads.now() {
            return Ok(());
        }
        let numbers = count(&self.replica.snapshot(), self.max);
        let mut family =
            encoder.encode_descriptor("jobs", "Jobs, by status", None, MetricType::Gauge)?;
        for (status, count) in [
            ("pending", numbers.pending),
            ("running", numbers.running),
            ("dead", numbers.dead),
        ] {
            ConstGauge::new(count).encode(family.encode_family(&[("status", status)])?)?;
        }
        if !numbers.groups.is_empty() {
            let help = "Allocations of a task group, by status";
            let mut family =
                encoder.encode_descriptor("job_allocations", help, None, MetricType::Gauge)?;
            for ([namespace, job, group], counts) in &numbers.groups {
                for (status, count) in counts {
                    let labels = [
                        ("namespace", namespace.as_str()),
                        ("job", job),
                        ("task_group", group),
                        ("status", status),
                    ];
                    ConstGauge::new(i64::from(*count)).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        let help = "Jobs beyond job_metrics_max, without series of their own";
        let omitted = encoder.encode_descriptor("jobs_omitted", help, None, MetricType::Gauge)?;
        ConstGauge::new(numbers.omitted).encode(omitted)
    }
}

#[cfg(test)]
mod tests {
    use test_kit::{Stored, builders};

    use super::*;

    #[test]
    fn jobs_are_counted_and_the_first_ones_have_series() {
        let mut stored = Stored::default();
        let node = builders::node(1);
        stored.put_node(&node);
        for name in ["a", "b", "c"] {
            stored.put_job(&builders::service(name, 1));
        }
        let mut child = builders::batch("a/periodic-1", 1);
        child.parent_id = "a".to_owned();
        stored.put_job(&child);
        let job = builders::service("a", 1);
        let mut alloc = builders::allocation(1, &job, node.id);
        alloc.job_create_index = stored.snapshot().job(&job.key()).unwrap().create_index;
        stored.put_alloc(&alloc);
        let numbers = count(&stored.snapshot(), 2);
        assert_eq!((numbers.pending, numbers.running, numbers.dead), (3, 1, 0));
        assert_eq!(numbers.omitted, 1);
        let jobs: Vec<&str> = numbers
            .groups
            .iter()
            .map(|(it, _)| it[1].as_str())
            .collect();
        assert_eq!(jobs, ["a", "b"]);
        let starting = numbers.groups[0]
            .1
            .iter()
            .find(|(name, _)| *name == "starting");
        assert_eq!(starting, Some(&("starting", 1)));
    }
}
