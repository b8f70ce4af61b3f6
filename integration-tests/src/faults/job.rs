//! Sequential model of a job: its current registration, and whether it is stopped.

use linearizability::Model;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobRequest {
    /// Every registration has a distinct tag, stored in the job.
    Register {
        tag: u64,
    },
    Stop,
    Read,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request took effect at this revision.
    Since(u64),
    /// There is no such job.
    Missing,
    Found {
        tag: u64,
        stopped: bool,
        since: u64,
    },
}

/// State of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    tag: u64,
    stopped: bool,
    since: Since,
}

/// The revision of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Since {
    Known(u64),
    /// Without an answer; later than this revision.
    After(u64),
}

impl Since {
    /// Returns the revision if it may be `answered`.
    fn confirm(self, answered: u64) -> Option<Self> {
        let may_be = match self {
            Self::Known(revision) => answered == revision,
            Self::After(revision) => answered > revision,
        };
        may_be.then_some(Self::Known(answered))
    }

    fn earliest(self) -> u64 {
        match self {
            Self::Known(revision) => revision,
            Self::After(revision) => revision + 1,
        }
    }
}

/// One job that starts out missing.
#[derive(Clone, Copy, Debug)]
pub struct OneJob;

impl Model for OneJob {
    type State = Option<Job>;
    type Input = JobRequest;
    type Output = Answer;

    fn initial(&self) -> Option<Job> {
        None
    }

    fn step(
        &self,
        state: &Option<Job>,
        input: &JobRequest,
        output: Option<&Answer>,
    ) -> Option<Option<Job>> {
        match (input, output) {
            (JobRequest::Read, None) => Some(state.clone()),
            (JobRequest::Read, Some(answer)) => read(state.as_ref(), *answer),
            (JobRequest::Register { tag }, answer) => {
                let since = changed(state.as_ref(), answer)?;
                Some(Some(Job {
                    tag: *tag,
                    stopped: false,
                    since,
                }))
            }
            (JobRequest::Stop, answer) => stop(state.as_ref(), answer),
        }
    }

    fn only_looks(&self, input: &JobRequest) -> bool {
        *input == JobRequest::Read
    }
}

fn read(state: Option<&Job>, answer: Answer) -> Option<Option<Job>> {
    match (state, answer) {
        (None, Answer::Missing) => Some(None),
        (
            Some(job),
            Answer::Found {
                tag,
                stopped,
                since,
            },
        ) => {
            let is_it = job.tag == tag && job.stopped == stopped;
            let since = job.since.confirm(since).filter(|_| is_it)?;
            Some(Some(Job {
                since,
                ..job.clone()
            }))
        }
        _ => None,
    }
}

fn stop(state: Option<&Job>, answer: Option<&Answer>) -> Option<Option<Job>> {
    let Some(job) = state else {
        return matches!(answer, None | Some(Answer::Missing)).then_some(None);
    };
    let since = match answer {
        // A stopped job stays unchanged.
        None if job.stopped => job.since,
        Some(Answer::Since(reported)) if job.stopped => job.since.confirm(*reported)?,
        answer => changed(state, answer)?,
    };
    Some(Some(Job {
        stopped: true,
        since,
        ..job.clone()
    }))
}

/// Returns the revision of a change with this answer; `None`: the answer is impossible.
fn changed(state: Option<&Job>, answer: Option<&Answer>) -> Option<Since> {
    let before = state.map_or(0, |job| job.since.earliest());
    match answer {
        None => Some(Since::After(before)),
        Some(Answer::Since(reported)) => (*reported > before).then_some(Since::Known(*reported)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use linearizability::{Operation, check};

    use super::*;

    type Seen = Operation<JobRequest, Answer>;

    fn register(tag: u64, invoked: u64, completed: u64, since: u64) -> Seen {
        Operation::known(
            JobRequest::Register { tag },
            invoked,
            completed,
            Answer::Since(since),
        )
    }

    fn stop(invoked: u64, completed: u64, since: u64) -> Seen {
        Operation::known(JobRequest::Stop, invoked, completed, Answer::Since(since))
    }

    fn read(invoked: u64, completed: u64, tag: u64, stopped: bool, since: u64) -> Seen {
        let found = Answer::Found {
            tag,
            stopped,
            since,
        };
        Operation::known(JobRequest::Read, invoked, completed, found)
    }

    fn is_linearizable(history: &[Seen]) -> bool {
        check(&OneJob, history, 100_000).is_linearizable()
    }

    #[test]
    fn a_jobs_life_is_linearizable() {
        assert!(is_linearizable(&[
            Operation::known(JobRequest::Read, 0, 1, Answer::Missing),
            Operation::known(JobRequest::Stop, 2, 3, Answer::Missing),
            register(1, 4, 5, 10),
            read(6, 7, 1, false, 10),
            stop(8, 9, 20),
            stop(10, 11, 20),
            read(12, 13, 1, true, 20),
            register(2, 14, 15, 30),
            read(16, 17, 2, false, 30),
        ]));
    }

    #[test]
    fn an_acknowledged_change_is_neither_lost_nor_done_twice() {
        let lost = [
            register(1, 0, 1, 10),
            register(2, 2, 3, 20),
            read(4, 5, 1, false, 10),
        ];
        assert!(!is_linearizable(&lost));
        let revived = [
            register(1, 0, 1, 10),
            stop(2, 3, 20),
            read(4, 5, 1, false, 30),
        ];
        assert!(!is_linearizable(&revived), "a registration that came twice");
        let other = [register(1, 0, 1, 10), read(2, 3, 1, false, 11)];
        assert!(
            !is_linearizable(&other),
            "written at another revision than answered"
        );
        let backwards = [register(1, 0, 1, 10), register(2, 2, 3, 9)];
        assert!(!is_linearizable(&backwards));
    }

    #[test]
    fn an_unanswered_change_is_open_until_it_is_read() {
        let unknown = || Operation::unknown(JobRequest::Stop, 2);
        let begun = || register(1, 0, 1, 10);
        assert!(is_linearizable(&[
            begun(),
            unknown(),
            read(4, 5, 1, false, 10)
        ]));
        assert!(is_linearizable(&[
            begun(),
            unknown(),
            read(4, 5, 1, true, 25)
        ]));
        let comes_late = [
            begun(),
            unknown(),
            read(4, 5, 1, false, 10),
            read(6, 7, 1, true, 25),
        ];
        assert!(is_linearizable(&comes_late));
        let comes_and_goes = [
            begun(),
            unknown(),
            read(4, 5, 1, true, 25),
            read(6, 7, 1, false, 10),
        ];
        assert!(!is_linearizable(&comes_and_goes));
        let before_it_was_there = [begun(), unknown(), read(4, 5, 1, true, 10)];
        assert!(!is_linearizable(&before_it_was_there));
    }
}
