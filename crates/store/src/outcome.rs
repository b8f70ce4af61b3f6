//! Outcomes of commits, by what their writer has to do next.

use crate::error::Error;
use crate::writer::{Commit, Conflict};

/// The outcome of a commit.
#[derive(Debug)]
pub enum CommitOutcome {
    /// Everything was written, at this revision.
    Done { revision: u64 },
    /// Nothing was written: an object differs from what the writer knows.
    Conflict(Conflict),
    /// Nothing was written: another process leads, or this one cannot be sure that it does.
    Deposed,
    /// Nothing was written: a smaller transaction may succeed.
    TooLarge(Error),
    /// Nothing was written: etcd or this crate refuses the transaction, and would refuse an immediate retry,
    /// too.
    Refused(Error),
    /// No answer: it may have been written. Or etcd could not be reached within the time.
    Unknown(Error),
}

impl CommitOutcome {
    /// Classifies the result of a commit.
    pub fn of(result: Result<Commit, Error>) -> Self {
        match result {
            Ok(Commit::Done { revision }) => Self::Done { revision },
            Ok(Commit::Conflict(conflict)) if conflict.is_fenced() => Self::Deposed,
            Ok(Commit::Conflict(conflict)) => Self::Conflict(conflict),
            Err(Error::Deposed { .. }) => Self::Deposed,
            Err(error @ Error::LimitsTooLow { .. }) => Self::TooLarge(error),
            Err(Error::Unbuildable(error)) if error.is_of_size() => Self::TooLarge(error.into()),
            Err(error) if error.is_unknown() || error.is_retriable() => Self::Unknown(error),
            Err(error) => Self::Refused(error),
        }
    }
}

/// The outcome of a commit for a writer that treats too large, refused and unknown alike: they are an
/// [`Error`].
#[derive(Debug)]
pub enum Settled {
    /// Everything was written, at this revision.
    Done { revision: u64 },
    /// See [`CommitOutcome::Conflict`].
    Conflict(Conflict),
    /// See [`CommitOutcome::Deposed`].
    Deposed,
}

impl CommitOutcome {
    /// Returns the outcome for a writer that treats all failures alike.
    ///
    /// # Errors
    /// Too large, refused or unknown.
    pub fn settled(self) -> Result<Settled, Error> {
        match self {
            Self::Done { revision } => Ok(Settled::Done { revision }),
            Self::Conflict(conflict) => Ok(Settled::Conflict(conflict)),
            Self::Deposed => Ok(Settled::Deposed),
            Self::TooLarge(error) | Self::Refused(error) | Self::Unknown(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use state::Key;

    use super::*;
    use crate::txn::{Expected, TxnError};
    use crate::writer::FailedCompare;

    fn name(outcome: &CommitOutcome) -> &'static str {
        match outcome {
            CommitOutcome::Done { .. } => "done",
            CommitOutcome::Conflict(_) => "conflict",
            CommitOutcome::Deposed => "deposed",
            CommitOutcome::TooLarge(_) => "too large",
            CommitOutcome::Refused(_) => "refused",
            CommitOutcome::Unknown(_) => "unknown",
        }
    }

    fn conflict(expected: &[Expected]) -> Result<Commit, Error> {
        let failed = expected.iter().map(|expected| FailedCompare {
            key: Key::SchedulerConfig,
            expected: *expected,
            create_revision: 1,
            mod_revision: 1,
        });
        Ok(Commit::Conflict(Conflict {
            revision: 9,
            failed: failed.collect(),
        }))
    }

    #[test]
    fn every_result_of_a_commit_has_one_outcome() {
        let (fence, other) = (Expected::CreateRevision(3), Expected::ModRevision(4));
        let doing = "commit a transaction";
        let service = || "plan-applier".to_owned();
        let unreachable = Error::Unavailable {
            doing,
            endpoints: String::new(),
            source: etcd_client::Error::EndpointsNotManaged.into(),
        };
        let refused = Error::Refused {
            doing,
            source: etcd_client::Error::EndpointsNotManaged.into(),
        };
        let too_low = Error::LimitsTooLow {
            doing,
            reason: "request is too large".to_owned(),
        };
        let key = Key::SchedulerConfig;
        let no_answer = Error::Unknown {
            doing,
            source: None,
        };
        for (result, expected) in [
            (Ok(Commit::Done { revision: 9 }), "done"),
            (conflict(&[other]), "conflict"),
            (conflict(&[fence]), "deposed"),
            // Whatever else differs, a deposed leader decides nothing more.
            (conflict(&[other, fence]), "deposed"),
            (Err(Error::Deposed { service: service() }), "deposed"),
            (Err(too_low), "too large"),
            (Err(TxnError::TooManyOps { max: 1 }.into()), "too large"),
            (Err(TxnError::WrittenTwice { key }.into()), "refused"),
            (Err(no_answer), "unknown"),
            (Err(unreachable), "unknown"),
            (Err(refused), "refused"),
            (Err(Error::NoSpace { doing }), "refused"),
            (Err(Error::Unfenced { service: service() }), "refused"),
        ] {
            let outcome = CommitOutcome::of(result);
            assert_eq!(name(&outcome), expected, "{outcome:?}");
            let is_settled = matches!(expected, "done" | "conflict" | "deposed");
            assert_eq!(outcome.settled().is_ok(), is_settled, "{expected}");
        }
    }
}
