//! The node's record: the machine's hardware, kernel and addresses, in the words of Nomad's
//! attributes, and the operator's settings on top.
//!
//! In reading order: [`mod@config`] holds the operator's settings; [`devices`] checks the declared
//! devices; [`cpu`], [`cores`], [`memory`], [`disk`], [`host`] and [`network`] each read one part of
//! the machine; [`offers`] resolves host networks, reserved ports and host volumes once, at start;
//! [`node`](mod@node) puts the record together, with [`meta`]data of settings and of operators and the
//! attributes of services, which a [`Probe`] asks for. A value that cannot be read is left out, except for a
//! core's speed, which has a low default.

mod attributes;
mod changes;
pub mod config;
mod cores;
mod cpu;
mod devices;
mod disk;
mod error;
mod host;
mod memory;
pub mod meta;
mod network;
mod node;
mod offers;
mod probe;

pub use changes::changes;
pub use config::{Config, DeviceConfig, HostNetworkConfig, HostVolumeConfig, ReservedConfig};
pub use error::Error;
pub use node::{Agent, Plugins, node};
pub use offers::Offers;
pub use probe::Probe;
