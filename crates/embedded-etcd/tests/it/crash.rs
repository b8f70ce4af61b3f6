//! A store on disk is killed at random instants: acknowledged writes are there, and no transaction
//! in part.
//!
//! The child that is killed is this test binary again, running [`the_store_that_is_killed`].

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use embedded_etcd::{
    Config, Durability, EmbeddedEtcd,
    record::Record,
    storage::{Contents, Disk},
};
use etcd_client::{Channel, Client, Compare, CompareOp, LeaseGrantOptions, PutOptions, Txn, TxnOp};
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// Tells the child where its store is, and which round it is.
const CHILD: &str = "KAFILA_CRASH_CHILD";
const ROUND: &str = "KAFILA_CRASH_ROUND";

const ROUNDS: u64 = 24;

/// The longest life of a child after its first answer.
const LIFE_MS: u64 = 150;

const WRITERS: u64 = 4;

/// Revisions that compaction leaves.
const KEPT: i64 = 20;

/// The answers that a child reports. One line each.
#[derive(Debug, Default)]
struct Acknowledged {
    /// Writer → number of its last txn, with its revision.
    writes: BTreeMap<u64, (u64, i64)>,
    all_writes: Vec<(u64, u64, i64)>,
    compact_revision: i64,
    granted: BTreeSet<i64>,
    revoked: BTreeSet<i64>,
}

#[test]
fn acknowledged_writes_survive_a_kill_at_any_instant() {
    let seed = std::env::var("KAFILA_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let mut before = Acknowledged::default();
    let mut opened = 0;
    for round in 0..ROUNDS {
        let life = Duration::from_millis(rng.random_range(0..LIFE_MS));
        let acknowledged = run_and_kill(&path, round, life);
        let (disk, contents) = Disk::open(&path, Durability::Immediate).unwrap();
        drop(disk);
        check(&contents, &acknowledged, &before);
        // The child opened it, and so did we.
        opened += 2;
        assert_eq!(contents.opened, opened);
        println!(
            "round {round}: {} txns answered in {life:?}, {} records",
            acknowledged.all_writes.len(),
            contents.records.len(),
        );
        before.compact_revision = before.compact_revision.max(acknowledged.compact_revision);
        for (writer, last) in acknowledged.writes {
            before.writes.insert(writer, last);
        }
    }
    assert_eq!(before.writes.len(), usize::try_from(WRITERS).unwrap());
    assert!(before.compact_revision > KEPT, "the rounds compacted too");
}

/// Kills the child `life` after its first answer, and returns its answers until then.
fn run_and_kill(path: &Path, round: u64, life: Duration) -> Acknowledged {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::the_store_that_is_killed", "--nocapture"])
        .env(CHILD, path)
        .env(ROUND, round.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = Acknowledged::default();
    while acknowledged.all_writes.is_empty() {
        let line = lines.next().expect("the child lives until it is killed");
        acknowledged.hear(&line.unwrap());
    }
    let killer = std::thread::spawn(move || kill_after(child, life));
    // An incomplete last line does not count.
    for line in lines.map_while(Result::ok) {
        acknowledged.hear(&line);
    }
    killer.join().unwrap();
    acknowledged
}

fn kill_after(mut child: Child, life: Duration) {
    std::thread::sleep(life);
    child.kill().unwrap();
    child.wait().unwrap();
}

impl Acknowledged {
    fn hear(&mut self, line: &str) {
        let mut words = line.split(' ');
        // Other lines are the test harness's.
        let Some(kind @ ("wrote" | "compacted" | "granted" | "revoked")) = words.next() else {
            return;
        };
        let mut numbers = words.map(|word| word.parse::<i64>().unwrap());
        let mut next = || numbers.next().unwrap();
        match kind {
            "wrote" => {
                let writer = u64::try_from(next()).unwrap();
                let number = u64::try_from(next()).unwrap();
                let revision = next();
                self.writes.insert(writer, (number, revision));
                self.all_writes.push((writer, number, revision));
            }
            "compacted" => self.compact_revision = next(),
            "granted" => drop(self.granted.insert(next())),
            _ => drop(self.revoked.insert(next())),
        }
    }
}

fn check(contents: &Contents, acknowledged: &Acknowledged, before: &Acknowledged) {
    let compacted = contents.compact_revision.max(0);
    assert!(compacted >= acknowledged.compact_revision.max(before.compact_revision));
    check_revisions(contents);

    let mut newest: HashMap<&[u8], &Record> = HashMap::new();
    for record in &contents.records {
        newest.insert(&record.key, record);
    }
    let number_in = |record: &Record| -> u64 {
        let text = String::from_utf8(record.value.to_vec()).unwrap();
        text.parse().unwrap()
    };
    // Every answered write is there, at the revision that was answered.
    for (writer, number, revision) in &acknowledged.all_writes {
        let key = format!("log/{writer}/{number}");
        let record = newest[key.as_bytes()];
        assert_eq!(
            (record.revision.main, record.version),
            (*revision, 1),
            "{key}"
        );
    }
    for (writer, (number, _)) in before.writes.iter().chain(&acknowledged.writes) {
        let latest = newest[format!("latest/{writer}").as_bytes()];
        assert!(
            number_in(latest) >= *number,
            "{latest:?} is older than {number}"
        );
    }
    // Nothing is there by halves: a txn's keys are of one revision.
    for record in newest.values() {
        let key = String::from_utf8(record.key.to_vec()).unwrap();
        if let Some(rest) = key.strip_prefix("log/") {
            let pair = newest[format!("pair/{rest}").as_bytes()];
            assert_eq!(pair.revision.main, record.revision.main, "{key}");
        }
        if let Some(writer) = key.strip_prefix("latest/") {
            let log = newest[format!("log/{writer}/{}", number_in(record)).as_bytes()];
            assert_eq!(log.revision.main, record.revision.main, "{key}");
        }
    }
    check_leases(contents, acknowledged, &newest);
}

/// After the compaction every revision is there, none is skipped, and none has a gap.
fn check_revisions(contents: &Contents) {
    let (mut main, mut next_sub) = (contents.compact_revision.max(1), 0);
    for record in &contents.records {
        if record.revision.main <= contents.compact_revision {
            continue;
        }
        if record.revision.main != main {
            assert_eq!(record.revision.main, main + 1, "no revision is skipped");
            (main, next_sub) = (record.revision.main, 0);
        }
        assert_eq!(record.revision.sub, next_sub, "in revision {main}");
        next_sub += 1;
    }
}

/// Granted leases are there with their keys, revoked ones are gone with theirs.
fn check_leases(
    contents: &Contents,
    acknowledged: &Acknowledged,
    newest: &HashMap<&[u8], &Record>,
) {
    let leases: BTreeSet<i64> = contents.leases.iter().map(|(id, _)| *id).collect();
    for id in &acknowledged.revoked {
        assert!(!leases.contains(id), "lease {id} was revoked");
    }
    // The one before may have been revoked without an answer.
    if let Some(last) = acknowledged.granted.last() {
        assert!(leases.contains(last), "lease {last} was granted");
    }
    for record in newest.values().filter(|record| record.lease != 0) {
        assert!(
            leases.contains(&record.lease),
            "{record:?} has lost its lease"
        );
    }
}

/// Not a test by itself: writes until it is killed, if told where.
#[test]
fn the_store_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let round = std::env::var(ROUND).unwrap().parse().unwrap();
    serve_until_killed(Path::new(&path), round);
}

#[tokio::main]
async fn serve_until_killed(path: &Path, round: u64) {
    let store = EmbeddedEtcd::start(Config::on_disk(path)).await.unwrap();
    let client = Client::from_channel(Channel::Tonic(store.channel()), None);
    let client = client.await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        tasks.spawn(write(client.clone(), writer));
    }
    tasks.spawn(compact(client.clone()));
    tasks.spawn(lease(client, i64::try_from(round).unwrap()));
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
}

/// One write to the pipe, so that a line is whole or not there.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(format!("{line}\n").as_bytes()).unwrap();
    stdout.flush().unwrap();
}

async fn write(mut client: Client, writer: u64) {
    let latest = format!("latest/{writer}");
    let found = client.get(latest.clone(), None).await.unwrap();
    let last = found
        .kvs()
        .first()
        .map(|kv| kv.value_str().unwrap().parse::<u64>().unwrap());
    let mut number = last.map_or(0, |last| last + 1);
    loop {
        let log = format!("log/{writer}/{number}");
        let txn = Txn::new()
            .when([Compare::version(log.clone(), CompareOp::Equal, 0)])
            .and_then([
                TxnOp::put(latest.clone(), number.to_string(), None),
                TxnOp::put(log, vec![b'x'; 300], None),
                TxnOp::put(format!("pair/{writer}/{number}"), "", None),
            ]);
        let response = client.txn(txn).await.unwrap();
        assert!(response.succeeded());
        let revision = response.header().unwrap().revision();
        say(&format!("wrote {writer} {number} {revision}"));
        number += 1;
    }
}

async fn compact(mut client: Client) {
    loop {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let found = client.get("latest/0", None).await.unwrap();
        let revision = found.header().unwrap().revision() - KEPT;
        if revision > 0 && client.compact(revision, None).await.is_ok() {
            say(&format!("compacted {revision}"));
        }
    }
}

/// Grants a lease, hangs a key on it, and revokes the one before.
async fn lease(mut client: Client, round: i64) {
    for number in 1.. {
        let id = round * 1_000_000 + number;
        let options = LeaseGrantOptions::new().with_id(id);
        client.lease_grant(1_000, Some(options)).await.unwrap();
        say(&format!("granted {id}"));
        let options = PutOptions::new().with_lease(id);
        let key = format!("lease/{id}");
        client.put(key, "", Some(options)).await.unwrap();
        if number > 1 {
            client.lease_revoke(id - 1).await.unwrap();
            say(&format!("revoked {}", id - 1));
        }
    }
}
