//! Requests on variables, read from the wire and answered; locks show in the answers.

use admission::cluster::variables::{PutRequest, StoredVariable, VariableRefusal};
use gateway_core::Error;
use listing::page::{self, PageKey as _};
use model::{Namespace, VariableKey, VariableLock};
use proto::v1;
use store::{ListedVariable, VariableFilter};

use crate::variables::Variables;

/// Variables on one page, at most.
const PAGE_MAX: usize = 1_000;

impl Variables<'_> {
    /// # Errors
    /// The page is invalid, or the store does not answer.
    pub async fn answer_list(
        &self,
        request: v1::ListVariablesRequest,
    ) -> Result<v1::ListVariablesResponse, Error> {
        let after: Option<VariableKey> = page::key_of("next_token", &request.next_token)?;
        let filter = VariableFilter {
            namespace: match request.namespace.as_str() {
                "*" => None,
                name => Some(Namespace::or_default(name)),
            },
            prefix: &request.prefix,
            after: after.as_ref(),
        };
        let limit = page::limited(request.per_page, PAGE_MAX);
        let page = self.list(filter, limit).await?;
        let ends = page.variables.first().zip(page.variables.last());
        let locks = match ends {
            Some((first, last)) => self.locks().among(&first.key, &last.key).await?,
            None => Default::default(),
        };
        let last = page.variables.last().filter(|_| page.has_more);
        let next_token = last.map(|last| last.key.to_token());
        let shown = page.variables.into_iter().map(|listed| {
            let lock = locks.get(&listed.key);
            stub(listed, lock)
        });
        Ok(v1::ListVariablesResponse {
            meta: Some(v1::QueryMeta {
                index: page.revision,
                next_token: next_token.unwrap_or_default(),
                ..v1::QueryMeta::default()
            }),
            variables: shown.collect(),
        })
    }

    /// # Errors
    /// There is no such variable, or it cannot be read.
    pub async fn answer_get(
        &self,
        request: v1::GetVariableRequest,
    ) -> Result<v1::GetVariableResponse, Error> {
        let key = key(&request.namespace, request.path);
        let found = self.get(&key).await?;
        let missing = || VariableRefusal::NotFound {
            variable: key.clone(),
        };
        let found = found.ok_or_else(missing)?;
        let locked = self.locks().read(&key).await?;
        Ok(v1::GetVariableResponse {
            meta: Some(v1::QueryMeta {
                index: found.modify_index,
                ..v1::QueryMeta::default()
            }),
            variable: Some(show(key, found, locked.by())),
        })
    }

    /// # Errors
    /// See [`Variables::put`].
    pub async fn answer_put(
        &self,
        request: v1::PutVariableRequest,
    ) -> Result<v1::PutVariableResponse, Error> {
        let lock_id = request.lock_id;
        let request = PutRequest {
            variable: key(&request.namespace, request.path),
            items: request.items.into_iter().collect(),
            check_index: request.check_index,
        };
        let stored = self.put(&request, &lock_id).await?;
        // The variable is stored: a lock that cannot be read is left out.
        let locked = self.locks().read(&request.variable).await;
        let locked = locked.unwrap_or_default();
        Ok(v1::PutVariableResponse {
            variable: Some(show(request.variable, stored, locked.by())),
        })
    }

    /// # Errors
    /// See [`Variables::delete`].
    pub async fn answer_delete(
        &self,
        request: v1::DeleteVariableRequest,
    ) -> Result<v1::DeleteVariableResponse, Error> {
        let key = key(&request.namespace, request.path);
        let deleted = self.delete(&key, request.check_index, &request.lock_id);
        let index = deleted.await?;
        Ok(v1::DeleteVariableResponse { index })
    }
}

fn key(namespace: &str, path: String) -> VariableKey {
    VariableKey::new(Namespace::or_default(namespace), path)
}

/// Returns a variable of a list, without items.
pub fn stub(listed: ListedVariable, lock: Option<&VariableLock>) -> v1::Variable {
    v1::Variable {
        namespace: listed.key.namespace,
        path: listed.key.path,
        lock: lock.map(variable_locks::show),
        create_time_ns: listed.value.created_at.0,
        modify_time_ns: listed.value.modified_at.0,
        create_index: listed.create_revision,
        modify_index: listed.mod_revision,
        ..v1::Variable::default()
    }
}

/// Returns a variable with its items.
pub fn show(key: VariableKey, stored: StoredVariable, lock: Option<&VariableLock>) -> v1::Variable {
    v1::Variable {
        namespace: key.namespace,
        path: key.path,
        items: stored.items.into_iter().collect(),
        lock: lock.map(variable_locks::show),
        create_time_ns: stored.created_at.0,
        modify_time_ns: stored.modified_at.0,
        create_index: stored.create_index,
        modify_index: stored.modify_index,
    }
}
