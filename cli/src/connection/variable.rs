//! RPCs on variables.

use proto::v1;

use super::transport::Connection;
use crate::error::Error;

impl Connection {
    /// Lists variables, with the token of the next page.
    pub(crate) async fn variables(
        &self,
        message: v1::ListVariablesRequest,
    ) -> Result<(Vec<v1::Variable>, String), Error> {
        let doing = "querying variables";
        let call = self.api().variables().list(message);
        let answer: v1::ListVariablesResponse = self.call(doing, call).await?;
        let next_token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.variables, next_token))
    }

    pub(crate) async fn variable(&self, path: &str) -> Result<v1::Variable, Error> {
        let message = v1::GetVariableRequest {
            namespace: self.namespace().to_owned(),
            path: path.to_owned(),
        };
        let call = self.api().variables().get(message);
        let answer: v1::GetVariableResponse = self.call("retrieving variable", call).await?;
        Ok(answer.variable.unwrap_or_default())
    }

    /// Stores a variable; not repeated with a `check_index`, which the first attempt changes.
    pub(crate) async fn put_variable(
        &self,
        message: v1::PutVariableRequest,
    ) -> Result<v1::Variable, Error> {
        let call = self.api().variables().put(message);
        let answer: v1::PutVariableResponse = self.call("creating variable", call).await?;
        Ok(answer.variable.unwrap_or_default())
    }

    /// Deletes a variable. Not idempotent: a retry would not find it.
    pub(crate) async fn delete_variable(
        &self,
        path: &str,
        check_index: Option<u64>,
        lock_id: &str,
    ) -> Result<u64, Error> {
        let message = v1::DeleteVariableRequest {
            namespace: self.namespace().to_owned(),
            path: path.to_owned(),
            check_index,
            lock_id: lock_id.to_owned(),
        };
        let call = self.api().variables().delete(message);
        let answer: v1::DeleteVariableResponse = self.call("purging variable", call).await?;
        Ok(answer.index)
    }

    /// Acquires a lock under an ID that the caller chose. Made once: the caller repeats it.
    pub(crate) async fn acquire_lock(
        &self,
        message: v1::AcquireLockRequest,
    ) -> Result<v1::VariableLock, Error> {
        let call = self.api().variables().acquire_lock(message);
        let answer: v1::AcquireLockResponse = self.call_waiting("acquiring lock", call).await?;
        Ok(answer.lock.unwrap_or_default())
    }

    pub(crate) async fn renew_lock(&self, path: &str, lock_id: &str) -> Result<(), Error> {
        let message = v1::RenewLockRequest {
            namespace: self.namespace().to_owned(),
            path: path.to_owned(),
            lock_id: lock_id.to_owned(),
        };
        let call = self.api().variables().renew_lock(message);
        let _: v1::RenewLockResponse = self.call_waiting("renewing lock", call).await?;
        Ok(())
    }

    pub(crate) async fn release_lock(&self, path: &str, lock_id: &str) -> Result<(), Error> {
        let message = v1::ReleaseLockRequest {
            namespace: self.namespace().to_owned(),
            path: path.to_owned(),
            lock_id: lock_id.to_owned(),
        };
        let call = self.api().variables().release_lock(message);
        let _: v1::ReleaseLockResponse = self.call_waiting("releasing lock", call).await?;
        Ok(())
    }
}
