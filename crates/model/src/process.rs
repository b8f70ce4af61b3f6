//! Running processes of services.

use serde::{Deserialize, Serialize};

/// The name of a process: its service, and the gRPC address that no other process has.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessKey {
    /// As in `scheduler-worker`.
    pub service: String,
    /// As in `http://10.0.0.7:4648`.
    pub address: String,
}

/// The value of `process/<service>/<address>`, which is bound to a lease of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// The process's version of Kafila.
    pub version: String,
}
