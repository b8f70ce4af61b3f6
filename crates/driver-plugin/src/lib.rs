//! Task drivers as plugins: programs of others in the node's `plugin_dir`, each in a process of its own, that
//! speak Nomad's protocol: a handshake on standard output, then gRPC on a socket file.
//!
//! In reading order: [`config`] and [`settings`] are the node operator's; [`handshake`] is the first contact and
//! [`wire`] the messages; [`schema`] turns a block of settings into the form that a plugin asks for, and
//! [`msgpack`] encodes it. `launch` starts a process, `output` logs what it prints; `instance` is a process that
//! answers, `connect` its set-up and `calls` its deadlines; `supervise` keeps one process of a plugin running,
//! and `health` follows it. [`Plugins`] are all of a node. `records` on disk name every task before it is
//! started; `plugin` is the state of a driver, and `task`, `start`, `recover`, `wait`, `stop`, `exec` and `usage`
//! its operations behind the interface in `driver`.
//!
//! **Invariant**: no task is started twice. A start whose outcome is unknown is settled by the task's id, which
//! its record had before: what then runs is destroyed.
//!
//! Source: the wire facts of Nomad 1.6.1 and of go-plugin, both MPL-2.0.

mod calls;
pub mod config;
mod connect;
mod driver;
mod exec;
pub mod handshake;
mod health;
mod instance;
mod launch;
pub mod msgpack;
mod output;
mod plugin;
mod plugins;
mod records;
mod recover;
pub mod schema;
pub mod settings;
mod start;
mod stop;
mod supervise;
mod task;
mod usage;
mod wait;
pub mod wire;

pub use config::PluginConfig;
pub use plugins::Plugins;
pub use settings::{Settings, Timing};
