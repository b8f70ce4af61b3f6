//! The scheduler: from an evaluation to a plan, which changes a job's allocations and chooses nodes.
//!
//! Pure: [`schedule()`] reads one snapshot and one evaluation and returns the plan, with the end of the
//! evaluation included. Time and randomness are arguments, so a run is deterministic. The loop around it
//! is `services/scheduler-worker`; [`Run`] counts for that loop how often a plan was refused.
//!
//! In reading order: `schedule` puts the steps together; `reconcile` compares the allocations of a job
//! with its specification; `in_place` checks which of them may take a new version while they run;
//! `planner` finds nodes for placements, with `inputs`, which do not change, and the `draft` of the plan;
//! `template` makes allocations; `rank` orders nodes, with the tolerance of `selection`; `generation` and
//! `separation` relax distinctness during a rollout; `preempt` chooses victims; `outcome` ends the
//! evaluation. The crate `placement`, which the plan-applier shares, decides which node can run what.
//!
//! [`load`] says how many evaluations a worker takes at once.
//!
//! `system` does the same for system and sysbatch jobs. [`mod@explain`] explains placements to people;
//! it decides nothing.

mod cluster;
mod draft;
pub mod explain;
mod generation;
mod in_place;
mod inputs;
pub mod load;
mod outcome;
mod planner;
mod preempt;
mod rank;
mod reconcile;
mod run;
mod run_rng;
mod schedule;
mod selection;
mod separation;
mod system;
mod template;

pub use load::Load;
pub use reconcile::changes::DesiredUpdates;
pub use run::{Attempt, PlanOutcome, Run};
pub use schedule::{Decision, schedule, schedule_with};
#[doc(hidden)]
pub use selection::Selection;
