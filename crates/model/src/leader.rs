//! Leader of a singleton service.

use serde::{Deserialize, Serialize};

/// The value of an election key: the leader's address and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderInfo {
    /// The leader's gRPC address, as in `http://127.0.0.1:7101`.
    pub address: String,
    /// Name of the replica; unique among the replicas of one service, for people and logs.
    pub replica: String,
}
