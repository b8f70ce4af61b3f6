//! The driver's identity service.

use csi::v1::identity_server::Identity;
use csi::v1::plugin_capability::service::Type as Service;
use csi::v1::plugin_capability::{self, Type};
use csi::v1::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest,
    GetPluginInfoResponse, PluginCapability, ProbeRequest, ProbeResponse,
};
use tonic::{Request, Response, Status};

use crate::Driver;

#[tonic::async_trait]
impl Identity for Driver {
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        Ok(Response::new(GetPluginInfoResponse {
            name: "dir.csi.kafila.test".to_owned(),
            vendor_version: "1.0.0".to_owned(),
            ..GetPluginInfoResponse::default()
        }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        let controller = PluginCapability {
            r#type: Some(Type::Service(plugin_capability::Service {
                r#type: Service::ControllerService.into(),
            })),
        };
        Ok(Response::new(GetPluginCapabilitiesResponse {
            capabilities: vec![controller],
        }))
    }

    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        let node = &self.settings.node_id;
        self.store.enter(node, "Probe", "-").await?;
        Ok(Response::new(ProbeResponse { ready: Some(true) }))
    }
}
