//! Index of watches by key and by range.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bytes::Bytes;

use super::id::WatcherRef;
use crate::{key_range::KeyRange, record::Record};

/// Watches by key or range. Watches of the same range share one entry, so a change costs one
/// comparison a distinct range, however many replicas watch it.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    by_key: HashMap<Bytes, Vec<WatcherRef>>,
    by_range: BTreeMap<KeyRange, Vec<WatcherRef>>,
}

/// Watches of the same range, and its changed records.
pub(super) struct AffectedWatches {
    pub(super) watchers: Vec<WatcherRef>,
    /// In the order they were changed; not empty.
    pub(super) records: Arc<[Arc<Record>]>,
}

impl Subscriptions {
    pub(super) fn add(&mut self, range: &KeyRange, watcher: WatcherRef) {
        match range {
            KeyRange::One(key) => self.by_key.entry(key.clone()).or_default().push(watcher),
            range => self
                .by_range
                .entry(range.clone())
                .or_default()
                .push(watcher),
        }
    }

    pub(super) fn remove(&mut self, range: &KeyRange, watcher: WatcherRef) {
        match range {
            KeyRange::One(key) => {
                if let Some(watchers) = self.by_key.get_mut(key) {
                    watchers.retain(|other| *other != watcher);
                    if watchers.is_empty() {
                        self.by_key.remove(key);
                    }
                }
            }
            range => {
                if let Some(watchers) = self.by_range.get_mut(range) {
                    watchers.retain(|other| *other != watcher);
                    if watchers.is_empty() {
                        self.by_range.remove(range);
                    }
                }
            }
        }
    }

    /// The watches that match `records`.
    pub(super) fn affected(&self, records: &[Arc<Record>]) -> Vec<AffectedWatches> {
        let mut affected = Vec::new();
        for (range, watchers) in &self.by_range {
            let matching: Vec<Arc<Record>> = records
                .iter()
                .filter(|record| range.contains(&record.key))
                .map(Arc::clone)
                .collect();
            if !matching.is_empty() {
                affected.push(AffectedWatches {
                    watchers: watchers.clone(),
                    records: matching.into(),
                });
            }
        }
        if !self.by_key.is_empty() {
            // A txn may put a key and delete it again: its watches get both in one message.
            let mut by_key: BTreeMap<&Bytes, Vec<Arc<Record>>> = BTreeMap::new();
            for record in records {
                if self.by_key.contains_key(&record.key) {
                    let matching = by_key.entry(&record.key).or_default();
                    matching.push(Arc::clone(record));
                }
            }
            for (key, matching) in by_key {
                affected.push(AffectedWatches {
                    watchers: self.by_key[key].clone(),
                    records: matching.into(),
                });
            }
        }
        affected
    }
}
