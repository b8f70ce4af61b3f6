//! Runs the tasks of a node's allocations: one tokio task per allocation, around its lifecycle machine.
//!
//! [`lifecycle`] decides; a runner waits, steps the machine, stores its state and performs its
//! effects. Which allocations a node has, and the sending of reports, is left to the agent
//! (`services/client-node`).
//!
//! In reading order: [`handle`] is a runner from outside; [`context`] is shared by runners;
//! `runner` is a runner's state and `run` its loop; `perform` performs effects; `attempt` starts,
//! finds and awaits a task in its allocation's [`network`], with the storage systems' volumes that
//! [`csi_volumes`] mounts; `artifacts` downloads its artifacts,
//! [`templates`] renders its templates from [`sources`], one of which is a [`DataSource`], and [`identities`]
//! gets and renews its tokens from a [`TokenSource`]; [`task_shared`] keeps its tokens of Vault and Consul
//! and its look-ups between attempts; [`leftovers`] removes the records of obsolete attempts; [`reporter`]
//! takes reports, with the registrations of `services`; `registration` registers those of `consul_services`
//! in Consul; `checks` runs service checks, `probe` one request of a check, and `script` one command of a
//! check or a changed template; [`exec`] runs commands beside tasks, `run::signal` sends signals to them;
//! [`measurement`] measures what they and the machine use on request; [`file_system`] reads the usage of a
//! disk; [`levels`] has the metrics that are read at each scrape.
//!
//! **Invariant**: a start is idempotent. Drivers know tasks by attempt, so a start that is repeated
//! after the agent's death finds the task that runs.

mod artifacts;
mod attempt;
mod check_view;
mod checks;
pub mod clock;
mod consul_services;
pub mod context;
pub mod csi_volumes;
mod data_source;
pub mod exec;
pub mod file_system;
pub mod handle;
mod identities;
mod job_counters;
pub mod leftovers;
pub mod levels;
pub mod measurement;
pub mod metrics;
pub mod network;
mod perform;
mod probe;
mod registration;
pub mod reporter;
mod run;
mod runner;
mod script;
mod services;
mod sources;
mod task_shared;
mod templates;
#[cfg(test)]
mod tests;
mod token_source;
mod volume_source;

pub use check_view::CheckView;
pub use clock::Clocks;
pub use consul_services::ConsulServices;
pub use context::{Context, Drivers};
pub use data_source::{DataSource, NoData, Requester};
pub use handle::{Command, Handle, Progress, RunningTask};
pub use leftovers::remove_attempt;
pub use metrics::Metrics;
pub use reporter::{BATCH_INTERVAL, Reporter};
pub use run::spawn;
pub use runner::RunnerStart;
pub use token_source::{NoTokens, TokenError, TokenSource};
pub use volume_source::{NoVolumes, VolumeSource, WantedVolume};
