//! Settings of the driver: the section `[drivers.qemu]` of a node's configuration file.
//!
//! An agent prints the section with the doc comments of [`SOURCE`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::exec::wrong_path;

/// The source of the section, for a configuration file that explains itself.
pub const SOURCE: &str = include_str!("settings.rs");

/// Virtual machines. Their emulators are isolated as tasks of `exec`, whose settings hold for them, too. The
/// driver is available where `exec` could be and `qemu-system-x86_64` is in the agent's PATH.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QemuConfig {
    /// Enable the driver.
    pub enabled: bool,
    /// Directories of the node with images that machines may use, and change, beside those of their
    /// allocation.
    pub image_paths: Vec<PathBuf>,
    /// Options of the emulator that `args` may have, as in `-smp`; empty: every one.
    pub args_allowlist: Vec<String>,
}

impl Default for QemuConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            image_paths: Vec::new(),
            args_allowlist: Vec::new(),
        }
    }
}

impl QemuConfig {
    /// # Errors
    /// The name of the first wrong setting, below `drivers.qemu`, and the problem.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        for path in &self.image_paths {
            let text = path.to_string_lossy();
            let problem = wrong_path(&text).or((text == "/").then_some("want directories below /"));
            if let Some(problem) = problem {
                return Err(("image_paths", format!("has {text:?}: {problem}")));
            }
        }
        for option in &self.args_allowlist {
            if !option.starts_with('-') {
                let problem = format!("has {option:?}: want options with their -, as in -smp");
                return Err(("args_allowlist", problem));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_are_named() {
        assert_eq!(QemuConfig::default().check(), Ok(()));
        for path in ["images", "/", "/a/../b"] {
            let config = QemuConfig {
                image_paths: vec![path.into()],
                ..QemuConfig::default()
            };
            assert_eq!(config.check().unwrap_err().0, "image_paths", "{path}");
        }
        let config = QemuConfig {
            args_allowlist: vec!["smp".to_owned()],
            ..QemuConfig::default()
        };
        assert_eq!(config.check().unwrap_err().0, "args_allowlist");
    }
}
