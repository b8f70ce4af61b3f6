//! Options of a `qemu` task.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::blocks;

/// Emulator of tasks that name none. Source: Nomad's public default, as are the others.
pub(super) const EMULATOR: &str = "qemu-system-x86_64";
/// Interfaces of disks. Source: the public documentation of Nomad's driver.
const DRIVE_INTERFACES: [&str; 8] = [
    "ide", "scsi", "sd", "mtd", "floppy", "pflash", "virtio", "none",
];

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Options {
    pub(super) image_path: String,
    pub(super) drive_interface: String,
    pub(super) accelerator: String,
    pub(super) machine_type: String,
    /// Name of the emulator's program.
    pub(super) emulator: String,
    /// A stop asks the machine to shut down.
    pub(super) graceful_shutdown: bool,
    /// Add a device for the guest's agent, at a socket of the task.
    pub(super) guest_agent: bool,
    /// Further arguments of the emulator.
    pub(super) args: Vec<String>,
    /// Label of a port → port in the machine.
    #[serde(deserialize_with = "blocks::texts")]
    pub(super) port_map: BTreeMap<String, String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            image_path: String::new(),
            drive_interface: "ide".to_owned(),
            accelerator: "tcg".to_owned(),
            machine_type: "pc".to_owned(),
            emulator: EMULATOR.to_owned(),
            graceful_shutdown: false,
            guest_agent: false,
            args: Vec::new(),
            port_map: BTreeMap::new(),
        }
    }
}

impl Options {
    /// # Errors
    /// The first wrong option, and how to correct it.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.image_path.trim().is_empty() {
            return Err("image_path: is missing: name the image of the machine's disk".to_owned());
        }
        if !DRIVE_INTERFACES.contains(&self.drive_interface.as_str()) {
            return Err(format!(
                "drive_interface: is {:?}: want one of {}",
                self.drive_interface,
                DRIVE_INTERFACES.join(", ")
            ));
        }
        // A comma would begin another property of the option.
        let is_word = |text: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            !text.is_empty() && text.chars().all(is_plain)
        };
        for (name, value) in [
            ("accelerator", &self.accelerator),
            ("machine_type", &self.machine_type),
        ] {
            if !is_word(value) {
                return Err(format!("{name}: {value:?} is not a name, as in tcg or pc"));
            }
        }
        let machine = self.emulator.strip_prefix("qemu-system-");
        if !machine.is_some_and(is_word) {
            return Err(format!(
                "emulator: {:?} is not a program of QEMU: want a name such as {EMULATOR}",
                self.emulator
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn checked(config: Value) -> Result<(), String> {
        let options: Options = serde_json::from_value(config).unwrap();
        options.check()
    }

    #[test]
    fn wrong_options_are_named() {
        assert_eq!(checked(json!({"image_path": "local/a.img"})), Ok(()));
        for (option, value) in [
            ("image_path", json!("")),
            ("drive_interface", json!("usb")),
            ("accelerator", json!("kvm,thread=single")),
            ("machine_type", json!("")),
            ("emulator", json!("/bin/sh")),
            ("emulator", json!("qemu-system-")),
            ("emulator", json!("qemu-system-../../bin/sh")),
        ] {
            let mut config = json!({"image_path": "a.img"});
            config[option] = value.clone();
            let error = checked(config).unwrap_err();
            assert!(
                error.starts_with(&format!("{option}: ")),
                "{value}: {error}"
            );
        }
    }
}
