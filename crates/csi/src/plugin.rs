//! A connection to one plugin.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Request, Response, Status};
use tower::service_fn;

use crate::error::Error;
use crate::facts::{ControllerFacts, NodeFacts, PluginFacts};
use crate::v1::controller_client::ControllerClient;
use crate::v1::controller_service_capability::rpc::Type as ControllerRpc;
use crate::v1::identity_client::IdentityClient;
use crate::v1::node_client::NodeClient;
use crate::v1::node_service_capability::rpc::Type as NodeRpc;
use crate::v1::plugin_capability::service::Type as Service;
use crate::v1::{
    ControllerGetCapabilitiesRequest, GetPluginCapabilitiesRequest, GetPluginInfoRequest,
    NodeGetCapabilitiesRequest, NodeGetInfoRequest, NodePublishVolumeRequest,
    NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest, ProbeRequest,
    controller_service_capability, node_service_capability, plugin_capability,
};

/// Deadline of calls that answer from memory.
const FACTS_LIMIT: Duration = Duration::from_secs(10);
/// Deadline of calls that mount, format or reach a storage system. Source: the default of the public
/// sidecars of the interface is 15 s; formatting a large disk takes longer, and a repeated call of the
/// specification finds the first one still working.
const WORK_LIMIT: Duration = Duration::from_secs(120);
/// The largest answer: a list of some thousand volumes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// One plugin. Cheap to clone; connects with the first call, and again after a lost connection.
#[derive(Clone, Debug)]
pub struct Plugin {
    channel: Channel,
}

/// A call of the controller service, by its name in the specification. Its messages are passed
/// encoded, so that a relay need not know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    CreateVolume,
    DeleteVolume,
    ControllerPublishVolume,
    ControllerUnpublishVolume,
    ValidateVolumeCapabilities,
    ListVolumes,
    CreateSnapshot,
    DeleteSnapshot,
    ListSnapshots,
}

impl Method {
    pub const ALL: [Self; 9] = [
        Self::CreateVolume,
        Self::DeleteVolume,
        Self::ControllerPublishVolume,
        Self::ControllerUnpublishVolume,
        Self::ValidateVolumeCapabilities,
        Self::ListVolumes,
        Self::CreateSnapshot,
        Self::DeleteSnapshot,
        Self::ListSnapshots,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::CreateVolume => "CreateVolume",
            Self::DeleteVolume => "DeleteVolume",
            Self::ControllerPublishVolume => "ControllerPublishVolume",
            Self::ControllerUnpublishVolume => "ControllerUnpublishVolume",
            Self::ValidateVolumeCapabilities => "ValidateVolumeCapabilities",
            Self::ListVolumes => "ListVolumes",
            Self::CreateSnapshot => "CreateSnapshot",
            Self::DeleteSnapshot => "DeleteSnapshot",
            Self::ListSnapshots => "ListSnapshots",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

impl Plugin {
    /// A plugin at `socket`, which need not exist yet.
    pub fn at(socket: &Path) -> Self {
        let socket: PathBuf = socket.to_owned();
        let connector = service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        // No name is looked up: the connector ignores the address.
        let endpoint = Endpoint::from_static("http://localhost").connect_timeout(FACTS_LIMIT);
        Self {
            channel: endpoint.connect_with_connector_lazy(connector),
        }
    }

    fn controller(&self) -> ControllerClient<Channel> {
        ControllerClient::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// Tells whether the plugin is ready. One that does not say is.
    ///
    /// # Errors
    /// It does not answer, or is not healthy.
    pub async fn probe(&self) -> Result<bool, Error> {
        let mut client = IdentityClient::new(self.channel.clone());
        let answer = client.probe(quick(ProbeRequest {})).await;
        let answer = done("Probe", answer)?;
        Ok(answer.ready.unwrap_or(true))
    }

    /// # Errors
    /// It does not answer, or refuses.
    pub async fn facts(&self) -> Result<PluginFacts, Error> {
        let mut client = IdentityClient::new(self.channel.clone());
        let info = client.get_plugin_info(quick(GetPluginInfoRequest {})).await;
        let info = done("GetPluginInfo", info)?;
        if info.name.is_empty() {
            let status = Status::invalid_argument("the plugin has no name");
            return Err(Error::new("GetPluginInfo", &status));
        }
        let request = quick(GetPluginCapabilitiesRequest {});
        let answer = client.get_plugin_capabilities(request).await;
        let answer = done("GetPluginCapabilities", answer)?;
        let services: Vec<Service> = answer
            .capabilities
            .into_iter()
            .filter_map(|capability| match capability.r#type {
                Some(plugin_capability::Type::Service(service)) => Some(service.r#type()),
                _ => None,
            })
            .collect();
        Ok(PluginFacts {
            name: info.name,
            version: info.vendor_version,
            has_controller: services.contains(&Service::ControllerService),
            has_topology: services.contains(&Service::VolumeAccessibilityConstraints),
        })
    }

    /// # Errors
    /// It does not answer, or refuses.
    pub async fn controller_facts(&self) -> Result<ControllerFacts, Error> {
        let request = quick(ControllerGetCapabilitiesRequest {});
        let answer = self.controller().controller_get_capabilities(request).await;
        let answer = done("ControllerGetCapabilities", answer)?;
        let mut facts = ControllerFacts::default();
        for capability in answer.capabilities {
            let Some(controller_service_capability::Type::Rpc(rpc)) = capability.r#type else {
                continue;
            };
            match rpc.r#type() {
                ControllerRpc::CreateDeleteVolume => facts.creates = true,
                ControllerRpc::PublishUnpublishVolume => facts.attaches = true,
                ControllerRpc::ListVolumes => facts.lists = true,
                ControllerRpc::ListVolumesPublishedNodes => facts.lists_attached_nodes = true,
                ControllerRpc::CreateDeleteSnapshot => facts.snapshots = true,
                ControllerRpc::ListSnapshots => facts.lists_snapshots = true,
                ControllerRpc::CloneVolume => facts.clones = true,
                ControllerRpc::PublishReadonly => facts.attaches_read_only = true,
                _ => {}
            }
        }
        Ok(facts)
    }

    /// # Errors
    /// It does not answer, or refuses.
    pub async fn node_facts(&self) -> Result<NodeFacts, Error> {
        let mut client = NodeClient::new(self.channel.clone());
        let request = quick(NodeGetCapabilitiesRequest {});
        let answer = client.node_get_capabilities(request).await;
        let answer = done("NodeGetCapabilities", answer)?;
        let mut capabilities = answer.capabilities.into_iter();
        let stages = capabilities.any(|capability| match capability.r#type {
            Some(node_service_capability::Type::Rpc(rpc)) => {
                rpc.r#type() == NodeRpc::StageUnstageVolume
            }
            None => false,
        });
        let info = client.node_get_info(quick(NodeGetInfoRequest {})).await;
        let info = done("NodeGetInfo", info)?;
        let topology = info.accessible_topology.unwrap_or_default();
        let topology: BTreeMap<_, _> = topology.segments.into_iter().collect();
        Ok(NodeFacts {
            node_id: info.node_id,
            // Source: the specification: 0 and less mean that the caller decides.
            max_volumes: u64::try_from(info.max_volumes_per_node).unwrap_or_default(),
            topology,
            stages,
        })
    }

    /// # Errors
    /// It does not answer, or refuses.
    pub async fn stage(&self, request: NodeStageVolumeRequest) -> Result<(), Error> {
        let mut client = NodeClient::new(self.channel.clone());
        let answer = client.node_stage_volume(slow(request)).await;
        done("NodeStageVolume", answer).map(drop)
    }

    /// # Errors
    /// It does not answer, or refuses. A volume that it does not know is not staged.
    pub async fn unstage(&self, request: NodeUnstageVolumeRequest) -> Result<(), Error> {
        let mut client = NodeClient::new(self.channel.clone());
        let answer = client.node_unstage_volume(slow(request)).await;
        undone(done("NodeUnstageVolume", answer).map(drop))
    }

    /// # Errors
    /// It does not answer, or refuses.
    pub async fn publish(&self, request: NodePublishVolumeRequest) -> Result<(), Error> {
        let mut client = NodeClient::new(self.channel.clone());
        let answer = client.node_publish_volume(slow(request)).await;
        done("NodePublishVolume", answer).map(drop)
    }

    /// # Errors
    /// It does not answer, or refuses. A volume that it does not know is not published.
    pub async fn unpublish(&self, request: NodeUnpublishVolumeRequest) -> Result<(), Error> {
        let mut client = NodeClient::new(self.channel.clone());
        let answer = client.node_unpublish_volume(slow(request)).await;
        undone(done("NodeUnpublishVolume", answer).map(drop))
    }

    /// Calls the controller service; request and answer are encoded messages of the specification.
    ///
    /// # Errors
    /// The request cannot be decoded, or the plugin does not answer, or refuses.
    pub async fn control(&self, method: Method, request: &[u8]) -> Result<Vec<u8>, Error> {
        let mut client = self.controller();
        let name = method.name();
        match method {
            Method::CreateVolume => {
                let request = read(name, request)?;
                encoded(name, client.create_volume(slow(request)).await)
            }
            Method::DeleteVolume => {
                let request = read(name, request)?;
                encoded(name, client.delete_volume(slow(request)).await)
            }
            Method::ControllerPublishVolume => {
                let request = read(name, request)?;
                encoded(name, client.controller_publish_volume(slow(request)).await)
            }
            Method::ControllerUnpublishVolume => {
                let request = read(name, request)?;
                let answer = client.controller_unpublish_volume(slow(request)).await;
                encoded(name, answer)
            }
            Method::ValidateVolumeCapabilities => {
                let request = read(name, request)?;
                let answer = client.validate_volume_capabilities(slow(request)).await;
                encoded(name, answer)
            }
            Method::ListVolumes => {
                let request = read(name, request)?;
                encoded(name, client.list_volumes(slow(request)).await)
            }
            Method::CreateSnapshot => {
                let request = read(name, request)?;
                encoded(name, client.create_snapshot(slow(request)).await)
            }
            Method::DeleteSnapshot => {
                let request = read(name, request)?;
                encoded(name, client.delete_snapshot(slow(request)).await)
            }
            Method::ListSnapshots => {
                let request = read(name, request)?;
                encoded(name, client.list_snapshots(slow(request)).await)
            }
        }
    }
}

fn quick<T>(message: T) -> Request<T> {
    limited(message, FACTS_LIMIT)
}

fn slow<T>(message: T) -> Request<T> {
    limited(message, WORK_LIMIT)
}

fn limited<T>(message: T, limit: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(limit);
    request
}

fn done<T>(method: &'static str, answer: Result<Response<T>, Status>) -> Result<T, Error> {
    let answer = answer.map(Response::into_inner);
    answer.map_err(|status| Error::new(method, &status))
}

fn undone(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        result => result,
    }
}

fn read<T: Message + Default>(method: &'static str, request: &[u8]) -> Result<T, Error> {
    T::decode(request).map_err(|error| Error {
        method,
        code: Code::InvalidArgument,
        message: format!("the request cannot be read: {error}"),
    })
}

fn encoded<T: Message>(
    method: &'static str,
    answer: Result<Response<T>, Status>,
) -> Result<Vec<u8>, Error> {
    done(method, answer).map(|answer| answer.encode_to_vec())
}
