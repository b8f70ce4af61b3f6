//! Limits of one job.

/// The most that the counts of one job's groups may add up to.
///
/// Source: Nomad's default of `job_max_count`.
pub const MAX_TOTAL_COUNT: u64 = 50_000;
