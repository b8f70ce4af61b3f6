//! etcd's KV service.

use etcd_client::proto::{
    PbCompactionRequest, PbCompactionResponse, PbDeleteRequest, PbDeleteResponse, PbKvService,
    PbPutRequest, PbPutResponse, PbRangeRequest, PbRangeResponse, PbRangeStreamResponse,
    PbTxnRequest, PbTxnResponse,
};
use tokio_stream::Empty;
use tonic::{Request, Response, Status};

use crate::{machine::Machine, run::Handle};

pub(super) struct KvService {
    pub(super) handle: Handle,
}

#[tonic::async_trait]
impl PbKvService for KvService {
    async fn range(
        &self,
        request: Request<PbRangeRequest>,
    ) -> Result<Response<PbRangeResponse>, Status> {
        let (answer, identity) = self.handle.read(|machine| {
            let answer = machine.range(request.into_inner());
            (answer, machine.identity())
        });
        let answer = answer?;
        // The values are copied here, with the store unlocked.
        let header = identity.header(answer.revision);
        Ok(Response::new(answer.into_response(header)))
    }

    type RangeStreamStream = Empty<Result<PbRangeStreamResponse, Status>>;

    async fn range_stream(
        &self,
        _request: Request<PbRangeRequest>,
    ) -> Result<Response<Self::RangeStreamStream>, Status> {
        // Came with etcd 3.7; what is served here is 3.5.
        Err(Status::unimplemented("RangeStream is not served"))
    }

    async fn put(&self, request: Request<PbPutRequest>) -> Result<Response<PbPutResponse>, Status> {
        let request = request.into_inner();
        let answer = self.handle.call(|machine, _| machine.put(request)).await?;
        Ok(Response::new(answer?))
    }

    async fn delete_range(
        &self,
        request: Request<PbDeleteRequest>,
    ) -> Result<Response<PbDeleteResponse>, Status> {
        let request = request.into_inner();
        let answer = self
            .handle
            .call(|machine, _| machine.delete_range(request))
            .await?;
        Ok(Response::new(answer?))
    }

    async fn txn(&self, request: Request<PbTxnRequest>) -> Result<Response<PbTxnResponse>, Status> {
        let peer = request.remote_addr();
        let request = request.into_inner();
        let answer = if Machine::is_read_only(&request) {
            self.handle.read(|machine| machine.read_only_txn(request))
        } else {
            let handle = self.handle.clone();
            let work = move |machine: &mut Machine, _| {
                let before = machine.mvcc().head();
                let answer = machine.txn(request);
                let revision = machine.mvcc().head();
                if revision > before {
                    handle.note_writer(peer, revision);
                }
                answer
            };
            self.handle.call(work).await?
        };
        Ok(Response::new(answer?))
    }

    async fn compact(
        &self,
        request: Request<PbCompactionRequest>,
    ) -> Result<Response<PbCompactionResponse>, Status> {
        let request = request.into_inner();
        let answer = self
            .handle
            .call(move |machine, _| machine.compact(&request))
            .await?;
        Ok(Response::new(answer?))
    }
}
