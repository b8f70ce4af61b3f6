//! Files that commands read: job files, and the files of node pools, namespaces, variables and volumes.

pub(crate) mod csi_volume;
pub(crate) mod diagnostic;
pub(crate) mod job;
mod local;
pub(crate) mod namespace;
pub(crate) mod node_pool;
mod settings;
pub(crate) mod text;
pub(crate) mod variable;
pub(crate) mod volume;
