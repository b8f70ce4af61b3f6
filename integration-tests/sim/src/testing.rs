//! A history that is written down, for tests of what is held against it.

use std::sync::Arc;

use embedded_etcd::record::{Record, Revision};
use state::{Entity, Key};
use store::Keyspace;
use store::codec::Value;

use crate::watcher::Watcher;

/// What is written at one revision: a key, and what it is put to; `None`: it is deleted.
pub(crate) type Write = (Key, Option<Entity>);

/// Has a watcher see a history, one revision after the other, from the first one on.
pub(crate) fn seen(history: impl IntoIterator<Item = Vec<Write>>) -> Watcher {
    let watcher = Watcher::new(false);
    for (revision, writes) in (1..).zip(history) {
        let records = writes.into_iter().map(|write| record(revision, write));
        watcher.see(revision, &records.map(Arc::new).collect::<Vec<_>>());
    }
    watcher
}

fn record(revision: i64, (key, entity): Write) -> Record {
    let text = Keyspace::new("/kafila/v1/").encode(&key);
    let at = Revision {
        main: revision,
        sub: 0,
    };
    let Some(entity) = entity else {
        return Record::tombstone(text.into(), at);
    };
    let value = Value::from(&entity).encode().expect("it has a JSON form");
    Record {
        key: text.into(),
        value: value.into(),
        // Nobody here asks when a key came into being.
        create_revision: 1,
        revision: at,
        version: 1,
        lease: 0,
    }
}
