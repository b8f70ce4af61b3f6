//! Settings of the driver: the section `[drivers.java]` of a node's configuration file.
//!
//! An agent prints the section with the doc comments of [`SOURCE`].

use serde::{Deserialize, Serialize};

/// The source of the section, for a configuration file that explains itself.
pub const SOURCE: &str = include_str!("settings.rs");

/// Programs of a Java virtual machine, isolated as tasks of `exec`, whose settings hold for them, too. The
/// driver is available where `exec` could be and `java` is in the agent's PATH.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JavaConfig {
    /// Enable the driver.
    pub enabled: bool,
}

impl Default for JavaConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}
