//! Calls of controller plugins on this node, requested by a gateway or the cluster-controller.

use csi::Method;
use csi_node::Storage;
use proto::internal::v1::{NodeCsiControlRequest, NodeCsiControlResponse};
use tonic::Status;
use tracing::info;

/// Calls a plugin.
///
/// # Errors
/// The request is invalid, the plugin is not healthy on this node, or it refuses.
pub(super) async fn control(
    storage: Option<&Storage>,
    request: NodeCsiControlRequest,
) -> Result<NodeCsiControlResponse, Status> {
    let Some(method) = Method::parse(&request.method) else {
        return Err(Status::invalid_argument(format!(
            "method: {:?} is no call of a controller plugin: want one of {}",
            request.method,
            Method::ALL.map(Method::name).join(", ")
        )));
    };
    let plugin_id = &request.plugin_id;
    let plugin = storage.and_then(|storage| storage.registry.controller(plugin_id));
    let Some(plugin) = plugin else {
        return Err(Status::unavailable(format!(
            "CSI plugin {plugin_id:?} has no healthy controller on this node"
        )));
    };
    let answer = plugin.control(method, &request.request).await;
    let outcome = match &answer {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.to_string(),
    };
    info!(
        plugin_id,
        method = method.name(),
        outcome,
        "CSI controller called"
    );
    let response = answer.map_err(|error| error.to_status())?;
    Ok(NodeCsiControlResponse { response })
}
