//! Verdict: acknowledged changes and linearizability, compared with the history.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use invariants::check_at_rest;
use linearizability::{Operation, Verdict, check};
use model::{ClientStatus, EvalStatus};
use state::Snapshot;
use store::{Client, ClientOptions};
use store_test_kit::check_history;

use super::job::{Answer, JobRequest, OneJob};
use super::recorder::{Recorded, Recorder};
use super::workload::{Observations, Record};
use crate::api::eventually;

/// Timeout to come to rest after the last request: evaluations of a killed worker return after a nack
/// timeout, a node that was away after its time to live.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(150);

/// Search limit for the order of a job's operations: seconds, and hundreds of megabytes.
const MOST_TRIED: usize = 3_000_000;

/// Findings of a run.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Descriptions of all failures; empty: none.
    pub wrong: Vec<String>,
    pub acknowledged: usize,
    pub unknown: usize,
    pub reads: usize,
    pub jobs: usize,
    /// Jobs whose history is linearizable.
    pub linearizable: usize,
    pub revisions: u64,
    pub allocations: usize,
    pub evaluations: usize,
}

/// Waits until the cluster is at rest.
///
/// # Errors
/// The open work after the timeout.
pub async fn await_rest(recorder: &Recorder) -> Result<()> {
    eventually(SETTLE_TIMEOUT, || async { at_rest(&recorder.snapshot()) }).await
}

fn at_rest(snapshot: &Snapshot) -> Result<()> {
    let open: Vec<String> = snapshot
        .open_evals()
        .map(|eval| {
            format!(
                "{} of {} is {:?}",
                eval.value.id, eval.value.job, eval.value.status
            )
        })
        .collect();
    ensure!(open.is_empty(), "evaluations without an end: {open:?}");
    let violations: Vec<String> = check_at_rest(snapshot)
        .iter()
        .map(ToString::to_string)
        .collect();
    ensure!(violations.is_empty(), "not at rest: {violations:?}");
    let waiting: Vec<String> = snapshot
        .allocs()
        .filter(|view| !view.is_terminal() && view.client_status() != ClientStatus::Running)
        .map(|view| format!("{} is {:?}", view.alloc.id, view.client_status()))
        .collect();
    ensure!(
        waiting.is_empty(),
        "allocations that do not run: {waiting:?}"
    );
    let ending: Vec<String> = snapshot
        .allocs()
        .filter(|view| view.is_terminal() && view.client_status() == ClientStatus::Running)
        .map(|view| view.alloc.id.to_string())
        .collect();
    ensure!(
        ending.is_empty(),
        "allocations that go on although they are to stop: {ending:?}"
    );
    Ok(())
}

/// Checks everything, at rest and after a final read of every job.
///
/// # Errors
/// etcd does not answer.
pub async fn look(stores: &[String], recorder: &Recorder, seen: &Observations) -> Result<Findings> {
    let mut found = Findings {
        wrong: seen
            .refused
            .iter()
            .map(|refused| format!("refused: {refused}"))
            .collect(),
        ..Findings::default()
    };
    let recorded_revisions = {
        let recorded = recorder.recorded();
        let violations = recorded.violations();
        found
            .wrong
            .extend(violations.iter().map(ToString::to_string));
        found.wrong.extend(lost(&seen.records, &recorded));
        recorded.revisions()
    };
    // Compared with etcd's own history, to verify the recorded one.
    let client = Client::connect(stores, ClientOptions::default()).await?;
    let replayed = check_history(&client).await?;
    found.wrong.extend(
        replayed
            .violations
            .iter()
            .map(|found| format!("replayed: {found}")),
    );
    if replayed.revisions < recorded_revisions {
        found.wrong.push(format!(
            "{recorded_revisions} revisions were watched, but etcd has only {}",
            replayed.revisions
        ));
    }
    found.revisions = replayed.revisions;
    found.allocations = recorder.recorded().placed;
    found.evaluations = replayed.snapshot.evals().count();
    let ended = |status| matches!(status, EvalStatus::Pending);
    let pending = replayed
        .snapshot
        .evals()
        .filter(|eval| ended(eval.value.status))
        .count();
    if pending > 0 {
        found
            .wrong
            .push(format!("{pending} evaluations are pending"));
    }
    check_linearizability(&seen.records, &mut found);
    Ok(found)
}

/// Returns every acknowledged change that is missing in etcd's history at its revision.
fn lost(records: &[Record], recorded: &Recorded) -> Vec<String> {
    let mut lost = Vec::new();
    for record in records {
        let Some((_, Answer::Since(revision))) = record.operation.completed else {
            continue;
        };
        let written = recorded.jobs.get(&(record.job.clone(), revision));
        let is_there = match record.operation.input {
            JobRequest::Register { tag } => written == Some(&(tag, false)),
            JobRequest::Stop => written.is_some_and(|(_, stopped)| *stopped),
            JobRequest::Read => true,
        };
        if !is_there {
            lost.push(format!(
                "lost: {} {:?} was acknowledged at revision {revision}, which has {written:?}",
                record.job, record.operation.input
            ));
        }
    }
    lost
}

/// Searches a linear order of each job's operations.
fn check_linearizability(records: &[Record], found: &mut Findings) {
    let mut by_job = BTreeMap::<&str, Vec<Operation<JobRequest, Answer>>>::new();
    for record in records {
        by_job
            .entry(&record.job)
            .or_default()
            .push(record.operation.clone());
        match (&record.operation.input, &record.operation.completed) {
            (_, None) => found.unknown += 1,
            (JobRequest::Read, Some(_)) => found.reads += 1,
            (_, Some(_)) => found.acknowledged += 1,
        }
    }
    found.jobs = by_job.len();
    for (job, history) in by_job {
        match check(&OneJob, &history, MOST_TRIED) {
            Verdict::Linearizable(_) => found.linearizable += 1,
            Verdict::Undecided => found.wrong.push(format!(
                "{job}: {} operations, and no order was found among {MOST_TRIED} beginnings",
                history.len()
            )),
            Verdict::Impossible { longest, stuck } => {
                let last = longest.last().map(|number| &history[*number]);
                let stuck: Vec<_> = stuck.iter().map(|number| &history[*number]).collect();
                found.wrong.push(format!(
                    "{job} is not linearizable: after {} operations, the last {last:?}, none of \
                     these can be next: {stuck:?}",
                    longest.len()
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(operation: Operation<JobRequest, Answer>) -> Record {
        Record {
            job: "web".to_owned(),
            began: operation.invoked,
            operation,
        }
    }

    #[test]
    fn a_change_that_was_acknowledged_and_is_not_there_is_lost() {
        let mut recorded = Recorded::default();
        recorded.jobs.insert(("web".to_owned(), 10), (1, false));
        recorded.jobs.insert(("web".to_owned(), 20), (1, true));
        let register = |tag, revision| {
            record(Operation::known(
                JobRequest::Register { tag },
                0,
                1,
                Answer::Since(revision),
            ))
        };
        let stop = |revision| {
            record(Operation::known(
                JobRequest::Stop,
                2,
                3,
                Answer::Since(revision),
            ))
        };
        let kept = [
            register(1, 10),
            stop(20),
            record(Operation::unknown(JobRequest::Stop, 5)),
        ];
        assert_eq!(lost(&kept, &recorded), Vec::<String>::new());
        for gone in [
            register(2, 10),
            register(1, 11),
            register(1, 20),
            stop(10),
            stop(30),
        ] {
            assert_eq!(
                lost(std::slice::from_ref(&gone), &recorded).len(),
                1,
                "{gone:?}"
            );
        }
    }

    #[test]
    fn a_stale_read_is_found_in_the_records() {
        let found = |tag, since| Answer::Found {
            tag,
            stopped: false,
            since,
        };
        let mut records = vec![
            record(Operation::known(
                JobRequest::Register { tag: 1 },
                0,
                1,
                Answer::Since(10),
            )),
            record(Operation::known(
                JobRequest::Register { tag: 2 },
                2,
                3,
                Answer::Since(20),
            )),
            record(Operation::known(JobRequest::Read, 4, 5, found(2, 20))),
        ];
        let mut findings = Findings::default();
        check_linearizability(&records, &mut findings);
        assert_eq!((findings.linearizable, findings.wrong.len()), (1, 0));
        records.push(record(Operation::known(
            JobRequest::Read,
            6,
            7,
            found(1, 10),
        )));
        let mut findings = Findings::default();
        check_linearizability(&records, &mut findings);
        assert_eq!(
            (findings.linearizable, findings.wrong.len()),
            (0, 1),
            "{findings:?}"
        );
    }
}
