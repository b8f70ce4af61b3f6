//! Limits of steps and memory for evaluating one file.
//!
//! A small file can cause exponential work: lines that double a text each, or nested loops.

use std::cell::Cell;

use serde_json::Value;

/// Maximum number of evaluated nodes: a hundred times the largest job files, below a second of work.
const MAX_STEPS: u32 = 1_000_000;

/// Maximum size of all values: a job fits into 1 MiB, and intermediate values into a few MiB.
const MAX_BYTES: usize = 32 << 20;

const TOO_MANY_STEPS: Exhausted =
    "evaluating this file takes too many steps: make its loops smaller";

#[derive(Debug)]
pub(crate) struct Meter {
    steps_left: Cell<u32>,
    bytes_left: Cell<usize>,
}

/// An exceeded limit, as a message.
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
    /// Charges one step.
    pub(crate) fn step(&self) -> Result<(), Exhausted> {
        self.steps(1)
    }

    /// Charges `bytes` of a new value.
    pub(crate) fn grow(&self, bytes: usize) -> Result<(), Exhausted> {
        let left = self.bytes_left.get().checked_sub(bytes);
        self.bytes_left.set(left.unwrap_or(0));
        left.map(drop)
            .ok_or("the values in this file grow too large: build smaller ones")
    }

    /// Charges several steps for an expensive operation.
    pub(crate) fn steps(&self, steps: u32) -> Result<(), Exhausted> {
        let left = self.steps_left.get().checked_sub(steps);
        self.steps_left.set(left.unwrap_or(0));
        left.map(drop).ok_or(TOO_MANY_STEPS)
    }

    /// Charges a copy of `value`.
    pub(crate) fn copy(&self, value: &Value) -> Result<(), Exhausted> {
        // Weighing stops at the remaining budget.
        let left = self.bytes_left.get();
        let mut weighed = 0;
        weigh(value, left, &mut weighed);
        self.grow(weighed)
    }
}

/// Overhead of an element, in bytes.
const ELEMENT: usize = 32;

/// Returns roughly how many bytes `value` occupies.
pub(crate) fn weight(value: &Value) -> usize {
    let mut weighed = 0;
    weigh(value, MAX_BYTES, &mut weighed);
    weighed
}

/// Adds the weight of `value`, up to `limit`.
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
