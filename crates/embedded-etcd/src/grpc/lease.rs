//! etcd's Lease service.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use etcd_client::proto::{
    PbLeaseGrantRequest, PbLeaseGrantResponse, PbLeaseKeepAliveRequest, PbLeaseKeepAliveResponse,
    PbLeaseLeasesRequest, PbLeaseLeasesResponse, PbLeaseRevokeRequest, PbLeaseRevokeResponse,
    PbLeaseService, PbLeaseTimeToLiveRequest, PbLeaseTimeToLiveResponse,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::sync::mpsc;
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::run::Handle;

/// Keep-alives answered ahead of the client's reading, on one stream.
const ANSWERS: usize = 64;

/// Chooses the ids of leases; shared by all listeners of a store.
#[derive(Clone, Debug)]
pub(crate) struct LeaseIds {
    rng: Arc<Mutex<StdRng>>,
}

impl LeaseIds {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        let rng = match seed {
            Some(seed) => StdRng::seed_from_u64(seed),
            None => StdRng::from_rng(&mut rand::rng()),
        };
        Self {
            rng: Arc::new(Mutex::new(rng)),
        }
    }

    /// A positive number, as etcd's are.
    fn next(&self) -> i64 {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        rng.random_range(1..=i64::MAX)
    }
}

pub(super) struct LeaseService {
    pub(super) handle: Handle,
    pub(super) ids: LeaseIds,
    pub(super) ended: CancellationToken,
}

#[tonic::async_trait]
impl PbLeaseService for LeaseService {
    async fn lease_grant(
        &self,
        request: Request<PbLeaseGrantRequest>,
    ) -> Result<Response<PbLeaseGrantResponse>, Status> {
        let request = request.into_inner();
        let chosen = self.ids.next();
        let answer = self
            .handle
            .call(move |machine, now| machine.lease_grant(now, &request, chosen))
            .await?;
        Ok(Response::new(answer?))
    }

    async fn lease_revoke(
        &self,
        request: Request<PbLeaseRevokeRequest>,
    ) -> Result<Response<PbLeaseRevokeResponse>, Status> {
        let id = request.into_inner().id;
        let answer = self
            .handle
            .call(move |machine, _| machine.lease_revoke(id))
            .await?;
        Ok(Response::new(answer?))
    }

    type LeaseKeepAliveStream =
        Pin<Box<dyn Stream<Item = Result<PbLeaseKeepAliveResponse, Status>> + Send>>;

    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<PbLeaseKeepAliveRequest>>,
    ) -> Result<Response<Self::LeaseKeepAliveStream>, Status> {
        let (sender, receiver) = mpsc::channel(ANSWERS);
        let handle = self.handle.clone();
        let ended = self.ended.clone();
        let requests = request.into_inner();
        tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = keep_alive(&handle, requests, &sender) => {}
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn lease_time_to_live(
        &self,
        request: Request<PbLeaseTimeToLiveRequest>,
    ) -> Result<Response<PbLeaseTimeToLiveResponse>, Status> {
        let request = request.into_inner();
        let answer = self
            .handle
            .call(move |machine, now| machine.lease_time_to_live(now, &request))
            .await?;
        Ok(Response::new(answer))
    }

    async fn lease_leases(
        &self,
        _request: Request<PbLeaseLeasesRequest>,
    ) -> Result<Response<PbLeaseLeasesResponse>, Status> {
        let answer = self
            .handle
            .call(|machine, _| machine.lease_leases())
            .await?;
        Ok(Response::new(answer))
    }
}

/// Answers keep-alives until the client ends or drops the stream.
async fn keep_alive(
    handle: &Handle,
    mut requests: Streaming<PbLeaseKeepAliveRequest>,
    answers: &mpsc::Sender<Result<PbLeaseKeepAliveResponse, Status>>,
) {
    while let Ok(Some(request)) = requests.message().await {
        let answer = handle
            .call(move |machine, now| machine.lease_keep_alive(now, request.id))
            .await
            .map_err(Status::from);
        if answers.send(answer).await.is_err() {
            return;
        }
    }
}
