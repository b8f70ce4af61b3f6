//! Tests of the machine from a driver's view.

use super::*;
use crate::{config::AutoCompaction, watch::Message};

fn machine(config: &Config) -> Machine {
    let identity = Identity {
        cluster_id: 1,
        member_id: 2,
        raft_term: 3,
    };
    Machine::new(identity, config)
}

fn put(key: &str, lease: i64) -> PbPutRequest {
    PbPutRequest {
        key: key.into(),
        lease,
        ..PbPutRequest::default()
    }
}

fn count(machine: &Machine, key: &str) -> i64 {
    let request = PbRangeRequest {
        key: key.into(),
        ..PbRangeRequest::default()
    };
    let answer = machine.range(request).unwrap();
    answer.into_response(PbResponseHeader::default()).count
}

fn grant(machine: &mut Machine, now: Duration, id: i64, ttl: i64) {
    let request = PbLeaseGrantRequest { id, ttl };
    machine.lease_grant(now, &request, 99).unwrap();
}

#[test]
fn a_write_is_invisible_before_it_is_published() {
    let mut machine = machine(&Config::in_memory());
    let (stream, outbox) = machine.open_watch_stream(Duration::ZERO);
    machine.create_watch(
        stream,
        Request {
            range: KeyRange::new("k", ""),
            start_revision: 0,
            watch_id: 0,
            progress_notify: false,
            no_put: false,
            no_delete: false,
            prev_kv: false,
            fragment: false,
        },
    );
    outbox.pop();
    machine.put(put("k", 0)).unwrap();
    machine.tick(Duration::ZERO);
    assert_eq!((count(&machine, "k"), outbox.pop()), (0, None));
    let changes = machine.take_changes();
    assert!(matches!(changes[..], [Change::Write(_)]));
    machine.publish();
    assert_eq!(count(&machine, "k"), 1);
    assert!(matches!(outbox.pop(), Some(Message::Events { .. })));
}

#[test]
fn a_lease_that_ends_takes_its_keys_with_it_in_one_revision() {
    let mut machine = machine(&Config::in_memory());
    let now = Duration::from_secs(100);
    grant(&mut machine, now, 7, 10);
    for key in ["b", "a", "c"] {
        machine.put(put(key, 7)).unwrap();
    }
    // One key leaves the lease in time.
    machine.put(put("c", 0)).unwrap();
    machine.publish();
    machine.take_changes();
    let end = now + Duration::from_secs(10);
    assert_eq!(machine.next_tick(), Some(end));

    machine.tick(end - Duration::from_nanos(1));
    assert_eq!(machine.pending_changes(), 0);
    machine.tick(end);
    machine.publish();
    assert_eq!(["a", "b", "c"].map(|key| count(&machine, key)), [0, 0, 1]);
    assert_eq!(machine.mvcc().visible(), 6);
    let keys: Vec<String> = machine
        .take_changes()
        .into_iter()
        .map(|change| match change {
            Change::Write(record) => String::from_utf8(record.key.to_vec()).unwrap(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(keys, ["a", "b", "Revoke { id: 7 }"]);
    assert_eq!(machine.lease_keep_alive(end, 7).ttl, 0);
}

#[test]
fn a_restored_lease_has_its_full_time_again() {
    let mut before = machine(&Config::in_memory());
    grant(&mut before, Duration::ZERO, 7, 10);
    before.put(put("k", 7)).unwrap();
    let mut contents = Contents {
        records: Vec::new(),
        leases: Vec::new(),
        compact_revision: -1,
        opened: 2,
    };
    for change in before.take_changes() {
        match change {
            Change::Write(record) => contents.records.push(Record::clone(&record)),
            Change::Grant { id, ttl } => contents.leases.push((id, ttl)),
            other => panic!("{other:?} was not asked for"),
        }
    }
    let config = Config::in_memory();
    let mut after = Machine::restore(before.identity(), &config, contents.clone()).unwrap();
    assert_eq!(after.next_tick(), Some(Duration::from_secs(10)));
    after.tick(Duration::from_secs(10));
    after.publish();
    assert_eq!(count(&after, "k"), 0);

    // A key without its lease would live for ever.
    contents.leases.clear();
    let restored = Machine::restore(before.identity(), &config, contents);
    assert!(matches!(restored, Err(Corruption::Record { main: 2, .. })));
}

#[test]
fn old_revisions_go_by_themselves_if_so_configured() {
    let config = Config {
        auto_compaction: Some(AutoCompaction::Revisions(2)),
        ..Config::in_memory()
    };
    let mut machine = machine(&config);
    for _ in 0..10 {
        machine.put(put("k", 0)).unwrap();
    }
    machine.publish();
    machine.take_changes();
    let due = machine.next_tick().unwrap();
    machine.tick(due);
    assert_eq!(machine.mvcc().compact_revision(), 9);
    // The compaction, and the seven unreachable versions.
    let changes = machine.take_changes();
    assert_eq!(changes[0], Change::Compact { revision: 9 });
    assert_eq!(changes.len(), 1 + 7);
}

#[test]
fn a_bounded_store_does_not_grow_with_the_number_of_writes() {
    let mut machine = machine(&Config::in_memory().bounded());
    let value = "x".repeat(100);
    let round = usize::try_from(crate::config::BOUNDED_REVISIONS).unwrap();
    let mut sizes = Vec::new();
    for _ in 0..4 {
        for number in 0..round {
            let mut request = put(&format!("k{}", number % 100), 0);
            request.value = value.clone().into();
            machine.put(request).unwrap();
            if number % 1_000 == 0 {
                machine.publish();
                machine.take_changes();
            }
        }
        machine.publish();
        // Ticks until the compaction of this round and its sweep are over.
        for _ in 0..2 {
            let due = machine.next_tick().unwrap();
            machine.tick(due);
            while machine.mvcc().is_sweeping() {
                machine.tick(due);
                machine.take_changes();
            }
        }
        sizes.push(machine.mvcc().size());
    }
    let (first, last) = (sizes[0], sizes[3]);
    assert!(last <= first + first / 10, "{sizes:?}");
}

#[test]
fn a_request_over_the_limit_is_refused() {
    let config = Config {
        max_request_bytes: 1_000,
        ..Config::in_memory()
    };
    let mut machine = machine(&config);
    let request = |bytes: usize| PbPutRequest {
        value: vec![0; bytes],
        ..put("k", 0)
    };
    assert!(machine.put(request(900)).is_ok());
    let refused = machine.put(request(1_000));
    assert_eq!(refused, Err(ApiError::RequestTooLarge));
}

#[test]
fn a_physical_compaction_is_answered_when_it_is_done() {
    let mut machine = machine(&Config::in_memory());
    for _ in 0..20_000 {
        machine.put(put("k", 0)).unwrap();
    }
    machine.publish();
    let request = PbCompactionRequest {
        revision: machine.mvcc().visible(),
        physical: true,
    };
    machine.compact(&request).unwrap();
    assert!(!machine.mvcc().is_sweeping());
    let one = Record::size(machine.mvcc().get(b"k", 20_001).unwrap());
    assert_eq!(machine.mvcc().size(), one);
}
