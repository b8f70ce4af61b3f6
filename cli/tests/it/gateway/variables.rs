//! Variable RPCs of the fake gateway.

use proto::v1::variables_server::Variables;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake, meta};

#[tonic::async_trait]
impl Variables for Fake {
    async fn list(&self, request: Request<ListVariablesRequest>) -> Answer<ListVariablesResponse> {
        self.seen("ListVariables", &request, None).await?;
        let request = request.into_inner();
        let state = self.state();
        let found = state
            .variables
            .iter()
            .filter(|it| it.namespace == request.namespace && it.path.starts_with(&request.prefix));
        let stub = |it: &Variable| Variable {
            items: Default::default(),
            ..it.clone()
        };
        Ok(Response::new(ListVariablesResponse {
            meta: Some(meta(100)),
            variables: found.map(stub).collect(),
        }))
    }

    async fn get(&self, request: Request<GetVariableRequest>) -> Answer<GetVariableResponse> {
        self.seen("GetVariable", &request, None).await?;
        let request = request.into_inner();
        let state = self.state();
        let mut found = state
            .variables
            .iter()
            .filter(|it| it.namespace == request.namespace && it.path == request.path);
        let missing = || Status::not_found("variable does not exist");
        Ok(Response::new(GetVariableResponse {
            meta: Some(meta(100)),
            variable: Some(found.next().cloned().ok_or_else(missing)?),
        }))
    }

    async fn put(&self, request: Request<PutVariableRequest>) -> Answer<PutVariableResponse> {
        self.seen("PutVariable", &request, None).await?;
        let request = request.into_inner();
        let mut state = self.state();
        if let Some(held) = state.lock.as_ref().filter(|it| **it != request.lock_id) {
            let text = format!("locked by {held}; send that lock_id if it is yours");
            return Err(Status::aborted(text));
        }
        let is_same = |it: &Variable| it.namespace == request.namespace && it.path == request.path;
        let old = state.variables.iter().position(is_same);
        let old = old.map(|position| state.variables.remove(position));
        let found = old.as_ref().map_or(0, |old| old.modify_index);
        if request.check_index.is_some_and(|want| want != found) {
            state.variables.extend(old);
            return Err(Status::aborted(format!("the modify index is {found}")));
        }
        let index = 100 + found;
        let variable = Variable {
            namespace: request.namespace,
            path: request.path,
            items: request.items,
            lock: None,
            create_time_ns: 1_000_000_000,
            modify_time_ns: 2_000_000_000,
            create_index: old.map_or(index, |old| old.create_index),
            modify_index: index,
        };
        state.variables.push(variable.clone());
        Ok(Response::new(PutVariableResponse {
            variable: Some(variable),
        }))
    }

    async fn delete(
        &self,
        request: Request<DeleteVariableRequest>,
    ) -> Answer<DeleteVariableResponse> {
        self.seen("DeleteVariable", &request, None).await?;
        let request = request.into_inner();
        let mut state = self.state();
        let before = state.variables.len();
        state.variables.retain(|it| it.path != request.path);
        if state.variables.len() == before {
            return Err(Status::not_found("variable does not exist"));
        }
        Ok(Response::new(DeleteVariableResponse { index: 103 }))
    }

    async fn acquire_lock(
        &self,
        request: Request<AcquireLockRequest>,
    ) -> Answer<AcquireLockResponse> {
        self.seen("AcquireLock", &request, None).await?;
        let request = request.into_inner();
        let mut state = self.state();
        match &state.lock {
            Some(held) if *held != request.lock_id => {
                return Err(Status::aborted(format!("locked by {held}")));
            }
            _ => state.lock = Some(request.lock_id.clone()),
        }
        Ok(Response::new(AcquireLockResponse {
            lock: Some(VariableLock {
                lock_id: request.lock_id,
                ttl: request.ttl,
                delay: request.delay,
                acquire_time_ns: 1,
            }),
        }))
    }

    async fn renew_lock(&self, request: Request<RenewLockRequest>) -> Answer<RenewLockResponse> {
        self.seen("RenewLock", &request, None).await?;
        let request = request.into_inner();
        if self.state().lock.as_ref() != Some(&request.lock_id) {
            return Err(Status::aborted("variable doesn't hold a lock"));
        }
        Ok(Response::new(RenewLockResponse { lock: None }))
    }

    async fn release_lock(
        &self,
        request: Request<ReleaseLockRequest>,
    ) -> Answer<ReleaseLockResponse> {
        self.seen("ReleaseLock", &request, None).await?;
        let request = request.into_inner();
        let mut state = self.state();
        if state.lock.as_ref() != Some(&request.lock_id) {
            return Err(Status::aborted("variable doesn't hold a lock"));
        }
        state.lock = None;
        Ok(Response::new(ReleaseLockResponse {}))
    }
}
