//! The time at which a node replaces a token.

use std::time::Duration;

use model::Timestamp;
use serde::Deserialize;

use crate::text;

/// The shortest time between two renewals of a token.
pub const PAUSE_MIN: Duration = Duration::from_secs(10);
/// The part of the rest that jitter takes.
const JITTER: f64 = 0.1;

#[derive(Deserialize)]
struct Times {
    iat: u64,
    exp: u64,
}

/// Returns the times of issue and expiry that a token claims; `None`: it is no token. The signature is not
/// looked at: a node reads the tokens that it has written itself.
pub fn times_of(token: &str) -> Option<(Timestamp, Timestamp)> {
    let claims = token.split('.').nth(1)?;
    let times: Times = serde_json::from_slice(&text::decode(claims)?).ok()?;
    let at = Timestamp::from_secs;
    Some((at(times.iat), at(times.exp)))
}

/// Returns the time of the renewal: half of the token's life later, less up to a tenth of that.
///
/// `jitter` is drawn from 0 to 1: tokens that are issued together are not renewed together. Half of the
/// life is left for retries while no gateway answers.
pub fn renewal_at(issued_at: Timestamp, expires_at: Timestamp, jitter: f64) -> Timestamp {
    let half = expires_at.since(issued_at) / 2;
    let wait = half.mul_f64(1.0 - JITTER * jitter.clamp(0.0, 1.0));
    issued_at.plus(wait.max(PAUSE_MIN))
}
