//! `kafila.v1.Volumes`.

use admission::cluster::change::VolumeRegistration;
use admission::cluster::volumes::{self, VolumeContext};
use gateway_core::{Error, Step};
use listing::{Namespaces, NotFound, find};
use model::{Indexed, Volume, VolumeId, VolumeKey};
use proto::v1;
use proto::v1::volumes_server::Volumes;
use service_kit::current_trace_parent;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::query::{Api, List, Read, open, reply};
use crate::reads::index;

/// Nodes, too: a volume is ready when its node is.
const TABLES: [Table; 2] = [Table::Volumes, Table::Nodes];

#[tonic::async_trait]
impl Volumes for Api {
    async fn list(
        &self,
        request: Request<v1::ListVolumesRequest>,
    ) -> Result<Response<v1::ListVolumesResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<VolumeKey>::new(request.options, timeout)?;
        Volume::check_type(&request.r#type).map_err(Error::from)?;
        let answer = |snapshot: &Snapshot| {
            let node_id = match request.node_id.as_str() {
                "" => None,
                text => Some(find::node(snapshot, text)?),
            };
            let is_in_pool = |volume: &Volume| {
                let node = snapshot.node(volume.node_id);
                request.node_pool.is_empty()
                    || node.is_some_and(|node| node.value.is_in_pool(&request.node_pool))
            };
            let volumes = snapshot.volumes().filter(|volume| {
                let value = &volume.value;
                list.has_namespace(&value.namespace)
                    && list.has_name(&value.name)
                    && node_id.is_none_or(|id| value.node_id == id)
                    && is_in_pool(value)
            });
            let keyed = volumes.map(|volume| (volume.value.key(), volume));
            Ok(list.page(keyed, |volume| view(snapshot, volume)))
        };
        let (volumes, meta) = Api::list(self, &list, &TABLES, answer).await?;
        Ok(Response::new(v1::ListVolumesResponse { meta, volumes }))
    }

    async fn get(
        &self,
        request: Request<v1::GetVolumeRequest>,
    ) -> Result<Response<v1::GetVolumeResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let namespaces = read.namespaces();
        let tables = [Table::Volumes, Table::Nodes, Table::Allocs];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let volume = find::volume(snapshot, &namespaces, &request.volume_id)?;
            let users = placement::volumes::users(snapshot, &volume.value);
            let users: Vec<String> = users.map(|user| user.alloc.id.to_string()).collect();
            Ok(((view(snapshot, volume), users), String::new()))
        };
        let answer = self.query(&read, &tables, index, answer).await?;
        let ((volume, alloc_ids), meta) = answer;
        Ok(Response::new(v1::GetVolumeResponse {
            meta,
            volume: Some(volume),
            alloc_ids,
        }))
    }

    async fn register(
        &self,
        request: Request<v1::RegisterVolumeRequest>,
    ) -> Result<Response<v1::RegisterVolumeResponse>, Status> {
        let request = request.into_inner();
        let volume = Box::pin(self.register_volume(request)).await;
        reply(volume.map(|volume| v1::RegisterVolumeResponse {
            volume: Some(volume),
        }))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteVolumeRequest>,
    ) -> Result<Response<v1::DeleteVolumeResponse>, Status> {
        let request = request.into_inner();
        let response = Box::pin(self.delete_volume(&request)).await?;
        info!(
            volume_id = response.volume_id,
            index = response.index,
            "volume deleted"
        );
        Ok(Response::new(response))
    }

    async fn list_claims(
        &self,
        request: Request<v1::ListVolumeClaimsRequest>,
    ) -> Result<Response<v1::ListVolumeClaimsResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<String>::new(request.options, timeout)?;
        let answer = |snapshot: &Snapshot| {
            let passes = |filter: &str, value: &str| filter.is_empty() || filter == value;
            let claims = snapshot.volume_claims().filter(|claim| {
                let claim = &claim.value;
                list.has_namespace(&claim.namespace)
                    && passes(&request.job_id, &claim.job_id)
                    && passes(&request.task_group, &claim.task_group)
                    && passes(&request.volume_name, &claim.volume_name)
            });
            let claims = claims.map(|claim| {
                let value = &claim.value;
                let order = [
                    value.namespace.as_str(),
                    &value.job_id,
                    &value.task_group,
                    &value.volume_name,
                    &value.id().to_string(),
                ];
                (order.join("/"), claim)
            });
            Ok(list.page(claims, |claim| (&**claim).into()))
        };
        let (claims, meta) = Api::list(self, &list, &[Table::Volumes], answer).await?;
        Ok(Response::new(v1::ListVolumeClaimsResponse { meta, claims }))
    }

    async fn delete_claim(
        &self,
        request: Request<v1::DeleteVolumeClaimRequest>,
    ) -> Result<Response<v1::DeleteVolumeClaimResponse>, Status> {
        let text = request.into_inner().claim_id;
        let response = Box::pin(self.release_claim(&text)).await?;
        info!(
            claim_id = response.claim_id,
            index = response.index,
            "claim deleted"
        );
        Ok(Response::new(response))
    }
}

impl Api {
    fn context(&self) -> VolumeContext {
        VolumeContext {
            id: VolumeId::from_random(self.gateway.core.ids.next_u128()),
            now: self.gateway.core.now(),
            trace_parent: current_trace_parent(),
        }
    }

    async fn register_volume(
        &self,
        request: v1::RegisterVolumeRequest,
    ) -> Result<v1::Volume, Error> {
        let Some(wanted) = request.volume else {
            let message = "missing: want the volume, as in its file";
            return Err(Error::invalid_field("volume", message));
        };
        let wanted: Volume = wanted.try_into()?;
        let (gateway, context) = (&self.gateway, self.context());
        let decide = |snapshot: &Snapshot| {
            let next_id = || gateway.core.next_eval_id();
            let node = snapshot.node(wanted.node_id).cloned();
            Ok(
                match volumes::register(snapshot, &wanted, &context, next_id)? {
                    VolumeRegistration::Unchanged(stored) => Step::IfFresh(view(snapshot, &stored)),
                    VolumeRegistration::Write { volume, writes } => {
                        let create_index = snapshot.volume(&volume.key()).map(|it| it.create_index);
                        let answer = move |revision: u64| {
                            let stored = Indexed {
                                create_index: create_index.unwrap_or(revision),
                                modify_index: revision,
                                value: *volume,
                            };
                            api_view::volume(&stored, node.as_deref())
                        };
                        Step::Commit {
                            writes,
                            answer: Box::new(answer),
                        }
                    }
                },
            )
        };
        let what = || format!("volume {}", wanted.name);
        let volume = gateway.core.execute(what, decide).await?;
        info!(
            volume_id = volume.id,
            name = volume.name,
            node_id = volume.node_id,
            "volume registered"
        );
        Ok(volume)
    }

    async fn delete_volume(
        &self,
        request: &v1::DeleteVolumeRequest,
    ) -> Result<v1::DeleteVolumeResponse, Error> {
        let namespaces = Namespaces::read(&request.namespace);
        let what = || format!("volume {}", request.volume_id);
        // The following steps delete the volume that the first step found.
        let decide = |snapshot: &Snapshot, marked: Option<&(VolumeKey, VolumeId)>| {
            let stored = match marked {
                Some((key, _)) => snapshot
                    .volume(key)
                    .ok_or_else(|| NotFound::none("volume", &request.volume_id))?,
                None => find::volume(snapshot, &namespaces, &request.volume_id)?,
            };
            let (key, id) = (stored.value.key(), stored.value.id);
            let deletion = volumes::delete(snapshot, &key)?;
            let deletion = deletion.ok_or_else(|| NotFound::none("volume", &request.volume_id))?;
            Ok(((key, id), deletion))
        };
        let ((_, id), index) = self.gateway.core.delete_in_two_steps(what, decide).await?;
        Ok(v1::DeleteVolumeResponse {
            index,
            volume_id: id.to_string(),
        })
    }

    async fn release_claim(&self, text: &str) -> Result<v1::DeleteVolumeClaimResponse, Error> {
        let (gateway, context) = (&self.gateway, self.context());
        let decide = |snapshot: &Snapshot| {
            let id = find::volume_claim(snapshot, text)?;
            let writes = volumes::release(snapshot, id, gateway.core.next_eval_id(), &context);
            let writes = writes.unwrap_or_default();
            Ok(Step::Commit {
                writes,
                answer: Box::new(move |index| v1::DeleteVolumeClaimResponse {
                    index,
                    claim_id: id.to_string(),
                }),
            })
        };
        let what = || format!("claim {text}");
        gateway.core.execute(what, decide).await
    }
}

fn view(snapshot: &Snapshot, volume: &Indexed<Volume>) -> v1::Volume {
    let node = snapshot.node(volume.value.node_id);
    api_view::volume(volume, node.map(AsRef::as_ref))
}
