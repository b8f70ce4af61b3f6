//! `kafila.v1.CsiVolumes`.

use admission::cluster::csi::CsiRefusal;
use admission::cluster::csi::register::{self, Change, Context};
use admission::cluster::csi::{deregister, detach};
use gateway_core::{Error, Step};
use listing::prefix::NotFound;
use model::{CsiAttachmentKey, CsiVolume, CsiVolumeKey, Indexed, Namespace};
use placement::csi::holders;
use proto::v1::csi_volumes_server::CsiVolumes;
use proto::{CsiVolumeRead, v1};
use service_kit::current_trace_parent;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::nodes;
use super::query::{Api, List, Read, open, reply};
use crate::reads::index;
use crate::reads::options::{self, Namespaces};

/// Users and plugins follow from allocations, jobs and nodes.
const TABLES: [Table; 3] = [Table::Volumes, Table::Nodes, Table::Allocs];

#[tonic::async_trait]
impl CsiVolumes for Api {
    async fn list(
        &self,
        request: Request<v1::ListCsiVolumesRequest>,
    ) -> Result<Response<v1::ListCsiVolumesResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<CsiVolumeKey>::new(request.options, timeout)?;
        let answer = |snapshot: &Snapshot| {
            let node_id = match request.node_id.as_str() {
                "" => None,
                text => Some(nodes::find(snapshot, text)?),
            };
            let is_on_node = |volume: &CsiVolume| {
                let key = volume.key();
                node_id.is_none_or(|node_id| {
                    let mut users = holders::of(snapshot, &key);
                    users.any(|(view, _)| view.alloc.node_id == node_id)
                })
            };
            let plugin_id = &request.plugin_id;
            let volumes = snapshot.csi_volumes().filter(|volume| {
                let value = &volume.value;
                list.has_namespace(&value.namespace)
                    && list.has_name(&value.id)
                    && (plugin_id.is_empty() || value.plugin_id == *plugin_id)
                    && is_on_node(value)
            });
            let keyed = volumes.map(|volume| (volume.value.key(), volume));
            Ok(list.page(keyed, |volume| api_view::csi::volume(snapshot, volume)))
        };
        let (volumes, meta) = Api::list(self, &list, &TABLES, answer).await?;
        Ok(Response::new(v1::ListCsiVolumesResponse { meta, volumes }))
    }

    async fn get(
        &self,
        request: Request<v1::GetCsiVolumeRequest>,
    ) -> Result<Response<v1::GetCsiVolumeResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let namespaces = options::namespaces(&read.options);
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &TABLES);
        let answer = |snapshot: &Snapshot| {
            let volume = find(snapshot, &namespaces, &request.volume_id)?;
            let key = volume.value.key();
            let attachments = snapshot.csi_attachments_of(&key);
            let attachments = attachments.map(|(key, stored)| (key, &stored.value).into());
            let shown = v1::GetCsiVolumeResponse {
                meta: None,
                volume: Some(api_view::csi::volume(snapshot, volume)),
                users: api_view::csi::users(snapshot, volume),
                attachments: attachments.collect(),
            };
            Ok((shown, String::new()))
        };
        let (response, meta) = self.query(&read, &TABLES, index, answer).await?;
        Ok(Response::new(v1::GetCsiVolumeResponse { meta, ..response }))
    }

    async fn register(
        &self,
        request: Request<v1::RegisterCsiVolumeRequest>,
    ) -> Result<Response<v1::RegisterCsiVolumeResponse>, Status> {
        let wanted = request.into_inner().volume;
        let registered = Box::pin(async {
            let wanted = read_volume(wanted, false)?;
            self.register_csi(&wanted).await
        });
        reply(
            registered
                .await
                .map(|volume| v1::RegisterCsiVolumeResponse {
                    volume: Some(volume),
                }),
        )
    }

    async fn deregister(
        &self,
        request: Request<v1::DeregisterCsiVolumeRequest>,
    ) -> Result<Response<v1::DeregisterCsiVolumeResponse>, Status> {
        let request = request.into_inner();
        let key = key(&request.namespace, &request.volume_id);
        let index = Box::pin(self.deregister_csi(&key, request.force)).await?;
        info!(
            volume_id = request.volume_id,
            index, "CSI volume deregistered"
        );
        Ok(Response::new(v1::DeregisterCsiVolumeResponse {
            index,
            volume_id: request.volume_id,
        }))
    }

    async fn create(
        &self,
        request: Request<v1::CreateCsiVolumeRequest>,
    ) -> Result<Response<v1::CreateCsiVolumeResponse>, Status> {
        let wanted = request.into_inner().volume;
        let created = Box::pin(async {
            let wanted = read_volume(wanted, true)?;
            self.create_csi(wanted).await
        });
        let volume = Some(created.await?);
        Ok(Response::new(v1::CreateCsiVolumeResponse { volume }))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteCsiVolumeRequest>,
    ) -> Result<Response<v1::DeleteCsiVolumeResponse>, Status> {
        let request = request.into_inner();
        let key = key(&request.namespace, &request.volume_id);
        let index = Box::pin(self.delete_csi(&key)).await?;
        info!(volume_id = request.volume_id, index, "CSI volume deleted");
        Ok(Response::new(v1::DeleteCsiVolumeResponse {
            index,
            volume_id: request.volume_id,
        }))
    }

    async fn detach(
        &self,
        request: Request<v1::DetachCsiVolumeRequest>,
    ) -> Result<Response<v1::DetachCsiVolumeResponse>, Status> {
        let request = request.into_inner();
        let volume = key(&request.namespace, &request.volume_id);
        let decide = |snapshot: &Snapshot| {
            let key = CsiAttachmentKey {
                volume: volume.clone(),
                node_id: nodes::find(snapshot, &request.node_id)?,
            };
            Ok(match detach::request(snapshot, &key)? {
                Some(write) => Step::Commit {
                    writes: vec![write],
                    answer: Box::new(|revision| revision),
                },
                None => Step::IfFresh(snapshot.index()),
            })
        };
        let what = || format!("volume {}", request.volume_id);
        let index = Box::pin(self.gateway.core.execute(what, decide)).await?;
        Ok(Response::new(v1::DetachCsiVolumeResponse { index }))
    }

    async fn list_external(
        &self,
        request: Request<v1::ListExternalCsiVolumesRequest>,
    ) -> Result<Response<v1::ListExternalCsiVolumesResponse>, Status> {
        let answer = Box::pin(self.list_external_csi(request.into_inner())).await;
        reply(answer)
    }

    async fn create_snapshot(
        &self,
        request: Request<v1::CreateCsiSnapshotRequest>,
    ) -> Result<Response<v1::CreateCsiSnapshotResponse>, Status> {
        let answer = Box::pin(self.create_csi_snapshot(request.into_inner())).await;
        reply(answer)
    }

    async fn delete_snapshot(
        &self,
        request: Request<v1::DeleteCsiSnapshotRequest>,
    ) -> Result<Response<v1::DeleteCsiSnapshotResponse>, Status> {
        let answer = Box::pin(self.delete_csi_snapshot(request.into_inner())).await;
        reply(answer)
    }

    async fn list_snapshots(
        &self,
        request: Request<v1::ListCsiSnapshotsRequest>,
    ) -> Result<Response<v1::ListCsiSnapshotsResponse>, Status> {
        let answer = Box::pin(self.list_csi_snapshots(request.into_inner())).await;
        reply(answer)
    }

    async fn list_plugins(
        &self,
        request: Request<v1::ListCsiPluginsRequest>,
    ) -> Result<Response<v1::ListCsiPluginsResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<String>::new(request.options, timeout)?;
        let answer = |snapshot: &Snapshot| {
            let ids = snapshot.csi_plugin_ids().filter(|id| list.has_name(id));
            let plugins = ids.filter_map(|id| {
                let plugin = api_view::csi::plugin(snapshot, id)?;
                Some((id.to_string(), plugin))
            });
            Ok(list.page(plugins, |plugin| plugin))
        };
        let (plugins, meta) = Api::list(self, &list, &[Table::Nodes], answer).await?;
        Ok(Response::new(v1::ListCsiPluginsResponse { meta, plugins }))
    }

    async fn get_plugin(
        &self,
        request: Request<v1::GetCsiPluginRequest>,
    ) -> Result<Response<v1::GetCsiPluginResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let tables = [Table::Nodes];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let ids = snapshot.csi_plugin_ids().map(|id| &**id);
            let id = one_of("plugin_id", "plugin", &request.plugin_id, ids)?;
            let plugin = api_view::csi::plugin(snapshot, id);
            let plugin = plugin.ok_or_else(|| not_found("plugin", id))?;
            Ok((plugin, String::new()))
        };
        let (plugin, meta) = self.query(&read, &tables, index, answer).await?;
        Ok(Response::new(v1::GetCsiPluginResponse {
            meta,
            plugin: Some(plugin),
        }))
    }
}

impl Api {
    pub(super) async fn register_csi(&self, wanted: &CsiVolume) -> Result<v1::CsiVolume, Error> {
        let core = &self.gateway.core;
        let context = Context {
            now: core.now(),
            trace_parent: current_trace_parent(),
        };
        let decide = |snapshot: &Snapshot| {
            let next_id = || core.next_eval_id();
            Ok(
                match register::register(snapshot, wanted, &context, next_id)? {
                    Change::Unchanged(stored) => {
                        Step::IfFresh(api_view::csi::volume(snapshot, &stored))
                    }
                    Change::Write { volume, writes } => {
                        let stored = snapshot.csi_volume(&volume.key());
                        let create_index = stored.map(|stored| stored.create_index);
                        let snapshot = snapshot.clone();
                        let answer = move |revision: u64| {
                            let stored = Indexed {
                                create_index: create_index.unwrap_or(revision),
                                modify_index: revision,
                                value: *volume,
                            };
                            api_view::csi::volume(&snapshot, &stored)
                        };
                        Step::Commit {
                            writes,
                            answer: Box::new(answer),
                        }
                    }
                },
            )
        };
        let what = || format!("volume {}", wanted.id);
        let volume = core.execute(what, decide).await?;
        info!(
            volume_id = volume.id,
            plugin_id = volume.plugin_id,
            "CSI volume registered"
        );
        Ok(volume)
    }

    pub(super) async fn deregister_csi(
        &self,
        key: &CsiVolumeKey,
        force: bool,
    ) -> Result<u64, Error> {
        let what = || format!("volume {}", key.id);
        let decide = |snapshot: &Snapshot, _: Option<&()>| {
            let deletion = deregister::deregister(snapshot, key, force)?;
            let missing = || CsiRefusal::NoVolume(key.id.to_string());
            Ok(((), deletion.ok_or_else(missing)?))
        };
        let ((), index) = self.delete_in_two_steps(what, decide).await?;
        Ok(index)
    }
}

pub(super) fn key(namespace: &str, volume_id: &str) -> CsiVolumeKey {
    let namespace = match namespace {
        "" => Namespace::DEFAULT,
        namespace => namespace,
    };
    CsiVolumeKey::new(namespace, volume_id)
}

fn read_volume(wire: Option<v1::CsiVolume>, is_new: bool) -> Result<CsiVolume, Error> {
    let Some(wire) = wire else {
        let message = "missing: want the volume, as in its file";
        return Err(Error::invalid_field("volume", message));
    };
    let read = CsiVolumeRead::from(wire).checked(is_new);
    read.map_err(|mut errors| {
        for error in &mut errors.0 {
            error.field = format!("volume.{}", error.field);
        }
        Error::from(errors)
    })
}

/// Returns the one volume in `namespaces` with the id `text`, or with an id that begins with it.
fn find<'s>(
    snapshot: &'s Snapshot,
    namespaces: &Namespaces,
    text: &str,
) -> Result<&'s Indexed<CsiVolume>, Error> {
    let all = snapshot.csi_volumes().map(AsRef::as_ref);
    let all =
        all.filter(|volume: &&Indexed<CsiVolume>| namespaces.contain(&volume.value.namespace));
    let volumes: Vec<_> = all.collect();
    let ids = volumes.iter().map(|volume| volume.value.id.as_str());
    let id = one_of("volume_id", "volume", text, ids)?;
    let mut named = volumes.iter().filter(|volume| volume.value.id == id);
    let volume = named.next().ok_or_else(|| not_found("volume", text))?;
    if let Some(other) = named.next() {
        let (one, other) = (&volume.value.namespace, &other.value.namespace);
        let message = format!("{id:?} is a volume of namespaces {one:?} and {other:?}: want one");
        return Err(Error::invalid_field("options.namespace", message));
    }
    Ok(volume)
}

/// Returns the id `text`, or the one that begins with it.
fn one_of<'s>(
    field: &str,
    noun: &'static str,
    text: &str,
    ids: impl Iterator<Item = &'s str>,
) -> Result<&'s str, Error> {
    let mut matching: Vec<&str> = ids.filter(|id| id.starts_with(text)).collect();
    matching.sort_unstable();
    matching.dedup();
    if let Some(exact) = matching.iter().find(|id| **id == text) {
        return Ok(exact);
    }
    match matching.as_slice() {
        [one] if !text.is_empty() => Ok(one),
        [] | [_] => Err(not_found(noun, text)),
        several => {
            let message = format!("{text:?} is the start of {}: want one", several.join(", "));
            Err(Error::invalid_field(field, message))
        }
    }
}

fn not_found(noun: &'static str, text: &str) -> Error {
    let text = text.to_owned();
    NotFound::None { noun, text }.into()
}
