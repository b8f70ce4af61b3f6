//! Placement: whether a task group may run on a node, and whether it fits.
//!
//! The scheduler plans with these answers and the plan-applier checks with them. With two copies, a plan
//! could be rejected for ever. Pure; only [`Feasibility`] caches answers, per computed node class, for
//! one evaluation.
//!
//! In reading order: [`target`] resolves a side of a constraint on a node, [`version`] compares versions,
//! [`check`] is a compiled constraint, [`scope`] the job's node pool and datacenters, [`feasible`] checks
//! a node regardless of its allocations, [`distinct`] checks distinctness against the job's allocations,
//! [`fit`] checks amounts, [`ports`] assigns ports, [`addresses`] finds allocations whose node has lost the
//! address of a port, [`volumes`] checks directories of nodes and their writers, [`csi`] volumes of storage systems,
//! [`dedicated`] assigns cores and devices, with `devices` and `quantity`; [`class`] computes node
//! classes; [`reschedule`] decides whether and when a failed allocation may be replaced; [`node_evals`] names
//! the jobs that a changed node concerns.
//!
//! **Usage**, here and in the scheduler: an allocation holds its resources until it is terminal: stopped
//! or evicted by the server, or ended on its node. `state` keeps the sum ([`state::NodeUsage`]).

pub mod addresses;
pub mod check;
pub mod class;
pub mod csi;
pub mod dedicated;
mod devices;
pub mod distinct;
mod exhausted;
pub mod feasible;
pub mod fit;
mod holds;
pub mod node_evals;
pub mod ports;
mod quantity;
pub mod reasons;
pub mod reschedule;
pub mod scope;
pub mod target;
pub mod version;
pub mod volumes;

pub use check::Check;
pub use class::computed_class;
pub use csi::CsiAsks;
pub use dedicated::{Dedicated, DedicatedAsk, Shortage};
pub use devices::shortage::{DeviceRefusal, DeviceShortage};
pub use distinct::{DistinctHosts, DistinctProperty, Level};
pub use exhausted::Exhausted;
pub use feasible::{Feasibility, Infeasible, Requirements};
pub use fit::{check_change, fits};
pub use holds::Holds;
pub use node_evals::NodeEvals;
pub use ports::{PortAsk, assign_ports};
pub use scope::Scope;
pub use target::Target;
pub use volumes::{VolumeAsks, VolumeWrites};
