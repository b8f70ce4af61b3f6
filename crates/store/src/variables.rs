//! Reads of variables, which no replica holds: in pages, and their number.

use etcd_client::GetOptions;
use model::{SealedVariable, VariableKey};
use state::{Entity, Key};
use tracing::warn;

use crate::client::Client;
use crate::codec;
use crate::error::Error;
use crate::keys::Keyspace;
use crate::revision;

/// Variables in one response: with the largest possible items it has 1.5 MiB.
const CHUNK: i64 = 16;

/// A stored variable, sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedVariable {
    pub key: VariableKey,
    pub value: SealedVariable,
    pub create_revision: u64,
    pub mod_revision: u64,
}

/// Variables in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariablePage {
    pub variables: Vec<ListedVariable>,
    /// There are more behind the last one.
    pub has_more: bool,
    /// The store's revision before the page was read.
    pub revision: u64,
}

/// The variables to list.
#[derive(Clone, Copy, Debug)]
pub struct VariableFilter<'a> {
    /// `None`: all.
    pub namespace: Option<&'a str>,
    /// The start of paths.
    pub prefix: &'a str,
    /// Only those behind this one.
    pub after: Option<&'a VariableKey>,
}

impl VariableFilter<'_> {
    /// Returns the first key of the range and the first one behind it.
    fn range(&self, keyspace: &Keyspace) -> (Vec<u8>, Vec<u8>) {
        let prefix = match self.namespace {
            Some(namespace) => format!("{}{}", keyspace.variables_of(namespace), self.prefix),
            None => keyspace.variables(),
        };
        let mut end = prefix.clone().into_bytes();
        // Keys are UTF-8, which has no byte 255.
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let after = self.after.map(|after| {
            let mut text = keyspace.encode(&Key::Variable(after.clone())).into_bytes();
            text.push(0);
            text
        });
        let prefix = prefix.into_bytes();
        (after.map_or(prefix.clone(), |after| after.max(prefix)), end)
    }
}

impl Client {
    /// Returns up to `limit` variables.
    ///
    /// # Errors
    /// etcd has no leader, cannot be reached, or does not answer in time.
    pub async fn variables(
        &self,
        filter: VariableFilter<'_>,
        limit: usize,
    ) -> Result<VariablePage, Error> {
        let (mut start, end) = filter.range(&self.keyspace);
        let mut page = VariablePage {
            variables: Vec::new(),
            has_more: true,
            revision: 0,
        };
        while page.has_more && page.variables.len() < limit {
            let options = GetOptions::new().with_range(end.clone()).with_limit(CHUNK);
            let response = self
                .call("list variables", || {
                    let (mut kv, start, options) =
                        (self.kv.clone(), start.clone(), options.clone());
                    async move { kv.get(start, Some(options)).await }
                })
                .await?;
            if page.revision == 0 {
                page.revision = self.note_revision(&response);
            }
            page.has_more = response.more();
            for kv in response.kvs() {
                if page.variables.len() == limit {
                    page.has_more = true;
                    break;
                }
                start = [kv.key(), &[0]].concat();
                let found = decode(&self.keyspace, kv);
                page.variables
                    .extend(found.filter(|found| found.key.path.starts_with(filter.prefix)));
            }
        }
        Ok(page)
    }

    /// Returns the number of a namespace's variables, and the revision of the count.
    ///
    /// # Errors
    /// Those of [`Self::variables`].
    pub async fn count_variables(&self, namespace: &str) -> Result<(u64, u64), Error> {
        let prefix = self.keyspace.variables_of(namespace);
        let options = GetOptions::new().with_prefix().with_count_only();
        let response = self.range("count variables", &prefix, options).await?;
        let count = u64::try_from(response.count()).unwrap_or_default();
        Ok((count, self.note_revision(&response)))
    }
}

fn decode(keyspace: &Keyspace, kv: &etcd_client::KeyValue) -> Option<ListedVariable> {
    let key = keyspace.decode(kv.key()).ok()?;
    match (codec::decode(&key, kv.value()), key) {
        (Ok(Entity::Variable(value)), Key::Variable(key)) => Some(ListedVariable {
            key,
            value: *value,
            create_revision: revision::from_etcd(kv.create_revision()),
            mod_revision: revision::from_etcd(kv.mod_revision()),
        }),
        (_, key) => {
            warn!(?key, "skipping a variable that cannot be decoded");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_the_paths_with_the_prefix_behind_the_last_one() {
        let keyspace = Keyspace::default();
        let texts = |filter: VariableFilter<'_>| {
            let (start, end) = filter.range(&keyspace);
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            (text(start), text(end))
        };
        let filter = VariableFilter {
            namespace: Some("default"),
            prefix: "app/d",
            after: None,
        };
        let root = "/kafila/v1.variables/";
        assert_eq!(
            texts(filter),
            (
                format!("{root}default/app/d"),
                format!("{root}default/app/e")
            )
        );
        let db = VariableKey::new("default", "app/db");
        let after = VariableFilter {
            after: Some(&db),
            ..filter
        };
        assert_eq!(texts(after).0, format!("{root}default/app/db\0"));
        // A token of another list does not widen the range.
        let before = VariableKey::new("default", "app/a");
        let after = VariableFilter {
            after: Some(&before),
            ..filter
        };
        assert_eq!(texts(after).0, format!("{root}default/app/d"));
        let all = VariableFilter {
            namespace: None,
            ..filter
        };
        assert_eq!(
            texts(all),
            (root.to_owned(), "/kafila/v1.variables0".to_owned())
        );
    }
}
