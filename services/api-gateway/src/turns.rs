//! Runs what takes a core for a while: on threads of its own, so many at once, for so long.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tracing::Span;

/// Lets so many run at once; the others wait. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Turns {
    free: Arc<Semaphore>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    #[error(
        "no result within {}s: others are being worked on, or the job is very large; try again later",
        limit.as_secs()
    )]
    Late { limit: Duration },
    #[error("the work was cut short")]
    CutShort(#[source] tokio::task::JoinError),
}

impl Turns {
    pub fn new(at_once: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(at_once)),
        }
    }

    /// Half the cores: each turn takes one, and whoever does not ask for a turn goes first.
    pub fn for_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self::new(cores.div_ceil(2))
    }

    /// Does `work` when it is its turn. Work that has begun goes on when the limit is over, and
    /// keeps its turn until it has ended.
    ///
    /// # Errors
    /// Waiting and working took longer than `limit`; the work panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, TurnError> {
        let whole = async {
            let turn = Arc::clone(&self.free).acquire_owned().await;
            let span = Span::current();
            let working = offload::spawn(move || {
                let _turn = turn.expect("nobody closes the semaphore");
                span.in_scope(work)
            });
            working.await.map_err(TurnError::CutShort)
        };
        let ended = tokio::time::timeout(limit, whole).await;
        ended.unwrap_or(Err(TurnError::Late { limit }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn no_more_run_at_once_than_may_and_late_ones_keep_their_turn() {
        let turns = Turns::new(1);
        let (go, wait) = mpsc::channel::<()>();
        let late = turns.run(SHORT, move || wait.recv().is_ok()).await;
        assert!(
            matches!(late, Err(TurnError::Late { limit: SHORT })),
            "{late:?}"
        );
        // The first is still at work, so nobody else gets a turn.
        let second = turns.run(SHORT, || 2).await;
        assert!(matches!(second, Err(TurnError::Late { .. })), "{second:?}");
        go.send(()).unwrap();
        assert_eq!(turns.run(LONG, || 3).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn work_that_panics_gives_its_turn_back() {
        let turns = Turns::new(1);
        let cut = turns.run(LONG, || panic!("as the test wants")).await;
        assert!(matches!(cut, Err(TurnError::CutShort(_))), "{cut:?}");
        assert_eq!(turns.run(LONG, || 2).await.unwrap(), 2);
    }
}
