//! etcd's RPCs without a client library between: every field can be sent, every field is seen.

use std::sync::{Arc, Mutex};

use etcd_client::proto::{
    PbCompactionRequest, PbCompactionResponse, PbDeleteRequest, PbDeleteResponse, PbHashKvRequest,
    PbHashKvResponse, PbLeaseGrantRequest, PbLeaseGrantResponse, PbLeaseKeepAliveRequest,
    PbLeaseKeepAliveResponse, PbLeaseLeasesRequest, PbLeaseLeasesResponse, PbLeaseRevokeRequest,
    PbLeaseRevokeResponse, PbLeaseTimeToLiveRequest, PbLeaseTimeToLiveResponse, PbPutRequest,
    PbPutResponse, PbRangeRequest, PbRangeResponse, PbStatusRequest, PbStatusResponse,
    PbTxnRequest, PbTxnResponse, PbWatchRequest, PbWatchRequestUnion, PbWatchResponse,
};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Request, Status, Streaming, client::Grpc, codegen::http::uri::PathAndQuery, transport::Channel,
};
use tonic_prost::ProstCodec;

/// Requests that a test sends ahead on a stream.
const AHEAD: usize = 256;

#[derive(Clone)]
pub(crate) struct RawClient {
    grpc: Grpc<Channel>,
}

macro_rules! unary {
    ($($name:ident: $request:ty => $response:ty, $path:literal;)*) => {
        $(
            pub(crate) async fn $name(&mut self, request: $request) -> Result<$response, Status> {
                self.unary(request, $path).await
            }
        )*
    };
}

impl RawClient {
    pub(crate) fn new(channel: Channel) -> Self {
        Self {
            grpc: Grpc::new(channel).max_decoding_message_size(usize::MAX),
        }
    }

    unary! {
        range: PbRangeRequest => PbRangeResponse, "/etcdserverpb.KV/Range";
        put: PbPutRequest => PbPutResponse, "/etcdserverpb.KV/Put";
        delete_range: PbDeleteRequest => PbDeleteResponse, "/etcdserverpb.KV/DeleteRange";
        txn: PbTxnRequest => PbTxnResponse, "/etcdserverpb.KV/Txn";
        compact: PbCompactionRequest => PbCompactionResponse, "/etcdserverpb.KV/Compact";
        lease_grant: PbLeaseGrantRequest => PbLeaseGrantResponse,
            "/etcdserverpb.Lease/LeaseGrant";
        lease_revoke: PbLeaseRevokeRequest => PbLeaseRevokeResponse,
            "/etcdserverpb.Lease/LeaseRevoke";
        lease_time_to_live: PbLeaseTimeToLiveRequest => PbLeaseTimeToLiveResponse,
            "/etcdserverpb.Lease/LeaseTimeToLive";
        lease_leases: PbLeaseLeasesRequest => PbLeaseLeasesResponse,
            "/etcdserverpb.Lease/LeaseLeases";
        hash_kv: PbHashKvRequest => PbHashKvResponse, "/etcdserverpb.Maintenance/HashKV";
    }

    pub(crate) async fn status(&mut self) -> Result<PbStatusResponse, Status> {
        let path = "/etcdserverpb.Maintenance/Status";
        self.unary(PbStatusRequest::default(), path).await
    }

    async fn unary<Req, Res>(&mut self, request: Req, path: &'static str) -> Result<Res, Status>
    where
        Req: Message + Send + Sync + 'static,
        Res: Message + Default + Send + Sync + 'static,
    {
        self.ready().await?;
        let codec = ProstCodec::<Req, Res>::default();
        let path = PathAndQuery::from_static(path);
        let response = self.grpc.unary(Request::new(request), path, codec).await?;
        Ok(response.into_inner())
    }

    /// Opens a stream with a first request: etcd answers nothing, headers included, before it has
    /// something to say.
    async fn streaming<Req, Res>(
        &mut self,
        path: &'static str,
        first: Req,
    ) -> Result<(mpsc::Sender<Req>, Streaming<Res>), Status>
    where
        Req: Message + Send + Sync + 'static,
        Res: Message + Default + Send + Sync + 'static,
    {
        self.ready().await?;
        let (sender, receiver) = mpsc::channel(AHEAD);
        sender.send(first).await.expect("the receiver is below");
        let codec = ProstCodec::<Req, Res>::default();
        let path = PathAndQuery::from_static(path);
        let request = Request::new(ReceiverStream::new(receiver));
        let response = self.grpc.streaming(request, path, codec).await?;
        Ok((sender, response.into_inner()))
    }

    async fn ready(&mut self) -> Result<(), Status> {
        let ready = self.grpc.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))
    }

    /// Opens a watch stream whose messages are collected as they come.
    pub(crate) async fn watch(&mut self, first: PbWatchRequestUnion) -> WatchStream {
        let (requests, mut responses) = self.watch_unread(first).await;
        let received = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn({
            let received = Arc::clone(&received);
            async move {
                while let Ok(Some(response)) = responses.message().await {
                    received.lock().unwrap().push(response);
                }
            }
        });
        WatchStream { requests, received }
    }

    /// Opens a watch stream that is read by the caller, or not at all.
    pub(crate) async fn watch_unread(
        &mut self,
        first: PbWatchRequestUnion,
    ) -> (mpsc::Sender<PbWatchRequest>, Streaming<PbWatchResponse>) {
        let path = "/etcdserverpb.Watch/Watch";
        self.streaming(path, request(first)).await.unwrap()
    }

    /// Opens a stream of keep-alives, the first of them for lease `id`.
    pub(crate) async fn keep_alive(
        &mut self,
        id: i64,
    ) -> (
        mpsc::Sender<PbLeaseKeepAliveRequest>,
        Streaming<PbLeaseKeepAliveResponse>,
    ) {
        let path = "/etcdserverpb.Lease/LeaseKeepAlive";
        let first = PbLeaseKeepAliveRequest { id };
        self.streaming(path, first).await.unwrap()
    }
}

/// A watch stream and its messages so far.
pub(crate) struct WatchStream {
    requests: mpsc::Sender<PbWatchRequest>,
    received: Arc<Mutex<Vec<PbWatchResponse>>>,
}

impl WatchStream {
    pub(crate) async fn send(&self, union: PbWatchRequestUnion) {
        self.requests.send(request(union)).await.unwrap();
    }

    pub(crate) fn received(&self) -> Vec<PbWatchResponse> {
        self.received.lock().unwrap().clone()
    }
}

pub(crate) fn request(union: PbWatchRequestUnion) -> PbWatchRequest {
    PbWatchRequest {
        request_union: Some(union),
    }
}

/// A test's request for a watch; the message itself cannot be named outside the client crate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Create {
    pub(crate) key: Vec<u8>,
    pub(crate) range_end: Vec<u8>,
    pub(crate) start_revision: i64,
    pub(crate) progress_notify: bool,
    pub(crate) filters: Vec<i32>,
    pub(crate) prev_kv: bool,
    pub(crate) watch_id: i64,
    pub(crate) fragment: bool,
}

impl Create {
    pub(crate) fn to_union(&self) -> PbWatchRequestUnion {
        let mut message = default_of(PbWatchRequestUnion::CreateRequest);
        message.key.clone_from(&self.key);
        message.range_end.clone_from(&self.range_end);
        message.start_revision = self.start_revision;
        message.progress_notify = self.progress_notify;
        message.filters.clone_from(&self.filters);
        message.prev_kv = self.prev_kv;
        message.watch_id = self.watch_id;
        message.fragment = self.fragment;
        PbWatchRequestUnion::CreateRequest(message)
    }
}

pub(crate) fn cancel(watch_id: i64) -> PbWatchRequestUnion {
    let mut message = default_of(PbWatchRequestUnion::CancelRequest);
    message.watch_id = watch_id;
    PbWatchRequestUnion::CancelRequest(message)
}

pub(crate) fn progress() -> PbWatchRequestUnion {
    PbWatchRequestUnion::ProgressRequest(default_of(PbWatchRequestUnion::ProgressRequest))
}

/// An empty message of the type that `variant` holds.
fn default_of<T: Default>(_variant: fn(T) -> PbWatchRequestUnion) -> T {
    T::default()
}
