//! RPCs on allocations.

use futures::Stream;
use kafila_client::Opened;
use proto::v1;

use super::transport::Connection;
use crate::error::Error;

const DOING_EXEC: &str = "running the command";

/// The part of a log to read.
pub(crate) type LogsRequest = v1::LogsRequest;

impl Connection {
    /// Lists the allocations with an ID prefix.
    pub(crate) async fn allocations(
        &self,
        prefix: &str,
        per_page: u32,
    ) -> Result<Vec<v1::Allocation>, Error> {
        let options = v1::QueryOptions {
            prefix: prefix.to_owned(),
            per_page,
            ..self.options(self.any_namespace())
        };
        let message = v1::ListAllocationsRequest {
            options: Some(options),
        };
        let answer: v1::ListAllocationsResponse = self
            .call(
                "querying allocations",
                self.api().allocations().list(message),
            )
            .await?;
        Ok(answer.allocations)
    }

    /// Lists every allocation of every namespace.
    pub(crate) async fn all_allocations(&self) -> Result<Vec<v1::Allocation>, Error> {
        let message = v1::ListAllocationsRequest {
            options: Some(self.options("*")),
        };
        let answer: v1::ListAllocationsResponse = self
            .call(
                "querying allocations",
                self.api().allocations().list(message),
            )
            .await?;
        Ok(answer.allocations)
    }

    /// Opens the stream of a task's output; the timeout applies to opening it.
    pub(crate) async fn logs(&self, message: LogsRequest) -> Result<Opened<v1::LogsChunk>, Error> {
        let doing = format!("reading logs of task {:?}", message.task);
        self.call(&doing, self.api().allocations().logs(message))
            .await
    }

    /// Returns the states of an allocation's service checks.
    pub(crate) async fn allocation_checks(
        &self,
        alloc_id: &str,
    ) -> Result<Vec<v1::AllocationCheck>, Error> {
        let message = v1::GetAllocationChecksRequest {
            alloc_id: alloc_id.to_owned(),
        };
        let doing = format!("querying checks of allocation {alloc_id}");
        let answer: v1::GetAllocationChecksResponse = self
            .call(&doing, self.api().allocations().get_checks(message))
            .await?;
        Ok(answer.checks)
    }

    /// Starts a command beside a task; the timeout applies to its start.
    pub(crate) async fn exec(
        &self,
        inputs: impl Stream<Item = v1::ExecInput> + Send + 'static,
    ) -> Result<Opened<v1::ExecOutput>, Error> {
        self.call(DOING_EXEC, self.api().allocations().exec(inputs))
            .await
    }

    /// Returns the next message of a command; `None` at the end.
    pub(crate) async fn next_output(
        &self,
        stream: &mut Opened<v1::ExecOutput>,
    ) -> Result<Option<v1::ExecOutput>, Error> {
        self.call_waiting(DOING_EXEC, stream.next()).await
    }

    /// Restarts tasks in place. Not retried after an unknown outcome, which would restart them twice.
    pub(crate) async fn restart_allocation(
        &self,
        message: v1::RestartAllocationRequest,
    ) -> Result<v1::RestartAllocationResponse, Error> {
        let doing = format!("restarting allocation {}", message.alloc_id);
        self.call(&doing, self.api().allocations().restart(message))
            .await
    }

    /// Stops an allocation. Idempotent by the ID of the request.
    pub(crate) async fn stop_allocation(
        &self,
        alloc_id: &str,
        no_shutdown_delay: bool,
    ) -> Result<v1::StopAllocationResponse, Error> {
        let message = v1::StopAllocationRequest {
            alloc_id: alloc_id.to_owned(),
            request_id: self.request_id(),
            no_shutdown_delay,
        };
        let doing = format!("stopping allocation {alloc_id}");
        self.call(&doing, self.api().allocations().stop(message))
            .await
    }

    /// Returns the next part of a task's output; `None` at the end.
    pub(crate) async fn next_chunk(
        &self,
        task: &str,
        stream: &mut Opened<v1::LogsChunk>,
    ) -> Result<Option<v1::LogsChunk>, Error> {
        let doing = format!("reading logs of task {task:?}");
        self.call_waiting(&doing, stream.next()).await
    }

    /// Lists a directory of an allocation.
    pub(crate) async fn files(
        &self,
        alloc_id: &str,
        path: &str,
    ) -> Result<v1::ListFilesResponse, Error> {
        let message = v1::ListFilesRequest {
            alloc_id: alloc_id.to_owned(),
            path: path.to_owned(),
        };
        let doing = format!("listing {path:?} of allocation {alloc_id}");
        self.call(&doing, self.api().allocations().list_files(message))
            .await
    }

    /// Returns the facts of a file of an allocation.
    pub(crate) async fn file(&self, alloc_id: &str, path: &str) -> Result<v1::FileInfo, Error> {
        let message = v1::GetFileRequest {
            alloc_id: alloc_id.to_owned(),
            path: path.to_owned(),
        };
        let doing = format!("looking at {path:?} of allocation {alloc_id}");
        let answer: v1::GetFileResponse = self
            .call(&doing, self.api().allocations().get_file(message))
            .await?;
        Ok(answer.file.unwrap_or_default())
    }

    /// Opens the stream of a file; the timeout applies to opening it.
    pub(crate) async fn read_file(
        &self,
        message: v1::ReadFileRequest,
    ) -> Result<Opened<v1::FileChunk>, Error> {
        let doing = format!("reading {:?}", message.path);
        self.call(&doing, self.api().allocations().read_file(message))
            .await
    }

    /// Returns the next part of a file; `None` at the end.
    pub(crate) async fn next_file_chunk(
        &self,
        path: &str,
        stream: &mut Opened<v1::FileChunk>,
    ) -> Result<Option<v1::FileChunk>, Error> {
        let doing = format!("reading {path:?}");
        self.call_waiting(&doing, stream.next()).await
    }

    /// Sends a signal to tasks. Not retried after an unknown outcome, which would send it twice.
    pub(crate) async fn signal(
        &self,
        message: v1::SignalAllocationRequest,
    ) -> Result<v1::SignalAllocationResponse, Error> {
        let doing = format!("signalling allocation {}", message.alloc_id);
        self.call(&doing, self.api().allocations().signal(message))
            .await
    }

    /// Measures what tasks of an allocation use; an empty `task` means all.
    pub(crate) async fn allocation_stats(
        &self,
        alloc_id: &str,
        task: &str,
    ) -> Result<v1::GetAllocationStatsResponse, Error> {
        let message = v1::GetAllocationStatsRequest {
            alloc_id: alloc_id.to_owned(),
            task: task.to_owned(),
        };
        let doing = format!("measuring allocation {alloc_id}");
        self.call(&doing, self.api().allocations().get_stats(message))
            .await
    }
}
