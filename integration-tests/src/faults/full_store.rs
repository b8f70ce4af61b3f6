//! A store without space, by etcd's own alarm.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use etcd_client::{AlarmAction, AlarmOptions, AlarmType};
use store::{Client, ClientOptions};
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};

/// The interval of alarms: a full etcd raises it with the next write after it was disarmed.
const INTERVAL: Duration = Duration::from_millis(200);
/// Time for the first alarm, and for its end.
const LIMIT: Duration = Duration::from_secs(10);

/// An etcd that accepts only deletions until [`FullStore::end`], even when its alarm is disarmed before.
#[derive(Debug)]
pub struct FullStore {
    client: Client,
    alarms: JoinHandle<()>,
}

impl FullStore {
    /// Raises the alarm of every member, and keeps it raised.
    ///
    /// # Errors
    /// etcd does not answer.
    pub async fn start(stores: &[String]) -> Result<Self> {
        let client = Client::connect(stores, ClientOptions::default()).await?;
        let connecting = etcd_client::Client::connect(stores, None);
        let etcd = timeout(LIMIT, connecting).await??;
        let members: Vec<u64> = client
            .members()
            .await
            .into_iter()
            .filter_map(|(_, status)| status.ok())
            .map(|member| member.member_id)
            .collect();
        timeout(LIMIT, raise(etcd.clone(), &members))
            .await
            .context("etcd's alarm was not raised in time")??;
        let alarms = tokio::spawn(async move {
            let mut ticks = interval(INTERVAL);
            loop {
                ticks.tick().await;
                // The next one is soon.
                let _ = timeout(LIMIT, raise(etcd.clone(), &members)).await;
            }
        });
        Ok(Self { client, alarms })
    }

    /// Ends the alarms and disarms them, as an operator does once there is room.
    ///
    /// # Errors
    /// etcd does not answer, or the alarm stays.
    pub async fn end(self) -> Result<()> {
        self.alarms.abort();
        // An alarm that is under way has ended then.
        let _ = self.alarms.await;
        let left = timeout(LIMIT, async {
            loop {
                self.client.disarm().await?;
                let members = self.client.members().await;
                let mut known = members
                    .iter()
                    .filter_map(|(_, status)| status.as_ref().ok());
                if !known.any(|member| member.is_out_of_space) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(INTERVAL).await;
            }
        });
        let ended = left.await;
        ensure!(ended.is_ok(), "etcd's alarm stays");
        ended?
    }
}

async fn raise(etcd: etcd_client::Client, members: &[u64]) -> Result<()> {
    let mut maintenance = etcd.maintenance_client();
    for member in members {
        let mut options = AlarmOptions::new();
        options.with_member(*member);
        maintenance
            .alarm(AlarmAction::Activate, AlarmType::Nospace, Some(options))
            .await?;
    }
    Ok(())
}
