//! Reasons in the metrics of failed placements that the command recognises, to give advice. Source: Nomad.

/// Start of the reason of a node without a task's driver.
pub const MISSING_DRIVERS: &str = "missing drivers";

/// The reason of a node that lacks a volume.
pub const MISSING_VOLUME: &str = "missing compatible host volumes";

/// The reason of a node that already has an allocation of the level.
pub const DISTINCT_HOSTS: &str = "distinct_hosts";

/// Start of exhausted dimensions that concern ports.
pub const NETWORK: &str = "network: ";

/// Text before the port that is in use, for example `http=8080`.
pub const PORT_COLLISION: &str = "reserved port collision";
