//! A store, watchers over it, and a rollout in the store by another writer.

use std::ops::Deref;
use std::time::Duration;

use deployment_watcher::{App, Config, Error, SERVICE};
use model::{
    AllocClient, AllocId, Allocation, ClientStatus, Deployment, DeploymentGroup, DeploymentHealth,
    DeploymentId, DeploymentStatus, Evaluation, Job, JobKey, NodeId, Timestamp,
};
use service_kit::{CancellationToken, Clock};
use state::{Entity, Key, Snapshot};
use store::SizeClass;
use store_test_kit::ObservedStore;
use test_kit::builders::{allocation, rolling_update, service};
use test_kit::writes;
use tokio::task::JoinHandle;

/// Long enough for a loaded machine, short enough to notice.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// One replica of the service, running until dropped.
pub(crate) struct Watcher {
    pub(crate) address: String,
    pub(crate) drain: CancellationToken,
    pub(crate) running: JoinHandle<Result<(), Error>>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.drain.cancel();
        self.running.abort();
    }
}

/// A store with job `web` in it, its deployment, and one allocation of that.
pub(crate) struct Suite {
    observed: ObservedStore,
    pub(crate) job: Job,
}

impl Deref for Suite {
    type Target = ObservedStore;

    fn deref(&self) -> &ObservedStore {
        &self.observed
    }
}

pub(crate) fn key() -> JobKey {
    JobKey::new("default", "web")
}

pub(crate) fn deployment_id() -> DeploymentId {
    DeploymentId::from_random(1)
}

pub(crate) fn alloc_id() -> AllocId {
    AllocId::from_random(1)
}

impl Suite {
    pub(crate) async fn start() -> Self {
        let mut job = service("web", 1);
        job.task_groups[0].update = Some(rolling_update(1));
        // Failed allocations are not replaced, so an unhealthy one fails the deployment.
        job.task_groups[0].reschedule = None;
        Self {
            observed: ObservedStore::start().await,
            job,
        }
    }

    pub(crate) async fn watcher(&self) -> Watcher {
        let mut config = Config::default();
        config.etcd.endpoints = vec![self.endpoint.clone()];
        config.tls = service_kit::TlsConfig::insecure();
        let app = App::build(config).await.unwrap();
        let address = app.address().to_owned();
        let drain = CancellationToken::new();
        let running = tokio::spawn(app.run(drain.clone()));
        Watcher {
            address,
            drain,
            running,
        }
    }

    /// Waits until the replica at `address` holds the election.
    pub(crate) async fn wait_for_leader(&self, address: &str) {
        self.wait("a leader", |snapshot| {
            let leader = snapshot.leader(SERVICE)?;
            (leader.value.address == address).then_some(())
        })
        .await;
    }

    /// Stores the job at a version.
    pub(crate) async fn put_job(&self, job: &Job, stable: bool) {
        let known = self.now().await.job(&key()).map(|job| job.modify_index);
        self.commit(|txn| {
            match known {
                Some(index) => txn
                    .add(&writes::update(&Key::Job(key()), index, job))
                    .unwrap(),
                None => txn.add(&writes::create(&Key::Job(key()), job)).unwrap(),
            };
            txn.add(&writes::create(&Key::JobVersion(key(), job.version), job))
                .unwrap();
            if stable {
                let mark = &Entity::JobStable;
                txn.add(&writes::create(&Key::JobStable(key(), job.version), mark))
                    .unwrap();
            }
        })
        .await;
    }

    /// Stores a stable first version of the job that is too large to be stored with the job.
    pub(crate) async fn put_large_version(&self, job: &Job) {
        let writer = self.store.unfenced_writer();
        let mut txn = writer.txn_with(SizeClass::FollowUp);
        txn.add(&writes::create(&Key::JobVersion(key(), job.version), job))
            .unwrap();
        let mark = &Entity::JobStable;
        txn.add(&writes::create(&Key::JobStable(key(), job.version), mark))
            .unwrap();
        writer.commit(&txn).await.unwrap().revision().unwrap();
    }

    /// Stores a deployment of the job's current version and its one allocation.
    pub(crate) async fn deploy(&self, group: DeploymentGroup) {
        let snapshot = self.now().await;
        let job = snapshot.job(&key()).expect("the job is there");
        let now = Timestamp(Clock::real().now());
        let deployment = Deployment {
            id: deployment_id(),
            job: key(),
            job_version: job.value.version,
            job_modify_index: job.modify_index,
            job_create_index: job.create_index,
            status: DeploymentStatus::Running,
            status_description: "Deployment is running".to_owned(),
            groups: [("web".to_owned(), group)].into(),
            eval_priority: 50,
            create_time: now,
            modify_time: now,
        };
        let alloc = Allocation {
            deployment_id: Some(deployment_id()),
            job_create_index: job.create_index,
            create_time: now,
            modify_time: now,
            ..allocation(1, &job.value, NodeId::from_random(1))
        };
        self.commit(|txn| {
            txn.add(&writes::create(
                &Key::Deployment(deployment.id),
                &deployment,
            ))
            .unwrap();
            txn.add(&writes::create(&Key::Alloc(alloc.id), &alloc))
                .unwrap();
        })
        .await;
    }

    /// The node gives its verdict on the allocation.
    pub(crate) async fn report(&self, healthy: bool) -> u64 {
        let client = AllocClient {
            status: if healthy {
                ClientStatus::Running
            } else {
                ClientStatus::Failed
            },
            health: Some(DeploymentHealth {
                healthy,
                time: Timestamp(Clock::real().now()),
                deployment_id: Some(deployment_id()),
            }),
            ..AllocClient::default()
        };
        self.commit(|txn| {
            txn.add(&writes::create(&Key::AllocClient(alloc_id()), &client))
                .unwrap();
        })
        .await
    }

    /// The scheduler calls the deployment a success, in its plan.
    pub(crate) async fn succeed(&self) {
        let snapshot = self.now().await;
        let read = snapshot.deployment(deployment_id()).expect("deployed");
        let done = Deployment {
            status: DeploymentStatus::Successful,
            ..read.value.clone()
        };
        self.commit(|txn| {
            txn.add(&writes::update(
                &Key::Deployment(done.id),
                read.modify_index,
                &done,
            ))
            .unwrap();
        })
        .await;
    }
}

/// One group that wants one allocation and has ten minutes.
pub(crate) fn group() -> DeploymentGroup {
    DeploymentGroup {
        desired_total: 1,
        progress_deadline: Duration::from_secs(600),
        ..DeploymentGroup::default()
    }
}

/// Returns the evaluations that the watcher made, oldest first.
pub(crate) fn made(snapshot: &Snapshot) -> Vec<Evaluation> {
    let mut evals: Vec<_> = snapshot.evals_by_job(&key()).cloned().collect();
    evals.sort_by_key(|eval| eval.create_index);
    evals.into_iter().map(|eval| eval.value.clone()).collect()
}
