//! Counters of allocations and tasks with the names of their job, group and task.
//!
//! A node counts for at most [`SERIES`] sets of labels; the one that has been still for longest makes room. So
//! jobs that come and go do not fill a scrape, and a counter of a job that is back begins at 0 again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lifecycle::Assignment;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

/// Ten times the tasks of a busy node; five lines of a scrape each.
const SERIES: usize = 1_000;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// The allocation completed.
    Complete,
    /// The allocation failed.
    Failed,
    /// A task was started again.
    Restart,
    /// The kernel killed a task that had no memory left.
    OomKilled,
    /// A task failed for good: its restart policy is used up, or forbids a restart.
    TaskFailed,
}

/// A family: what it counts, its name, its help.
const FAMILIES: [(Count, &str, &str); 5] = [
    (
        Count::Complete,
        "allocs_complete",
        "Allocations that completed",
    ),
    (Count::Failed, "allocs_failed", "Allocations that failed"),
    (Count::Restart, "allocs_restart", "Task restarts"),
    (
        Count::OomKilled,
        "allocs_oom_killed",
        "Tasks that the kernel killed because they had no memory left",
    ),
    (
        Count::TaskFailed,
        "tasks_failed",
        "Tasks that failed and are not restarted",
    ),
];

/// Labels of a series. The last two may be empty, and are left out then.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Labels {
    namespace: String,
    /// Of a child of a periodic or parameterized job: the parent.
    job: String,
    task_group: String,
    /// Empty: counts of the allocation itself.
    task: String,
    alloc_id: String,
}

/// Cheap to clone; several nodes of one process may share one.
#[derive(Clone, Debug, Default)]
pub struct JobCounters {
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    has_alloc_ids: bool,
    series: HashMap<Labels, Series>,
    changes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Series {
    counts: [u64; FAMILIES.len()],
    last_change: u64,
}

impl Table {
    fn series(&mut self, labels: Labels) -> &mut Series {
        self.changes += 1;
        if self.series.len() >= SERIES && !self.series.contains_key(&labels) {
            let oldest = self.series.iter().min_by_key(|(_, it)| it.last_change);
            if let Some(oldest) = oldest.map(|(labels, _)| labels.clone()) {
                self.series.remove(&oldest);
            }
        }
        let series = self.series.entry(labels).or_default();
        series.last_change = self.changes;
        series
    }
}

impl JobCounters {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts each allocation by itself from now on, or its job's together.
    pub fn set_alloc_ids(&self, has_alloc_ids: bool) {
        self.lock().has_alloc_ids = has_alloc_ids;
    }

    /// Makes the series of a task, so that the first event is an increase.
    pub(crate) fn open(&self, assignment: &Assignment, task: &str) {
        let mut table = self.lock();
        for task in [task, ""] {
            let labels = labels(assignment, task, table.has_alloc_ids);
            table.series(labels);
        }
    }

    /// Counts an event of an allocation (`task` is empty) or of one of its tasks.
    pub(crate) fn count(&self, count: Count, assignment: &Assignment, task: &str) {
        let mut table = self.lock();
        let labels = labels(assignment, task, table.has_alloc_ids);
        if let Some(position) = FAMILIES.iter().position(|(it, ..)| *it == count) {
            table.series(labels).counts[position] += 1;
        }
    }
}

fn labels(assignment: &Assignment, task: &str, has_alloc_ids: bool) -> Labels {
    let Assignment { alloc, job, .. } = assignment;
    let job_id = match job.parent_id.as_str() {
        "" => &job.id,
        parent => parent,
    };
    Labels {
        namespace: alloc.namespace.to_string(),
        job: job_id.to_owned(),
        task_group: alloc.task_group.to_string(),
        task: task.to_owned(),
        alloc_id: match has_alloc_ids {
            true => alloc.id.to_string(),
            false => String::new(),
        },
    }
}

impl Collector for JobCounters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let table = self.lock();
        let mut all: Vec<(&Labels, &Series)> = table.series.iter().collect();
        all.sort_by_key(|(labels, _)| *labels);
        for (position, (count, name, help)) in FAMILIES.into_iter().enumerate() {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            let is_of_task = !matches!(count, Count::Complete | Count::Failed);
            for (labels, series) in &all {
                if labels.task.is_empty() == is_of_task {
                    continue;
                }
                let shown: Vec<(&str, &str)> = [
                    ("namespace", labels.namespace.as_str()),
                    ("job", &labels.job),
                    ("task_group", &labels.task_group),
                    ("task", &labels.task),
                    ("alloc_id", &labels.alloc_id),
                ]
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .collect();
                let value = ConstCounter::new(series.counts[position]);
                value.encode(family.encode_family(&shown)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::{Job, NodeId};
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;
    use test_kit::builders;

    use super::*;

    fn assignment(number: u128, job: Job) -> Assignment {
        let alloc = builders::allocation(number, &job, NodeId::from_random(1));
        Assignment {
            alloc: Arc::new(alloc),
            job: Arc::new(job),
            modify_index: 5,
            trace_parent: String::new(),
            volume_paths: BTreeMap::new(),
        }
    }

    /// Returns the series of a scrape, without their help.
    fn scrape(counters: &JobCounters) -> Vec<String> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(counters.clone()));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn counts_have_the_names_of_job_group_and_task() {
        let counters = JobCounters::default();
        let mut child = builders::batch("nightly/1", 1);
        child.parent_id = "nightly".to_owned();
        let (first, second) = (assignment(1, child.clone()), assignment(2, child));
        let group = first.alloc.task_group.to_string();
        counters.open(&first, "main");
        counters.count(Count::Restart, &first, "main");
        counters.count(Count::Restart, &second, "main");
        counters.count(Count::OomKilled, &second, "main");
        counters.count(Count::TaskFailed, &second, "main");
        counters.count(Count::Failed, &second, "");
        let of_group = format!("{{namespace=\"default\",job=\"nightly\",task_group=\"{group}\"");
        let of_task = format!("{of_group},task=\"main\"");
        let expected = [
            format!("allocs_complete_total{of_group}}} 0"),
            format!("allocs_failed_total{of_group}}} 1"),
            format!("allocs_restart_total{of_task}}} 2"),
            format!("allocs_oom_killed_total{of_task}}} 1"),
            format!("tasks_failed_total{of_task}}} 1"),
        ];
        assert_eq!(scrape(&counters), expected);

        counters.set_alloc_ids(true);
        counters.count(Count::Restart, &first, "main");
        let own = format!(
            "allocs_restart_total{of_task},alloc_id=\"{}\"}} 1",
            first.alloc.id
        );
        assert!(scrape(&counters).contains(&own), "{own}");
    }

    #[test]
    fn the_series_that_is_still_for_longest_makes_room() {
        let counters = JobCounters::default();
        let of = |number: usize| assignment(1, builders::service(&format!("job-{number}"), 1));
        for number in 0..SERIES {
            counters.count(Count::Restart, &of(number), "main");
        }
        counters.count(Count::Restart, &of(0), "main");
        counters.count(Count::Restart, &of(SERIES), "main");
        let text = scrape(&counters).join("\n");
        assert_eq!(text.matches("allocs_restart_total").count(), SERIES);
        let has = |number: usize| text.contains(&format!("job=\"job-{number}\","));
        assert!(has(0) && !has(1) && has(2) && has(SERIES));
    }
}
