//! `kafila.v1.Allocations`: reads, the relay of tasks' output, commands, restarts, stops, and what
//! `node_requests` asks of nodes.

use admission::jobs::logs::{LogSource, locate};
use gateway_core::Error;
use identity::Caller;
use listing::find;
use model::AllocId;
use node_calls::logs;
use proto::v1;
use proto::v1::allocations_server::Allocations;
use state::{AllocView, Snapshot, Table};
use tonic::{Request, Response, Status, Streaming};

use super::query::{Api, List, Parts, Read, open, reply};

const TABLES: [Table; 1] = [Table::Allocs];

#[tonic::async_trait]
impl Allocations for Api {
    type LogsStream = Parts<v1::LogsChunk>;

    async fn get(
        &self,
        request: Request<v1::GetAllocationRequest>,
    ) -> Result<Response<v1::GetAllocationResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let find = |snapshot: &Snapshot| {
            let id = find::alloc(snapshot, &request.alloc_id)?;
            Ok(snapshot.alloc(id).expect("found in this snapshot").clone())
        };
        let index = |_: &Snapshot, view: &AllocView| view.modify_index();
        let (allocation, meta) =
            Api::get(self, &read, &TABLES, find, index, api_view::allocation).await?;
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
        let list = List::new(request.options, timeout)?.by_id()?.reversible();
        let answer = |snapshot: &Snapshot| {
            let allocs = snapshot.allocs().filter(|view| {
                list.has_namespace(&view.alloc.namespace) && list.has_id(view.alloc.id.0)
            });
            Ok(page_of_allocs(snapshot, &list, allocs))
        };
        let (allocations, meta) = Api::list(self, &list, &TABLES, answer).await?;
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
        let relayed = logs::relay(&self.gateway.node_calls, source, request).await?;
        Ok(Response::new(Box::pin(relayed)))
    }

    type ExecStream = Parts<v1::ExecOutput>;

    async fn exec(
        &self,
        request: Request<Streaming<v1::ExecInput>>,
    ) -> Result<Response<Self::ExecStream>, Status> {
        let caller = Caller::of(request.extensions());
        let outputs = self.exec_in_task(&caller, request.into_inner());
        Ok(Response::new(Box::pin(outputs).await?))
    }

    async fn restart(
        &self,
        request: Request<v1::RestartAllocationRequest>,
    ) -> Result<Response<v1::RestartAllocationResponse>, Status> {
        let answer = Box::pin(self.restart_allocation(request.into_inner())).await?;
        Ok(Response::new(answer))
    }

    async fn get_checks(
        &self,
        request: Request<v1::GetAllocationChecksRequest>,
    ) -> Result<Response<v1::GetAllocationChecksResponse>, Status> {
        let checks = Box::pin(self.allocation_checks(request.into_inner())).await?;
        Ok(Response::new(checks))
    }

    async fn stop(
        &self,
        request: Request<v1::StopAllocationRequest>,
    ) -> Result<Response<v1::StopAllocationResponse>, Status> {
        reply(Box::pin(self.stop_allocation(request.into_inner())).await)
    }

    async fn list_files(
        &self,
        request: Request<v1::ListFilesRequest>,
    ) -> Result<Response<v1::ListFilesResponse>, Status> {
        Box::pin(self.allocation_files(request)).await
    }

    async fn get_file(
        &self,
        request: Request<v1::GetFileRequest>,
    ) -> Result<Response<v1::GetFileResponse>, Status> {
        Box::pin(self.allocation_file(request)).await
    }

    type ReadFileStream = Parts<v1::FileChunk>;

    async fn read_file(
        &self,
        request: Request<v1::ReadFileRequest>,
    ) -> Result<Response<Self::ReadFileStream>, Status> {
        Box::pin(self.read_allocation_file(request)).await
    }

    async fn signal(
        &self,
        request: Request<v1::SignalAllocationRequest>,
    ) -> Result<Response<v1::SignalAllocationResponse>, Status> {
        Box::pin(self.signal_tasks(request)).await
    }

    async fn get_stats(
        &self,
        request: Request<v1::GetAllocationStatsRequest>,
    ) -> Result<Response<v1::GetAllocationStatsResponse>, Status> {
        Box::pin(self.allocation_stats(request)).await
    }
}

impl Api {
    /// Finds the source of the output.
    async fn find_logs(&self, request: &v1::LogsRequest) -> Result<LogSource, Error> {
        let look = |snapshot: &Snapshot| {
            let id = find::alloc(snapshot, &request.alloc_id)?;
            let view = snapshot.alloc(id).expect("found in this snapshot");
            Ok::<LogSource, Error>(locate(snapshot, view, &request.task)?)
        };
        self.gateway.core.look(look).await
    }
}

/// Returns a page of allocations, ordered by create index and id.
pub(super) fn page_of_allocs<'s>(
    snapshot: &Snapshot,
    list: &List<(u64, AllocId)>,
    allocs: impl Iterator<Item = &'s AllocView>,
) -> (Vec<v1::Allocation>, String) {
    let keyed = allocs.map(|view| ((view.create_index, view.alloc.id), view));
    list.page(keyed, |view| api_view::allocation(snapshot, view))
}

fn check_stream(stream: i32) -> Result<(), Status> {
    match v1::LogStream::try_from(stream) {
        Ok(v1::LogStream::Stdout | v1::LogStream::Stderr) => Ok(()),
        _ => Err(proto::status::invalid_field(
            "stream",
            format!("{stream} is not a stream: want 1 (stdout) or 2 (stderr)"),
        )),
    }
}
