//! The drivers `docker` and `podman`: each task is a container of a Docker Engine, or of Podman, which
//! serves the same API, reached over its socket.
//!
//! In reading order: [`config`] and [`settings`] are the node operator's; `options` are a task's, which
//! `podman` reads in their other form; `request` turns both into the engine's create request, without I/O;
//! `image` reads image names, `auth` finds a registry's credentials, `pull` fetches images; `pulled_images` are
//! those that the agent may remove, `image_use` decides when, without I/O, `image_store` keeps both, and
//! `image_removal` removes them; `records` on disk name every container before it exists; `container` are
//! names, labels and states, `engine` the link to the engine; `tasks` is the driver's state, and `images`,
//! `start`, `wait`, `stop` and `exec` its operations behind the interface in `driver`; `missed_end` tells an
//! engine of a container's end that it has missed; `logs` copies output into the task's log files; `pause`
//! owns the network namespaces of allocations; `usage` reads what containers use; `maintenance` probes the
//! engine, also for its `access` to directories, and removes unknown containers.
//!
//! **Invariant**: a container of this node without a record is of no use, because the record is
//! written before the container is created and removed after it.

mod access;
mod auth;
pub mod config;
mod config_block;
mod container;
mod driver;
mod engine;
mod exec;
mod image;
mod image_removal;
mod image_store;
mod image_use;
mod images;
mod logs;
mod maintenance;
mod missed_end;
mod names;
mod options;
mod pause;
mod podman;
mod pull;
mod pulled_images;
mod records;
mod request;
pub mod settings;
mod start;
mod start_failure;
mod stop;
mod tasks;
mod usage;
mod wait;

pub use config::EngineConfig;
pub use settings::{EngineKind, Settings};
pub use tasks::Docker;
