//! `kafila.v1.Volumes`.

use model::{FieldErrors, Indexed, NodeStatus, Volume, VolumeClaimId, VolumeId, VolumeKey};
use proto::v1;
use proto::v1::volumes_server::Volumes;
use service_kit::current_trace_parent;
use state::{Snapshot, Table};
use tokio::time::Instant;
use tonic::{Request, Response, Status};
use tracing::info;

use super::{Api, nodes, open};
use crate::error::Error;
use crate::gateway::Step;
use crate::reads::index;
use crate::reads::options::{self, Namespaces};
use crate::reads::page::Page;
use crate::reads::prefix::{self, UuidPrefix};
use crate::settings::volumes::{self, Change, Deletion, Refusal, Stamp};

/// A volume is ready when its node is.
const TABLES: [Table; 2] = [Table::Volumes, Table::Nodes];
/// The one type of volumes that there is.
const HOST: &str = "host";

#[tonic::async_trait]
impl Volumes for Api {
    async fn list(
        &self,
        request: Request<v1::ListVolumesRequest>,
    ) -> Result<Response<v1::ListVolumesResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        check_type(&request.r#type)?;
        let namespaces = options::namespaces(&options);
        let page = Page::<VolumeKey>::new(options.per_page, &options.next_token);
        let page = page.map_err(Error::from)?;
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &TABLES);
        let answer = |snapshot: &Snapshot| {
            let node_id = match request.node_id.as_str() {
                "" => None,
                text => Some(nodes::find(snapshot, text)?),
            };
            let is_in_pool = |volume: &Volume| {
                let node = snapshot.node(volume.node_id);
                request.node_pool.is_empty()
                    || node.is_some_and(|node| node.value.node_pool == request.node_pool)
            };
            let volumes = snapshot.volumes().filter(|volume| {
                let value = &volume.value;
                namespaces.contain(&value.namespace)
                    && value.name.starts_with(&options.prefix)
                    && node_id.is_none_or(|id| value.node_id == id)
                    && is_in_pool(value)
            });
            let (volumes, token) = page.of(volumes.map(|volume| (volume.value.key(), volume)));
            let volumes = volumes.into_iter().map(|volume| view(snapshot, volume));
            Ok((volumes.collect(), token))
        };
        let (volumes, meta) = self.ask(&options, timeout, &TABLES, index, answer).await?;
        Ok(Response::new(v1::ListVolumesResponse { meta, volumes }))
    }

    async fn get(
        &self,
        request: Request<v1::GetVolumeRequest>,
    ) -> Result<Response<v1::GetVolumeResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let namespaces = options::namespaces(&options);
        let tables = [Table::Volumes, Table::Nodes, Table::Allocs];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let volume = find(snapshot, &namespaces, &request.id)?;
            let users = placement::volumes::users(snapshot, &volume.value);
            let users: Vec<String> = users.map(|user| user.alloc.id.to_string()).collect();
            Ok(((view(snapshot, volume), users), String::new()))
        };
        let answer = self.ask(&options, timeout, &tables, index, answer).await?;
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
        let volume = Box::pin(self.register_volume(request)).await?;
        Ok(Response::new(v1::RegisterVolumeResponse {
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
            volume_id = response.id,
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
        let options = request.options.unwrap_or_default();
        let namespaces = options::namespaces(&options);
        let page = Page::<String>::new(options.per_page, &options.next_token);
        let page = page.map_err(Error::from)?;
        let tables = [Table::Volumes];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let is_meant = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
            let claims = snapshot.volume_claims().filter(|claim| {
                let claim = &claim.value;
                namespaces.contain(&claim.namespace)
                    && is_meant(&request.job_id, &claim.job_id)
                    && is_meant(&request.task_group, &claim.task_group)
                    && is_meant(&request.volume_name, &claim.volume_name)
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
            let (claims, token) = page.of(claims);
            let claims = claims.into_iter().map(|claim| (&**claim).into());
            Ok((claims.collect(), token))
        };
        let (claims, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::ListVolumeClaimsResponse { meta, claims }))
    }

    async fn delete_claim(
        &self,
        request: Request<v1::DeleteVolumeClaimRequest>,
    ) -> Result<Response<v1::DeleteVolumeClaimResponse>, Status> {
        let text = request.into_inner().id;
        let response = Box::pin(self.free_of_claim(&text)).await?;
        info!(
            claim_id = response.id,
            index = response.index,
            "claim deleted"
        );
        Ok(Response::new(response))
    }
}

/// What one step of a deletion came to.
enum Ended {
    Marked { revision: u64, key: VolumeKey },
    Deleted { revision: u64, id: VolumeId },
    Refused(Refusal),
}

/// How often a volume may be marked and find its mark taken back before it is deleted: others are
/// using it, whatever it looks like at any one time.
const MAX_MARKS: usize = 3;

impl Api {
    fn stamp(&self) -> Stamp {
        Stamp {
            id: VolumeId::from_random(self.gateway.ids.next_u128()),
            now: self.gateway.now(),
            trace_parent: current_trace_parent(),
        }
    }

    async fn register_volume(
        &self,
        request: v1::RegisterVolumeRequest,
    ) -> Result<v1::Volume, Error> {
        let Some(wanted) = request.volume else {
            let mut errors = FieldErrors::default();
            errors.push("volume", "missing: want the volume, as in its file");
            return Err(errors.into());
        };
        let wanted: Volume = wanted.try_into()?;
        let (gateway, stamp) = (&self.gateway, self.stamp());
        let decide = |snapshot: &Snapshot| {
            let next_id = || gateway.next_eval_id();
            let node = snapshot.node(wanted.node_id).cloned();
            Ok(
                match volumes::register(snapshot, &wanted, &stamp, next_id)? {
                    Change::Unchanged(stored) => Step::IfFresh(view(snapshot, &stored)),
                    Change::Write { volume, writes } => {
                        let create_index = snapshot.volume(&volume.key()).map(|it| it.create_index);
                        let answer = move |revision: u64| {
                            let stored = Indexed {
                                create_index: create_index.unwrap_or(revision),
                                modify_index: revision,
                                value: *volume,
                            };
                            with_node(&stored, node.as_deref())
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
        let volume = gateway.carry_out(what, decide).await?;
        info!(
            volume_id = volume.id,
            name = volume.name,
            node_id = volume.node_id,
            "volume registered"
        );
        Ok(volume)
    }

    /// Deletes a volume in two steps, as [`volumes`] says.
    async fn delete_volume(
        &self,
        request: &v1::DeleteVolumeRequest,
    ) -> Result<v1::DeleteVolumeResponse, Error> {
        let gateway = &self.gateway;
        let namespaces = options::namespaces(&v1::QueryOptions {
            namespace: request.namespace.clone(),
            ..v1::QueryOptions::default()
        });
        // The one that was found first is meant in the steps that follow, too.
        let mut marked: Option<VolumeKey> = None;
        let what = || format!("volume {}", request.id);
        for _ in 0..=MAX_MARKS {
            let decide = |snapshot: &Snapshot| {
                let stored = match &marked {
                    Some(key) => snapshot.volume(key).ok_or_else(|| not_found(&request.id))?,
                    None => find(snapshot, &namespaces, &request.id)?,
                };
                let (key, id) = (stored.value.key(), stored.value.id);
                let deletion = volumes::delete(snapshot, &key)?;
                let deletion = deletion.ok_or_else(|| not_found(&request.id))?;
                Ok(match deletion {
                    Deletion::Mark(write) => Step::Commit {
                        writes: vec![write],
                        answer: Box::new(move |revision| Ended::Marked { revision, key }),
                    },
                    Deletion::Delete(writes) => Step::Commit {
                        writes,
                        answer: Box::new(move |revision| Ended::Deleted { revision, id }),
                    },
                    Deletion::TakeBack { write, refusal } => Step::Commit {
                        writes: vec![write],
                        answer: Box::new(|_| Ended::Refused(refusal)),
                    },
                })
            };
            match gateway.carry_out(what, decide).await? {
                Ended::Deleted { revision, id } => {
                    return Ok(v1::DeleteVolumeResponse {
                        index: revision,
                        id: id.to_string(),
                    });
                }
                Ended::Refused(refusal) => return Err(refusal.into()),
                Ended::Marked { revision, key } => {
                    let patience = gateway.deadline().duration_since(Instant::now());
                    gateway.replica.wait_for(revision, patience).await?;
                    marked = Some(key);
                }
            }
        }
        Err(Error::Contended { what: what() })
    }

    async fn free_of_claim(&self, text: &str) -> Result<v1::DeleteVolumeClaimResponse, Error> {
        let (gateway, stamp) = (&self.gateway, self.stamp());
        let decide = |snapshot: &Snapshot| {
            let all = snapshot.volume_claims().map(|claim| claim.value.id());
            let id = prefix::find(
                "id",
                "claim",
                text,
                VolumeClaimId,
                |id| snapshot.volume_claim(id).is_some(),
                all.map(|id| (id.0, id)),
            )?;
            let writes = volumes::free(snapshot, id, gateway.next_eval_id(), &stamp);
            let writes = writes.unwrap_or_default();
            Ok(Step::Commit {
                writes,
                answer: Box::new(move |index| v1::DeleteVolumeClaimResponse {
                    index,
                    id: id.to_string(),
                }),
            })
        };
        let what = || format!("claim {text}");
        gateway.carry_out(what, decide).await
    }
}

fn check_type(text: &str) -> Result<(), Error> {
    if text.is_empty() || text == HOST {
        return Ok(());
    }
    let mut errors = FieldErrors::default();
    let message = format!("{text:?} is not a type of volumes that is known here: want \"host\"");
    errors.push("type", message);
    Err(errors.into())
}

/// Returns the one volume of `namespaces` whose name is `text`, or whose id begins so.
fn find<'s>(
    snapshot: &'s Snapshot,
    namespaces: &Namespaces,
    text: &str,
) -> Result<&'s Indexed<Volume>, Error> {
    let volumes = || {
        let all = snapshot.volumes().map(AsRef::as_ref);
        all.filter(|volume: &&Indexed<Volume>| namespaces.contain(&volume.value.namespace))
    };
    let named: Vec<_> = volumes().filter(|it| it.value.name == text).collect();
    match named.as_slice() {
        [one] => return Ok(one),
        [] => {}
        several => {
            let ids: Vec<String> = several.iter().map(|it| it.value.id.to_string()).collect();
            let mut errors = FieldErrors::default();
            let message = format!(
                "{text:?} is the name of {} volumes: want one of the ids {}",
                ids.len(),
                ids.join(", ")
            );
            errors.push("id", message);
            return Err(errors.into());
        }
    }
    if !text.is_empty() && UuidPrefix::parse(text).is_none() {
        return Err(not_found(text));
    }
    let by_id = |id: VolumeId| volumes().find(|volume| volume.value.id == id);
    let all = volumes().map(|volume| (volume.value.id.0, volume.value.id));
    let exists = |id| by_id(id).is_some();
    let id = prefix::find("id", "volume", text, VolumeId, exists, all)?;
    by_id(id).ok_or_else(|| not_found(text))
}

fn not_found(text: &str) -> Error {
    let text = text.to_owned();
    prefix::NotFound::None {
        noun: "volume",
        text,
    }
    .into()
}

fn view(snapshot: &Snapshot, volume: &Indexed<Volume>) -> v1::Volume {
    let node = snapshot.node(volume.value.node_id);
    with_node(volume, node.map(AsRef::as_ref))
}

/// Adds what is read off the volume's node.
fn with_node(volume: &Indexed<Volume>, node: Option<&Indexed<model::Node>>) -> v1::Volume {
    let is_ready = node.is_some_and(|node| node.value.status == NodeStatus::Ready);
    let state = if is_ready && !volume.value.deleting {
        "ready"
    } else {
        "unavailable"
    };
    v1::Volume {
        node_pool: node.map_or_else(String::new, |node| node.value.node_pool.clone()),
        state: state.to_owned(),
        ..volume.into()
    }
}
