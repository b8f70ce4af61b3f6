//! Maintenance of a real etcd: compaction, and recovery from a full database without an operator.

use std::time::Duration;

use cluster_controller::{App, Config};
use model::EtcdMember;
use service_kit::CancellationToken;
use store::{Client, ClientOptions};
use test_kit::etcd::{self, Etcd};
use test_kit::wait_for;

use crate::suite::TIMEOUT;

const QUOTA: &str = "16777216";
/// A recovery waits for the shortest history, a leader and a defragmentation.
const RECOVERY: Duration = Duration::from_secs(180);

struct Running {
    drain: CancellationToken,
    running: tokio::task::JoinHandle<Result<(), cluster_controller::Error>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.drain.cancel();
        self.running.abort();
    }
}

/// Starts a controller that keeps 10 s of history, and 1 s of it when etcd is full.
async fn controller(etcd: &Etcd) -> Running {
    let mut config = Config {
        compaction_history: Duration::from_secs(10),
        compaction_history_when_scarce: Duration::from_secs(10),
        ..Config::default()
    };
    config.etcd.endpoints = etcd.endpoints();
    config.tls = service_kit::TlsConfig::insecure();
    let app = App::build(config).await.unwrap();
    let drain = CancellationToken::new();
    let running = tokio::spawn(app.run(drain.clone()));
    Running { drain, running }
}

async fn client(etcd: &Etcd) -> Client {
    let endpoints = etcd.endpoints();
    Client::connect(&endpoints, ClientOptions::default())
        .await
        .unwrap()
}

async fn raw(etcd: &Etcd) -> etcd_client::Client {
    etcd_client::Client::connect(etcd.endpoints(), None)
        .await
        .unwrap()
}

async fn member(client: &Client) -> EtcdMember {
    let (_, status) = client.members().await.remove(0);
    status.unwrap()
}

async fn leader(raw: &mut etcd_client::Client) -> Option<()> {
    let key = "/kafila/v1/election/cluster-controller";
    let found = raw.get(key, None).await.ok()?;
    (found.count() == 1).then_some(())
}

#[tokio::test]
async fn history_older_than_the_promise_is_compacted_beside_other_compactions() {
    if !etcd::available() {
        return;
    }
    let etcd = Etcd::start().await.unwrap();
    let (client, mut raw) = (client(&etcd).await, raw(&etcd).await);
    let _controller = controller(&etcd).await;
    for number in 0..20 {
        raw.put("other", format!("{number}"), None).await.unwrap();
    }
    let old = client.current_revision().await.unwrap();
    // etcd's own auto-compaction, for example.
    raw.compact(i64::try_from(old).unwrap() - 10, None)
        .await
        .unwrap();
    let at = |revision: u64| {
        let options =
            etcd_client::GetOptions::new().with_revision(i64::try_from(revision).unwrap());
        Some(options)
    };
    wait_for("a compaction", RECOVERY, async || {
        raw.put("other", "more", None).await.unwrap();
        let read = raw.get("other", at(old - 5)).await;
        read.is_err().then_some(())
    })
    .await;
    let newest = client.current_revision().await.unwrap();
    let recent = raw.get("other", at(newest - 5)).await;
    assert!(recent.is_ok(), "recent history is kept");
}

#[tokio::test]
async fn a_full_etcd_without_a_leader_takes_writes_again_without_an_operator() {
    if !etcd::available() {
        return;
    }
    let etcd = Etcd::start_with(&["--quota-backend-bytes", QUOTA])
        .await
        .unwrap();
    let (client, mut raw) = (client(&etcd).await, raw(&etcd).await);
    // One key, overwritten: nothing but history.
    let value = vec![b'x'; 500_000];
    let mut written = 0;
    while raw.put("other", value.clone(), None).await.is_ok() {
        written += 1;
        assert!(written < 100, "the quota is 16 MiB");
    }
    assert!(member(&client).await.is_out_of_space);
    assert!(
        raw.lease_grant(5, None).await.is_err(),
        "no leader can be elected"
    );
    let _controllers = (controller(&etcd).await, controller(&etcd).await);
    wait_for("a leader", RECOVERY, async || leader(&mut raw).await).await;
    raw.put("other", "small", None).await.unwrap();
    let member = wait_for("no alarm", TIMEOUT, async || {
        let member = member(&client).await;
        (!member.is_out_of_space).then_some(member)
    })
    .await;
    assert!(member.db_bytes < 8 << 20, "{member:?}");
    // It stays writable: history goes on being dropped.
    for _ in 0..written {
        wait_for("space", RECOVERY, async || {
            raw.put("other", value.clone(), None).await.ok()
        })
        .await;
    }
}
