//! The subscription as its readers share it with the loop that sends it to a gateway.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::subscription::{Answer, ServiceName, Subscription};

/// The gateways have not answered in time, and there is no earlier answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no gateway has answered yet")]
pub struct NoAnswer;

/// The services that a node looks up.
#[derive(Debug)]
pub struct Services {
    subscription: Mutex<Subscription>,
    started: Instant,
    /// The generation of the names.
    names: watch::Sender<u64>,
    /// Counts answers of the gateways.
    answers: watch::Sender<u64>,
}

impl Default for Services {
    fn default() -> Self {
        Self {
            subscription: Mutex::default(),
            started: Instant::now(),
            names: watch::Sender::new(0),
            answers: watch::Sender::new(0),
        }
    }
}

impl Services {
    /// Looks a service up. The first question for a name waits up to `limit` for the gateway's answer.
    ///
    /// # Errors
    /// There is none.
    pub async fn look_up(&self, name: &ServiceName, limit: Duration) -> Result<Answer, NoAnswer> {
        let mut answers = self.answers.subscribe();
        let waiting = async {
            loop {
                if let Some(answer) = self.ask(name) {
                    return Ok(answer);
                }
                answers.changed().await.map_err(|_| NoAnswer)?;
            }
        };
        timeout(limit, waiting).await.unwrap_or(Err(NoAnswer))
    }

    fn ask(&self, name: &ServiceName) -> Option<Answer> {
        let mut subscription = self.subscription();
        let answer = subscription.ask(self.now(), name);
        self.note_names(&subscription);
        answer
    }

    /// Returns the names to subscribe to. Those without questions are forgotten.
    pub fn names(&self) -> Vec<ServiceName> {
        let mut subscription = self.subscription();
        subscription.expire(self.now());
        self.note_names(&subscription);
        subscription.names().1
    }

    /// Tells of changes of the names.
    pub fn watch_names(&self) -> watch::Receiver<u64> {
        self.names.subscribe()
    }

    /// Records a message of the gateway: these changes, after which all answers are current.
    pub fn apply(&self, changes: impl IntoIterator<Item = (ServiceName, Answer)>) {
        self.subscription().apply(self.now(), changes);
        self.answers.send_modify(|count| *count += 1);
    }

    /// Returns the time since the gateway last said that the answers are current; zero without names.
    pub fn age(&self) -> Duration {
        self.subscription().age(self.now())
    }

    fn note_names(&self, subscription: &Subscription) {
        let generation = subscription.names().0;
        self.names.send_if_modified(|known| {
            let is_new = *known != generation;
            *known = generation;
            is_new
        });
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn subscription(&self) -> MutexGuard<'_, Subscription> {
        self.subscription
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn web() -> ServiceName {
        ServiceName {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_question_waits_for_the_gateway_and_later_ones_do_not() {
        let services = Arc::new(Services::default());
        let limit = Duration::from_secs(1);
        assert_eq!(services.look_up(&web(), limit).await, Err(NoAnswer));
        let mut names = services.watch_names();
        assert_eq!(*names.borrow_and_update(), 1);
        assert_eq!(services.names(), [web()]);
        let none = Answer::Instances(Arc::from([]));
        let other = Arc::clone(&services);
        let asked = tokio::spawn(async move { other.look_up(&web(), limit).await });
        tokio::time::sleep(Duration::from_millis(10)).await;
        services.apply([(web(), none.clone())]);
        assert_eq!(asked.await.unwrap(), Ok(none.clone()));
        // An outage.
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(services.look_up(&web(), Duration::ZERO).await, Ok(none));
        assert_eq!(services.age(), Duration::from_secs(30));
        assert!(!names.has_changed().unwrap());
    }
}
