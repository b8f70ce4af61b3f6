//! CPU-bound work on threads of its own, with a concurrency limit and a timeout.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::Error;
use tokio::sync::Semaphore;
use tonic::Code;
use tracing::Span;

/// A limit of concurrent work; further work waits. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit {
    free: Arc<Semaphore>,
}

/// The reason why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    #[error(
        "no result within {}s: the gateway is busy, or the job is very large; try again later",
        timeout.as_secs()
    )]
    Timeout { timeout: Duration },
    #[error("the work panicked or was canceled")]
    Aborted(#[source] tokio::task::JoinError),
}

impl From<WorkError> for Error {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::Timeout { .. } => Self::overloaded(error),
            WorkError::Aborted(_) => Self::new(Code::Internal, error),
        }
    }
}

impl ConcurrencyLimit {
    pub fn new(concurrency: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(concurrency)),
        }
    }

    /// Half the cores, so that other requests keep the other half.
    pub fn for_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self::new(cores.div_ceil(2))
    }

    /// Runs `work` once there is a permit. Work that has started goes on after the timeout, and keeps
    /// its permit until it ends.
    ///
    /// # Errors
    /// Waiting and working took longer than `timeout`; the work panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        timeout: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkError> {
        let whole = async {
            let permit = Arc::clone(&self.free).acquire_owned().await;
            let span = Span::current();
            let working = blocking::spawn(move || {
                let _permit = permit.expect("the semaphore is never closed");
                span.in_scope(work)
            });
            working.await.map_err(WorkError::Aborted)
        };
        let ended = tokio::time::timeout(timeout, whole).await;
        ended.unwrap_or(Err(WorkError::Timeout { timeout }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn work_that_times_out_keeps_its_permit_until_it_ends() {
        let limit = ConcurrencyLimit::new(1);
        let (go, wait) = mpsc::channel::<()>();
        let late = limit.run(SHORT, move || wait.recv().is_ok()).await;
        assert!(
            matches!(late, Err(WorkError::Timeout { timeout: SHORT })),
            "{late:?}"
        );
        // The first still runs, so there is no other permit.
        let second = limit.run(SHORT, || 2).await;
        assert!(
            matches!(second, Err(WorkError::Timeout { .. })),
            "{second:?}"
        );
        go.send(()).unwrap();
        assert_eq!(limit.run(LONG, || 3).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn work_that_panics_releases_its_permit() {
        let limit = ConcurrencyLimit::new(1);
        let cut = limit.run(LONG, || panic!("as the test wants")).await;
        assert!(matches!(cut, Err(WorkError::Aborted(_))), "{cut:?}");
        assert_eq!(limit.run(LONG, || 2).await.unwrap(), 2);
    }
}
