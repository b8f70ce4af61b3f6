//! What evaluating one file may cost.
//!
//! A job file is small, but what it asks for need not be: sixty lines that double a text each, or
//! loops within loops, would keep a server busy for ever.

use std::cell::Cell;

use serde_json::Value;

/// How many nodes are evaluated: some hundred times what the largest job files need, and less than
/// a second of work.
const MAX_STEPS: u32 = 1_000_000;

/// How many bytes of values are made: a job has to fit into 1 MiB in the end, and intermediate
/// values are a few times that at most.
const MAX_BYTES: usize = 32 << 20;

const TOO_MANY_STEPS: Exhausted =
    "evaluating this file takes too many steps: make its loops smaller";

#[derive(Debug)]
pub(crate) struct Meter {
    steps_left: Cell<u32>,
    bytes_left: Cell<usize>,
}

/// Too much was asked for; the text says of what.
pub(crate) type Exhausted = &'static str;

impl Default for Meter {
    fn default() -> Self {
        Self {
            steps_left: Cell::new(MAX_STEPS),
            bytes_left: Cell::new(MAX_BYTES),
        }
    }
}

impl Meter {
    /// Pays for one step.
    pub(crate) fn step(&self) -> Result<(), Exhausted> {
        self.steps(1)
    }

    /// Pays for `bytes` of a new value.
    pub(crate) fn grow(&self, bytes: usize) -> Result<(), Exhausted> {
        let left = self.bytes_left.get().checked_sub(bytes);
        self.bytes_left.set(left.unwrap_or(0));
        left.map(drop)
            .ok_or("the values in this file grow too large: build smaller ones")
    }

    /// Pays for several steps at once, for what takes longer than others.
    pub(crate) fn steps(&self, steps: u32) -> Result<(), Exhausted> {
        let left = self.steps_left.get().checked_sub(steps);
        self.steps_left.set(left.unwrap_or(0));
        left.map(drop).ok_or(TOO_MANY_STEPS)
    }

    /// Pays for a copy of `value`.
    pub(crate) fn copy(&self, value: &Value) -> Result<(), Exhausted> {
        // Once the budget is used up, not even weighing is affordable.
        let left = self.bytes_left.get();
        let mut weighed = 0;
        weigh(value, left, &mut weighed);
        self.grow(weighed)
    }
}

/// What an element costs beyond its text.
const ELEMENT: usize = 32;

/// Returns roughly how many bytes `value` occupies.
pub(crate) fn weight(value: &Value) -> usize {
    let mut weighed = 0;
    weigh(value, MAX_BYTES, &mut weighed);
    weighed
}

/// Adds up what `value` weighs, until that is more than `limit`.
fn weigh(value: &Value, limit: usize, weighed: &mut usize) {
    *weighed += ELEMENT;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => *weighed += text.len(),
        Value::Array(items) => {
            for item in items {
                if *weighed > limit {
                    return;
                }
                weigh(item, limit, weighed);
            }
        }
        Value::Object(entries) => {
            for (key, value) in entries {
                if *weighed > limit {
                    return;
                }
                *weighed += key.len();
                weigh(value, limit, weighed);
            }
        }
    }
}
