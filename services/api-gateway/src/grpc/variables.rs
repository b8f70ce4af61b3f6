//! `kafila.v1.Variables`.

use admission::cluster::variables::{PutRequest, VariableRefusal};
use gateway_core::Error;
use keyring::variables::{show, stub};
use listing::page::{self, PageKey as _};
use model::{Namespace, VariableKey};
use proto::v1;
use proto::v1::variables_server::Variables;
use store::VariableFilter;
use tonic::{Request, Response, Status};

use super::query::Api;

/// Variables on one page, at most.
const PAGE_MAX: usize = 1_000;

#[tonic::async_trait]
impl Variables for Api {
    async fn list(
        &self,
        request: Request<v1::ListVariablesRequest>,
    ) -> Result<Response<v1::ListVariablesResponse>, Status> {
        let request = request.into_inner();
        let response = Box::pin(self.list_variables(&request)).await?;
        Ok(Response::new(response))
    }

    async fn get(
        &self,
        request: Request<v1::GetVariableRequest>,
    ) -> Result<Response<v1::GetVariableResponse>, Status> {
        let request = request.into_inner();
        let key = key(&request.namespace, request.path);
        let found = Box::pin(self.gateway.keyring.variables().get(&key)).await?;
        let found = found.ok_or_else(|| {
            Error::from(VariableRefusal::NotFound {
                variable: key.clone(),
            })
        })?;
        Ok(Response::new(v1::GetVariableResponse {
            meta: Some(v1::QueryMeta {
                index: found.modify_index,
                ..v1::QueryMeta::default()
            }),
            variable: Some(show(key, found)),
        }))
    }

    async fn put(
        &self,
        request: Request<v1::PutVariableRequest>,
    ) -> Result<Response<v1::PutVariableResponse>, Status> {
        let request = request.into_inner();
        self.gateway.space.check().map_err(Error::overloaded)?;
        let request = PutRequest {
            variable: key(&request.namespace, request.path),
            items: request.items.into_iter().collect(),
            check_index: request.check_index,
        };
        let stored = Box::pin(self.gateway.keyring.variables().put(&request)).await?;
        Ok(Response::new(v1::PutVariableResponse {
            variable: Some(show(request.variable, stored)),
        }))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteVariableRequest>,
    ) -> Result<Response<v1::DeleteVariableResponse>, Status> {
        let request = request.into_inner();
        let key = key(&request.namespace, request.path);
        let variables = self.gateway.keyring.variables();
        let index = Box::pin(variables.delete(&key, request.check_index)).await?;
        Ok(Response::new(v1::DeleteVariableResponse { index }))
    }
}

impl Api {
    async fn list_variables(
        &self,
        request: &v1::ListVariablesRequest,
    ) -> Result<v1::ListVariablesResponse, Error> {
        let after: Option<VariableKey> = page::key_of("next_token", &request.next_token)?;
        let filter = VariableFilter {
            namespace: match request.namespace.as_str() {
                "*" => None,
                name => Some(Namespace::or_default(name)),
            },
            prefix: &request.prefix,
            after: after.as_ref(),
        };
        let limit = page::limited(request.per_page, PAGE_MAX);
        let page = self.gateway.keyring.variables().list(filter, limit).await?;
        let last = page.variables.last().filter(|_| page.has_more);
        let next_token = last.map(|last| last.key.to_token());
        Ok(v1::ListVariablesResponse {
            meta: Some(v1::QueryMeta {
                index: page.revision,
                next_token: next_token.unwrap_or_default(),
                ..v1::QueryMeta::default()
            }),
            variables: page.variables.into_iter().map(stub).collect(),
        })
    }
}

fn key(namespace: &str, path: String) -> VariableKey {
    VariableKey::new(Namespace::or_default(namespace), path)
}
