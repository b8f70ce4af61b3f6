//! Namespace RPCs of the fake gateway.

use proto::v1::namespaces_server::Namespaces;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake, meta, page};
use crate::state::FakeState;

#[tonic::async_trait]
impl Namespaces for Fake {
    async fn list(
        &self,
        request: Request<ListNamespacesRequest>,
    ) -> Answer<ListNamespacesResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListNamespaces", &request, options.as_ref())
            .await?;
        let (namespaces, meta) = page(self.state().namespaces.clone(), options.as_ref());
        Ok(Response::new(ListNamespacesResponse { meta, namespaces }))
    }

    async fn get(&self, request: Request<GetNamespaceRequest>) -> Answer<GetNamespaceResponse> {
        self.seen("GetNamespace", &request, None).await?;
        let name = request.into_inner().name;
        let state = self.state();
        let mut found = state.namespaces.iter().filter(|it| it.name == name);
        let missing = || Status::not_found(format!("namespace {name:?} not found"));
        Ok(Response::new(GetNamespaceResponse {
            meta: Some(meta(100)),
            namespace: Some(found.next().cloned().ok_or_else(missing)?),
        }))
    }

    async fn upsert(
        &self,
        request: Request<UpsertNamespaceRequest>,
    ) -> Answer<UpsertNamespaceResponse> {
        self.seen("UpsertNamespace", &request, None).await?;
        let request = request.into_inner();
        let wanted = request.namespace.unwrap();
        let mut state = self.state();
        let put = |state: &mut FakeState, it: Namespace| {
            state.namespaces.retain(|other| other.name != it.name);
            state.namespaces.push(it);
        };
        if let Some(other) = state.other_namespaces.pop_front() {
            put(&mut state, other);
        }
        let mut found = state.namespaces.iter().filter(|it| it.name == wanted.name);
        let found = found.next().map_or(0, |it| it.modify_index);
        if request.check_index.is_some_and(|want| want != found) {
            return Err(Status::aborted("conflicting change"));
        }
        put(&mut state, wanted);
        Ok(Response::new(UpsertNamespaceResponse { modify_index: 101 }))
    }

    async fn delete(
        &self,
        request: Request<DeleteNamespaceRequest>,
    ) -> Answer<DeleteNamespaceResponse> {
        self.seen("DeleteNamespace", &request, None).await?;
        let name = request.into_inner().name;
        let mut state = self.state();
        if !state.namespaces.iter().any(|it| it.name == name) {
            return Err(Status::not_found(format!("namespace {name:?} not found")));
        }
        state.namespaces.retain(|it| it.name != name);
        Ok(Response::new(DeleteNamespaceResponse { index: 101 }))
    }
}
