//! `kafila.v1.Variables`.

use gateway_core::Error;
use proto::v1::variables_server::Variables;
use proto::v1::{self, AcquireLockRequest, ReleaseLockRequest, RenewLockRequest};
use tonic::{Request, Response, Status};

use super::query::Api;

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Variables for Api {
    async fn list(
        &self,
        request: Request<v1::ListVariablesRequest>,
    ) -> Answer<v1::ListVariablesResponse> {
        let variables = self.gateway.keyring.variables();
        let response = Box::pin(variables.answer_list(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn get(
        &self,
        request: Request<v1::GetVariableRequest>,
    ) -> Answer<v1::GetVariableResponse> {
        let variables = self.gateway.keyring.variables();
        let response = Box::pin(variables.answer_get(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn put(
        &self,
        request: Request<v1::PutVariableRequest>,
    ) -> Answer<v1::PutVariableResponse> {
        self.gateway.space.check().map_err(Error::refused)?;
        let variables = self.gateway.keyring.variables();
        let response = Box::pin(variables.answer_put(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteVariableRequest>,
    ) -> Answer<v1::DeleteVariableResponse> {
        let variables = self.gateway.keyring.variables();
        let response = Box::pin(variables.answer_delete(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn acquire_lock(
        &self,
        request: Request<AcquireLockRequest>,
    ) -> Answer<v1::AcquireLockResponse> {
        self.gateway.space.check().map_err(Error::refused)?;
        let variables = self.gateway.keyring.variables();
        let response = Box::pin(variables.locks().answer_acquire(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn renew_lock(
        &self,
        request: Request<RenewLockRequest>,
    ) -> Answer<v1::RenewLockResponse> {
        let variables = self.gateway.keyring.variables();
        let response = Box::pin(variables.locks().answer_renew(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn release_lock(
        &self,
        request: Request<ReleaseLockRequest>,
    ) -> Answer<v1::ReleaseLockResponse> {
        let variables = self.gateway.keyring.variables();
        let response = Box::pin(variables.locks().answer_release(request.into_inner())).await?;
        Ok(Response::new(response))
    }
}
