//! The measurements of a load.

use crate::sample::Sample;

/// The measurements of a load.
pub(crate) struct Outcome {
    /// Begins and ends the CPU time that is divided by `count`.
    pub(crate) period: (Sample, Sample),
    /// What `count` counts, in the singular.
    pub(crate) unit: &'static str,
    pub(crate) count: u64,
    /// Name and value.
    pub(crate) measures: Vec<(String, String)>,
}
