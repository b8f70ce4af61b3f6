//! Reads of the locks of variables, which no replica holds.

use std::collections::HashMap;

use etcd_client::GetOptions;
use model::{VariableKey, VariableLock};
use state::{Entity, Key};

use crate::client::Client;
use crate::codec;
use crate::error::Error;

/// Locks in one response: some 200 bytes each.
const CHUNK: i64 = 1_000;

impl Client {
    /// Returns the locks that are held or in their delay among the variables from `first` to `last`.
    ///
    /// # Errors
    /// etcd has no leader, cannot be reached, or does not answer in time.
    pub async fn locks(
        &self,
        first: &VariableKey,
        last: &VariableKey,
    ) -> Result<HashMap<VariableKey, VariableLock>, Error> {
        let text = |variable: &VariableKey| {
            let key = Key::LockDelay(variable.clone());
            self.keyspace.encode(&key).into_bytes()
        };
        let (mut start, mut end) = (text(first), text(last));
        end.push(0);
        let mut locks = HashMap::new();
        loop {
            let options = GetOptions::new().with_range(end.clone()).with_limit(CHUNK);
            let response = self
                .call("list locks", || {
                    let (mut kv, start, options) =
                        (self.kv.clone(), start.clone(), options.clone());
                    async move { kv.get(start, Some(options)).await }
                })
                .await?;
            for kv in response.kvs() {
                start = [kv.key(), &[0]].concat();
                let Ok(key) = self.keyspace.decode(kv.key()) else {
                    continue;
                };
                if let (Ok(Entity::VariableLock(lock)), Key::LockDelay(variable)) =
                    (codec::decode(&key, kv.value()), key)
                {
                    locks.insert(variable, *lock);
                }
            }
            if !response.more() {
                return Ok(locks);
            }
        }
    }
}
