//! `kafila.v1.Namespaces`.

use admission::cluster::namespaces::{self, NamespaceRefusal, VariableCount};
use gateway_core::Error;
use listing::built_in;
use model::Namespace;
use proto::v1;
use proto::v1::namespaces_server::Namespaces;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::query::{Api, List, Read, open, step};

const TABLES: [Table; 1] = [Table::Namespaces];

#[tonic::async_trait]
impl Namespaces for Api {
    async fn list(
        &self,
        request: Request<v1::ListNamespacesRequest>,
    ) -> Result<Response<v1::ListNamespacesResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<String>::new(request.options, timeout)?;
        let answer = |snapshot: &Snapshot| {
            let all = built_in::namespaces(snapshot);
            let found = all.filter(|namespace| list.has_name(&namespace.value.name));
            let keyed = found.map(|namespace| (namespace.value.name.clone(), namespace));
            Ok(list.page(keyed, |namespace| (&*namespace).into()))
        };
        let (namespaces, meta) = Api::list(self, &list, &TABLES, answer).await?;
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
        let read = Read::new(request.options, timeout);
        let find = |snapshot: &Snapshot| Ok(find(snapshot, &request.name)?);
        // The built-in one is not stored, and changes with the table.
        let index = |snapshot: &Snapshot, found: &v1::Namespace| match found.modify_index {
            0 => crate::reads::index::of_tables(snapshot, &TABLES),
            index => index,
        };
        let show = |_: &Snapshot, found: &v1::Namespace| found.clone();
        let (namespace, meta) = Api::get(self, &read, &TABLES, find, index, show).await?;
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
        let what = || format!("namespace {name}");
        let core = &self.gateway.core;
        let variables = |_| async {
            let counted = core.client.count_variables(&name).await;
            let (count, revision) = counted.map_err(gateway_core::transactions::read_failure)?;
            Ok(VariableCount { count, revision })
        };
        let decide = |snapshot: &Snapshot, _: Option<&()>, variables: &VariableCount| {
            Ok(((), namespaces::delete(snapshot, &name, *variables)?))
        };
        let deleting = core.delete_with_users(what, variables, decide);
        let ((), index) = Box::pin(deleting).await?;
        info!(namespace = name, index, "namespace deleted");
        Ok(Response::new(v1::DeleteNamespaceResponse { index }))
    }
}

impl Api {
    async fn upsert_namespace(&self, request: v1::UpsertNamespaceRequest) -> Result<u64, Error> {
        let check_index = request.check_index;
        let namespace: Namespace = match request.namespace {
            Some(namespace) => namespace.try_into()?,
            None => {
                let message = "missing: want the namespace, with its name at least";
                return Err(Error::invalid_field("namespace", message));
            }
        };
        let decide = |snapshot: &Snapshot| {
            let change = namespaces::upsert(snapshot, &namespace, check_index)?;
            Ok(step(change))
        };
        let what = || format!("namespace {}", namespace.name);
        let index = self.gateway.core.execute(what, decide).await?;
        info!(namespace = namespace.name, index, "namespace applied");
        Ok(index)
    }
}

fn find(snapshot: &Snapshot, name: &str) -> Result<v1::Namespace, NamespaceRefusal> {
    let found = built_in::namespace(snapshot, name);
    let found = found.ok_or_else(|| NamespaceRefusal::NotFound {
        name: name.to_owned(),
    })?;
    Ok((&*found).into())
}
