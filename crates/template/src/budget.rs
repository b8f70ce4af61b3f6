//! Limits of a rendering: steps, bytes touched, size of the output.

use crate::value::{Value, WEIGHT_MAX};

/// The limits of one rendering. A template that meets one fails.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Nodes, function calls and turns of `range`.
    pub steps_max: u64,
    /// Bytes that functions read and write, together.
    pub bytes_max: usize,
    /// Bytes of the output.
    pub output_max: usize,
}

impl Default for Limits {
    /// A second or two of work at most; far more than a configuration file needs.
    fn default() -> Self {
        Self {
            steps_max: 1_000_000,
            bytes_max: 256 << 20,
            output_max: WEIGHT_MAX,
        }
    }
}

/// The rest of the limits.
#[derive(Debug)]
pub(crate) struct Budget {
    steps: u64,
    bytes: usize,
    limits: Limits,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            steps: limits.steps_max,
            bytes: limits.bytes_max,
            limits,
        }
    }

    pub(crate) fn step(&mut self) -> Result<(), String> {
        match self.steps.checked_sub(1) {
            Some(left) => self.steps = left,
            None => {
                return Err(format!(
                    "the template takes more than {} steps",
                    self.limits.steps_max
                ));
            }
        }
        Ok(())
    }

    /// Pays for the bytes of a function's arguments or result.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), String> {
        match self.bytes.checked_sub(bytes) {
            Some(left) => self.bytes = left,
            None => {
                return Err(format!(
                    "the template's functions work on more than {} MiB",
                    self.limits.bytes_max >> 20
                ));
            }
        }
        Ok(())
    }

    /// Checks the size of a text or list before it is built.
    pub(crate) fn room(bytes: usize) -> Result<(), String> {
        if bytes > WEIGHT_MAX {
            return Err(format!("the value is larger than {} MiB", WEIGHT_MAX >> 20));
        }
        Ok(())
    }

    /// Checks the size of a text of `count` parts of `bytes` each before it is built.
    pub(crate) fn room_for(count: usize, bytes: usize) -> Result<(), String> {
        Self::room(count.saturating_mul(bytes))
    }

    pub(crate) fn charge_values(&mut self, values: &[Value]) -> Result<(), String> {
        let weight = values
            .iter()
            .map(Value::weight)
            .fold(0, usize::saturating_add);
        self.charge(weight)
    }

    pub(crate) fn output(&self, length: usize) -> Result<(), String> {
        if length > self.limits.output_max {
            return Err(format!(
                "the output is larger than {} bytes",
                self.limits.output_max
            ));
        }
        Ok(())
    }
}
