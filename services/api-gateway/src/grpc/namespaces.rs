//! `kafila.v1.Namespaces`.

use model::{FieldErrors, Namespace};
use proto::v1;
use proto::v1::namespaces_server::Namespaces;
use state::{Snapshot, Table};
use tokio::time::Instant;
use tonic::{Request, Response, Status};
use tracing::info;

use super::{Api, open};
use crate::error::Error;
use crate::gateway::Step;
use crate::reads::index;
use crate::reads::page::Page;
use crate::settings::namespaces::{self, Change, Deletion, Refusal};

#[tonic::async_trait]
impl Namespaces for Api {
    async fn list(
        &self,
        request: Request<v1::ListNamespacesRequest>,
    ) -> Result<Response<v1::ListNamespacesResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let page = Page::<String>::new(options.per_page, &options.next_token);
        let page = page.map_err(Error::from)?;
        let tables = [Table::Namespaces];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let default = default_if_not_stored(snapshot);
            let stored = snapshot.namespaces();
            let stored = stored.map(|namespace| v1::Namespace::from(&**namespace));
            let namespaces = default
                .into_iter()
                .chain(stored)
                .filter(|namespace| namespace.name.starts_with(&options.prefix));
            Ok(page.of(namespaces.map(|namespace| (namespace.name.clone(), namespace))))
        };
        let (namespaces, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::ListNamespacesResponse {
            meta,
            namespaces,
        }))
    }

    async fn get(
        &self,
        request: Request<v1::GetNamespaceRequest>,
    ) -> Result<Response<v1::GetNamespaceResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let tables = [Table::Namespaces];
        let index = |snapshot: &Snapshot| {
            let stored = snapshot.namespace(&request.name);
            stored.map_or_else(
                || index::of_tables(snapshot, &tables),
                |stored| stored.modify_index,
            )
        };
        let answer = |snapshot: &Snapshot| Ok((find(snapshot, &request.name)?, String::new()));
        let (namespace, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::GetNamespaceResponse {
            meta,
            namespace: Some(namespace),
        }))
    }

    async fn upsert(
        &self,
        request: Request<v1::UpsertNamespaceRequest>,
    ) -> Result<Response<v1::UpsertNamespaceResponse>, Status> {
        let request = request.into_inner();
        let modify_index = Box::pin(self.upsert_namespace(request)).await?;
        Ok(Response::new(v1::UpsertNamespaceResponse { modify_index }))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteNamespaceRequest>,
    ) -> Result<Response<v1::DeleteNamespaceResponse>, Status> {
        let name = request.into_inner().name;
        let index = Box::pin(self.delete_namespace(&name)).await?;
        info!(namespace = name, index, "namespace deleted");
        Ok(Response::new(v1::DeleteNamespaceResponse { index }))
    }
}

/// What one step of a deletion came to.
enum Ended {
    Marked { revision: u64 },
    Deleted { revision: u64 },
    Refused(Refusal),
}

/// How often a namespace may be marked and find its mark taken back before it is deleted: others are
/// using it, whatever they look like at any one time.
const MAX_MARKS: usize = 3;

impl Api {
    async fn upsert_namespace(&self, request: v1::UpsertNamespaceRequest) -> Result<u64, Error> {
        let check_index = request.check_index;
        let namespace: Namespace = match request.namespace {
            Some(namespace) => namespace.try_into()?,
            None => {
                let mut errors = FieldErrors::default();
                errors.push(
                    "namespace",
                    "missing: want the namespace, with its name at least",
                );
                return Err(errors.into());
            }
        };
        let decide = |snapshot: &Snapshot| {
            Ok(
                match namespaces::upsert(snapshot, &namespace, check_index)? {
                    Change::Unchanged { modify_index } => Step::IfFresh(modify_index),
                    Change::Write(write) => Step::Commit {
                        writes: vec![*write],
                        answer: Box::new(|revision| revision),
                    },
                },
            )
        };
        let what = || format!("namespace {}", namespace.name);
        let index = self.gateway.carry_out(what, decide).await?;
        info!(namespace = namespace.name, index, "namespace applied");
        Ok(index)
    }

    /// Deletes a namespace in two steps, as [`namespaces`] says; returns the revision of the last.
    async fn delete_namespace(&self, name: &str) -> Result<u64, Error> {
        let gateway = &self.gateway;
        let decide = |snapshot: &Snapshot| {
            Ok(match namespaces::delete(snapshot, name)? {
                Deletion::Mark(write) => Step::Commit {
                    writes: vec![write],
                    answer: Box::new(|revision| Ended::Marked { revision }),
                },
                Deletion::Delete(write) => Step::Commit {
                    writes: vec![write],
                    answer: Box::new(|revision| Ended::Deleted { revision }),
                },
                Deletion::TakeBack { write, refusal } => Step::Commit {
                    writes: vec![write],
                    answer: Box::new(|_| Ended::Refused(refusal)),
                },
            })
        };
        let what = || format!("namespace {name}");
        for _ in 0..=MAX_MARKS {
            match gateway.carry_out(what, decide).await? {
                Ended::Deleted { revision } => return Ok(revision),
                Ended::Refused(refusal) => return Err(refusal.into()),
                Ended::Marked { revision } => {
                    let patience = gateway.deadline().duration_since(Instant::now());
                    gateway.replica.wait_for(revision, patience).await?;
                }
            }
        }
        Err(Error::Contended { what: what() })
    }
}

/// Returns a namespace.
fn find(snapshot: &Snapshot, name: &str) -> Result<v1::Namespace, Refusal> {
    let default = default_if_not_stored(snapshot);
    match snapshot.namespace(name) {
        Some(stored) => Some((&**stored).into()),
        None => default.filter(|default| default.name == name),
    }
    .ok_or_else(|| Refusal::NotFound {
        name: name.to_owned(),
    })
}

/// Returns the namespace that is there although nobody has made it.
fn default_if_not_stored(snapshot: &Snapshot) -> Option<v1::Namespace> {
    let stored = snapshot.namespace(Namespace::DEFAULT);
    stored.is_none().then(|| (&Namespace::built_in()).into())
}
