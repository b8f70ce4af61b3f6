//! Scripted histories, for tests of the checks.

use std::sync::Arc;

use embedded_etcd::record::{Record, Revision};
use state::{Entity, Key};
use store::Keyspace;
use store::codec::Value;

use crate::checker::Checker;

/// One write of a revision: key and entity; `None`: deletion.
pub(crate) type Write = (Key, Option<Entity>);

/// Returns a checker that has seen the history, one revision after the other.
pub(crate) fn seen(history: impl IntoIterator<Item = Vec<Write>>) -> Checker {
    let checker = Checker::new(false);
    for (revision, writes) in (1..).zip(history) {
        let records = writes.into_iter().map(|write| record(revision, write));
        checker.see(revision, &records.map(Arc::new).collect::<Vec<_>>());
    }
    checker
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
        // No check uses it.
        create_revision: 1,
        revision: at,
        version: 1,
        lease: 0,
    }
}
