//! Budget of a small job: allocations of memory at each stage that decides, encodes, decodes or applies.
//!
//! Counts, not times, so a busy machine makes no difference. A stage that takes more than its budget
//! fails the test: mend it, or raise the budget in the same change and say why. One that takes much
//! less fails as well, so that the table stays true.

use std::collections::BTreeMap;

use admission::jobs::{Decision, RegisterRequest, RequestContext, register};
use admission::nodes::reports;
use applier::{PlanVerification, verify};
use model::{AllocClient, AllocId, ClientStatus, EvalId, Job, Timestamp};
use scheduler::schedule;
use state::{Change, Snapshot, State, Write};
use store::{Value, codec};
use test_kit::builders;
use test_kit::stored::Stored;

const NODES: u128 = 500;
const NOW: Timestamp = Timestamp(1);
/// Jobs that pass before the measured one: maps of the state have some depth then.
const JOBS_BEFORE: u128 = 200;

/// Stage → allocations of memory for one job, in the order of its life.
const BUDGET: [(&str, u64); 10] = [
    ("register", 63),
    ("encode registration", 8),
    ("decode registration", 33),
    ("apply registration", 15),
    ("schedule", 63),
    ("verify", 30),
    ("encode plan", 4),
    ("decode plan", 18),
    ("apply plan", 21),
    ("report", 18),
];

/// What a job took, by stage.
type Counts = Vec<(&'static str, u64)>;

fn count<T>(counts: &mut Counts, stage: &'static str, body: impl FnOnce() -> T) -> T {
    let mut made = None;
    let info = allocation_counter::measure(|| made = Some(body()));
    counts.push((stage, info.count_total));
    made.expect("the body has run")
}

/// Returns the values that the store gets.
fn encode(writes: &[Write]) -> Vec<(&Write, Vec<u8>)> {
    let entities = writes
        .iter()
        .filter_map(|write| Some((write, write.entity()?)));
    entities
        .map(|(write, entity)| (write, Value::from(entity).encode().expect("it is JSON")))
        .collect()
}

/// Returns what a replica makes of the values.
fn decode(values: &[(&Write, Vec<u8>)], revision: u64) -> Vec<Change> {
    let puts = values.iter().map(|(write, text)| Change::Put {
        key: write.key().clone(),
        entity: codec::decode(write.key(), text).expect("it is an object"),
        create_index: revision,
        modify_index: revision,
    });
    puts.collect()
}

fn job(number: u128) -> Job {
    builders::batch(&format!("small-{number}"), 1)
}

fn context(number: u128) -> RequestContext {
    RequestContext {
        eval_id: EvalId::from_random(number),
        now: NOW,
        trace_parent: String::new(),
    }
}

/// Takes one job through all stages; returns the state afterwards.
fn run_job(before: &Snapshot, number: u128) -> (State, Counts) {
    let mut counts = Counts::new();
    let (job, context) = (job(number), context(number));
    let request = RegisterRequest {
        max_open_evals: 1_000,
        ..RegisterRequest::default()
    };
    let decision = count(&mut counts, "register", || {
        register(before, &job, &request, &context).expect("the job is valid")
    });
    let Decision::Commit(proposal) = decision else {
        panic!("a new job is written");
    };
    let values = count(&mut counts, "encode registration", || {
        encode(&proposal.writes)
    });
    let revision = before.index() + 1;
    let changes = count(&mut counts, "decode registration", || {
        decode(&values, revision)
    });
    let mut state = before.to_state();
    let registered = count(&mut counts, "apply registration", || {
        state.apply(revision, changes);
        state.snapshot()
    });

    let eval = registered.eval(context.eval_id).expect("it was written");
    let seed = u64::try_from(number).expect("small");
    let plan = count(&mut counts, "schedule", || {
        schedule(&registered, eval, NOW, seed).plan
    });
    let placed: Vec<AllocId> = plan
        .placements
        .values()
        .flatten()
        .map(|alloc| alloc.id)
        .collect();
    assert_eq!(placed.len(), 1, "there is room");
    let verified = count(&mut counts, "verify", || verify(&registered, &plan, NOW));
    let PlanVerification::Accepted(accepted) = verified else {
        panic!("nothing else is placed");
    };
    let writes: Vec<Write> = accepted
        .pieces
        .iter()
        .flat_map(|piece| piece.ops.clone())
        .collect();
    let values = count(&mut counts, "encode plan", || encode(&writes));
    let revision = revision + 1;
    let changes = count(&mut counts, "decode plan", || decode(&values, revision));
    let planned = count(&mut counts, "apply plan", || {
        state.apply(revision, changes);
        state.snapshot()
    });

    let client = AllocClient {
        status: ClientStatus::Complete,
        report: 1,
        ..AllocClient::default()
    };
    let reports = BTreeMap::from([(placed[0], client)]);
    let writes = count(&mut counts, "report", || {
        let decided = reports::decide(&planned, &reports, NOW);
        let writes: Vec<Write> = decided.into_iter().map(|one| one.write).collect();
        let changes = decode(&encode(&writes), revision + 1);
        state.apply(revision + 1, changes);
        writes
    });
    assert_eq!(writes.len(), 1, "the report is news");
    (state, counts)
}

#[test]
fn a_small_job_stays_within_its_budget() {
    let mut cluster = Stored::default();
    for number in 1..=NODES {
        cluster.put_node(&builders::node(number));
    }
    let mut snapshot = cluster.snapshot();
    let mut measured = Counts::new();
    for number in 1..=JOBS_BEFORE {
        let (state, counts) = run_job(&snapshot, number);
        snapshot = state.snapshot();
        measured = counts;
    }
    let stages: Vec<_> = measured.iter().map(|(stage, _)| *stage).collect();
    assert_eq!(stages, BUDGET.map(|(stage, _)| stage));
    let is_off = |(budget, found): (u64, u64)| found > budget || found < budget * 8 / 10;
    let off = BUDGET
        .iter()
        .zip(&measured)
        .any(|((_, budget), (_, found))| is_off((*budget, *found)));
    assert!(
        !off,
        "allocations of memory, by stage: {measured:?}\nbudget: {BUDGET:?}"
    );
}
