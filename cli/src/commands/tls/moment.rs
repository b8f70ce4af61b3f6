//! The time and the randomness of a certificate.

use crate::context::Context;

/// Returns the time and a random serial number.
pub(super) fn moment(context: &Context) -> pki::Moment {
    let seconds = context.clock.now() / 1_000_000_000;
    pki::Moment {
        now: i64::try_from(seconds).unwrap_or(i64::MAX),
        serial: pki::Serial(service_kit::IdSource::from_os().next_u128()),
    }
}
