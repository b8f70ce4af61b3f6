//! Messages of watches, and the cost of slow readers.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::*;
use crate::{key_range::KeyRange, mvcc::Mvcc};

const INTERVAL: Duration = Duration::from_secs(600);

/// A store and its watches.
#[derive(Default)]
struct Bench {
    mvcc: Mvcc,
    hub: WatchHub,
}

impl Bench {
    fn open(&mut self) -> (StreamId, Arc<Outbox>) {
        self.hub.open_stream(INTERVAL)
    }

    fn put(&mut self, key: &str) -> i64 {
        self.write(&[(key, true)])
    }

    fn delete(&mut self, key: &str) -> i64 {
        self.write(&[(key, false)])
    }

    /// Puts (true) and deletes (false) keys in one revision.
    fn write(&mut self, changes: &[(&str, bool)]) -> i64 {
        let mut write = self.mvcc.write();
        for (key, is_put) in changes {
            let key = Bytes::copy_from_slice(key.as_bytes());
            if *is_put {
                write.put(key, Bytes::new(), 0);
            } else {
                write.delete_range(&KeyRange::One(key));
            }
        }
        let committed = write.finish();
        self.mvcc.publish();
        self.hub
            .notify(&self.mvcc, committed.revision, &committed.changes);
        committed.revision
    }

    fn watch(&mut self, stream: StreamId, request: Request) {
        self.hub.create(&self.mvcc, stream, request);
    }

    fn sync(&mut self) {
        while self.hub.sync(&self.mvcc) {}
    }
}

fn prefix(start_revision: i64) -> Request {
    Request {
        range: KeyRange::new("k", "l"),
        start_revision,
        watch_id: 0,
        progress_notify: false,
        no_put: false,
        no_delete: false,
        prev_kv: false,
        fragment: false,
    }
}

fn drain(outbox: &Outbox) -> Vec<Message> {
    std::iter::from_fn(|| outbox.pop()).collect()
}

/// Revision and key of each event, in order; and that nothing but events came.
fn events(messages: &[Message]) -> Vec<(i64, String)> {
    let mut events = Vec::new();
    for message in messages {
        let Message::Events { records, .. } = message else {
            panic!("{message:?} is not about events");
        };
        events.extend(records.iter().map(|record| {
            let key = String::from_utf8(record.key.to_vec()).unwrap();
            (record.revision.main, key)
        }));
    }
    events
}

#[test]
fn ids_are_chosen_around_those_that_clients_choose() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    for watch_id in [0, 1, 0, 1] {
        bench.watch(
            stream,
            Request {
                watch_id,
                ..prefix(0)
            },
        );
    }
    let created = |watch_id| Message::Created {
        watch_id,
        revision: 1,
    };
    let refused = Message::Refused {
        revision: 1,
        reason: "mvcc: duplicate watch ID provided on the WatchStream".to_owned(),
    };
    assert_eq!(
        drain(&outbox),
        [created(0), created(1), created(2), refused]
    );
}

#[test]
fn a_past_watch_hears_the_past_once_and_then_the_present() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    for key in ["k1", "other", "k2"] {
        bench.put(key);
    }
    bench.watch(stream, prefix(2));
    bench.put("k3");
    let messages = drain(&outbox);
    assert_eq!(
        events(&messages[1..]),
        [(2, "k1".into()), (4, "k2".into()), (5, "k3".into())]
    );
}

#[test]
fn a_future_watch_hears_nothing_before_its_start() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    bench.watch(stream, prefix(4));
    bench.hub.request_progress(&bench.mvcc, stream);
    for key in ["k1", "k2", "k3"] {
        bench.put(key);
    }
    let messages = drain(&outbox);
    assert_eq!(events(&messages[1..]), [(4, "k3".into())]);
}

#[test]
fn filters_leave_out_events_and_empty_messages() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    bench.watch(
        stream,
        Request {
            no_put: true,
            ..prefix(0)
        },
    );
    bench.put("k1");
    bench.write(&[("k1", false), ("k2", true)]);
    let messages = drain(&outbox);
    assert_eq!(messages.len(), 2);
    assert_eq!(events(&messages[1..]), [(3, "k1".into())]);
}

#[test]
fn the_previous_value_is_that_of_the_revision_before() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    bench.watch(
        stream,
        Request {
            prev_kv: true,
            ..prefix(0)
        },
    );
    bench.put("k1");
    bench.put("k1");
    bench.delete("k1");
    let previous: Vec<Option<i64>> = drain(&outbox)[1..]
        .iter()
        .map(|message| match message {
            Message::Events {
                previous: Some(previous),
                ..
            } => previous[0].as_ref().map(|record| record.revision.main),
            other => panic!("{other:?} has no previous values"),
        })
        .collect();
    assert_eq!(previous, [None, Some(2), Some(3)]);
}

#[test]
fn compacted_previous_values_are_not_sent() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    bench.put("k");
    let revision = bench.put("k");
    // Nothing is swept yet, but reads are refused already.
    bench.mvcc.compact(revision).unwrap();
    bench.watch(
        stream,
        Request {
            prev_kv: true,
            ..prefix(revision)
        },
    );
    let Message::Events { previous, .. } = &drain(&outbox)[1] else {
        panic!("the compacted revision itself can be watched");
    };
    assert_eq!(*previous, Some(vec![None]));
}

#[test]
fn a_slow_reader_is_bounded_and_misses_nothing() {
    const WRITES: i64 = 5_000;
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    bench.watch(stream, prefix(0));
    for _ in 0..WRITES {
        bench.put("k");
    }
    // Events that did not fit wait in the history, not in the queue.
    let mut messages = drain(&outbox);
    assert!(messages.len() < 2_000, "{} are queued", messages.len());
    bench.sync();
    while let Some(message) = outbox.pop() {
        messages.push(message);
        bench.sync();
    }
    let expected: Vec<(i64, String)> = (2..2 + WRITES).map(|main| (main, "k".into())).collect();
    assert_eq!(events(&messages[1..]), expected);

    bench.put("k");
    let is_synced_again = events(&drain(&outbox)) == [(2 + WRITES, "k".into())];
    assert!(is_synced_again);
}

#[test]
fn a_reader_that_made_room_calls_the_hub() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    bench.watch(stream, prefix(0));
    for _ in 0..5_000 {
        bench.put("k");
    }
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut calls = 0;
    while let std::task::Poll::Ready(Some((_, call_hub))) = outbox.poll_next(&mut context) {
        calls += usize::from(call_hub);
    }
    assert_eq!(calls, 1);
}

#[test]
fn one_revision_larger_than_the_queue_still_arrives_whole() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    bench.watch(stream, prefix(0));
    drain(&outbox);
    let keys: Vec<String> = (0..40_000).map(|number| format!("k{number}")).collect();
    let changes: Vec<(&str, bool)> = keys.iter().map(|key| (key.as_str(), true)).collect();
    bench.write(&changes);
    let messages = drain(&outbox);
    assert_eq!((messages.len(), messages[0].events()), (1, 40_000));
}

#[test]
fn a_reader_behind_a_compaction_gets_an_error() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    bench.watch(stream, prefix(0));
    for _ in 0..5_000 {
        bench.put("k");
    }
    bench.mvcc.compact(4_000).unwrap();
    let heard = drain(&outbox);
    bench.sync();
    let compacted = Message::Compacted {
        watch_id: 0,
        compact_revision: 4_000,
    };
    assert_eq!(drain(&outbox), [compacted]);
    assert!(events(&heard[1..]).len() < 3_999);

    // It is over, but there until the client cancels it: so no progress is reported.
    bench.put("k");
    bench.hub.request_progress(&bench.mvcc, stream);
    assert_eq!(drain(&outbox), []);
    bench.hub.cancel(&bench.mvcc, stream, 0);
    assert!(matches!(drain(&outbox)[..], [Message::Canceled { .. }]));
}

#[test]
fn a_synced_watch_does_not_mind_a_compaction() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    bench.watch(stream, prefix(0));
    let revision = bench.put("k");
    bench.mvcc.compact(revision).unwrap();
    bench.sync();
    bench.put("k");
    assert_eq!(events(&drain(&outbox)[1..]).len(), 2);
}

#[test]
fn progress_is_reported_only_when_all_watches_of_the_stream_are_synced() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    bench.hub.request_progress(&bench.mvcc, stream);
    assert_eq!(drain(&outbox), [], "there is nothing to report on");

    bench.watch(stream, prefix(0));
    drain(&outbox);
    bench.hub.request_progress(&bench.mvcc, stream);
    let progress = |watch_id, revision| Message::Progress { watch_id, revision };
    assert_eq!(drain(&outbox), [progress(-1, 1)]);

    // One watch that is behind silences the stream, as many others as are synced.
    for _ in 0..5_000 {
        bench.put("k");
    }
    bench.watch(
        stream,
        Request {
            range: KeyRange::new("z", ""),
            ..prefix(0)
        },
    );
    drain(&outbox);
    bench.hub.request_progress(&bench.mvcc, stream);
    assert_eq!(drain(&outbox), []);
    bench.sync();
    while outbox.pop().is_some() {
        bench.sync();
    }
    bench.hub.request_progress(&bench.mvcc, stream);
    assert_eq!(drain(&outbox), [progress(-1, 5_001)]);
}

#[test]
fn a_quiet_watch_that_asked_for_it_hears_of_progress_at_each_interval() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    bench.watch(
        stream,
        Request {
            progress_notify: true,
            ..prefix(0)
        },
    );
    bench.watch(stream, prefix(0));
    drain(&outbox);
    assert_eq!(bench.hub.next_tick(), Some(INTERVAL));
    let tick = |bench: &mut Bench, intervals: u32| {
        let now = INTERVAL * intervals;
        bench.hub.tick(&bench.mvcc, now, INTERVAL);
    };
    let progress = |revision| Message::Progress {
        watch_id: 0,
        revision,
    };
    tick(&mut bench, 1);
    assert_eq!(drain(&outbox), [progress(1)]);
    // Events say it all, so the next report is left out, and only that.
    bench.put("k");
    drain(&outbox);
    tick(&mut bench, 2);
    assert_eq!(drain(&outbox), []);
    tick(&mut bench, 3);
    assert_eq!(drain(&outbox), [progress(2)]);
}

#[test]
fn a_closed_stream_hears_nothing_more() {
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    bench.watch(stream, prefix(0));
    bench.hub.close_stream(stream);
    bench.put("k");
    assert_eq!(drain(&outbox), []);
    assert_eq!(bench.hub.next_tick(), None);
}

#[test]
fn a_large_message_is_cut_between_events_if_the_watch_allows_it() {
    const LIMIT: usize = 200;
    let mut bench = Bench::default();
    let (stream, outbox) = bench.open();
    for fragment in [true, false] {
        bench.watch(
            stream,
            Request {
                fragment,
                ..prefix(0)
            },
        );
    }
    drain(&outbox);
    let keys: Vec<String> = (0..40).map(|number| format!("k{number}")).collect();
    let changes: Vec<(&str, bool)> = keys.iter().map(|key| (key.as_str(), true)).collect();
    bench.write(&changes);
    let mut messages = drain(&outbox);
    messages.sort_by_key(|message| match message {
        Message::Events { watch_id, .. } => *watch_id,
        other => panic!("{other:?} is not about events"),
    });
    let mut responses = messages.into_iter().map(|message| {
        message.into_responses(etcd_client::proto::PbResponseHeader::default(), LIMIT)
    });
    let cut = responses.next().unwrap();
    assert!(cut.len() > 2);
    for (position, piece) in cut.iter().enumerate() {
        assert!(prost::Message::encoded_len(piece) < LIMIT);
        assert_eq!(piece.fragment, position + 1 < cut.len());
    }
    let events = cut.into_iter().flat_map(|piece| piece.events);
    let whole = responses.next().unwrap();
    assert_eq!(whole.len(), 1);
    assert!(!whole[0].fragment);
    assert!(events.eq(whole[0].events.iter().cloned()));
}
