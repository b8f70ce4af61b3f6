//! A user who works while containers come and go, until told to stop.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::api::Api;
use crate::load::User;

/// Interval of requests.
const INTERVAL: Duration = Duration::from_millis(250);

/// A running workload.
#[derive(Debug)]
pub struct Workload {
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<User>>,
}

impl Workload {
    /// Starts a user whose calls are retried; a call that fails in spite of that ends it.
    pub fn start(api: Api, prefix: &str, seed: u64) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let mut user = User::new(api, prefix, seed);
        let running = tokio::spawn(async move {
            while stopped.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
                user.act().await?;
                tokio::time::sleep(INTERVAL).await;
            }
            Ok(user)
        });
        Self { stop, running }
    }

    /// Ends the workload and returns the user with the acknowledged changes.
    ///
    /// # Errors
    /// A request was refused, or got no answer for a minute.
    pub async fn finish(self) -> Result<User> {
        // An error means that the user has ended already, with an error of its own.
        let _ = self.stop.send(());
        self.running.await?.context("a request failed for good")
    }
}
