//! gRPC service `kafila.internal.v1.NodeFiles`: tasks' output, restarts of tasks and states of
//! checks, for gateways that know the node's secret.

mod checks;
pub(crate) mod files;
mod logs;
mod restart;

use proto::internal::v1::node_files_server::NodeFiles;
use proto::internal::v1::{
    NodeChecksRequest, NodeChecksResponse, NodeLogsRequest, NodeRestartRequest, NodeRestartResponse,
};
use tonic::{Request, Response, Status};

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

    async fn checks(
        &self,
        request: Request<NodeChecksRequest>,
    ) -> Result<Response<NodeChecksResponse>, Status> {
        let request = request.into_inner();
        self.check_secret(&request.secret)?;
        Ok(Response::new(checks::checks(&self.agent, &request).await?))
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
