//! Requests of `kafila.v1.Allocations` and `kafila.v1.Nodes` that nodes answer: files, signals,
//! measurements, metadata, a new fingerprint.

use admission::cluster::node_meta;
use admission::jobs::alloc_node::{AllocNode, AllocRequestRefusal};
use admission::jobs::alloc_request::{locate_files, locate_signal, locate_stats};
use gateway_core::Error;
use identity::Caller;
use listing::find;
use node_calls::requests as nodes;
use proto::v1;
use state::{AllocView, Snapshot};
use tonic::{Request, Response, Status};

use super::query::{Api, Parts};

impl Api {
    pub(super) async fn allocation_files(
        &self,
        request: Request<v1::ListFilesRequest>,
    ) -> Result<Response<v1::ListFilesResponse>, Status> {
        let (caller, request) = opened(request);
        let target = self.locate(&request.alloc_id, locate_files).await?;
        let list = nodes::list_files(&self.gateway.node_calls, target, &caller, request).await?;
        Ok(Response::new(list))
    }

    pub(super) async fn allocation_file(
        &self,
        request: Request<v1::GetFileRequest>,
    ) -> Result<Response<v1::GetFileResponse>, Status> {
        let request = request.into_inner();
        let target = self.locate(&request.alloc_id, locate_files).await?;
        let file = nodes::get_file(&self.gateway.node_calls, target, request).await?;
        Ok(Response::new(file))
    }

    pub(super) async fn read_allocation_file(
        &self,
        request: Request<v1::ReadFileRequest>,
    ) -> Result<Response<Parts<v1::FileChunk>>, Status> {
        let (caller, request) = opened(request);
        let target = self.locate(&request.alloc_id, locate_files).await?;
        let chunks = nodes::read_file(&self.gateway.node_calls, target, &caller, request).await?;
        Ok(Response::new(Box::pin(chunks)))
    }

    pub(super) async fn signal_tasks(
        &self,
        request: Request<v1::SignalAllocationRequest>,
    ) -> Result<Response<v1::SignalAllocationResponse>, Status> {
        let (caller, request) = opened(request);
        let locate = |snapshot: &Snapshot, view: &AllocView| {
            locate_signal(snapshot, view, &request.task, &request.signal)
        };
        let target = self.locate(&request.alloc_id, locate).await?;
        let sent = nodes::signal(&self.gateway.node_calls, &target, &caller).await?;
        Ok(Response::new(sent))
    }

    pub(super) async fn allocation_stats(
        &self,
        request: Request<v1::GetAllocationStatsRequest>,
    ) -> Result<Response<v1::GetAllocationStatsResponse>, Status> {
        let request = request.into_inner();
        let locate =
            |snapshot: &Snapshot, view: &AllocView| locate_stats(snapshot, view, &request.task);
        let target = self.locate(&request.alloc_id, locate).await?;
        let measured = nodes::alloc_stats(&self.gateway.node_calls, target, request.task).await?;
        Ok(Response::new(measured))
    }

    pub(super) async fn node_stats(
        &self,
        request: Request<v1::GetNodeStatsRequest>,
    ) -> Result<Response<v1::GetNodeStatsResponse>, Status> {
        let node = self.reachable_node(&request.into_inner().node_id).await?;
        let measured = nodes::host_stats(&self.gateway.node_calls, &node).await?;
        Ok(Response::new(measured))
    }

    pub(super) async fn node_meta(
        &self,
        request: Request<v1::GetNodeMetaRequest>,
    ) -> Result<Response<v1::GetNodeMetaResponse>, Status> {
        let node = self.reachable_node(&request.into_inner().node_id).await?;
        let meta = nodes::get_meta(&self.gateway.node_calls, &node).await?;
        Ok(Response::new(meta))
    }

    pub(super) async fn apply_node_meta(
        &self,
        request: Request<v1::ApplyNodeMetaRequest>,
    ) -> Result<Response<v1::ApplyNodeMetaResponse>, Status> {
        let (caller, request) = opened(request);
        let set = request.set.clone().into_iter().collect();
        node_meta::check(&set, &request.unset).map_err(Error::from)?;
        let node = self.reachable_node(&request.node_id).await?;
        let meta = nodes::apply_meta(&self.gateway.node_calls, &node, &caller, request).await?;
        Ok(Response::new(meta))
    }

    pub(super) async fn refresh_node(
        &self,
        request: Request<v1::RefreshNodeRequest>,
    ) -> Result<Response<v1::RefreshNodeResponse>, Status> {
        let (caller, request) = opened(request);
        let node = self.reachable_node(&request.node_id).await?;
        let changed = nodes::refresh(&self.gateway.node_calls, &node, &caller).await?;
        Ok(Response::new(changed))
    }

    /// Finds an allocation, and what a request to its node needs.
    async fn locate<T: Send>(
        &self,
        alloc_id: &str,
        locate: impl Fn(&Snapshot, &AllocView) -> Result<T, AllocRequestRefusal> + Send + Sync,
    ) -> Result<T, Error> {
        let look = |snapshot: &Snapshot| {
            let id = find::alloc(snapshot, alloc_id)?;
            let view = snapshot.alloc(id).expect("found in this snapshot");
            Ok::<T, Error>(locate(snapshot, view)?)
        };
        self.gateway.core.look(look).await
    }

    async fn reachable_node(&self, node_id: &str) -> Result<AllocNode, Error> {
        let look = |snapshot: &Snapshot| {
            let id = find::node(snapshot, node_id)?;
            let node = snapshot.node(id).expect("found in this snapshot");
            Ok::<AllocNode, Error>(AllocNode::reachable(&node.value)?)
        };
        self.gateway.core.look(look).await
    }
}

fn opened<T>(request: Request<T>) -> (Caller, T) {
    (Caller::of(request.extensions()), request.into_inner())
}
