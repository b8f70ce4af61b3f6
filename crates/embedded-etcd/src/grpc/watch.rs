//! etcd's Watch service: one task per stream reads requests, the stream itself sends.

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use etcd_client::proto::{PbWatchRequest, PbWatchRequestUnion, PbWatchResponse, PbWatchService};
use tokio_stream::Stream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Request, Response, Status, Streaming};

use crate::{
    error::ApiError,
    key_range::KeyRange,
    machine::Identity,
    run::Handle,
    watch::{self, Outbox, StreamId},
};

/// etcd's `WatchCreateRequest.FilterType`.
const NO_PUT: i32 = 0;
const NO_DELETE: i32 = 1;

pub(super) struct WatchService {
    pub(super) handle: Handle,
    /// Size above which a message is fragmented, for watches that allow it.
    pub(super) max_bytes: usize,
    pub(super) ended: CancellationToken,
}

#[tonic::async_trait]
impl PbWatchService for WatchService {
    type WatchStream = Responses;

    async fn watch(
        &self,
        request: Request<Streaming<PbWatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (stream, outbox) = self
            .handle
            .call(|machine, now| machine.open_watch_stream(now))
            .await?;
        let gone = self.ended.child_token();
        let requests = Requests {
            handle: self.handle.clone(),
            stream,
            outbox: Arc::clone(&outbox),
        };
        tokio::spawn(requests.run(request.into_inner(), gone.clone()));
        Ok(Response::new(Responses {
            handle: self.handle.clone(),
            identity: self.handle.read(crate::machine::Machine::identity),
            outbox,
            max_bytes: self.max_bytes,
            cut: VecDeque::new(),
            told_of_end: false,
            _gone: gone.drop_guard(),
        }))
    }
}

/// The messages of a client's stream; dropped with the client's connection.
pub(super) struct Responses {
    handle: Handle,
    identity: Identity,
    outbox: Arc<Outbox>,
    max_bytes: usize,
    /// The remaining fragments of a message.
    cut: VecDeque<PbWatchResponse>,
    told_of_end: bool,
    /// Ends the task that takes requests.
    _gone: DropGuard,
}

impl Stream for Responses {
    type Item = Result<PbWatchResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(response) = self.cut.pop_front() {
            return Poll::Ready(Some(Ok(response)));
        }
        let Poll::Ready(next) = self.outbox.poll_next(context) else {
            return Poll::Pending;
        };
        let Some((message, call_hub)) = next else {
            // A client that still reads learns that the server ended the stream.
            let told = std::mem::replace(&mut self.told_of_end, true);
            return Poll::Ready((!told).then(|| Err(ApiError::Stopped.into())));
        };
        if call_hub {
            self.handle.watch_has_room();
        }
        // The hub fills in the revision.
        let header = self.identity.header(0);
        self.cut = message.into_responses(header, self.max_bytes).into();
        Poll::Ready(self.cut.pop_front().map(Ok))
    }
}

/// Reads a client's requests from its stream.
struct Requests {
    handle: Handle,
    stream: StreamId,
    outbox: Arc<Outbox>,
}

impl Requests {
    /// Runs until the client is `gone`; after its last request it may still read.
    async fn run(self, requests: Streaming<PbWatchRequest>, gone: CancellationToken) {
        tokio::select! {
            () = gone.cancelled() => {}
            () = self.take(requests) => gone.cancelled().await,
        }
        let stream = self.stream;
        // If the store has stopped, the stream is closed already.
        let _ = self
            .handle
            .call(move |machine, _| machine.close_watch_stream(stream))
            .await;
        self.outbox.close();
    }

    async fn take(&self, mut requests: Streaming<PbWatchRequest>) {
        while let Ok(Some(request)) = requests.message().await {
            // Back-pressure: requests of a client that does not read are not read either.
            poll_fn(|context| self.outbox.poll_room(context)).await;
            if self.execute(request).await.is_err() {
                return;
            }
        }
    }

    async fn execute(&self, request: PbWatchRequest) -> Result<(), ApiError> {
        let stream = self.stream;
        match request.request_union {
            Some(PbWatchRequestUnion::CreateRequest(create)) => {
                // The smallest possible key stands for an empty one.
                let key = if create.key.is_empty() {
                    Bytes::from_static(&[0])
                } else {
                    Bytes::from(create.key)
                };
                let request = watch::Request {
                    range: KeyRange::new(key, create.range_end),
                    start_revision: create.start_revision,
                    watch_id: create.watch_id,
                    progress_notify: create.progress_notify,
                    no_put: create.filters.contains(&NO_PUT),
                    no_delete: create.filters.contains(&NO_DELETE),
                    prev_kv: create.prev_kv,
                    fragment: create.fragment,
                };
                let create = move |machine: &mut crate::machine::Machine, _| {
                    machine.create_watch(stream, request);
                };
                self.handle.call(create).await
            }
            Some(PbWatchRequestUnion::CancelRequest(cancel)) => {
                let watch_id = cancel.watch_id;
                self.handle
                    .call(move |machine, _| machine.cancel_watch(stream, watch_id))
                    .await
            }
            Some(PbWatchRequestUnion::ProgressRequest(_)) => {
                self.handle
                    .call(move |machine, _| machine.request_watch_progress(stream))
                    .await
            }
            None => Ok(()),
        }
    }
}
