//! RPCs on service registrations.

use proto::v1;

use super::transport::Connection;
use crate::error::Error;

impl Connection {
    /// Lists services, with the token of the next page.
    pub(crate) async fn services(
        &self,
        message: v1::ListServicesRequest,
    ) -> Result<(Vec<v1::ServiceSummary>, String), Error> {
        let doing = "querying services";
        let answer: v1::ListServicesResponse = self
            .call(doing, self.api().services().list(message))
            .await?;
        Ok((answer.services, answer.meta.unwrap_or_default().next_token))
    }

    /// Lists the registrations of a service, with the token of the next page.
    pub(crate) async fn service_registrations(
        &self,
        message: v1::ListServiceRegistrationsRequest,
    ) -> Result<(Vec<v1::ServiceRegistration>, String), Error> {
        let doing = "querying service";
        let answer: v1::ListServiceRegistrationsResponse = self
            .call(doing, self.api().services().list_registrations(message))
            .await?;
        let token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.registrations, token))
    }

    /// Deletes a registration. Not idempotent: a retry would not find it.
    pub(crate) async fn delete_service(&self, name: &str, id: &str) -> Result<(), Error> {
        let message = v1::DeleteServiceRequest {
            namespace: self.namespace().to_owned(),
            name: name.to_owned(),
            service_id: id.to_owned(),
        };
        let doing = "deleting service registration";
        let _: v1::DeleteServiceResponse = self
            .call(doing, self.api().services().delete(message))
            .await?;
        Ok(())
    }
}
