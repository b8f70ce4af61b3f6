//! Children of periodic and parameterized jobs: their ids and inherited fields.
//!
//! Source of the names and inherited fields: Nomad's public behaviour.

use std::collections::BTreeMap;

use crate::job::Job;
use crate::launch::Payload;
use crate::time::Timestamp;

/// Separates a parent's id from the time in its children's ids.
const PERIODIC_INFIX: &str = "/periodic-";
const DISPATCH_INFIX: &str = "/dispatch-";

impl Job {
    /// Tells whether the job runs nothing itself, only its children do.
    pub fn is_parent(&self) -> bool {
        self.periodic.is_some() || (self.parameterized.is_some() && !self.dispatched)
    }

    /// Tells whether the job is launched at its times: a parameterized job waits for a dispatch first.
    pub fn is_launched(&self) -> bool {
        let periodic = self.periodic.as_ref();
        let waits_for_dispatch = self.parameterized.is_some() && !self.dispatched;
        periodic.is_some_and(|periodic| periodic.enabled) && !self.stop && !waits_for_dispatch
    }

    /// Returns the child of a periodic job that is launched at `launch`, submitted `now`.
    pub fn periodic_child(&self, launch: Timestamp, now: Timestamp) -> Self {
        let id = periodic_child_id(&self.id, launch);
        Self {
            name: id.clone(),
            id,
            parent_id: self.id.clone(),
            // It keeps its own: a child that is dispatched and launched is not dispatched again.
            dispatched: self.dispatched,
            dispatch_token: String::new(),
            periodic: None,
            stop: false,
            version: 0,
            forced_version: None,
            written_by: None,
            submit_time: now,
            ..self.clone()
        }
    }

    /// Returns the child of a parameterized job that is dispatched `now`.
    ///
    /// `meta` is added to the parent's and wins over it; `token` may be empty.
    pub fn dispatched_child(
        &self,
        id: String,
        meta: &BTreeMap<String, String>,
        payload: Payload,
        token: &str,
        now: Timestamp,
    ) -> Self {
        let mut all = self.meta.clone();
        all.extend(meta.iter().map(|(key, value)| (key.clone(), value.clone())));
        Self {
            name: id.clone(),
            id,
            parent_id: self.id.clone(),
            dispatched: true,
            payload,
            dispatch_token: token.to_owned(),
            meta: all,
            stop: false,
            version: 0,
            forced_version: None,
            written_by: None,
            submit_time: now,
            ..self.clone()
        }
    }
}

/// Returns the id of the child of `parent` that is launched at `launch`.
pub fn periodic_child_id(parent: &str, launch: Timestamp) -> String {
    format!("{parent}{PERIODIC_INFIX}{}", launch.as_secs())
}

/// Returns the id of a child of `parent` that is dispatched at `now`; `template` may be empty, and
/// `nonce` distinguishes children of the same second.
pub fn dispatched_child_id(parent: &str, template: &str, now: Timestamp, nonce: u32) -> String {
    let dash = if template.is_empty() { "" } else { "-" };
    let seconds = now.as_secs();
    format!("{parent}{DISPATCH_INFIX}{template}{dash}{seconds}-{nonce:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_named_after_their_parent_and_time() {
        let now = Timestamp::from_millis(1_700_000_000_999);
        assert_eq!(periodic_child_id("a/b", now), "a/b/periodic-1700000000");
        assert_eq!(
            dispatched_child_id("p", "", now, 0xab),
            "p/dispatch-1700000000-000000ab"
        );
        assert_eq!(
            dispatched_child_id("p", "nightly", now, u32::MAX),
            "p/dispatch-nightly-1700000000-ffffffff"
        );
    }
}
