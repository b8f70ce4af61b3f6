//! Service RPCs of the fake gateway.

use proto::v1::services_server::Services;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake, lists, meta};

#[tonic::async_trait]
impl Services for Fake {
    async fn list(&self, request: Request<ListServicesRequest>) -> Answer<ListServicesResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListServices", &request, options.as_ref())
            .await?;
        let mut found = self.state().registrations.clone();
        found.retain(|it| lists(options.as_ref(), &it.namespace, &it.name));
        let services = found.into_iter().map(|it| ServiceSummary {
            namespace: it.namespace,
            name: it.name,
            tags: it.tags,
        });
        Ok(Response::new(ListServicesResponse {
            meta: Some(meta(100)),
            services: services.collect(),
        }))
    }

    async fn list_registrations(
        &self,
        request: Request<ListServiceRegistrationsRequest>,
    ) -> Answer<ListServiceRegistrationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListServiceRegistrations", &request, options.as_ref())
            .await?;
        let name = request.into_inner().name;
        let mut registrations = self.state().registrations.clone();
        registrations.retain(|it| it.name == name);
        Ok(Response::new(ListServiceRegistrationsResponse {
            meta: Some(meta(100)),
            registrations,
        }))
    }

    async fn delete(
        &self,
        request: Request<DeleteServiceRequest>,
    ) -> Answer<DeleteServiceResponse> {
        self.seen("DeleteService", &request, None).await?;
        let id = request.into_inner().service_id;
        let mut state = self.state();
        let known = state.registrations.len();
        state.registrations.retain(|it| it.id != id);
        if state.registrations.len() == known {
            return Err(Status::not_found("service registration not found"));
        }
        Ok(Response::new(DeleteServiceResponse { index: 101 }))
    }
}
