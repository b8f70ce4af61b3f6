//! Times at which secrets are renewed or read again.

use std::time::Duration;

use crate::secret::Secret;

/// No renewal comes sooner: a lease of a second would keep a core busy.
const SHORTEST: Duration = Duration::from_secs(1);

/// A secret without a lease is read again after this time. Source: the default of Nomad's templates.
pub const POLL_INTERVAL: Duration = Duration::from_secs(300);

/// The next step for a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretStep {
    /// Renew its lease after this time.
    Renew(Duration),
    /// Read it again after this time.
    Read(Duration),
    /// Nothing: it is the answer to a write, and neither has a lease nor ends.
    Keep,
}

/// The way to a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Read,
    Write,
}

/// The next step for a secret that Vault has just given. `poll`: the interval for secrets without a lease.
/// `now_unix`: seconds. `jitter`: 0 to 1.
///
/// - A lease that can be renewed is renewed after half of its length and up to a tenth more; other leases
///   and certificates are replaced after 85 to 95 % of their time.
/// - A static role names its next rotation (`ttl` with `rotation_period`): it is read a second after it.
/// - Others are polled. KV version 1 names a lease of a month and grants none, so only shorter times
///   than the interval count.
/// - Writes without an end are not repeated: each of them may create something new.
pub fn secret(
    secret: &Secret,
    origin: Origin,
    poll: Duration,
    now_unix: u64,
    jitter: f64,
) -> SecretStep {
    let jitter = jitter.clamp(0.0, 1.0);
    let late = 0.85 + 0.1 * jitter;
    if secret.has("rotation_period")
        && let Some(left) = secret.number("ttl")
    {
        return SecretStep::Read(Duration::from_secs(left) + Duration::from_secs(1));
    }
    let lease = match &secret.auth {
        Some(auth) => auth.lifetime(),
        None => secret.lease(),
    };
    if secret.has_lease()
        && let Some(lease) = lease
    {
        return if secret.renewable {
            SecretStep::Renew(fraction(lease, 0.5 + 0.1 * jitter))
        } else {
            SecretStep::Read(fraction(lease, late))
        };
    }
    if secret.has("certificate")
        && let Some(end) = secret.number("expiration")
    {
        let left = Duration::from_secs(end.saturating_sub(now_unix));
        return SecretStep::Read(fraction(left, late));
    }
    match (origin, lease) {
        // A token that the write has created.
        (Origin::Write, Some(lease)) if secret.auth.is_some() => {
            SecretStep::Read(fraction(lease, late))
        }
        (Origin::Write, _) => SecretStep::Keep,
        (Origin::Read, lease) => {
            let interval = lease.map_or(poll, |lease| lease.min(poll));
            SecretStep::Read(fraction(interval, late))
        }
    }
}

/// Returns whether a renewed lease is too short to be worth another renewal; `first` is its length at the
/// start.
pub fn is_near_its_end(renewed: Duration, first: Duration) -> bool {
    renewed < first / 3
}

fn fraction(of: Duration, share: f64) -> Duration {
    of.mul_f64(share).max(SHORTEST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(of: serde_json::Value, origin: Origin) -> SecretStep {
        let of: Secret = serde_json::from_value(of).unwrap();
        secret(&of, origin, POLL_INTERVAL, 1_000, 0.0)
    }

    #[test]
    fn the_kind_of_a_secret_decides_its_next_step() {
        let seconds = Duration::from_secs_f64;
        for (of, want) in [
            (
                json!({"lease_id": "l", "lease_duration": 100, "renewable": true}),
                SecretStep::Renew(seconds(50.0)),
            ),
            (
                json!({"lease_id": "l", "lease_duration": 100}),
                SecretStep::Read(seconds(85.0)),
            ),
            (
                json!({"lease_duration": 2_764_800}),
                SecretStep::Read(seconds(255.0)),
            ),
            (
                json!({"lease_duration": 100}),
                SecretStep::Read(seconds(85.0)),
            ),
            (json!({"data": {"x": 1}}), SecretStep::Read(seconds(255.0))),
            (
                json!({"data": {"ttl": 30, "rotation_period": 86_400}}),
                SecretStep::Read(seconds(31.0)),
            ),
            (
                json!({"data": {"certificate": "c", "expiration": 1_100}}),
                SecretStep::Read(seconds(85.0)),
            ),
            (
                json!({"data": {"certificate": "c", "expiration": 900}}),
                SecretStep::Read(SHORTEST),
            ),
        ] {
            assert_eq!(step(of.clone(), Origin::Read), want, "{of}");
        }
    }

    #[test]
    fn a_write_is_repeated_only_at_the_end_of_its_result() {
        for (of, want) in [
            (json!({"data": {"ciphertext": "x"}}), SecretStep::Keep),
            (json!({"lease_duration": 100}), SecretStep::Keep),
            (
                json!({"lease_id": "l", "lease_duration": 100}),
                SecretStep::Read(Duration::from_secs(85)),
            ),
            (
                json!({"data": {"certificate": "c", "expiration": 1_100}}),
                SecretStep::Read(Duration::from_secs(85)),
            ),
            (
                json!({"auth": {"client_token": "t", "lease_duration": 100}}),
                SecretStep::Read(Duration::from_secs(85)),
            ),
        ] {
            assert_eq!(step(of.clone(), Origin::Write), want, "{of}");
        }
    }
}
