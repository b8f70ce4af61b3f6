//! Devices that a task asks for.

use model::job::DeviceRequest;

use super::validation::{Path, Validation};
use super::{constraint, rank};

/// Source: Nomad's default.
const DEFAULT_COUNT: u64 = 1;
/// The facts of `${device.…}` beside attributes.
const FACTS: [&str; 4] = ["ids", "model", "vendor", "type"];

pub(super) fn devices(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::DeviceRequest],
) -> Vec<DeviceRequest> {
    let mut requests = Vec::new();
    for (position, spec) in specs.iter().enumerate() {
        let path = path.labelled("device", spec.name.as_deref(), position);
        let count = check.number(path.field("count"), spec.count, DEFAULT_COUNT);
        if count < 1 {
            let message = "invalid request of zero devices: ask for 1 or more, or remove the block";
            check.error(path.field("count"), message);
        }
        let request = DeviceRequest {
            name: name(check, &path, spec.name.as_deref()),
            count,
            constraints: constraint::constraints(
                check,
                &path,
                &spec.constraints,
                constraint::Level::Device,
            ),
            affinities: rank::affinities(check, &path, &spec.affinities),
        };
        for (position, constraint) in request.constraints.iter().enumerate() {
            let path = path.at("constraint", position);
            check_device(check, &path, [&constraint.left, &constraint.right]);
        }
        for (position, affinity) in request.affinities.iter().enumerate() {
            let path = path.at("affinity", position);
            check_device(check, &path, [&affinity.left, &affinity.right]);
        }
        requests.push(request);
    }
    requests
}

fn name(check: &mut Validation, path: &Path, name: Option<&str>) -> String {
    let name = name.unwrap_or_default();
    if name.split('/').take(3).any(str::is_empty) {
        let message = format!(
            "device name {name:?} has an empty part: write type, vendor/type or vendor/type/name, \
             as in device \"nvidia/gpu\" {{ … }}",
        );
        check.error(path.field("name"), message);
    }
    name.to_owned()
}

/// Refuses a constraint on a fact that devices do not have: it would never match.
fn check_device(check: &mut Validation, path: &Path, sides: [&String; 2]) {
    for (side, field) in sides.into_iter().zip(["attribute", "value"]) {
        let Some(name) = side.strip_prefix("${") else {
            continue;
        };
        let fact = name.strip_suffix('}').and_then(|name| {
            let fact = name.strip_prefix("device.")?;
            let key = fact.strip_prefix("attr.").unwrap_or_default();
            Some(FACTS.contains(&fact) || !key.is_empty())
        });
        if fact != Some(true) {
            let message = format!(
                "{side:?} is not known of a device: use ${{device.attr.…}}, or ${{device.…}} with \
                 {}",
                suggest::list(FACTS, "or"),
            );
            check.error(path.field(field), message);
        }
    }
}
