//! The node's metadata: that of its settings, and what operators set at run time, which is on disk before it
//! takes effect.

use std::collections::BTreeMap;

use fingerprint::meta::{self, Dynamic, TooLarge};
use local_state::LocalState;
use tokio::sync::{Mutex, watch};

/// Metadata of one node.
pub(crate) struct NodeMeta {
    fixed: BTreeMap<String, String>,
    dynamic: watch::Sender<Dynamic>,
    /// Held by the change in progress: each starts from the one before.
    changing: Mutex<()>,
}

/// A change that was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MetaError {
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error("the agent cannot write its local state, so the change would not survive it")]
    NotStored,
}

impl NodeMeta {
    pub(crate) fn new(fixed: BTreeMap<String, String>, dynamic: Dynamic) -> Self {
        Self {
            fixed,
            dynamic: watch::Sender::new(dynamic),
            changing: Mutex::default(),
        }
    }

    pub(crate) fn fixed(&self) -> &BTreeMap<String, String> {
        &self.fixed
    }

    pub(crate) fn dynamic(&self) -> Dynamic {
        self.dynamic.borrow().clone()
    }

    /// Returns a receiver of changes of the dynamic metadata.
    pub(crate) fn changes(&self) -> watch::Receiver<Dynamic> {
        self.dynamic.subscribe()
    }

    /// Makes a change, and returns once it is on disk and in effect. It must not be dropped before.
    ///
    /// # Errors
    /// Nothing has changed.
    pub(crate) async fn apply(
        &self,
        state: &LocalState,
        set: BTreeMap<String, String>,
        unset: &[String],
    ) -> Result<(), MetaError> {
        let _changing = self.changing.lock().await;
        let before = self.dynamic();
        let changed = meta::apply(&self.fixed, &before, set, unset)?;
        if changed == before {
            return Ok(());
        }
        state.put_meta(&changed).await;
        if !state.flushed().await {
            return Err(MetaError::NotStored);
        }
        self.dynamic.send_replace(changed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use local_state::Memory;

    use super::*;

    #[tokio::test]
    async fn a_change_is_on_disk_before_it_takes_effect_and_survives_the_agent() {
        let memory = Memory::default();
        let fixed = BTreeMap::from([("rack".to_owned(), "r1".to_owned())]);
        let (state, restored) = LocalState::open_in(&memory);
        let node_meta = NodeMeta::new(fixed.clone(), restored.meta);
        let mut changes = node_meta.changes();
        let set = BTreeMap::from([("disk".to_owned(), "ssd".to_owned())]);
        node_meta
            .apply(&state, set.clone(), &["rack".to_owned()])
            .await
            .unwrap();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        // The same again changes nothing.
        node_meta
            .apply(&state, set, &["rack".to_owned()])
            .await
            .unwrap();
        assert!(!changes.has_changed().unwrap());
        state.close().await;
        let (_, restored) = LocalState::open_in(&memory);
        let next = NodeMeta::new(fixed, restored.meta);
        let merged = meta::merge(next.fixed(), &next.dynamic());
        assert_eq!(
            merged,
            BTreeMap::from([("disk".to_owned(), "ssd".to_owned())])
        );
        // The storage is closed.
        let late = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let refused = node_meta.apply(&state, late, &[]).await.unwrap_err();
        assert!(matches!(refused, MetaError::NotStored), "{refused}");
        assert!(!node_meta.dynamic().contains_key("a"));
    }
}
