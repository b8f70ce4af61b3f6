//! When a job is launched, what it is told then, and within which counts it is scaled.

use model::{DispatchPayload, Parameterized, Periodic, Scaling};

use crate::shape::{Shape, config, words};

pub(crate) fn periodic(periodic: &Periodic) -> Shape {
    let Periodic {
        enabled,
        crons,
        prohibit_overlap,
        time_zone,
    } = periodic;
    let shape = Shape::new("Periodic")
        .field("Enabled", enabled)
        .field("ProhibitOverlap", prohibit_overlap)
        .field("SpecType", "cron")
        .field("TimeZone", time_zone);
    match crons.as_slice() {
        [one] => shape.field("Spec", one),
        several => shape.object(words("Specs", several)),
    }
}

pub(crate) fn parameterized(parameterized: &Parameterized) -> Shape {
    let Parameterized {
        payload,
        meta_required,
        meta_optional,
    } = parameterized;
    Shape::new("ParameterizedJob")
        .field("Payload", payload.as_str())
        .object(words("MetaRequired", meta_required))
        .object(words("MetaOptional", meta_optional))
}

pub(crate) fn dispatch_payload(payload: &DispatchPayload) -> Shape {
    let DispatchPayload { file } = payload;
    Shape::new("DispatchPayload").field("File", file)
}

pub(crate) fn scaling(scaling: &Scaling) -> Shape {
    let Scaling {
        enabled,
        min,
        max,
        policy,
    } = scaling;
    Shape::new("Scaling")
        .field("Enabled", enabled)
        .field("Min", min)
        .field("Max", max)
        .field("Type", "horizontal")
        .object(config("Policy", policy))
}
