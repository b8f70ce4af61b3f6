//! The evaluations in hand: those to be scheduled, few, so that the eval-broker keeps their order, and those
//! whose small plans wait for the plan-applier, many, so that its transactions hold many plans.

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::warn;

/// Evaluations to be scheduled, for each that is scheduled at a time: the next ones come while a small
/// one is scheduled, which takes less than the way to the eval-broker and back.
const AHEAD: u32 = 4;

/// Evaluations in hand for each that is scheduled at a time: a small one takes some hundred microseconds
/// to schedule, and some ten milliseconds until its plan is committed.
const IN_HAND: u32 = 64;

/// Evaluations in hand at most: the eval-broker's limit of a session's credit.
pub(crate) const CREDIT_MAX: u32 = 1_024;

/// The evaluations of all sessions.
pub(crate) struct Hand {
    tasks: JoinSet<()>,
    /// Evaluations whose plan is not submitted yet, or is large.
    unscheduled: u32,
    scheduled: mpsc::UnboundedReceiver<()>,
    on_scheduled: mpsc::UnboundedSender<()>,
    unscheduled_max: u32,
    in_hand_max: u32,
}

/// Progress of the evaluations that the worker holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
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

impl Hand {
    /// Makes an empty hand of a worker that schedules `workers` evaluations at a time.
    pub(crate) fn new(workers: u32) -> Self {
        let (on_scheduled, scheduled) = mpsc::unbounded_channel();
        Self {
            tasks: JoinSet::new(),
            unscheduled: 0,
            scheduled,
            on_scheduled,
            unscheduled_max: workers.saturating_mul(AHEAD).min(CREDIT_MAX),
            in_hand_max: workers.saturating_mul(IN_HAND).min(CREDIT_MAX),
        }
    }

    /// Returns the number of evaluations in hand.
    pub(crate) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the number of further evaluations that it takes, beside `credit` that are granted.
    pub(crate) fn room(&self, credit: u32) -> u32 {
        let count = u32::try_from(self.tasks.len()).unwrap_or(u32::MAX);
        let to_schedule = self.unscheduled_max.saturating_sub(self.unscheduled);
        let in_hand = self.in_hand_max.saturating_sub(count);
        to_schedule.min(in_hand).saturating_sub(credit)
    }

    /// Tells whether `credit` is too little to keep the worker busy until the next grant arrives.
    pub(crate) fn needs(&self, credit: u32) -> bool {
        credit * 2 < self.unscheduled_max
    }

    /// Starts the work on an evaluation.
    pub(crate) fn start<Work>(&mut self, work: impl FnOnce(Unscheduled) -> Work)
    where
        Work: Future<Output = ()> + Send + 'static,
    {
        self.unscheduled += 1;
        let unscheduled = Unscheduled(self.on_scheduled.clone());
        self.tasks.spawn(work(unscheduled));
    }

    /// Waits until an evaluation is scheduled or has ended; then takes note of all those.
    pub(crate) async fn changed(&mut self) -> Change {
        let mut change = Change::Scheduled;
        tokio::select! {
            Some(()) = self.scheduled.recv() => self.unscheduled -= 1,
            Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                note(ended);
                change = Change::Ended;
            }
        }
        while self.scheduled.try_recv().is_ok() {
            self.unscheduled -= 1;
        }
        while let Some(ended) = self.tasks.try_join_next() {
            note(ended);
            change = Change::Ended;
        }
        change
    }

    /// Waits for the end of all.
    pub(crate) async fn finish(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

fn note(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        // The eval-broker delivers it again when its nack timeout is over.
        warn!(%error, "an evaluation's work panicked");
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_scheduled_evaluation_makes_room_for_the_next_before_its_end() {
        let mut hand = Hand::new(1);
        assert_eq!(hand.room(0), 4);
        let (schedule, scheduled) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        hand.start(|unscheduled| async move {
            let _ = scheduled.await;
            drop(unscheduled);
            let _ = ended.await;
        });
        assert_eq!((hand.room(0), hand.room(3)), (3, 0));
        schedule.send(()).unwrap();
        hand.changed().await;
        assert_eq!((hand.room(0), hand.count()), (4, 1));
        end.send(()).unwrap();
        hand.changed().await;
        assert_eq!((hand.room(0), hand.count()), (4, 0));
    }

    #[tokio::test]
    async fn an_evaluation_that_ends_or_panics_unscheduled_makes_room() {
        let mut hand = Hand::new(1);
        hand.start(|_unscheduled| async {});
        hand.start(|_unscheduled| async { panic!("as the test wants") });
        assert_eq!(hand.room(0), 2);
        while hand.count() > 0 || hand.room(0) < 4 {
            hand.changed().await;
        }
    }

    #[tokio::test]
    async fn plans_without_an_answer_are_limited() {
        let mut hand = Hand::new(1);
        for _ in 0..IN_HAND {
            hand.start(|unscheduled| async {
                drop(unscheduled);
                std::future::pending().await
            });
            while hand.unscheduled > 0 {
                hand.changed().await;
            }
        }
        assert_eq!(hand.room(0), 0);
    }
}
