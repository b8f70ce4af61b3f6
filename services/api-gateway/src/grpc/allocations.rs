//! `kafila.v1.Allocations`: reads, and the relay of tasks' output.

use std::time::Duration;

use futures::StreamExt as _;
use model::AllocId;
use proto::internal::v1::NodeLogsRequest;
use proto::internal::v1::node_files_client::NodeFilesClient;
use proto::v1;
use proto::v1::allocations_server::Allocations;
use service_kit::{connect_lazy, request as with_deadline};
use state::{Snapshot, Table};
use tonic::{Code, Request, Response, Status, Streaming};

use super::{Api, Parts, open};
use crate::error::Error;
use crate::logs::{self, Source, locate};
use crate::metrics::Held;
use crate::reads::options::{namespaces, uuid_prefix};
use crate::reads::page::Page;
use crate::reads::{index, prefix, view};

const TABLES: [Table; 1] = [Table::Allocs];

/// How long a node may take to begin its answer: it opens a file; the connection may be new.
const NODE_TIMEOUT: Duration = Duration::from_secs(5);

#[tonic::async_trait]
impl Allocations for Api {
    type LogsStream = Parts<v1::LogsChunk>;

    async fn get(
        &self,
        request: Request<v1::GetAllocationRequest>,
    ) -> Result<Response<v1::GetAllocationResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let index = |snapshot: &Snapshot| {
            let view = find(snapshot, &request.alloc_id)
                .ok()
                .and_then(|id| snapshot.alloc(id));
            view.map_or_else(
                || index::of_tables(snapshot, &TABLES),
                |view| view.modify_index(),
            )
        };
        let answer = |snapshot: &Snapshot| {
            let id = find(snapshot, &request.alloc_id)?;
            let found = snapshot.alloc(id).expect("found in this very snapshot");
            Ok((view::allocation(snapshot, found), String::new()))
        };
        let (allocation, meta) = self.ask(&options, timeout, &TABLES, index, answer).await?;
        Ok(Response::new(v1::GetAllocationResponse {
            meta,
            allocation: Some(allocation),
        }))
    }

    async fn list(
        &self,
        request: Request<v1::ListAllocationsRequest>,
    ) -> Result<Response<v1::ListAllocationsResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let namespaces = namespaces(&options);
        let prefix = uuid_prefix(&options).map_err(Error::from)?;
        let page = Page::<(u64, AllocId)>::new(options.per_page, &options.next_token)
            .map_err(Error::from)?
            .reversed(options.reverse);
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &TABLES);
        let answer = |snapshot: &Snapshot| {
            let allocs = snapshot.allocs().filter(|view| {
                namespaces.contain(&view.alloc.namespace)
                    && prefix.is_none_or(|prefix| prefix.matches(view.alloc.id.0))
            });
            let (allocs, token) =
                page.of(allocs.map(|view| ((view.create_index, view.alloc.id), view)));
            let allocs = allocs
                .into_iter()
                .map(|alloc| view::allocation(snapshot, alloc));
            Ok((allocs.collect(), token))
        };
        let (allocations, meta) = self.ask(&options, timeout, &TABLES, index, answer).await?;
        Ok(Response::new(v1::ListAllocationsResponse {
            meta,
            allocations,
        }))
    }

    async fn logs(
        &self,
        request: Request<v1::LogsRequest>,
    ) -> Result<Response<Self::LogsStream>, Status> {
        let request = request.into_inner();
        check_stream(request.stream)?;
        let source = self.find_logs(&request).await?;
        let chunks = ask_node(&source, request).await?;
        let held = Held::new(&self.gateway.metrics.log_relays);
        let drain = self.gateway.drain.clone();
        // Pulled by the caller's connection: what it does not take, the node is not asked for.
        let relayed = chunks
            .map(move |chunk| {
                let _held = &held;
                chunk.map_err(|status| interrupted(&source, &status))
            })
            .take_until(drain.cancelled_owned());
        Ok(Response::new(Box::pin(relayed)))
    }
}

impl Api {
    /// Finds where the output is; looks twice when it seems not to be there, the second time in a
    /// fresh snapshot, unless the store is away.
    async fn find_logs(&self, request: &v1::LogsRequest) -> Result<Source, Error> {
        let look = |snapshot: &Snapshot| {
            let id = find(snapshot, &request.alloc_id)?;
            let view = snapshot.alloc(id).expect("found in this very snapshot");
            Ok::<Source, Error>(locate(snapshot, view, &request.task)?)
        };
        let stale = self.gateway.snapshot(true).await?;
        match look(&stale) {
            Ok(source) => Ok(source),
            Err(error) => match self.gateway.fresh().await {
                Ok(fresh) => look(&fresh),
                Err(_) => Err(error),
            },
        }
    }
}

fn find(snapshot: &Snapshot, text: &str) -> Result<AllocId, prefix::NotFound> {
    let exists = |id| snapshot.alloc(id).is_some();
    let all = snapshot
        .allocs()
        .map(|view| (view.alloc.id.0, view.alloc.id));
    prefix::find("alloc_id", "allocation", text, AllocId, exists, all)
}

fn check_stream(stream: i32) -> Result<(), Status> {
    match v1::LogStream::try_from(stream) {
        Ok(v1::LogStream::Stdout | v1::LogStream::Stderr) => Ok(()),
        _ => Err(proto::status::invalid_field(
            "stream",
            format!("{stream} is no stream: want 1 (stdout) or 2 (stderr)"),
        )),
    }
}

async fn ask_node(
    source: &Source,
    request: v1::LogsRequest,
) -> Result<Streaming<v1::LogsChunk>, Status> {
    let channel = connect_lazy(&source.address)
        .map_err(|error| Error::from(unreachable_node(source, error.to_string())))?;
    let request = v1::LogsRequest {
        alloc_id: source.alloc_id.to_string(),
        task: source.task.clone(),
        ..request
    };
    let message = NodeLogsRequest {
        request: Some(request),
        secret: source.secret.clone(),
    };
    match NodeFilesClient::new(channel)
        .logs(with_deadline(message, NODE_TIMEOUT))
        .await
    {
        Ok(response) => Ok(response.into_inner()),
        Err(status) => Err(interrupted(source, &status)),
    }
}

/// Tells a node that cannot be reached from one that says no: the latter's words are passed on.
fn interrupted(source: &Source, status: &Status) -> Status {
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
            Error::from(unreachable_node(source, status.message().to_owned())).into()
        }
        code => Status::new(
            code,
            format!("node {}: {}", source.node_name, status.message()),
        ),
    }
}

fn unreachable_node(source: &Source, reason: String) -> logs::Refusal {
    let (name, address) = (source.node_name.clone(), source.address.clone());
    logs::Refusal::Unreachable {
        name,
        address,
        reason,
    }
}
