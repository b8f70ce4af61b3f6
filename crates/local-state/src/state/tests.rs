//! Durability of the local state, with full disks, damaged files and panics.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use model::Timestamp;
use redb::StorageBackend;

use super::*;

/// A disk in memory that can be full.
#[derive(Clone, Debug, Default)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    is_full: Arc<AtomicBool>,
}

impl Disk {
    fn fill(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }

    fn check(&self) -> io::Result<()> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn open(&self) -> Result<Database, redb::Error> {
        Ok(Database::builder().create_with_backend(self.clone())?)
    }

    /// Begins to write to it.
    fn start(&self) -> LocalState {
        let disk = self.clone();
        let reopen = Box::new(move || disk.open());
        LocalState::start(self.open().unwrap(), reopen, Metrics::default()).unwrap()
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        let bytes = self.bytes.lock().unwrap();
        let found = bytes.get(at..at + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        let len = usize::try_from(len).unwrap();
        self.bytes.lock().unwrap().resize(len, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        let at = usize::try_from(offset).unwrap();
        self.bytes.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }
}

async fn until(state: &LocalState, is_writing: bool) {
    let mut seen = state.is_writing.clone();
    let reached = seen.wait_for(|seen| *seen == is_writing);
    let limit = Duration::from_secs(60);
    drop(timeout(limit, reached).await.unwrap().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_059_pending_writes_reach_a_full_disk_once_there_is_room() {
    let disk = Disk::default();
    let state = disk.start();
    state.put_alloc(id(1), &"before").await;
    assert!(state.flushed().await);
    disk.fill(true);
    state.put_alloc(id(2), &"meanwhile").await;
    until(&state, false).await;
    state.put_alloc(id(1), &"changed").await;
    disk.fill(false);
    let flushed = timeout(Duration::from_secs(60), state.flushed());
    assert!(flushed.await.expect("written again"));
    until(&state, true).await;
    state.close().await;
    let restored = disk::read_all(&disk.open().unwrap()).unwrap();
    let alloc = |number| restored.allocs[&id(number)].alloc.clone().unwrap();
    assert_eq!(alloc(1), b"\"changed\"");
    assert_eq!(alloc(2), b"\"meanwhile\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_gives_up_on_a_disk_that_stays_full() {
    let disk = Disk::default();
    let state = disk.start();
    disk.fill(true);
    state.put_alloc(id(1), &"lost").await;
    until(&state, false).await;
    let waiting = {
        let state = state.clone();
        tokio::spawn(async move { state.flushed().await })
    };
    let ended = timeout(Duration::from_secs(60), async {
        state.close().await;
        // The thread has ended as well.
        state.watch(|_| {}).await;
    });
    ended.await.expect("closed");
    assert!(!waiting.await.unwrap(), "the write is not durable");
    assert!(!state.flushed().await);
}

fn id(number: u128) -> AllocId {
    AllocId::from_random(number)
}

fn open(directory: &Path) -> (LocalState, Restored) {
    LocalState::open(directory, Metrics::default()).unwrap()
}

#[tokio::test]
async fn flushed_records_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let (state, restored) = open(folder.path());
    assert_eq!(restored.node, NodeState::default());
    state.put_alloc(id(1), &"first").await;
    state.put_alloc(id(1), &"second").await;
    state.put_runner(id(1), &7).await;
    state.put_acked(id(1), 9).await;
    let report = LastReport {
        number: 4,
        digest: Some(9),
    };
    state.put_last_report(id(1), &report).await;
    state.put_alloc(id(2), &"gone").await;
    state.delete(id(2)).await;
    let node = NodeState {
        revision: 5,
        store_id: "s".to_owned(),
        boot_id: "b".to_owned(),
        last_contact: Timestamp(3),
    };
    state.put_node(&node).await;
    state.close().await;
    let (_state, restored) = open(folder.path());
    assert_eq!(restored.node, node);
    assert_eq!(restored.allocs.keys().collect::<Vec<_>>(), [&id(1)]);
    let stored = &restored.allocs[&id(1)];
    assert_eq!(stored.alloc.as_deref(), Some(b"\"second\"".as_slice()));
    assert_eq!(stored.runner.as_deref(), Some(b"7".as_slice()));
    assert_eq!(stored.acked, Some(9));
    assert_eq!(stored.last_report, Some(report));
}

#[tokio::test]
async fn scenario_037_a_second_agent_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let (_state, _) = open(folder.path());
    let error = LocalState::open(folder.path(), Metrics::default()).unwrap_err();
    assert!(error.to_string().contains("another agent uses"), "{error}");
}

#[tokio::test]
async fn scenario_036_a_broken_database_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let (state, _) = open(folder.path());
    for number in 0..1_000 {
        state.put_alloc(id(number), &"x".repeat(1_000)).await;
    }
    state.close().await;
    let path = folder.path().join(FILE);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let (state, restored) = open(folder.path());
    assert!(restored.allocs.is_empty());
    assert!(path.with_extension("broken-0").exists());
    state.put_alloc(id(1), &"works").await;
    assert!(state.flushed().await);
}

#[tokio::test]
async fn a_node_without_storage_does_not_wait() {
    let state = LocalState::none();
    state.put_alloc(id(1), &"x").await;
    assert!(state.flushed().await);
    assert!(!state.is_durable());
}

/// Damages a file in one of several ways, after random numbers.
fn damage(bytes: &mut Vec<u8>, mut next: impl FnMut() -> usize) {
    let length = bytes.len();
    match next() % 4 {
        0 => bytes[next() % length] ^= 1 << (next() % 8),
        1 => bytes.truncate(next() % length),
        2 => {
            for _ in 0..=next() % 64 {
                bytes[next() % 8_192] = u8::try_from(next() % 256).unwrap();
            }
        }
        _ => {
            let at = (next() % length) / 4_096 * 4_096;
            bytes[at..(at + 4_096).min(length)].fill(0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_randomly_damaged_file_is_restored_whole_or_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let (state, _) = open(folder.path());
    for number in 0..300 {
        state.put_alloc(id(number), &"x".repeat(700)).await;
        state.put_runner(id(number), &"y".repeat(100)).await;
        if number % 7 == 0 {
            assert!(state.flushed().await);
        }
    }
    state.close().await;
    let whole = fs::read(folder.path().join(FILE)).unwrap();
    let rounds = std::env::var("KAFILA_DAMAGE_ROUNDS").ok();
    let rounds: u64 = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(60);
    let mut counts = BTreeMap::<&str, u64>::new();
    for round in 0..rounds {
        // xorshift64.
        let mut x = 88_172_645_463_325_252_u64.wrapping_mul(2 * round + 1);
        let next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            usize::try_from(x >> 8).unwrap()
        };
        let mut bytes = whole.clone();
        damage(&mut bytes, next);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), &bytes).unwrap();
        let (state, restored) = open(folder.path());
        let is_aside = folder.path().join(FILE).with_extension("broken-0").exists();
        let outcome = match restored.allocs.len() {
            0 if is_aside => "set aside",
            300 if !is_aside => "whole",
            count => panic!("round {round}: {count} allocations, aside: {is_aside}"),
        };
        *counts.entry(outcome).or_default() += 1;
        state.put_alloc(id(1), &"works").await;
        let flushed = timeout(Duration::from_secs(60), state.flushed()).await;
        assert_eq!(flushed, Ok(true), "round {round}, {outcome}");
        state.close().await;
    }
    println!("{counts:?}");
    assert!(counts.len() == 2, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_writer_ends_the_watch() {
    let disk = Disk::default();
    let reopen = Box::new(|| panic!("as a damaged database may"));
    let database = disk.open().unwrap();
    let state = LocalState::start(database, reopen, Metrics::default()).unwrap();
    disk.fill(true);
    state.put_alloc(id(1), &"x").await;
    let gone = timeout(Duration::from_secs(60), state.watch(|_| {}));
    gone.await.expect("the watch ends");
    assert!(!state.flushed().await);
    state.close().await;
}

#[test]
fn a_transient_error_does_not_set_the_file_aside() {
    let refused = |error: io::Error| Unusable::from(redb::Error::Io(error));
    assert!(refused(io::ErrorKind::StorageFull.into()).is_transient());
    assert!(refused(io::Error::from_raw_os_error(24)).is_transient());
    assert!(!refused(io::ErrorKind::InvalidData.into()).is_transient());
    assert!(!Unusable::from(redb::Error::Corrupted(String::new())).is_transient());
    assert!(!Unusable::Panic(String::new()).is_transient());
}
