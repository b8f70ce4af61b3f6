//! Declared devices: their check, and their part of the node's record.

use std::collections::BTreeSet;

use model::node::{DeviceInstance, NodeDevice};

use crate::config::DeviceConfig;
use crate::error::Error;

impl From<&DeviceConfig> for NodeDevice {
    fn from(device: &DeviceConfig) -> Self {
        let instances = device.instances.iter().map(|id| DeviceInstance {
            id: id.clone(),
            healthy: !device.unhealthy.contains(id),
        });
        Self {
            vendor: device.vendor.clone(),
            device_type: device.device_type.clone(),
            name: device.name.clone(),
            attributes: device.attributes.clone(),
            env: device.env.clone(),
            instances: instances.collect(),
        }
    }
}

/// # Errors
/// The first invalid field.
pub(crate) fn check(devices: &[DeviceConfig]) -> Result<(), Error> {
    let mut kinds = BTreeSet::new();
    for (position, device) in devices.iter().enumerate() {
        let wrong = |field: &str, problem: String| {
            Error::setting(format!("devices[{position}].{field}"), problem)
        };
        for (field, word) in [
            ("vendor", &device.vendor),
            ("type", &device.device_type),
            ("name", &device.name),
        ] {
            if word.is_empty() {
                let problem = "is missing: a kind of device is, for instance, vendor = \"nvidia\", \
                               type = \"gpu\", name = \"1080ti\"";
                return Err(wrong(field, problem.to_owned()));
            }
        }
        for (field, word) in [("vendor", &device.vendor), ("type", &device.device_type)] {
            if word.contains('/') {
                let problem = format!("{word:?} has a slash, which jobs put between the words");
                return Err(wrong(field, format!("{problem}: write it without")));
            }
        }
        if !kinds.insert((&device.vendor, &device.device_type, &device.name)) {
            let problem = format!(
                "{}/{}/{} is declared already: put all its instances into one [[devices]]",
                device.vendor, device.device_type, device.name
            );
            return Err(wrong("name", problem));
        }
        if device.instances.is_empty() {
            let problem = "is empty: list the ids of the devices, or remove the [[devices]]";
            return Err(wrong("instances", problem.to_owned()));
        }
        let mut ids = BTreeSet::new();
        for id in &device.instances {
            // Tasks get the ids joined by commas.
            if id.is_empty() || id.contains(',') {
                let problem =
                    format!("{id:?} is not a valid id: it needs a character, and no comma");
                return Err(wrong("instances", problem));
            }
            if !ids.insert(id) {
                let problem = format!("{id:?} is listed twice: remove one");
                return Err(wrong("instances", problem));
            }
        }
        if let Some(id) = device.unhealthy.iter().find(|id| !ids.contains(id)) {
            let problem = format!("{id:?} is none of its instances: correct or remove it");
            return Err(wrong("unhealthy", problem));
        }
        if device.env.contains(['=', '\0']) {
            let problem = format!("{:?} cannot be the name of a variable", device.env);
            return Err(wrong(
                "env",
                format!("{problem}: write one as in CUDA_DEVICES"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: &str = r#"
        [[devices]]
        vendor = "nvidia"
        type = "gpu"
        name = "1080ti"
        instances = ["GPU-0", "GPU-1"]
        unhealthy = ["GPU-1"]
        env = "NVIDIA_VISIBLE_DEVICES"
        attributes = { memory = "11264 MiB" }
    "#;

    fn read(text: &str) -> Vec<DeviceConfig> {
        #[derive(serde::Deserialize)]
        struct File {
            devices: Vec<DeviceConfig>,
        }
        let file: File = toml::from_str(text).unwrap();
        file.devices
    }

    #[test]
    fn a_device_is_declared_in_the_configuration() {
        let devices = read(GPU);
        check(&devices).unwrap();
        let device = NodeDevice::from(&devices[0]);
        assert_eq!(device.attributes["memory"], "11264 MiB");
        let healthy: Vec<_> = device.instances.iter().map(|it| it.healthy).collect();
        assert_eq!(healthy, [true, false]);
    }

    #[test]
    fn an_invalid_device_is_refused_with_its_field() {
        for (from, to, field, problem) in [
            ("\"nvidia\"", "\"\"", "devices[0].vendor", "is missing"),
            ("\"gpu\"", "\"gpu/x\"", "devices[0].type", "has a slash"),
            (
                "\"GPU-0\", ",
                "\"GPU-1\", ",
                "devices[0].instances",
                "twice",
            ),
            (
                "\"GPU-0\", ",
                "\"a,b\", ",
                "devices[0].instances",
                "no comma",
            ),
            (
                "[\"GPU-0\", \"GPU-1\"]",
                "[]",
                "devices[0].instances",
                "is empty",
            ),
            (
                "[\"GPU-1\"]",
                "[\"GPU-2\"]",
                "devices[0].unhealthy",
                "\"GPU-2\" is none",
            ),
            (
                "NVIDIA_VISIBLE_DEVICES",
                "A=B",
                "devices[0].env",
                "cannot be the name",
            ),
        ] {
            let error = check(&read(&GPU.replace(from, to))).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(field), "{message}");
            assert!(message.contains(problem), "{message}");
        }
        let error = check(&read(&format!("{GPU}{GPU}"))).unwrap_err();
        assert!(error.to_string().contains("declared already"), "{error}");
    }
}
