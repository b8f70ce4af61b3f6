//! Scaling events, towards readers.

use model::ScalingEvent;

use crate::fields::id_or_empty;
use crate::v1;

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
