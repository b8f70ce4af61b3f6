//! Random requests that mean something now and then.

use etcd_client::proto::{
    PbCompactionRequest, PbCompare, PbDeleteRequest, PbPutRequest, PbRangeRequest, PbTargetUnion,
    PbTxnOpRequest, PbTxnRequest, PbTxnRequestOp,
};
use rand::{RngExt, rngs::StdRng, seq::IndexedRandom};

use super::{side::STREAMS, step::Step};
use crate::support::raw::Create;

/// Few enough that requests meet; with prefixes of each other and the ends of the key space.
const KEYS: [&[u8]; 18] = [
    b"\0",
    b"a",
    b"a\0",
    b"a/",
    b"a/1",
    b"a/2",
    b"a/3",
    b"b",
    b"b/1",
    b"b/1/x",
    b"b/2",
    b"c",
    b"c/1",
    b"c/2",
    b"c/3",
    b"d",
    b"\xfe",
    b"\xff\xff",
];

/// The stream whose watches start in the future or are too old; the others' can always catch up.
pub(super) const ODD_STREAM: usize = STREAMS - 1;

/// Names of leases that the server chooses the id of, beyond all that the test chooses.
const SERVER_CHOSEN: i64 = 1 << 40;

/// The generator's knowledge of the store.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) revision: i64,
    pub(super) compact_revision: i64,
    /// Those that exist, by their names.
    pub(super) leases: Vec<i64>,
    /// The number of leases that were ever granted.
    pub(super) granted: i64,
    /// Active watches of each stream.
    pub(super) watches: [Vec<i64>; STREAMS],
}

pub(super) struct Generator {
    pub(super) rng: StdRng,
    /// True if the stores' hashes are compared. Then no server chooses a lease's id, which would be
    /// in the hash.
    pub(super) hashes: bool,
    pub(super) known: Known,
}

impl Generator {
    pub(super) fn next(&mut self) -> Step {
        match self.rng.random_range(0..100) {
            0..22 => Step::Put(self.put()),
            22..44 => Step::Range(self.range()),
            44..51 => Step::Delete(self.delete()),
            51..72 => Step::Txn(self.txn(2)),
            72..75 => Step::Compact(self.compact()),
            75..79 => self.grant(),
            79..81 => Step::Revoke { id: self.lease() },
            81..83 => Step::KeepAlive { id: self.lease() },
            83..85 => Step::TimeToLive {
                id: self.lease(),
                keys: self.rng.random(),
            },
            85..86 => Step::Leases,
            86..88 if self.hashes => self.hash_kv(),
            86..88 => Step::Txn(self.txn(2)),
            88..94 => self.watch(),
            94..97 => self.cancel_watch(),
            97..98 => Step::Progress { stream: ODD_STREAM },
            _ => Step::Settle,
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn key(&mut self) -> Vec<u8> {
        if self.chance(1) {
            return Vec::new();
        }
        KEYS.choose(&mut self.rng).unwrap().to_vec()
    }

    /// A key and an end: one key, a prefix, all from a key on, any two keys, everything.
    fn key_range(&mut self) -> (Vec<u8>, Vec<u8>) {
        let key = self.key();
        let end = match self.rng.random_range(0..10) {
            0..4 => Vec::new(),
            4..7 => prefix_end(&key),
            7 => vec![0],
            8 => self.key(),
            _ => return (vec![0], vec![0]),
        };
        (key, end)
    }

    fn value(&mut self) -> Vec<u8> {
        if self.chance(5) {
            return Vec::new();
        }
        format!("v{}", self.rng.random_range(0..20)).into_bytes()
    }

    /// Mostly one that exists.
    fn lease(&mut self) -> i64 {
        match self.known.leases.choose(&mut self.rng) {
            Some(id) if self.rng.random_range(0..30) > 0 => *id,
            _ => self.rng.random_range(1..40),
        }
    }

    /// One that the test chose, or any number: those compare the same on both sides.
    fn comparable_lease(&mut self) -> i64 {
        let id = self.lease();
        if id < SERVER_CHOSEN { id } else { 1_000 }
    }

    /// Current, past, compacted, future or senseless.
    fn revision(&mut self) -> i64 {
        let known = &self.known;
        match self.rng.random_range(0..10) {
            0..4 => 0,
            4..7 => self
                .rng
                .random_range(known.compact_revision.max(1)..=known.revision),
            7 => self.rng.random_range(1..=known.revision),
            8 => known.revision + self.rng.random_range(0..3),
            _ => self.rng.random_range(-2..=2),
        }
    }

    fn put(&mut self) -> PbPutRequest {
        let mut request = PbPutRequest {
            key: self.key(),
            value: self.value(),
            prev_kv: self.chance(30),
            ..PbPutRequest::default()
        };
        if self.chance(20) {
            request.lease = self.lease();
        }
        if self.chance(4) {
            request.ignore_value = true;
            if self.chance(90) {
                request.value.clear();
            }
        }
        if self.chance(4) {
            request.ignore_lease = true;
            if self.chance(90) {
                request.lease = 0;
            }
        }
        request
    }

    fn delete(&mut self) -> PbDeleteRequest {
        let (key, mut range_end) = self.key_range();
        if range_end == [0] && self.chance(70) {
            // Seldom all of it, or nothing else would be seen.
            range_end = Vec::new();
        }
        PbDeleteRequest {
            key,
            range_end,
            prev_kv: self.chance(40),
        }
    }

    fn range(&mut self) -> PbRangeRequest {
        let (key, range_end) = self.key_range();
        let mut request = PbRangeRequest {
            key,
            range_end,
            revision: self.revision(),
            serializable: self.chance(10),
            keys_only: self.chance(10),
            count_only: self.chance(10),
            ..PbRangeRequest::default()
        };
        if self.chance(30) {
            request.limit = self.rng.random_range(-1..6);
        }
        if self.chance(30) {
            request.sort_order = self.rng.random_range(0..3);
            request.sort_target = self.rng.random_range(0..5);
        }
        if self.chance(20) {
            let revision = self.rng.random_range(-1..=self.known.revision);
            let bounds = [
                &mut request.min_mod_revision,
                &mut request.max_mod_revision,
                &mut request.min_create_revision,
                &mut request.max_create_revision,
            ];
            for bound in bounds {
                if self.rng.random_range(0..3) == 0 {
                    *bound = revision;
                }
            }
        }
        request
    }

    fn txn(&mut self, depth: u32) -> PbTxnRequest {
        let compares = self.rng.random_range(0..3);
        let mut request = PbTxnRequest {
            compare: (0..compares).map(|_| self.compare()).collect(),
            success: self.ops(depth),
            failure: self.ops(depth),
        };
        if depth == 2 && self.chance(10) {
            // A delete without end may follow puts of the same keys, but not come before them: etcd
            // lets that through and crashes when it compacts.
            request.success.push(delete_op(PbDeleteRequest {
                key: self.key(),
                range_end: vec![0],
                prev_kv: self.chance(40),
            }));
        }
        request
    }

    fn ops(&mut self, depth: u32) -> Vec<PbTxnRequestOp> {
        let count = self.rng.random_range(0..5);
        (0..count).map(|_| self.op(depth)).collect()
    }

    fn op(&mut self, depth: u32) -> PbTxnRequestOp {
        let request = match self.rng.random_range(0..100) {
            0..45 => Some(PbTxnOpRequest::RequestPut(self.put())),
            45..70 => {
                let mut request = self.range();
                if self.chance(80) {
                    request.revision = 0;
                }
                Some(PbTxnOpRequest::RequestRange(request))
            }
            70..85 => {
                let mut request = self.delete();
                if request.range_end == [0] {
                    request.range_end.clear();
                }
                return delete_op(request);
            }
            85..99 if depth > 0 => Some(PbTxnOpRequest::RequestTxn(self.txn(depth - 1))),
            99 => None,
            _ => Some(PbTxnOpRequest::RequestRange(self.range())),
        };
        PbTxnRequestOp { request }
    }

    fn compare(&mut self) -> PbCompare {
        let (key, range_end) = self.key_range();
        let result = self.rng.random_range(0..4);
        let target = self.rng.random_range(0..5);
        let revision = self.rng.random_range(0..=self.known.revision + 1);
        let target_union = match target {
            0 => PbTargetUnion::Version(self.rng.random_range(0..4)),
            1 => PbTargetUnion::CreateRevision(if self.chance(50) { 0 } else { revision }),
            2 => PbTargetUnion::ModRevision(revision),
            3 => PbTargetUnion::Value(self.value()),
            _ if result == 0 || result == 3 => {
                PbTargetUnion::Lease(if self.chance(30) { 0 } else { self.lease() })
            }
            _ => PbTargetUnion::Lease(self.comparable_lease()),
        };
        PbCompare {
            result,
            target,
            key,
            range_end,
            // An operand of the wrong kind, or none, now and then.
            target_union: if self.chance(5) {
                None
            } else if self.chance(3) {
                Some(PbTargetUnion::Version(1))
            } else {
                Some(target_union)
            },
        }
    }

    fn compact(&mut self) -> PbCompactionRequest {
        let known = &self.known;
        let revision = match self.rng.random_range(0..10) {
            0..6 => self
                .rng
                .random_range(known.compact_revision.max(1)..=known.revision),
            6 => known.revision,
            7 => known.revision + 1,
            8 => known.compact_revision.max(1),
            _ => -1,
        };
        PbCompactionRequest {
            revision,
            physical: self.rng.random(),
        }
    }

    fn grant(&mut self) -> Step {
        let chosen = self.hashes || self.chance(60);
        let id = if chosen {
            self.rng.random_range(1..40)
        } else {
            SERVER_CHOSEN + self.known.granted
        };
        let ttl = match self.rng.random_range(0..10) {
            0 => 9_000_000_001,
            1 => 9_000_000_000,
            _ => self.rng.random_range(1_000..2_000),
        };
        Step::Grant { id, chosen, ttl }
    }

    fn hash_kv(&mut self) -> Step {
        let known = &self.known;
        // Not at the revision of a compaction: etcd keeps the hash it had before it.
        let revision = if known.revision > known.compact_revision + 1 && self.rng.random() {
            self.rng
                .random_range(known.compact_revision + 1..=known.revision + 1)
        } else {
            0
        };
        Step::HashKv { revision }
    }

    fn watch(&mut self) -> Step {
        let stream = self.rng.random_range(0..STREAMS);
        let (key, range_end) = self.key_range();
        let known = &self.known;
        let start_revision = if stream == ODD_STREAM {
            match self.rng.random_range(0..10) {
                0..4 => known.revision + self.rng.random_range(0..10),
                4..8 => self.rng.random_range(0..=known.compact_revision.max(0)),
                8 => 0,
                _ => -self.rng.random_range(1..3),
            }
        } else if self.rng.random() {
            // Not the future, which would keep the stream from ever having caught up.
            self.rng
                .random_range(known.compact_revision.max(1)..=known.revision)
        } else {
            0
        };
        let is_past = start_revision != 0 && start_revision <= self.known.revision;
        let stream =
            if stream == ODD_STREAM && is_past && start_revision >= self.known.compact_revision {
                // Catches up, so it belongs with the others.
                0
            } else {
                stream
            };
        let filters = match self.rng.random_range(0..10) {
            0 => vec![0],
            1 => vec![1],
            2 => vec![0, 1],
            _ => Vec::new(),
        };
        let watch_id = if self.chance(30) {
            self.rng.random_range(-3..12)
        } else {
            0
        };
        Step::Watch {
            stream,
            create: Create {
                key,
                range_end,
                start_revision,
                progress_notify: self.chance(20),
                filters,
                prev_kv: self.chance(40),
                // -1 stands for "no watch" in answers.
                watch_id: if watch_id == -1 { 0 } else { watch_id },
                fragment: self.chance(20),
            },
        }
    }

    fn cancel_watch(&mut self) -> Step {
        let stream = self.rng.random_range(0..STREAMS);
        let known = self.known.watches[stream].choose(&mut self.rng);
        Step::CancelWatch {
            stream,
            watch_id: known.copied().unwrap_or(5),
        }
    }
}

fn delete_op(request: PbDeleteRequest) -> PbTxnRequestOp {
    PbTxnRequestOp {
        request: Some(PbTxnOpRequest::RequestDeleteRange(request)),
    }
}

/// The end of all keys that begin with `prefix`; none if there is no end.
fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}
