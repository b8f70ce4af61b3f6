//! The evaluations in flight: their tokio tasks and progress. [`scheduler::Load`] decides how many there may be.

use scheduler::Load;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::warn;

/// Evaluations in flight at most: the eval-broker's limit of a session's credit.
pub(crate) const CREDIT_MAX: u32 = 1_024;

/// The evaluations of all sessions.
pub(crate) struct InFlightEvaluations {
    tasks: JoinSet<()>,
    load: Load,
    scheduled: mpsc::UnboundedReceiver<()>,
    on_scheduled: mpsc::UnboundedSender<()>,
}

/// Progress of the evaluations that the worker holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Some are scheduled.
    Scheduled,
    /// Some have ended.
    Ended,
}

/// Held by an evaluation until its small plan is submitted, or until its end.
pub(crate) struct Unscheduled(mpsc::UnboundedSender<()>);

impl Drop for Unscheduled {
    fn drop(&mut self) {
        // The process ends when there is no receiver.
        let _ = self.0.send(());
    }
}

impl InFlightEvaluations {
    /// Returns an empty set for a worker that schedules `workers` evaluations at a time.
    pub(crate) fn new(workers: u32) -> Self {
        let (on_scheduled, scheduled) = mpsc::unbounded_channel();
        Self {
            tasks: JoinSet::new(),
            load: Load::new(workers, CREDIT_MAX),
            scheduled,
            on_scheduled,
        }
    }

    /// Returns the number of evaluations in flight.
    pub(crate) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the number of further evaluations that it takes, beside `credit` that are granted.
    pub(crate) fn room(&self, credit: u32) -> u32 {
        self.load.room(credit)
    }

    /// Tells whether `credit` is too little to keep the worker busy until the next grant arrives.
    pub(crate) fn needs(&self, credit: u32) -> bool {
        self.load.needs(credit)
    }

    /// Starts the work on an evaluation.
    pub(crate) fn start<Work>(&mut self, work: impl FnOnce(Unscheduled) -> Work)
    where
        Work: Future<Output = ()> + Send + 'static,
    {
        self.load.start();
        let unscheduled = Unscheduled(self.on_scheduled.clone());
        self.tasks.spawn(work(unscheduled));
    }

    /// Waits until an evaluation is scheduled or has ended; then takes note of all those.
    pub(crate) async fn changed(&mut self) -> Progress {
        let mut change = Progress::Scheduled;
        tokio::select! {
            Some(()) = self.scheduled.recv() => self.load.scheduled(),
            Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                self.note(ended);
                change = Progress::Ended;
            }
        }
        while self.scheduled.try_recv().is_ok() {
            self.load.scheduled();
        }
        while let Some(ended) = self.tasks.try_join_next() {
            self.note(ended);
            change = Progress::Ended;
        }
        change
    }

    /// Waits for the end of all.
    pub(crate) async fn finish(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    fn note(&mut self, ended: Result<(), tokio::task::JoinError>) {
        self.load.end();
        if let Err(error) = ended {
            // The eval-broker delivers it again when its nack timeout is over.
            warn!(%error, "an evaluation's work panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_scheduled_evaluation_makes_room_for_the_next_before_its_end() {
        let mut in_flight = InFlightEvaluations::new(1);
        assert_eq!(in_flight.room(0), 4);
        let (schedule, scheduled) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        in_flight.start(|unscheduled| async move {
            let _ = scheduled.await;
            drop(unscheduled);
            let _ = ended.await;
        });
        assert_eq!((in_flight.room(0), in_flight.room(3)), (3, 0));
        schedule.send(()).unwrap();
        in_flight.changed().await;
        assert_eq!((in_flight.room(0), in_flight.count()), (4, 1));
        end.send(()).unwrap();
        in_flight.changed().await;
        assert_eq!((in_flight.room(0), in_flight.count()), (4, 0));
    }

    #[tokio::test]
    async fn an_evaluation_that_ends_or_panics_unscheduled_makes_room() {
        let mut in_flight = InFlightEvaluations::new(1);
        in_flight.start(|_unscheduled| async {});
        in_flight.start(|_unscheduled| async { panic!("as the test wants") });
        assert_eq!(in_flight.room(0), 2);
        while in_flight.count() > 0 || in_flight.room(0) < 4 {
            in_flight.changed().await;
        }
    }
}
