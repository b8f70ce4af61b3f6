//! `kafila.v1.Services`.

use std::collections::{BTreeMap, BTreeSet};

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
            // Namespace and name -> tags. A namespace has no slash, so the key's order is the list's.
            let mut found = BTreeMap::<(&str, &str), BTreeSet<&str>>::new();
            for service in snapshot.services() {
                let namespace = &*service.alloc.alloc.namespace;
                let name = service.registration.name.as_str();
                if list.has_namespace(namespace) && list.has_name(name) {
                    let tags = found.entry((namespace, name)).or_default();
                    tags.extend(service.tags.iter().map(String::as_str));
                }
            }
            let keyed = found.into_iter();
            let keyed = keyed.map(|(id, tags)| (format!("{}/{}", id.0, id.1), (id, tags)));
            Ok(
                list.page(keyed, |((namespace, name), tags)| v1::ServiceSummary {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    tags: tags.into_iter().map(str::to_owned).collect(),
                }),
            )
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
        for (field, text) in [("name", &request.name), ("service_id", &request.service_id)] {
            if text.is_empty() {
                let message = "missing: want the name of a service and the id of a registration";
                return Err(Error::invalid_field(field, message));
            }
        }
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
