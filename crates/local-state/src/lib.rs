//! Local state of a node: its identity, its certificate and its database, which survive the agent.
//!
//! In reading order: [`storage`] opens a node's storage, a data directory or memory; [`identity`] is
//! the node's id and secret; [`state`] is the handle to write with; [`records`] are keys and values,
//! [`queue`] the pending writes, [`writer`] the thread that commits them, [`disk`] the database
//! file, [`memory`] its stand-in in simulations. [`certificate`] has the files of a certificate that the
//! node gets itself.

mod certificate;
mod disk;
mod error;
mod identity;
mod memory;
mod metrics;
mod queue;
mod records;
mod state;
mod storage;
mod writer;

pub use certificate::CertificateFiles;
pub use error::Error;
pub use identity::{CertifiedId, Identity};
pub use memory::Memory;
pub use metrics::Metrics;
pub use records::{DynamicMeta, NodeState, Restored, Stored, decode};
pub use state::LocalState;
pub use storage::{Locked, Opened, Storage, check_data_dir, kept_node_id};
