//! The driver `docker`: each task is a container of a Docker Engine, reached over its socket.
//!
//! In reading order: [`config`] and [`settings`] are the node operator's; `options` are a task's, in `blocks` as job
//! files write them; `request` turns both into the engine's create request, without I/O; `image` reads
//! image names, `auth` finds a registry's credentials, `pull` fetches images; `records` on disk name
//! every container before it exists; `container` are names, labels and states, `engine` the link to the
//! engine; `tasks` is the driver's state, and `images`, `start`, `wait`, `stop` and `exec` its operations behind
//! the interface in `driver`; `logs` copies output into the task's log files;
//! `pause` owns the network namespaces of allocations; `usage` reads what containers use; `maintenance` probes the engine and removes unknown containers.
//!
//! **Invariant**: a container of this node without a record is of no use, because the record is
//! written before the container is created and removed after it.

mod auth;
mod blocks;
pub mod config;
mod container;
mod driver;
mod engine;
mod exec;
mod image;
mod images;
mod logs;
mod maintenance;
mod options;
mod pause;
mod pull;
mod records;
mod request;
pub mod settings;
mod start;
mod stop;
mod tasks;
mod usage;
mod wait;

pub use config::DockerConfig;
pub use settings::Settings;
pub use tasks::Docker;
