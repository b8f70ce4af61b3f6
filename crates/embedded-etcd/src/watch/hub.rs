//! All watch streams and their watches.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::{
    id::{StreamId, WatcherRef},
    message::{Message, NO_WATCH},
    outbox::Outbox,
    subscriptions::{AffectedWatches, Subscriptions},
    watcher::{Request, State, WatchError, Watcher},
};
use crate::{
    mvcc::{Mvcc, ScanLimits},
    record::Record,
};

/// One step of a lagging watch through the history.
const CATCH_UP: ScanLimits = ScanLimits {
    // etcd's batch.
    revisions: 1_000,
    // A quarter of what gRPC clients take by default, since one revision may go beyond it.
    bytes: 1024 * 1024,
    // About 5 ms without writes.
    looked_at: 50_000,
};

/// All watches.
#[derive(Debug, Default)]
pub struct WatchHub {
    streams: BTreeMap<StreamId, Stream>,
    subscriptions: Subscriptions,
    /// The watches in [`State::Lagging`].
    lagging: BTreeSet<WatcherRef>,
    next_stream: u64,
}

#[derive(Debug)]
struct Stream {
    watchers: BTreeMap<i64, Watcher>,
    /// The id from which the search for a free watch id continues.
    next_watch_id: i64,
    outbox: Arc<Outbox>,
    /// Time of the next progress report of its watches that requested one.
    next_progress: Duration,
}

impl WatchHub {
    /// Opens a stream without watches; its first progress report is due at `next_progress`.
    pub fn open_stream(&mut self, next_progress: Duration) -> (StreamId, Arc<Outbox>) {
        let id = StreamId(self.next_stream);
        self.next_stream += 1;
        let outbox = Arc::new(Outbox::default());
        let stream = Stream {
            watchers: BTreeMap::new(),
            next_watch_id: 0,
            outbox: Arc::clone(&outbox),
            next_progress,
        };
        self.streams.insert(id, stream);
        (id, outbox)
    }

    /// Ends a stream and all its watches.
    pub fn close_stream(&mut self, id: StreamId) {
        let Some(stream) = self.streams.remove(&id) else {
            return;
        };
        for (watch_id, watcher) in &stream.watchers {
            self.forget(id, *watch_id, watcher);
        }
        stream.outbox.close();
    }

    /// Ends all streams.
    pub fn close_all(&mut self) {
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            self.close_stream(id);
        }
    }

    /// Creates a watch, or sends the refusal. Past changes follow at once, as far
    /// as there is room; returns whether more of it can follow at once.
    pub fn create(&mut self, mvcc: &Mvcc, id: StreamId, request: Request) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else {
            return false;
        };
        let revision = mvcc.visible();
        let watch_id = match stream.choose_id(&request) {
            Ok(watch_id) => watch_id,
            Err(error) => {
                let reason = error.to_string();
                stream.outbox.push(Message::Refused { revision, reason });
                return false;
            }
        };
        stream.outbox.push(Message::Created { watch_id, revision });

        let start = request.start_revision;
        let is_synced = start == 0 || start > revision;
        let reference = WatcherRef {
            stream: id,
            watch_id,
        };
        self.subscriptions.add(&request.range, reference);
        let watcher = Watcher {
            state: if is_synced {
                State::Synced
            } else {
                State::Lagging
            },
            next_revision: if is_synced {
                start.max(revision + 1)
            } else {
                start
            },
            progress_due: request.progress_notify,
            request,
        };
        stream.watchers.insert(watch_id, watcher);
        if is_synced {
            return false;
        }
        self.lagging.insert(reference);
        self.catch_up(mvcc, reference)
    }

    /// Cancels a watch; an unknown one is ignored silently, as by etcd.
    pub fn cancel(&mut self, mvcc: &Mvcc, id: StreamId, watch_id: i64) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if let Some(watcher) = stream.watchers.remove(&watch_id) {
            stream.outbox.push(Message::Canceled {
                watch_id,
                revision: mvcc.visible(),
            });
            self.forget(id, watch_id, &watcher);
        }
    }

    /// Reports the revision to the stream if all its watches have been sent everything up to it;
    /// otherwise sends nothing (etcd from 3.5.8 on).
    pub fn request_progress(&self, mvcc: &Mvcc, id: StreamId) {
        let Some(stream) = self.streams.get(&id) else {
            return;
        };
        let revision = mvcc.visible();
        let all_synced = stream
            .watchers
            .values()
            .all(|watcher| watcher.is_synced_at(revision));
        if all_synced && !stream.watchers.is_empty() {
            // Dropped for lack of room: the client requests progress again.
            stream.outbox.try_push(Message::Progress {
                watch_id: NO_WATCH,
                revision,
            });
        }
    }

    /// Delivers `records` to the matching watches; all of them are of `revision`, now visible.
    pub fn notify(&mut self, mvcc: &Mvcc, revision: i64, records: &[Arc<Record>]) {
        for AffectedWatches { watchers, records } in self.subscriptions.affected(records) {
            for reference in watchers {
                let Some(stream) = self.streams.get_mut(&reference.stream) else {
                    continue;
                };
                let Some(watcher) = stream.watchers.get_mut(&reference.watch_id) else {
                    continue;
                };
                if watcher.state != State::Synced || revision < watcher.next_revision {
                    continue;
                }
                if watcher.send(mvcc, &stream.outbox, reference.watch_id, revision, &records) {
                    watcher.next_revision = revision + 1;
                } else {
                    watcher.state = State::Lagging;
                    watcher.next_revision = revision;
                    self.lagging.insert(reference);
                }
            }
        }
    }

    /// Takes each lagging watch whose reader has room one step on. Returns whether another step is
    /// possible at once.
    pub fn sync(&mut self, mvcc: &Mvcc) -> bool {
        let mut more = false;
        let lagging: Vec<WatcherRef> = self.lagging.iter().copied().collect();
        for reference in lagging {
            more |= self.catch_up(mvcc, reference);
        }
        more
    }

    /// Reports progress to watches that requested it and had no message for an `interval`.
    pub fn tick(&mut self, mvcc: &Mvcc, now: Duration, interval: Duration) {
        let revision = mvcc.visible();
        for stream in self.streams.values_mut() {
            if stream.next_progress > now {
                continue;
            }
            stream.next_progress = now + interval;
            for (&watch_id, watcher) in &mut stream.watchers {
                if !watcher.request.progress_notify {
                    continue;
                }
                if watcher.progress_due && watcher.is_synced_at(revision) {
                    let progress = Message::Progress { watch_id, revision };
                    stream.outbox.try_push(progress);
                }
                watcher.progress_due = true;
            }
        }
    }

    /// Returns the time at which [`WatchHub::tick`] next has something to do.
    #[must_use]
    pub fn next_tick(&self) -> Option<Duration> {
        let wants_progress = |stream: &&Stream| {
            let mut watchers = stream.watchers.values();
            watchers.any(|watcher| watcher.request.progress_notify)
        };
        self.streams
            .values()
            .filter(wants_progress)
            .map(|stream| stream.next_progress)
            .min()
    }

    /// Takes one lagging watch a step on; returns whether another is possible at once.
    fn catch_up(&mut self, mvcc: &Mvcc, reference: WatcherRef) -> bool {
        let WatcherRef { stream, watch_id } = reference;
        let Some(stream) = self.streams.get_mut(&stream) else {
            return false;
        };
        let Some(watcher) = stream.watchers.get_mut(&watch_id) else {
            return false;
        };
        if !stream.outbox.has_room() {
            return false;
        }
        if watcher.next_revision < mvcc.compact_revision() {
            stream.outbox.push(Message::Compacted {
                watch_id,
                compact_revision: mvcc.compact_revision(),
            });
            watcher.state = State::Compacted;
            self.lagging.remove(&reference);
            return false;
        }
        let chunk = mvcc.scan(&watcher.request.range, watcher.next_revision, CATCH_UP);
        let records = chunk.records.into();
        // etcd, too, names the current revision although older events may follow.
        if !watcher.send(mvcc, &stream.outbox, watch_id, mvcc.visible(), &records) {
            return false;
        }
        watcher.next_revision = chunk.next;
        if chunk.next <= mvcc.visible() {
            return stream.outbox.has_room();
        }
        watcher.state = State::Synced;
        self.lagging.remove(&reference);
        false
    }

    fn forget(&mut self, stream: StreamId, watch_id: i64, watcher: &Watcher) {
        let reference = WatcherRef { stream, watch_id };
        self.subscriptions.remove(&watcher.request.range, reference);
        self.lagging.remove(&reference);
    }
}

impl Stream {
    /// The id of a new watch.
    fn choose_id(&mut self, request: &Request) -> Result<i64, WatchError> {
        if request.start_revision < 0 {
            return Err(WatchError::NegativeStart);
        }
        if request.range.is_empty() {
            return Err(WatchError::EmptyRange);
        }
        if request.watch_id != 0 {
            if self.watchers.contains_key(&request.watch_id) {
                return Err(WatchError::DuplicateId);
            }
            return Ok(request.watch_id);
        }
        while self.watchers.contains_key(&self.next_watch_id) {
            self.next_watch_id += 1;
        }
        let id = self.next_watch_id;
        self.next_watch_id += 1;
        Ok(id)
    }
}

impl Watcher {
    /// Returns true if the watcher has been sent all its events up to `revision`.
    fn is_synced_at(&self, revision: i64) -> bool {
        self.state == State::Synced && self.request.start_revision <= revision
    }

    /// Queues those of `records` that pass its filters; `false` if there is no room.
    fn send(
        &mut self,
        mvcc: &Mvcc,
        outbox: &Outbox,
        watch_id: i64,
        revision: i64,
        records: &Arc<[Arc<Record>]>,
    ) -> bool {
        let records = self.filter(records);
        if records.is_empty() {
            return true;
        }
        let previous = self.request.prev_kv.then(|| {
            records
                .iter()
                .map(|record| previous(mvcc, record))
                .collect()
        });
        let sent = outbox.try_push(Message::Events {
            watch_id,
            revision,
            records,
            previous,
            fragment: self.request.fragment,
        });
        // Events replace a progress report.
        self.progress_due &= !sent;
        sent
    }
}

/// The previous version of the key of `record`, unless it was compacted.
fn previous(mvcc: &Mvcc, record: &Record) -> Option<Arc<Record>> {
    let before = record.revision.main - 1;
    if record.is_creation() || before < mvcc.compact_revision() {
        return None;
    }
    mvcc.get(&record.key, before).map(Arc::clone)
}
