//! May this task group run on this node, and does it fit: the one answer that the scheduler
//! plans with and the plan-applier checks with. Two copies would be how a plan gets rejected for ever.
//!
//! Pure and without memory of its own between calls, but for [`Feasibility`], which remembers the
//! answer per computed node class for as long as one evaluation is looked at.
//!
//! In reading order: [`target`] is what a side of a constraint stands for on a node, [`version`]
//! compares versions, [`check`] is one constraint made ready, [`scope`] is the job's pool and
//! datacenters, [`feasible`] asks a node everything that does not depend on what runs there,
//! [`distinct`] asks what depends on where the job's other allocations are, [`fit`] is about
//! amounts, [`ports`] hands out ports, [`volumes`] is about directories of a node and who writes to them, [`exclusive`]
//! hands out cores and devices, which `devices` compares as `quantity` reads them; [`class`] names
//! what several nodes share.
//!
//! **Usage, for everybody:** an allocation holds its share of a node until it is terminal: stopped
//! or evicted by the server, or ended on its node. `state` keeps that sum ([`state::NodeUsage`]).

pub mod check;
pub mod class;
mod devices;
pub mod distinct;
pub mod exclusive;
pub mod feasible;
pub mod fit;
pub mod ports;
mod quantity;
pub mod scope;
pub mod target;
pub mod version;
pub mod volumes;

pub use check::Check;
pub use class::computed_class;
pub use distinct::{DistinctHosts, DistinctProperty, Level};
pub use exclusive::{DeviceRefusal, DeviceShortage, Exclusive, ExclusiveAsk, Holds, Shortage};
pub use feasible::{Feasibility, Infeasible, Requirements};
pub use fit::{Exhausted, check_change, fits};
pub use ports::{PortAsk, assign_ports};
pub use scope::{Scope, glob_matches};
pub use target::Target;
pub use volumes::{VolumeAsks, VolumeWrites};
