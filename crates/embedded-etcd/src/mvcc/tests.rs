//! The store against a naive model with a whole copy of everything at every revision.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::{error::ApiError, key_range::KeyRange};

const KEYS: [&str; 5] = ["a", "a/1", "a/2", "b", "c"];

const UNLIMITED: ScanLimits = ScanLimits {
    revisions: usize::MAX,
    bytes: usize::MAX,
    looked_at: usize::MAX,
};

fn everything() -> KeyRange {
    KeyRange::From(Bytes::from_static(b"\0"))
}

/// One change within a write.
#[derive(Clone, Debug)]
enum Change {
    Put(usize, u8),
    Delete(usize, usize),
}

/// An operation on the store.
#[derive(Clone, Debug)]
enum Event {
    Write {
        changes: Vec<Change>,
        undone: bool,
    },
    Publish,
    /// At this share of the current revision, in percent.
    Compact(i64),
    Sweep(usize),
}

fn changes() -> impl Strategy<Value = Change> {
    let key = 0..KEYS.len();
    prop_oneof![
        3 => (key.clone(), any::<u8>()).prop_map(|(key, value)| Change::Put(key, value)),
        1 => (key.clone(), key).prop_map(|(from, to)| Change::Delete(from, to)),
    ]
}

fn events() -> impl Strategy<Value = Event> {
    let write = (
        prop::collection::vec(changes(), 0..4),
        prop::bool::weighted(0.1),
    );
    prop_oneof![
        6 => write.prop_map(|(changes, undone)| Event::Write { changes, undone }),
        3 => Just(Event::Publish),
        1 => (0_i64..110).prop_map(Event::Compact),
        2 => (1_usize..5).prop_map(Event::Sweep),
    ]
}

/// Value, create revision, mod revision, version.
type Facts = (Vec<u8>, i64, i64, i64);

/// Everything as it was at each revision, and each change in order.
#[derive(Clone, Debug)]
struct Model {
    at: Vec<BTreeMap<&'static str, Facts>>,
    /// Revision, key, and the value unless it was deleted.
    changes: Vec<(i64, &'static str, Option<Vec<u8>>)>,
}

impl Model {
    fn head(&self) -> i64 {
        // Revision 1 is the empty store, at position 0.
        i64::try_from(self.at.len()).unwrap()
    }

    fn at(&self, revision: i64) -> &BTreeMap<&'static str, Facts> {
        &self.at[usize::try_from(revision - 1).unwrap()]
    }

    fn apply(&mut self, changes: &[Change]) {
        let mut now = self.at(self.head()).clone();
        let (revision, before) = (self.head() + 1, self.changes.len());
        for change in changes {
            match change {
                Change::Put(key, value) => {
                    let (key, value) = (KEYS[*key], vec![*value]);
                    let (created, version) = match now.get(key) {
                        Some((_, created, _, version)) => (*created, version + 1),
                        None => (revision, 1),
                    };
                    now.insert(key, (value.clone(), created, revision, version));
                    self.changes.push((revision, key, Some(value)));
                }
                Change::Delete(from, to) => {
                    let doomed: Vec<&str> = (now.keys().copied())
                        .filter(|key| (KEYS[*from]..KEYS[*to]).contains(key))
                        .collect();
                    for key in doomed {
                        now.remove(key);
                        self.changes.push((revision, key, None));
                    }
                }
            }
        }
        if self.changes.len() > before {
            self.at.push(now);
        }
    }
}

fn apply(mvcc: &mut Mvcc, changes: &[Change], undone: bool) {
    let mut write = mvcc.write();
    for change in changes {
        match change {
            Change::Put(key, value) => {
                let value = Bytes::copy_from_slice(&[*value]);
                write.put(Bytes::from_static(KEYS[*key].as_bytes()), value, 0);
            }
            Change::Delete(from, to) => {
                // A range that ends where it starts is empty.
                write.delete_range(&KeyRange::new(KEYS[*from], KEYS[*to]));
            }
        }
    }
    if undone {
        write.roll_back();
    } else {
        write.finish();
    }
}

fn check_reads(mvcc: &Mvcc, model: &Model) -> Result<(), TestCaseError> {
    for revision in 1..=model.head() + 1 {
        let options = RangeOptions {
            revision,
            ..RangeOptions::default()
        };
        let found = mvcc.range(&everything(), options, mvcc.visible());
        if revision > mvcc.visible() {
            prop_assert_eq!(found.unwrap_err(), ApiError::FutureRevision);
            continue;
        }
        if revision < mvcc.compact_revision() {
            prop_assert_eq!(found.unwrap_err(), ApiError::Compacted);
            continue;
        }
        let found: Vec<(String, Facts)> = found
            .unwrap()
            .records
            .iter()
            .map(|record| {
                let facts = (
                    record.value.to_vec(),
                    record.create_revision,
                    record.revision.main,
                    record.version,
                );
                (String::from_utf8(record.key.to_vec()).unwrap(), facts)
            })
            .collect();
        let expected: Vec<(String, Facts)> = model
            .at(revision)
            .iter()
            .map(|(key, facts)| ((*key).to_owned(), facts.clone()))
            .collect();
        prop_assert_eq!(found, expected, "at {}", revision);
    }
    Ok(())
}

fn check_history(mvcc: &Mvcc, model: &Model) -> Result<(), TestCaseError> {
    // The compacted revision itself may be partly gone.
    let from = (mvcc.compact_revision() + 1).max(1);
    let expected: Vec<(i64, String, Option<Vec<u8>>)> = model
        .changes
        .iter()
        .filter(|(revision, ..)| (from..=mvcc.visible()).contains(revision))
        .map(|(revision, key, value)| (*revision, (*key).to_owned(), value.clone()))
        .collect();
    for limits in [
        UNLIMITED,
        ScanLimits {
            revisions: 1,
            ..UNLIMITED
        },
        ScanLimits {
            bytes: 1,
            ..UNLIMITED
        },
        ScanLimits {
            looked_at: 1,
            ..UNLIMITED
        },
    ] {
        let (mut found, mut next) = (Vec::new(), from);
        while next <= mvcc.visible() {
            let chunk = mvcc.scan(&everything(), next, limits);
            prop_assert!(chunk.next > next, "a scan gets on");
            next = chunk.next;
            found.extend(chunk.records.iter().map(|record| {
                let key = String::from_utf8(record.key.to_vec()).unwrap();
                let value = (!record.is_tombstone()).then(|| record.value.to_vec());
                (record.revision.main, key, value)
            }));
        }
        prop_assert_eq!(&found, &expected, "{:?}", limits);
        for key in KEYS {
            let one = mvcc.scan(&KeyRange::new(key, ""), from, UNLIMITED);
            let of_key = expected.iter().filter(|(_, other, _)| other == key);
            prop_assert_eq!(one.records.len(), of_key.count(), "{}", key);
        }
    }
    Ok(())
}

/// After a compaction only records visible to a later read or watch are left.
fn check_nothing_is_left_over(mvcc: &Mvcc) -> Result<(), TestCaseError> {
    let upto = mvcc.compact_revision();
    for record in mvcc.log.values() {
        if record.revision.main <= upto {
            prop_assert!(mvcc.survives(record, upto), "{:?}", record);
        }
    }
    let bytes: usize = mvcc.log.values().map(|record| record.size()).sum();
    prop_assert_eq!(mvcc.size(), bytes);
    Ok(())
}

proptest! {
    #[test]
    fn reads_and_history_are_those_of_the_naive_model(
        events in prop::collection::vec(events(), 1..60),
    ) {
        let mut mvcc = Mvcc::default();
        let mut model = Model { at: vec![BTreeMap::new()], changes: Vec::new() };
        for event in &events {
            match event {
                Event::Write { changes, undone } => {
                    apply(&mut mvcc, changes, *undone);
                    if !undone {
                        model.apply(changes);
                    }
                }
                Event::Publish => mvcc.publish(),
                Event::Compact(percent) => {
                    let revision = mvcc.visible() * percent / 100;
                    let expected = if revision <= mvcc.compact_revision() {
                        Err(ApiError::Compacted)
                    } else if revision > mvcc.visible() {
                        Err(ApiError::FutureRevision)
                    } else {
                        Ok(())
                    };
                    prop_assert_eq!(mvcc.compact(revision), expected);
                }
                Event::Sweep(budget) => drop(mvcc.sweep(*budget)),
            }
            prop_assert_eq!(mvcc.head(), model.head());
            check_reads(&mvcc, &model)?;
        }
        mvcc.publish();
        check_reads(&mvcc, &model)?;
        check_history(&mvcc, &model)?;
        let hash = mvcc.hash(0);
        while mvcc.is_sweeping() {
            mvcc.sweep(3);
        }
        check_nothing_is_left_over(&mvcc)?;
        check_reads(&mvcc, &model)?;
        check_history(&mvcc, &model)?;
        prop_assert_eq!(mvcc.hash(0), hash, "sweeping changes nothing that can be seen");
    }

    /// A store that is read back from its records is the store they came from.
    #[test]
    fn a_reloaded_store_is_the_same(
        writes in prop::collection::vec(prop::collection::vec(changes(), 1..4), 1..30),
        compact_at in 0_i64..30,
        swept in 0_usize..20,
    ) {
        let mut mvcc = Mvcc::default();
        for changes in &writes {
            apply(&mut mvcc, changes, false);
        }
        mvcc.publish();
        let compacted = mvcc.compact(compact_at).is_ok();
        mvcc.sweep(swept);

        let mut reloaded = Mvcc::default();
        for record in mvcc.log.values() {
            reloaded.load(Arc::clone(record));
        }
        reloaded.finish_load(mvcc.compact_revision());
        prop_assert_eq!(reloaded.hash(0), mvcc.hash(0));
        prop_assert_eq!(reloaded.size(), mvcc.size());
        // Compaction may have dropped the newest record.
        let newest = mvcc.log.last_key_value().map_or(1, |(revision, _)| revision.main);
        prop_assert_eq!(reloaded.head(), newest.max(mvcc.compact_revision()).max(1));
        if compacted && mvcc.is_sweeping() {
            prop_assert!(reloaded.is_sweeping(), "an unfinished compaction goes on");
        }
        while mvcc.is_sweeping() {
            mvcc.sweep(100);
        }
        while reloaded.is_sweeping() {
            reloaded.sweep(100);
        }
        prop_assert!(mvcc.log.keys().eq(reloaded.log.keys()));
    }
}

#[test]
fn readers_see_a_write_only_once_it_is_published() {
    let mut mvcc = Mvcc::default();
    apply(&mut mvcc, &[Change::Put(0, 1)], false);
    assert_eq!((mvcc.head(), mvcc.visible()), (2, 1));
    let read = |mvcc: &Mvcc| {
        let options = RangeOptions::default();
        mvcc.range(&everything(), options, mvcc.visible())
            .unwrap()
            .count
    };
    assert_eq!(read(&mvcc), 0);
    mvcc.publish();
    assert_eq!(read(&mvcc), 1);
}

#[test]
fn a_write_without_changes_is_no_revision() {
    let mut mvcc = Mvcc::default();
    apply(&mut mvcc, &[Change::Delete(0, 4)], false);
    assert_eq!(mvcc.head(), FIRST_REVISION);
}

#[test]
fn a_compaction_waits_for_unpublished_writes() {
    let mut mvcc = Mvcc::default();
    apply(&mut mvcc, &[Change::Put(0, 1)], false);
    assert_eq!(mvcc.compact(2), Err(ApiError::FutureRevision));
    mvcc.publish();
    assert_eq!(mvcc.compact(2), Ok(()));
}
