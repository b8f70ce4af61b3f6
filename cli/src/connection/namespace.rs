//! RPCs on namespaces.

use proto::v1;

use super::transport::Connection;
use crate::error::Error;

impl Connection {
    /// Lists namespaces, with the token of the next page.
    pub(crate) async fn namespaces(
        &self,
        options: v1::QueryOptions,
    ) -> Result<(Vec<v1::Namespace>, String), Error> {
        let message = v1::ListNamespacesRequest {
            options: Some(options),
        };
        let doing = "querying namespaces";
        let answer: v1::ListNamespacesResponse = self
            .call(doing, self.api().namespaces().list(message))
            .await?;
        let next_token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.namespaces, next_token))
    }

    pub(crate) async fn namespace_named(&self, name: &str) -> Result<v1::Namespace, Error> {
        let message = v1::GetNamespaceRequest {
            options: Some(self.options("")),
            name: name.to_owned(),
        };
        let doing = "retrieving namespace";
        let answer: v1::GetNamespaceResponse = self
            .call(doing, self.api().namespaces().get(message))
            .await?;
        Ok(answer.namespace.unwrap_or_default())
    }

    /// Creates or changes a namespace, with `check_index` only at that modify index. Idempotent.
    pub(crate) async fn apply_namespace(
        &self,
        namespace: v1::Namespace,
        check_index: Option<u64>,
    ) -> Result<u64, Error> {
        let message = v1::UpsertNamespaceRequest {
            namespace: Some(namespace),
            check_index,
        };
        let doing = "applying namespace";
        let answer: v1::UpsertNamespaceResponse = self
            .call(doing, self.api().namespaces().upsert(message).repeatable())
            .await?;
        Ok(answer.modify_index)
    }

    /// Deletes a namespace. Not idempotent: a retry would not find it.
    pub(crate) async fn delete_namespace(&self, name: &str) -> Result<u64, Error> {
        let message = v1::DeleteNamespaceRequest {
            name: name.to_owned(),
        };
        let doing = "deleting namespace";
        let answer: v1::DeleteNamespaceResponse = self
            .call(doing, self.api().namespaces().delete(message))
            .await?;
        Ok(answer.index)
    }
}
