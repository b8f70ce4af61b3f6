//! gRPC service `kafila.internal.v1.NodeOperations`: tasks' output and files, restarts of tasks, signals to them, commands
//! beside them, states of checks, measurements, metadata and calls of controller plugins, for gateways that know the
//! node's secret.

mod alloc_files;
mod checks;
mod control;
mod csi;
mod exec;
mod logs;
pub(crate) mod operations;
mod restart;
mod signal;
mod stats;

use proto::internal::v1::node_operations_server::NodeOperations;
use proto::internal::v1::{
    NodeAllocStatsRequest, NodeApplyMetaRequest, NodeChecksRequest, NodeChecksResponse,
    NodeCsiControlRequest, NodeCsiControlResponse, NodeExecInput, NodeGetFileRequest,
    NodeGetMetaRequest, NodeHostStatsRequest, NodeListFilesRequest, NodeLogsRequest,
    NodeReadFileRequest, NodeRefreshRequest, NodeRestartRequest, NodeRestartResponse,
    NodeSignalRequest,
};
use proto::v1;
use tonic::{Request, Response, Status, Streaming};

use self::alloc_files::FileChunks;
use self::exec::Outputs;
use self::logs::Chunks;
use self::operations::Operations;

#[tonic::async_trait]
impl NodeOperations for Operations {
    type LogsStream = Chunks;

    async fn logs(
        &self,
        request: Request<NodeLogsRequest>,
    ) -> Result<Response<Self::LogsStream>, Status> {
        let NodeLogsRequest { request, secret } = request.into_inner();
        self.check_secret(&secret)?;
        let chunks = logs::logs(self, request.unwrap_or_default()).await?;
        Ok(Response::new(chunks))
    }

    type ExecStream = Outputs;

    async fn exec(
        &self,
        request: Request<Streaming<NodeExecInput>>,
    ) -> Result<Response<Self::ExecStream>, Status> {
        let outputs = exec::exec(self, request.into_inner()).await?;
        Ok(Response::new(outputs))
    }

    async fn checks(
        &self,
        request: Request<NodeChecksRequest>,
    ) -> Result<Response<NodeChecksResponse>, Status> {
        let request = request.into_inner();
        self.check_secret(&request.secret)?;
        Ok(Response::new(checks::checks(&self.agent, &request).await?))
    }

    async fn csi_control(
        &self,
        request: Request<NodeCsiControlRequest>,
    ) -> Result<Response<NodeCsiControlResponse>, Status> {
        let request = request.into_inner();
        self.check_secret(&request.secret)?;
        let storage = self.context.tasks.storage.as_deref();
        Ok(Response::new(csi::control(storage, request).await?))
    }

    async fn restart(
        &self,
        request: Request<NodeRestartRequest>,
    ) -> Result<Response<NodeRestartResponse>, Status> {
        let request = request.into_inner();
        self.check_secret(&request.secret)?;
        let tasks = restart::restart(&self.agent, request).await?;
        Ok(Response::new(NodeRestartResponse { tasks }))
    }

    async fn list_files(
        &self,
        request: Request<NodeListFilesRequest>,
    ) -> Result<Response<v1::ListFilesResponse>, Status> {
        let NodeListFilesRequest { request, secret } = request.into_inner();
        self.check_secret(&secret)?;
        let list = alloc_files::list(self, request.unwrap_or_default()).await?;
        Ok(Response::new(list))
    }

    async fn get_file(
        &self,
        request: Request<NodeGetFileRequest>,
    ) -> Result<Response<v1::GetFileResponse>, Status> {
        let NodeGetFileRequest { request, secret } = request.into_inner();
        self.check_secret(&secret)?;
        let file = alloc_files::get(self, request.unwrap_or_default()).await?;
        Ok(Response::new(file))
    }

    type ReadFileStream = FileChunks;

    async fn read_file(
        &self,
        request: Request<NodeReadFileRequest>,
    ) -> Result<Response<Self::ReadFileStream>, Status> {
        let NodeReadFileRequest { request, secret } = request.into_inner();
        self.check_secret(&secret)?;
        let chunks = alloc_files::read(self, request.unwrap_or_default()).await?;
        Ok(Response::new(chunks))
    }

    async fn signal(
        &self,
        request: Request<NodeSignalRequest>,
    ) -> Result<Response<v1::SignalAllocationResponse>, Status> {
        let NodeSignalRequest { request, secret } = request.into_inner();
        self.check_secret(&secret)?;
        let sent = signal::signal(self, request.unwrap_or_default()).await?;
        Ok(Response::new(sent))
    }

    async fn alloc_stats(
        &self,
        request: Request<NodeAllocStatsRequest>,
    ) -> Result<Response<v1::GetAllocationStatsResponse>, Status> {
        let NodeAllocStatsRequest { request, secret } = request.into_inner();
        self.check_secret(&secret)?;
        let measured = stats::tasks(self, request.unwrap_or_default()).await?;
        Ok(Response::new(measured))
    }

    async fn host_stats(
        &self,
        request: Request<NodeHostStatsRequest>,
    ) -> Result<Response<v1::GetNodeStatsResponse>, Status> {
        self.check_secret(&request.into_inner().secret)?;
        Ok(Response::new(stats::host(self).await?))
    }

    async fn get_meta(
        &self,
        request: Request<NodeGetMetaRequest>,
    ) -> Result<Response<v1::GetNodeMetaResponse>, Status> {
        self.check_secret(&request.into_inner().secret)?;
        let meta = Some(control::get_meta(self));
        Ok(Response::new(v1::GetNodeMetaResponse { meta }))
    }

    async fn apply_meta(
        &self,
        request: Request<NodeApplyMetaRequest>,
    ) -> Result<Response<v1::ApplyNodeMetaResponse>, Status> {
        let NodeApplyMetaRequest { request, secret } = request.into_inner();
        self.check_secret(&secret)?;
        let meta = control::apply_meta(self, request.unwrap_or_default()).await?;
        let meta = Some(meta);
        Ok(Response::new(v1::ApplyNodeMetaResponse { meta }))
    }

    async fn refresh(
        &self,
        request: Request<NodeRefreshRequest>,
    ) -> Result<Response<v1::RefreshNodeResponse>, Status> {
        self.check_secret(&request.into_inner().secret)?;
        let changed = control::refresh(self).await?;
        Ok(Response::new(v1::RefreshNodeResponse { changed }))
    }
}
