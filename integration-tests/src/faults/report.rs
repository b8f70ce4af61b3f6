//! Report of a run, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use super::job::JobRequest;
use super::progress::{longest_gap, percentile};
use super::recorder::Recorded;
use super::schedule::Kind;
use super::verdict::Findings;
use super::workload::{Observations, Record};

/// One injected fault. Times are microseconds since the run began.
#[derive(Clone, Debug)]
pub struct PastFault {
    pub kind: Kind,
    pub what: String,
    pub began: u64,
    pub ended: u64,
    /// Start of the next fault, or end of the workload.
    pub until: u64,
}

/// Measurements of one fault, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    pub kind: Kind,
    pub what: String,
    pub at_s: u64,
    pub lasted_ms: u64,
    /// The longest time without an acknowledged change.
    pub writes_ms: u64,
    /// The longest time without a committed placement.
    pub placements_ms: u64,
    /// The longest duration of a request, with all attempts.
    pub slowest_ms: u64,
}

/// Measures from the start of a fault to the start of the next. A fault that stops the store is
/// measured from its end.
pub fn measure(fault: &PastFault, seen: &Observations, recorded: &Recorded) -> Measured {
    let from = if fault.kind.stops_the_store() {
        fault.ended
    } else {
        fault.began
    };
    let mut writes: Vec<u64> = seen.records.iter().filter_map(acknowledged).collect();
    writes.sort_unstable();
    let under_way = |record: &&Record| (fault.began..fault.until).contains(&record.began);
    let waited = seen.records.iter().filter(under_way).filter_map(|record| {
        let (completed, _) = record.operation.completed.as_ref()?;
        // A request during a store outage counts from the end of the outage; a request still open at
        // the next fault counts for that one afterwards.
        let until = (*completed).min(fault.until);
        Some(until.saturating_sub(record.began.max(from)))
    });
    Measured {
        kind: fault.kind,
        what: fault.what.clone(),
        at_s: fault.began / 1_000_000,
        lasted_ms: (fault.ended - fault.began) / 1_000,
        writes_ms: longest_gap(&writes, from, fault.until) / 1_000,
        placements_ms: longest_gap(&recorded.placements, from, fault.until) / 1_000,
        slowest_ms: waited.max().unwrap_or_default() / 1_000,
    }
}

fn acknowledged(record: &Record) -> Option<u64> {
    let (completed, _) = record.operation.completed.as_ref()?;
    (record.operation.input != JobRequest::Read).then_some(*completed)
}

/// The report of a run.
#[derive(Clone, Debug)]
pub struct Report {
    pub seed: u64,
    pub minutes: f64,
    pub rate: u32,
    pub faults: Vec<Measured>,
    pub findings: Findings,
    pub attempts: u64,
    pub attempts_failed: u64,
    pub given_up: usize,
    pub not_asked: u64,
    pub stale_reads: usize,
    pub stale_reads_failed: usize,
    pub elections: usize,
    /// Time from the last request to rest.
    pub settled_ms: u64,
}

impl Report {
    pub fn is_good(&self) -> bool {
        self.findings.wrong.is_empty()
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> Value {
        let faults = self.faults.iter().map(|fault| {
            json!({
                "kind": fault.kind.name(),
                "what": fault.what,
                "at_s": fault.at_s,
                "lasted_ms": fault.lasted_ms,
                "without_writes_ms": fault.writes_ms,
                "without_placements_ms": fault.placements_ms,
                "slowest_request_ms": fault.slowest_ms,
            })
        });
        let found = &self.findings;
        json!({
            "seed": self.seed,
            "minutes": self.minutes,
            "rate": self.rate,
            "wrong": found.wrong,
            "acknowledged": found.acknowledged,
            "reads": found.reads,
            "unknown": found.unknown,
            "attempts": self.attempts,
            "attempts_failed": self.attempts_failed,
            "given_up": self.given_up,
            "not_asked": self.not_asked,
            "stale_reads": self.stale_reads,
            "stale_reads_failed": self.stale_reads_failed,
            "jobs": found.jobs,
            "linearizable": found.linearizable,
            "revisions": found.revisions,
            "placements": found.allocations,
            "evaluations": found.evaluations,
            "elections": self.elections,
            "settled_ms": self.settled_ms,
            "faults": faults.collect::<Vec<_>>(),
        })
    }

    /// Reads the faults of a report made by [`Self::json`].
    pub fn faults_of(report: &Value) -> Vec<Measured> {
        let faults = report["faults"].as_array().into_iter().flatten();
        let read = |fault: &Value| {
            let number = |name: &str| fault[name].as_u64();
            Some(Measured {
                kind: Kind::from_name(fault["kind"].as_str()?)?,
                what: fault["what"].as_str()?.to_owned(),
                at_s: number("at_s")?,
                lasted_ms: number("lasted_ms")?,
                writes_ms: number("without_writes_ms")?,
                placements_ms: number("without_placements_ms")?,
                slowest_ms: number("slowest_request_ms")?,
            })
        };
        faults.filter_map(read).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>5} {:>7} {:>8} {:>8} {:>8}  fault",
            "at", "lasted", "writes", "places", "slowest"
        )?;
        for fault in &self.faults {
            writeln!(
                f,
                "{:>4}s {:>6.1}s {:>7.1}s {:>7.1}s {:>7.1}s  {} {}",
                fault.at_s,
                seconds(fault.lasted_ms),
                seconds(fault.writes_ms),
                seconds(fault.placements_ms),
                seconds(fault.slowest_ms),
                fault.kind,
                fault.what,
            )?;
        }
        writeln!(f)?;
        f.write_str(&table(&self.faults))?;
        let found = &self.findings;
        writeln!(
            f,
            "\nseed {}, {} min, {} requests a second: {} changes acknowledged, {} linearizable and {} \
             stale reads ({} failed), {} of unknown outcome, {} given up, {} not asked; {} of {} \
             attempts failed",
            self.seed,
            self.minutes,
            self.rate,
            found.acknowledged,
            found.reads,
            self.stale_reads,
            self.stale_reads_failed,
            found.unknown,
            self.given_up,
            self.not_asked,
            self.attempts_failed,
            self.attempts
        )?;
        writeln!(
            f,
            "{} revisions, {} placements, {} evaluations, {} elections; at rest {:.1}s after the last \
             request; {} of {} jobs linearizable",
            found.revisions,
            found.allocations,
            found.evaluations,
            self.elections,
            seconds(self.settled_ms),
            found.linearizable,
            found.jobs,
        )?;
        match found.wrong.as_slice() {
            [] => writeln!(
                f,
                "no acknowledged change was lost, and every invariant held"
            ),
            wrong => {
                writeln!(f, "{} FAILURES:", wrong.len())?;
                wrong
                    .iter()
                    .take(40)
                    .try_for_each(|wrong| writeln!(f, "  {wrong}"))
            }
        }
    }
}

/// Returns a Markdown table: number of faults and pauses of progress per kind.
pub fn table(faults: &[Measured]) -> String {
    let mut by_kind = BTreeMap::<Kind, Vec<&Measured>>::new();
    for fault in faults {
        by_kind.entry(fault.kind).or_default().push(fault);
    }
    let mut text = String::from(
        "| fault | times | without writes p50 / p99 / max | without placements p50 / p99 / max | \
         slowest request |\n| --- | --- | --- | --- | --- |\n",
    );
    let mut rows: Vec<(String, Vec<&Measured>)> = Vec::new();
    rows.extend(
        by_kind
            .into_iter()
            .map(|(kind, faults)| (kind.to_string(), faults)),
    );
    rows.push(("all".to_owned(), faults.iter().collect()));
    for (name, faults) in rows {
        let spread = |of: fn(&Measured) -> u64| {
            let mut values: Vec<u64> = faults.iter().map(|fault| of(fault)).collect();
            values.sort_unstable();
            let at = |percent| seconds(percentile(&values, percent));
            format!("{:.1} / {:.1} / {:.1} s", at(50), at(99), at(100))
        };
        let slowest = faults
            .iter()
            .map(|fault| fault.slowest_ms)
            .max()
            .unwrap_or_default();
        text.push_str(&format!(
            "| {name} | {} | {} | {} | {:.1} s |\n",
            faults.len(),
            spread(|fault| fault.writes_ms),
            spread(|fault| fault.placements_ms),
            seconds(slowest),
        ));
    }
    text
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of minutes, for people"
)]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use linearizability::Operation;

    use super::*;
    use crate::faults::job::Answer;

    fn write(began: u64, completed: u64) -> Record {
        Record {
            job: "web".to_owned(),
            began,
            operation: Operation::known(JobRequest::Stop, began, completed, Answer::Missing),
        }
    }

    #[test]
    fn a_majority_that_is_gone_is_measured_from_its_return() {
        let seen = Observations {
            records: vec![
                write(500_000, 1_000_000),
                write(2_000_000, 13_500_000),
                write(19_000_000, 20_000_000),
            ],
            ..Observations::default()
        };
        let fault = |kind| PastFault {
            kind,
            what: String::new(),
            began: 1_500_000,
            ended: 12_000_000,
            until: 20_000_000,
        };
        let recorded = Recorded::default();
        let measured = measure(&fault(Kind::MajorityLost), &seen, &recorded);
        assert_eq!((measured.writes_ms, measured.slowest_ms), (6_500, 1_500));
        assert_eq!(measured.placements_ms, 8_000, "none at all");
        let measured = measure(&fault(Kind::MemberLost), &seen, &recorded);
        assert_eq!((measured.writes_ms, measured.slowest_ms), (12_000, 11_500));
        let next_came = PastFault {
            until: 12_500_000,
            ..fault(Kind::MemberLost)
        };
        assert_eq!(measure(&next_came, &seen, &recorded).slowest_ms, 10_500);
    }

    #[test]
    fn faults_are_read_back_as_they_were_written() {
        let fault = Measured {
            kind: Kind::DiskFull,
            what: "etcd-2".to_owned(),
            at_s: 3,
            lasted_ms: 4,
            writes_ms: 5,
            placements_ms: 6,
            slowest_ms: 7,
        };
        let report = Report {
            seed: 1,
            minutes: 1.0,
            rate: 20,
            faults: vec![fault.clone()],
            findings: Findings::default(),
            attempts: 0,
            attempts_failed: 0,
            given_up: 0,
            not_asked: 0,
            stale_reads: 0,
            stale_reads_failed: 0,
            elections: 0,
            settled_ms: 0,
        };
        assert_eq!(Report::faults_of(&report.json()), [fault]);
    }
}
