//! Measures a broker with a million open evaluations: `cargo run --release -p broker --example million`.
//!
//! Shape: a million pending evaluations, of as many jobs and of a hundredth as many, in the replica
//! and in the broker; then a new leader's first look, a hundred busy workers, and new evaluations
//! meanwhile. Memory is the growth of the process, so it includes the allocator's rounding.

use std::process::Command;
use std::time::{Duration, Instant};

use broker::facts::Reader;
use broker::{Broker, Config, Effect, Event, JobTypes, RequestId, SessionId};
use model::{EvalId, EvalStatus, Evaluation, JobKey, JobType, Timestamp, TriggeredBy};
use state::{Change, Entity, Key, State};

const OPEN: u64 = 1_000_000;
/// The number of evaluations that are delivered and end during the measurement.
const TAKEN: u64 = 100_000;
const WORKERS: u64 = 100;
/// As many as a transaction writes at most.
const AT_ONCE: u64 = 1_000;
const NOW: Timestamp = Timestamp(1_000_000_000_000);

fn main() {
    if let Some(jobs) = std::env::args().nth(1) {
        return measure(jobs.parse().expect("the argument is a number of jobs"));
    }
    println!("| jobs | replica | broker | first look | written | delivered and ended |");
    println!("|--:|--:|--:|--:|--:|--:|");
    // Each in a process of its own: one would find the memory that another has given back.
    let this = std::env::current_exe().expect("the system tells");
    for jobs in [OPEN, OPEN / 100] {
        let run = Command::new(&this).arg(jobs.to_string()).status();
        assert!(run.is_ok_and(|status| status.success()), "it ran");
    }
}

fn measure(jobs: u64) {
    let before = resident();
    let mut cluster = Cluster::new(jobs);
    let took = timed(|| cluster.write(0..OPEN)).1;
    let replica = resident() - before;
    let snapshot = cluster.state.snapshot();
    let mut broker = Broker::new(Config::default(), 7, 1);
    let (effects, first_look) = timed(|| broker.resync(NOW, &snapshot));
    let held = resident().saturating_sub(before + replica);
    assert!(effects.is_empty(), "no worker has credit yet");
    drop(snapshot);

    let (ended, busy) = timed(|| cluster.work(&mut broker));
    let rate = |count: u64, took: Duration| count as f64 / took.as_secs_f64();
    println!(
        "| {jobs} | {} bytes each | {} bytes each | {:.1} s | {:.0} a second | {:.0} a second |",
        replica / OPEN,
        held / OPEN,
        first_look.as_secs_f64(),
        rate(OPEN, took),
        rate(ended, busy),
    );
}

/// The evaluations in the store and the change feed of a cluster whose workers never wait.
struct Cluster {
    state: State,
    reader: Reader,
    revision: u64,
    jobs: u64,
}

impl Cluster {
    fn new(jobs: u64) -> Self {
        Self {
            state: State::default(),
            reader: Reader::default(),
            revision: 1,
            jobs,
        }
    }

    fn eval(&self, number: u64) -> Evaluation {
        Evaluation::pending(
            EvalId::from_random(u128::from(number)),
            JobKey::new("default", format!("job-{}", number % self.jobs)),
            JobType::Service,
            50,
            TriggeredBy::JobRegister,
            NOW,
        )
    }

    /// Writes the evaluations of these numbers, so many in a revision.
    fn write(&mut self, numbers: std::ops::Range<u64>) {
        let mut first = numbers.start;
        while first < numbers.end {
            let end = (first + AT_ONCE).min(numbers.end);
            let evals: Vec<_> = (first..end).map(|number| self.eval(number)).collect();
            self.put(evals);
            first = end;
        }
    }

    /// Writes evaluations in one revision; returns the event for the broker.
    fn put(&mut self, evals: Vec<Evaluation>) -> Event {
        self.revision += 1;
        let revision = self.revision;
        let changes = evals.into_iter().map(|eval| Change::Put {
            key: Key::Eval(eval.id),
            create_index: revision,
            modify_index: revision,
            entity: Entity::Eval(Box::new(eval)),
        });
        let changes: Vec<_> = changes.collect();
        let facts = {
            let snapshot = self.state.snapshot();
            self.reader.read(revision, &changes, &snapshot)
        };
        self.state.apply(revision, changes);
        Event::Facts(facts)
    }

    /// Lets workers take evaluations and write their end; as many new ones arrive.
    fn work(&mut self, broker: &mut Broker) -> u64 {
        let mut delivered = Vec::new();
        for worker in 0..WORKERS {
            let opened = Event::SessionOpened {
                session: SessionId(worker),
                types: JobTypes::all(),
                credit: 1,
            };
            collect(broker.step(NOW, opened), &mut delivered);
        }
        let (mut ended, mut next) = (0, OPEN);
        while ended < TAKEN {
            let batch = std::mem::take(&mut delivered);
            assert!(!batch.is_empty(), "workers are waiting");
            let mut closed = Vec::new();
            for delivery in &batch {
                let ack = Event::Ack {
                    request: RequestId(0),
                    eval_id: delivery.eval_id,
                    token: delivery.token,
                };
                collect(broker.step(NOW, ack), &mut delivered);
                let snapshot = self.state.snapshot();
                let eval = snapshot.eval(delivery.eval_id).expect("it was written");
                closed.push(Evaluation {
                    status: EvalStatus::Complete,
                    ..eval.value.clone()
                });
            }
            ended += batch.len() as u64;
            let facts = self.put(closed);
            collect(broker.step(NOW, facts), &mut delivered);
            let new = (next..next + batch.len() as u64).map(|number| self.eval(number));
            next += batch.len() as u64;
            let facts = self.put(new.collect());
            collect(broker.step(NOW, facts), &mut delivered);
            for delivery in batch {
                let session = delivery.session;
                let credit = Event::Credit { session, credit: 1 };
                collect(broker.step(NOW, credit), &mut delivered);
            }
        }
        ended
    }
}

fn collect(effects: Vec<Effect>, delivered: &mut Vec<broker::Delivery>) {
    for effect in effects {
        if let Effect::Deliver(delivery) = effect {
            delivered.push(delivery);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Returns how many bytes of memory the process has.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<u64>().ok())
        .expect("a number of KiB")
        * 1024
}
