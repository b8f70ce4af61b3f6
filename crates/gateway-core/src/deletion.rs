//! Deletion in two steps of namespaces, node pools and volumes.

use admission::cluster::deletion::Deletion;
use state::Snapshot;

use crate::error::Error;
use crate::transactions::{Core, Step, contended};

/// The number of marks of an object after which its deletion is given up: each time a new user came
/// between mark and deletion.
const MAX_MARKS: usize = 3;

/// The result of one step.
enum Ended<T, R> {
    Marked { revision: u64, target: T },
    Deleted { revision: u64, target: T },
    Refused(R),
}

impl Core {
    /// Deletes an object in two steps; returns it with the revision of the last step. `decide` finds
    /// the object, which is passed to the following steps, and decides on the next step.
    pub async fn delete_in_two_steps<T, R>(
        &self,
        what: impl Fn() -> String + Send + Copy,
        decide: impl Fn(&Snapshot, Option<&T>) -> Result<(T, Deletion<R>), Error> + Send + Sync,
    ) -> Result<(T, u64), Error>
    where
        T: Send + Sync + 'static,
        R: Into<Error> + Send + 'static,
    {
        let nothing = |_| async { Ok(()) };
        let decide = |snapshot: &Snapshot, target: Option<&T>, (): &()| decide(snapshot, target);
        self.delete_with_users(what, nothing, decide).await
    }

    /// As [`Self::delete_in_two_steps`], for an object with users that no replica holds: `users`
    /// reads or releases them before each step, and gets whether this deletion has marked the object.
    /// The replica shows that mark.
    pub async fn delete_with_users<T, R, U, Reading>(
        &self,
        what: impl Fn() -> String + Send + Copy,
        users: impl Fn(bool) -> Reading + Send,
        decide: impl Fn(&Snapshot, Option<&T>, &U) -> Result<(T, Deletion<R>), Error> + Send + Sync,
    ) -> Result<(T, u64), Error>
    where
        T: Send + Sync + 'static,
        R: Into<Error> + Send + 'static,
        U: Send + Sync,
        Reading: Future<Output = Result<U, Error>> + Send,
    {
        let mut marked: Option<T> = None;
        for _ in 0..=MAX_MARKS {
            let users = users(marked.is_some()).await?;
            let decide = |snapshot: &Snapshot| {
                let (target, deletion) = decide(snapshot, marked.as_ref(), &users)?;
                Ok(step(target, deletion))
            };
            match self.execute(what, decide).await? {
                Ended::Deleted { revision, target } => return Ok((target, revision)),
                Ended::Refused(refusal) => return Err(refusal.into()),
                Ended::Marked { revision, target } => {
                    self.wait_for(revision, self.deadline()).await?;
                    marked = Some(target);
                }
            }
        }
        Err(contended(what()))
    }
}

fn step<T, R>(target: T, deletion: Deletion<R>) -> Step<Ended<T, R>>
where
    T: Send + 'static,
    R: Send + 'static,
{
    match deletion {
        Deletion::Mark(write) => Step::Commit {
            writes: vec![write],
            answer: Box::new(move |revision| Ended::Marked { revision, target }),
        },
        Deletion::Delete(writes) => Step::Commit {
            writes,
            answer: Box::new(move |revision| Ended::Deleted { revision, target }),
        },
        Deletion::TakeBack { write, refusal } => Step::Commit {
            writes: vec![write],
            answer: Box::new(|_| Ended::Refused(refusal)),
        },
    }
}
