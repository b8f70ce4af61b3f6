//! `kafila.v1.Services`.

use std::collections::BTreeMap;

use admission::services;
use gateway_core::{Error, Step};
use model::{AllocId, Namespace};
use proto::v1;
use proto::v1::services_server::Services;
use state::{ShownService, Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::query::{Api, List, open};

/// Nodes, too: the registrations of a node that is down are not shown. And deployments: a promotion
/// changes the tags of canaries.
const TABLES: [Table; 3] = [Table::Services, Table::Nodes, Table::Deployments];

#[tonic::async_trait]
impl Services for Api {
    async fn list(
        &self,
        request: Request<v1::ListServicesRequest>,
    ) -> Result<Response<v1::ListServicesResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<String>::new(request.options, timeout)?;
        let answer = |snapshot: &Snapshot| {
            let listed = snapshot.services().filter(|service| {
                list.has_namespace(&service.alloc.alloc.namespace)
                    && list.has_name(&service.registration.name)
            });
            // A namespace has no slash, so the key's order is the list's.
            let keyed = api_view::service::summaries(listed).into_iter();
            let keyed = keyed.map(|it| (format!("{}/{}", it.namespace, it.name), it));
            Ok(list.page(keyed, |summary| summary))
        };
        let (services, meta) = Api::list(self, &list, &TABLES, answer).await?;
        Ok(Response::new(v1::ListServicesResponse { meta, services }))
    }

    async fn list_registrations(
        &self,
        request: Request<v1::ListServiceRegistrationsRequest>,
    ) -> Result<Response<v1::ListServiceRegistrationsResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<String>::new(request.options, timeout)?;
        if request.name.is_empty() && request.job_id.is_empty() && request.alloc_id.is_empty() {
            let message =
                "missing service name: want the name of a service, a job_id or an alloc_id";
            return Err(Error::invalid_field("name", message).into());
        }
        let alloc_id = match request.alloc_id.as_str() {
            "" => None,
            text => Some(
                text.parse::<AllocId>()
                    .map_err(|error| Error::invalid_field("alloc_id", error.to_string()))?,
            ),
        };
        let answer = |snapshot: &Snapshot| {
            let is_asked_for = |service: &ShownService<'_>| {
                let alloc = &service.alloc.alloc;
                list.has_namespace(&alloc.namespace)
                    && (request.name.is_empty() || service.registration.name == request.name)
                    && (request.job_id.is_empty() || *alloc.job_id == *request.job_id)
                    && alloc_id.is_none_or(|id| alloc.id == id)
            };
            // The order of the list is that of its keys.
            let mut found = BTreeMap::new();
            for service in snapshot.services().filter(is_asked_for) {
                let key = format!(
                    "{}/{}",
                    service.alloc.alloc.namespace, service.registration.id
                );
                found.insert(key, service);
            }
            Ok(list.page(found.into_iter(), api_view::service::registration))
        };
        let (registrations, meta) = Api::list(self, &list, &TABLES, answer).await?;
        Ok(Response::new(v1::ListServiceRegistrationsResponse {
            meta,
            registrations,
        }))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteServiceRequest>,
    ) -> Result<Response<v1::DeleteServiceResponse>, Status> {
        let request = request.into_inner();
        let index = Box::pin(self.delete_service(&request)).await?;
        info!(
            service_id = request.service_id,
            index, "service registration deleted"
        );
        Ok(Response::new(v1::DeleteServiceResponse { index }))
    }
}

impl Api {
    async fn delete_service(&self, request: &v1::DeleteServiceRequest) -> Result<u64, Error> {
        let namespace = Namespace::or_default(&request.namespace);
        let decide = |snapshot: &Snapshot| {
            let write = services::delete(snapshot, namespace, &request.name, &request.service_id)?;
            Ok(Step::Commit {
                writes: vec![write],
                answer: Box::new(|revision| revision),
            })
        };
        let what = || format!("service registration {}", request.service_id);
        self.gateway.core.execute(what, decide).await
    }
}
