//! A store, plan-appliers over it, and objects written by the test.

use std::time::Duration;

use model::{Evaluation, Indexed, Job, Node, Plan, PlanResult, Timestamp};
use plan_applier::{App, Config, Error, SERVICE};
use proto::internal::v1::SubmitPlanRequest;
use proto::internal::v1::plan_applier_client::PlanApplierClient;
use service_kit::{CancellationToken, connect_lazy, request};
use state::{Key, Snapshot};
use store::{Client, Commit, ReplicaOptions, Txn};
use store_test_kit::TestStore;
use test_kit::proxy::Proxy;
use test_kit::writes;
use test_kit::{builders, wait_for};
use tokio::task::JoinHandle;
use tonic::{Code, Status};

/// Timeout of waits: generous, for loaded machines.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// One replica of the service, running until dropped.
pub(crate) struct Running {
    pub(crate) address: String,
    pub(crate) drain: CancellationToken,
    pub(crate) ended: JoinHandle<Result<(), Error>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.drain.cancel();
        self.ended.abort();
    }
}

/// One store and some replicas of the service over it.
pub(crate) struct Suite {
    _etcd: TestStore,
    pub(crate) endpoint: String,
    pub(crate) store: Client,
    pub(crate) replica: store::Replica,
}

impl Suite {
    pub(crate) async fn start() -> Self {
        let etcd = TestStore::start().await;
        let (endpoint, store) = (etcd.endpoint.clone(), etcd.client().await);
        let replica = store::Replica::start(
            store.clone(),
            ReplicaOptions::default(),
            CancellationToken::new(),
        );
        Self {
            _etcd: etcd,
            endpoint,
            store,
            replica,
        }
    }

    /// Starts a replica of the service; it leads if no other does.
    pub(crate) async fn applier(&self) -> Running {
        self.applier_at(&self.endpoint).await
    }

    /// A proxy to the store that a test can break.
    pub(crate) async fn proxy(&self) -> Proxy {
        let address = self.endpoint.trim_start_matches("http://").parse().unwrap();
        Proxy::start(address).await.unwrap()
    }

    /// As [`Self::applier`], with its own endpoint of the store.
    pub(crate) async fn applier_at(&self, endpoint: &str) -> Running {
        self.applier_with(endpoint, |_| {}).await
    }

    pub(crate) async fn applier_with(
        &self,
        endpoint: &str,
        edit: impl FnOnce(&mut Config),
    ) -> Running {
        let mut config = Config {
            shutdown_grace_period: Duration::from_secs(5),
            tls: service_kit::TlsConfig::insecure(),
            ..Config::default()
        };
        config.etcd.endpoints = vec![endpoint.to_owned()];
        edit(&mut config);
        let app = App::build(config).await.unwrap();
        let address = app.address().to_owned();
        let drain = CancellationToken::new();
        let ended = tokio::spawn(app.run(drain.clone()));
        Running {
            address,
            drain,
            ended,
        }
    }

    /// Waits until the replica of the service at `address` takes plans.
    pub(crate) async fn wait_for_leader(&self, address: &str) {
        // A leader refuses the plan for its content; a standby refuses without reading it.
        let probe = empty_plan();
        wait_for("a leader that takes plans", WAIT_LIMIT, async || {
            submit(address, &probe).await.ok()
        })
        .await;
    }

    pub(crate) async fn leader(&self) -> Running {
        let applier = self.applier().await;
        self.wait_for_leader(&applier.address).await;
        applier
    }

    /// As [`Self::leader`], with a long lease, for plans that keep a loaded machine busy for seconds.
    pub(crate) async fn steady_leader(&self) -> Running {
        let edit = |config: &mut Config| config.election_ttl = WAIT_LIMIT * 3;
        let applier = self.applier_with(&self.endpoint, edit).await;
        self.wait_for_leader(&applier.address).await;
        applier
    }

    /// Returns the address and the term of the current leader.
    pub(crate) fn elected(&self) -> Option<String> {
        self.replica.leader(SERVICE).map(|leader| leader.address)
    }

    pub(crate) fn txn(&self) -> Txn {
        self.store.unfenced_writer().txn()
    }

    pub(crate) async fn commit(&self, txn: &Txn) -> u64 {
        match self.store.unfenced_writer().commit(txn).await.unwrap() {
            Commit::Done { revision } => revision,
            Commit::Conflict(conflict) => panic!("{conflict:?}"),
        }
    }

    pub(crate) async fn create_nodes(&self, nodes: &[Node]) {
        for nodes in nodes.chunks(500) {
            let mut txn = self.txn();
            for node in nodes {
                txn.add(&writes::create(&Key::Node(node.id), node)).unwrap();
            }
            self.commit(&txn).await;
        }
    }

    /// Writes a job and an evaluation of it, as a registration does.
    pub(crate) async fn register(&self, number: u128, job: &Job) -> Evaluation {
        let eval = builders::evaluation(number, job);
        let mut txn = self.txn();
        txn.add(&writes::create(&Key::Job(job.key()), job)).unwrap();
        txn.add(&writes::create(
            &Key::JobVersion(job.key(), job.version),
            job,
        ))
        .unwrap();
        txn.add(&writes::create(&Key::Eval(eval.id), &eval))
            .unwrap();
        self.commit(&txn).await;
        eval
    }

    /// The newest state there is.
    pub(crate) async fn now(&self) -> Snapshot {
        self.replica.linearizable(WAIT_LIMIT).await.unwrap()
    }

    /// Returns a worker's plan for the evaluation on the newest state.
    pub(crate) async fn plan(&self, eval: &Evaluation) -> Plan {
        let (snapshot, eval) = (self.now().await, eval.clone());
        // On a loaded machine a large plan takes longer than a lease.
        let planning = tokio::task::spawn_blocking(move || plan_on(&snapshot, &eval));
        planning.await.unwrap()
    }
}

/// Returns a worker's plan for the evaluation on a snapshot.
pub(crate) fn plan_on(snapshot: &Snapshot, eval: &Evaluation) -> Plan {
    let eval = snapshot.eval(eval.id).unwrap();
    let eval: Indexed<Evaluation> = eval.as_ref().clone();
    scheduler::schedule(snapshot, &eval, Timestamp(1), 7).plan
}

fn empty_plan() -> Plan {
    let job = builders::service("empty", 1);
    builders::plan(&builders::evaluation(u128::MAX, &job))
}

pub(crate) async fn submit(address: &str, plan: &Plan) -> Result<PlanResult, Status> {
    let mut client = PlanApplierClient::new(connect_lazy(address).unwrap())
        .max_encoding_message_size(64 << 20)
        .max_decoding_message_size(64 << 20);
    let message = SubmitPlanRequest {
        plan: Some(plan.into()),
    };
    let answer = client
        .submit(request(message, WAIT_LIMIT))
        .await?
        .into_inner();
    Ok(answer.try_into().unwrap())
}

/// Submits to the current leader, with retries.
pub(crate) async fn submit_surely(suite: &Suite, plan: &Plan) -> PlanResult {
    wait_for(
        "an answer to the plan",
        WAIT_LIMIT * 2,
        async || match submit(&suite.elected()?, plan).await {
            Ok(result) => Some(result),
            Err(status) => {
                let may_pass = [
                    Code::Unavailable,
                    Code::FailedPrecondition,
                    Code::DeadlineExceeded,
                    Code::Cancelled,
                ];
                assert!(may_pass.contains(&status.code()), "{status:?}");
                None
            }
        },
    )
    .await
}
