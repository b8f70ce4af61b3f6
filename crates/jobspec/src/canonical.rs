//! From a job as users write it to the job that is stored: defaults filled in, everything checked.
//!
//! Pure and deterministic: the same spec and time always give the same job, so that registering a
//! job again can be recognised as no change. All errors are collected, none stops the rest.
//! The gateway checks rules that need the cluster's state: does the namespace exist, may the caller
//! do this, may an existing job change its type.

mod action;
mod artifact;
mod constraint;
mod consul;
mod csi_plugin;
mod device;
mod disconnect;
mod driver_config;
mod environment;
mod group;
mod inherited;
mod job;
mod job_types;
mod launches;
mod lifecycle;
mod limits;
mod name;
mod network;
mod rank;
mod reschedule;
mod resources;
mod restart;
mod scaling;
mod service;
mod signal;
mod task;
mod template;
mod ui;
mod update;
mod validation;
mod vault;
mod version;
mod volume;
mod workload_identity;

use model::{FieldErrors, Timestamp};

pub use self::limits::MAX_TOTAL_COUNT;
use self::validation::Validation;

/// A job that may be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct CanonicalJob {
    pub job: model::Job,
    /// Legal but probably unintended, a sentence each.
    pub warnings: Vec<String>,
}

/// Returns the job that `spec` asks for, with every default filled in.
///
/// The version is 0 and the time of submission `now`; admission raises the version when it is not
/// the first. `spec`'s own version and time are ignored.
///
/// # Errors
/// All errors of the job, each with the path of its field, the problem and the fix.
pub fn canonicalise(spec: &job_fields::Job, now: Timestamp) -> Result<CanonicalJob, FieldErrors> {
    let mut check = Validation::default();
    let job = job::job(&mut check, spec, now);
    let (errors, warnings) = check.finish();
    errors.into_result(CanonicalJob { job, warnings })
}
