//! Launches, dispatches and scaling, both ways.

use model::{Payload, ScalingEvent, spec};

use super::read::none_if_empty;
use crate::fields::{At as _, Read, id_or_empty, wrong};
use crate::json::{self, LargeInteger};
use crate::v1;

pub(super) fn read_periodic(wire: v1::Periodic) -> spec::Periodic {
    spec::Periodic {
        enabled: wire.enabled,
        spec: wire.cron,
        specs: none_if_empty(wire.crons),
        spec_type: None,
        prohibit_overlap: wire.prohibit_overlap,
        time_zone: wire.time_zone,
    }
}

pub(super) fn write_periodic(periodic: &spec::Periodic) -> v1::Periodic {
    v1::Periodic {
        enabled: periodic.enabled,
        cron: periodic.spec.clone(),
        crons: periodic.specs.clone().unwrap_or_default(),
        prohibit_overlap: periodic.prohibit_overlap,
        time_zone: periodic.time_zone.clone(),
    }
}

pub(super) fn read_parameterized(wire: v1::Parameterized) -> spec::Parameterized {
    spec::Parameterized {
        payload: wire.payload,
        meta_required: none_if_empty(wire.meta_required),
        meta_optional: none_if_empty(wire.meta_optional),
    }
}

pub(super) fn write_parameterized(parameterized: &spec::Parameterized) -> v1::Parameterized {
    v1::Parameterized {
        payload: parameterized.payload.clone(),
        meta_required: parameterized.meta_required.clone().unwrap_or_default(),
        meta_optional: parameterized.meta_optional.clone().unwrap_or_default(),
    }
}

pub(super) fn write_payload(text: &str) -> Read<Vec<u8>> {
    let payload = Payload::from_base64(text);
    Ok(payload.ok_or_else(|| wrong("not base64: leave it out"))?.0)
}

pub(super) fn read_scaling(wire: v1::Scaling) -> Read<spec::Scaling> {
    Ok(spec::Scaling {
        enabled: wire.enabled,
        min: wire.min,
        max: wire.max,
        scaling_type: wire.r#type,
        policy: wire
            .policy
            .map(json::read_object)
            .transpose()
            .at("policy")?,
    })
}

pub(super) fn write_scaling(scaling: &spec::Scaling, large: LargeInteger) -> Read<v1::Scaling> {
    let policy = scaling.policy.as_ref();
    Ok(v1::Scaling {
        enabled: scaling.enabled,
        min: scaling.min,
        max: scaling.max,
        r#type: scaling.scaling_type.clone(),
        policy: policy
            .map(|policy| json::write_object(policy, large))
            .transpose()
            .at("policy")?,
    })
}

impl v1::ScalingEvent {
    /// Writes an event; `newest_index` is the index of one that does not know its own.
    pub fn from_stored(event: &ScalingEvent, newest_index: u64) -> Self {
        Self {
            time_ns: event.time.0,
            count: event.count,
            previous_count: event.previous_count,
            message: event.message.clone(),
            error: event.error,
            meta: event.meta.clone().into_iter().collect(),
            eval_id: id_or_empty(event.eval_id),
            create_index: match event.create_index {
                0 => newest_index,
                index => index,
            },
        }
    }
}
