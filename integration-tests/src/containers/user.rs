//! A user who works while containers come and go, until told to stop.

use std::time::Duration;

use anyhow::{Context, Result};
use proto::v1;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::stack::Stack;
use crate::api::Api;
use crate::load::{Client, User};

/// Interval of requests.
const INTERVAL: Duration = Duration::from_millis(250);

/// The product's own client: its retries alone decide whether a call fails.
impl Client for kafila_client::Client {
    async fn register(&self, job: &v1::Job, request_id: &str) -> Result<()> {
        let request = v1::RegisterJobRequest {
            job: Some(job.clone()),
            request_id: request_id.to_owned(),
            ..Default::default()
        };
        self.jobs().register(request).await?;
        Ok(())
    }

    async fn stop(&self, name: &str) -> Result<()> {
        let request = v1::DeregisterJobRequest {
            job_id: name.to_owned(),
            ..Default::default()
        };
        self.jobs().deregister(request).await?;
        Ok(())
    }
}

/// A running workload.
#[derive(Debug)]
pub struct Workload<C = Api> {
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<User<C>>>,
}

impl<C: Client + 'static> Workload<C> {
    /// Starts a user whose calls are retried by `client`; a call that fails in spite of that ends it.
    pub fn start(client: C, prefix: &str, seed: u64) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let mut user = User::new(client, prefix, seed);
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
    pub async fn finish(self) -> Result<User<C>> {
        // An error means that the user has ended already, with an error of its own.
        let _ = self.stop.send(());
        self.running.await?.context("a request failed for good")
    }
}

/// The command `kafila` with the addresses of both gateways, run again and again.
#[derive(Debug)]
pub struct Commands {
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<u32>>,
}

impl Commands {
    /// Starts; the first command that fails ends it.
    pub fn start(stack: &Stack) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let stack = stack.clone();
        let running = tokio::spawn(async move {
            let mut count = 0;
            while stopped.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
                for words in [&["job", "status"][..], &["node", "status"]] {
                    let said = stack.kafila_with_failover(words).await?.ok();
                    said.with_context(|| format!("kafila {}", words.join(" ")))?;
                    count += 1;
                }
                tokio::time::sleep(INTERVAL).await;
            }
            Ok(count)
        });
        Self { stop, running }
    }

    /// Ends, and returns the number of commands.
    ///
    /// # Errors
    /// The one that failed.
    pub async fn finish(self) -> Result<u32> {
        // An error means that it has ended already, with an error of its own.
        let _ = self.stop.send(());
        self.running.await?.context("a command failed")
    }
}
