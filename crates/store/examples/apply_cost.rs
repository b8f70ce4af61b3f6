//! CPU time that one allocation costs a replica, of one thread: so the figures hold on a machine
//! with other load.
//!
//! `cargo run --release -p store --example apply_cost`; Linux only (`/proc/thread-self/schedstat`).

use std::error::Error;

use model::{EvalId, NodeId};
use state::{Change, Key, State};
use store::{Keyspace, Value, codec};
use test_kit::builders::{allocation, service};

const ALLOCS: u32 = 200_000;
const NODES: u32 = 5_000;
/// Allocations per batch: a transaction of a loaded plan-applier.
const TOGETHER: usize = 500;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let keyspace = Keyspace::default();
    let stored = stored(&keyspace)?;
    let bytes = stored.iter().map(|(_, value)| value.len()).sum::<usize>() / stored.len();
    println!("{ALLOCS} allocations of {bytes} bytes on {NODES} nodes");

    let mut changes = Vec::new();
    measure("decode", || {
        for (position, (text, value)) in stored.iter().enumerate() {
            let key = keyspace.decode(text.as_bytes())?;
            let entity = codec::decode(&key, value)?;
            let index = u64::try_from(position / TOGETHER)? + 1;
            changes.push(Change::Put {
                key,
                entity,
                create_index: index,
                modify_index: index,
            });
        }
        Ok(())
    })?;
    let mut copies = Vec::new();
    measure("copy for subscribers", || {
        copies.clone_from(&changes);
        Ok(())
    })?;
    let mut state = State::default();
    measure("apply and show, together with 499 others", || {
        let mut shown = state.snapshot();
        let mut changes = changes.into_iter();
        loop {
            let batch: Vec<_> = changes.by_ref().take(TOGETHER).collect();
            if batch.is_empty() {
                return Ok(());
            }
            state.apply(shown.index() + 1, batch);
            shown = state.snapshot();
        }
    })?;
    measure("build from a list", || {
        State::from_list(1, copies);
        Ok(())
    })
}

fn stored(keyspace: &Keyspace) -> Result<Vec<(String, Vec<u8>)>> {
    let job = service("web", 1);
    let mut stored = Vec::new();
    for number in 0..ALLOCS {
        // Spread over the range of ids, as random ones are.
        let id = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let mut alloc = allocation(id, &job, NodeId::from_random(u128::from(number % NODES)));
        alloc.eval_id = EvalId::from_random(u128::from(number / 1_000));
        alloc.name_index = number;
        stored.push((
            keyspace.encode(&Key::Alloc(alloc.id)),
            Value::from(&alloc).encode()?,
        ));
    }
    Ok(stored)
}

fn measure(what: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = cpu_ns()?;
    work()?;
    let each = (cpu_ns()? - before) / f64::from(ALLOCS);
    println!("  {what}: {:.2} us each, {:.0}/s", each / 1e3, 1e9 / each);
    Ok(())
}

/// Returns the CPU time of this thread so far.
fn cpu_ns() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = stat
        .split_ascii_whitespace()
        .next()
        .ok_or("schedstat is empty")?;
    Ok(first.parse()?)
}
