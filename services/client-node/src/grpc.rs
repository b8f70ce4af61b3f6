//! gRPC service `kafila.internal.v1.NodeFiles`: tasks' output, restarts of tasks, commands
//! beside them, states of checks and calls of controller plugins, for gateways that know the node's secret.

mod checks;
mod csi;
mod exec;
pub(crate) mod files;
mod logs;
mod restart;

use proto::internal::v1::node_files_server::NodeFiles;
use proto::internal::v1::{
    NodeChecksRequest, NodeChecksResponse, NodeCsiControlRequest, NodeCsiControlResponse,
    NodeExecInput, NodeLogsRequest, NodeRestartRequest, NodeRestartResponse,
};
use tonic::{Request, Response, Status, Streaming};

use self::exec::Outputs;
use self::files::Files;
use self::logs::Chunks;

#[tonic::async_trait]
impl NodeFiles for Files {
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
}
