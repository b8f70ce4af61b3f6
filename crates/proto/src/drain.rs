//! A node's drain and its events.

use std::time::Duration;

use model::{DrainStatus, DrainStrategy, LastDrain, NodeEvent, duration_ns};

use crate::fields::{At as _, Read, required, time, word};
use crate::v1;

/// Deadline on the wire for a drain at once. Source: Nomad's "-1s".
const AT_ONCE_NS: i64 = -1_000_000_000;

/// Reads the deadline of a drain; `None`: no deadline.
///
/// Source: Nomad's form: below 0 at once, 0 without a deadline.
pub fn read_deadline(spec: &v1::DrainSpec) -> Option<Duration> {
    match spec.deadline_ns {
        0 => None,
        ns => Some(Duration::from_nanos(u64::try_from(ns).unwrap_or(0))),
    }
}

/// Writes the deadline of a drain.
pub fn write_deadline(deadline: Option<Duration>) -> i64 {
    match deadline.map(duration_ns::nanos) {
        None => 0,
        Some(0) => AT_ONCE_NS,
        Some(ns) => i64::try_from(ns).unwrap_or(i64::MAX),
    }
}

pub(crate) fn read_drain(wire: v1::DrainStrategy) -> Read<DrainStrategy> {
    let spec = required(wire.spec).at("spec")?;
    Ok(DrainStrategy {
        deadline: read_deadline(&spec),
        ignore_system_jobs: spec.ignore_system_jobs,
        force_deadline: time(wire.force_deadline_ns),
        started_at: time(wire.started_at_ns),
    })
}

pub(crate) fn read_last_drain(wire: v1::LastDrain) -> Read<LastDrain> {
    Ok(LastDrain {
        started_at: time(wire.started_at_ns),
        updated_at: time(wire.updated_at_ns),
        status: word(&wire.status, &DrainStatus::ALL, DrainStatus::as_str).at("status")?,
        meta: wire.meta.into_iter().collect(),
    })
}

impl From<&DrainStrategy> for v1::DrainStrategy {
    fn from(drain: &DrainStrategy) -> Self {
        Self {
            spec: Some(v1::DrainSpec {
                deadline_ns: write_deadline(drain.deadline),
                ignore_system_jobs: drain.ignore_system_jobs,
            }),
            force_deadline_ns: drain.force_deadline.0,
            started_at_ns: drain.started_at.0,
        }
    }
}

impl From<&LastDrain> for v1::LastDrain {
    fn from(last: &LastDrain) -> Self {
        Self {
            started_at_ns: last.started_at.0,
            updated_at_ns: last.updated_at.0,
            status: last.status.as_str().to_owned(),
            meta: last.meta.clone().into_iter().collect(),
        }
    }
}

impl From<v1::NodeEvent> for NodeEvent {
    fn from(wire: v1::NodeEvent) -> Self {
        Self {
            time: time(wire.time_ns),
            subsystem: wire.subsystem,
            message: wire.message,
            details: wire.details.into_iter().collect(),
        }
    }
}

impl From<&NodeEvent> for v1::NodeEvent {
    fn from(event: &NodeEvent) -> Self {
        Self {
            time_ns: event.time.0,
            subsystem: event.subsystem.clone(),
            message: event.message.clone(),
            details: event.details.clone().into_iter().collect(),
        }
    }
}
