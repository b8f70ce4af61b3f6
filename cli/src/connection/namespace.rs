//! What is asked about namespaces.

use proto::v1;
use proto::v1::namespaces_client::NamespacesClient;

use super::{Connection, MAX_ANSWER_BYTES};
use crate::error::Error;

fn client(channel: service_kit::TracedChannel) -> NamespacesClient<service_kit::TracedChannel> {
    NamespacesClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES)
}

impl Connection {
    /// Lists namespaces, and says where the next page begins.
    pub(crate) async fn namespaces(
        &self,
        options: v1::QueryOptions,
    ) -> Result<(Vec<v1::Namespace>, String), Error> {
        let message = v1::ListNamespacesRequest {
            options: Some(options),
        };
        let doing = "querying namespaces";
        let answer: v1::ListNamespacesResponse = self
            .call(doing, message, |channel, request| async move {
                client(channel).list(request).await
            })
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
            .call(doing, message, |channel, request| async move {
                client(channel).get(request).await
            })
            .await?;
        Ok(answer.namespace.unwrap_or_default())
    }

    /// Creates or changes a namespace; `check_index`: only if it has that modify index. Asked twice,
    /// it changes nothing the second time.
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
            .call_until_answered(doing, message, |channel, request| async move {
                client(channel).upsert(request).await
            })
            .await?;
        Ok(answer.modify_index)
    }

    /// Deletes a namespace. Asked once only: a second time it would not be found.
    pub(crate) async fn delete_namespace(&self, name: &str) -> Result<u64, Error> {
        let message = v1::DeleteNamespaceRequest {
            name: name.to_owned(),
        };
        let doing = "deleting namespace";
        let answer: v1::DeleteNamespaceResponse = self
            .call(doing, message, |channel, request| async move {
                client(channel).delete(request).await
            })
            .await?;
        Ok(answer.index)
    }
}
