//! Leases: their expiry and their keys.
//!
//! Pure; time is the argument `now`, counted from the start of the store. Deleting the keys of a
//! lease is left to the caller ([`crate::machine`]), because it is a write like any other.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;

use crate::{error::ApiError, mvcc::LeaseMove};

/// The shortest lease in seconds; shorter ones are extended to it.
///
/// Source: etcd extends to one and a half election timeouts, rounded up: 2 s with its defaults.
pub const MIN_TTL: i64 = 2;

/// The longest lease that can be asked for, in seconds; etcd's number.
pub const MAX_TTL: i64 = 9_000_000_000;

/// All leases.
#[derive(Debug, Default)]
pub struct LeaseTable {
    leases: BTreeMap<i64, Lease>,
    /// The end of each lease: (time, id), one entry a lease.
    ends: BTreeSet<(Duration, i64)>,
}

#[derive(Debug)]
struct Lease {
    /// Seconds granted, and granted again with each keep-alive.
    ttl: i64,
    ends: Duration,
    keys: BTreeSet<Bytes>,
}

/// The state of one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseInfo {
    /// Seconds left.
    pub remaining: i64,
    /// Seconds granted.
    pub granted: i64,
    /// In key order.
    pub keys: Vec<Bytes>,
}

impl LeaseTable {
    /// Grants lease `id` for `ttl` seconds and returns the seconds it got.
    ///
    /// # Errors
    /// [`ApiError::LeaseNotFound`] for id 0, [`ApiError::LeaseTtlTooLarge`],
    /// [`ApiError::LeaseExists`].
    pub fn grant(&mut self, now: Duration, id: i64, ttl: i64) -> Result<i64, ApiError> {
        if id == 0 {
            return Err(ApiError::LeaseNotFound);
        }
        if ttl > MAX_TTL {
            return Err(ApiError::LeaseTtlTooLarge);
        }
        if self.leases.contains_key(&id) {
            return Err(ApiError::LeaseExists);
        }
        let ttl = ttl.max(MIN_TTL);
        let ends = now + seconds(ttl);
        self.ends.insert((ends, id));
        let lease = Lease {
            ttl,
            ends,
            keys: BTreeSet::new(),
        };
        self.leases.insert(id, lease);
        Ok(ttl)
    }

    #[must_use]
    pub fn contains(&self, id: i64) -> bool {
        self.leases.contains_key(&id)
    }

    /// Gives lease `id` its full time again and returns the seconds granted.
    ///
    /// # Errors
    /// [`ApiError::LeaseNotFound`] if it does not exist or has ended.
    pub fn renew(&mut self, now: Duration, id: i64) -> Result<i64, ApiError> {
        let lease = self.leases.get_mut(&id).ok_or(ApiError::LeaseNotFound)?;
        if lease.ends <= now {
            return Err(ApiError::LeaseNotFound);
        }
        self.ends.remove(&(lease.ends, id));
        lease.ends = now + seconds(lease.ttl);
        self.ends.insert((lease.ends, id));
        Ok(lease.ttl)
    }

    /// Removes lease `id` and returns its keys in key order, for the caller to delete.
    ///
    /// # Errors
    /// [`ApiError::LeaseNotFound`].
    pub fn revoke(&mut self, id: i64) -> Result<Vec<Bytes>, ApiError> {
        let lease = self.leases.remove(&id).ok_or(ApiError::LeaseNotFound)?;
        self.ends.remove(&(lease.ends, id));
        Ok(lease.keys.into_iter().collect())
    }

    #[must_use]
    pub fn info(&self, now: Duration, id: i64) -> Option<LeaseInfo> {
        let lease = self.leases.get(&id)?;
        let remaining = lease.ends.saturating_sub(now).as_secs();
        Some(LeaseInfo {
            remaining: i64::try_from(remaining).unwrap_or(i64::MAX),
            granted: lease.ttl,
            keys: lease.keys.iter().cloned().collect(),
        })
    }

    /// All leases, the one that ends next first.
    pub fn ids(&self) -> impl Iterator<Item = i64> {
        self.ends.iter().map(|(_, id)| *id)
    }

    /// The first lease that has ended by `now`.
    #[must_use]
    pub fn first_ended(&self, now: Duration) -> Option<i64> {
        let (ends, id) = self.ends.first()?;
        (*ends <= now).then_some(*id)
    }

    /// Returns the time at which the next lease ends.
    #[must_use]
    pub fn next_end(&self) -> Option<Duration> {
        self.ends.first().map(|(ends, _)| *ends)
    }

    /// Follows a key from one lease to another. Leases that are gone are passed over.
    pub fn follow(&mut self, moved: &LeaseMove) {
        if let Some(lease) = self.leases.get_mut(&moved.from) {
            lease.keys.remove(&moved.key);
        }
        if let Some(lease) = self.leases.get_mut(&moved.to) {
            lease.keys.insert(moved.key.clone());
        }
    }
}

fn seconds(ttl: i64) -> Duration {
    Duration::from_secs(u64::try_from(ttl).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::ZERO;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn moved(key: &'static str, from: i64, to: i64) -> LeaseMove {
        LeaseMove {
            key: Bytes::from_static(key.as_bytes()),
            from,
            to,
        }
    }

    #[test]
    fn a_lease_is_granted_within_the_limits() {
        let mut leases = LeaseTable::default();
        assert_eq!(leases.grant(START, 0, 10), Err(ApiError::LeaseNotFound));
        assert_eq!(leases.grant(START, 1, MAX_TTL), Ok(MAX_TTL));
        assert_eq!(leases.grant(START, 1, 10), Err(ApiError::LeaseExists));
        // The time is looked at before the id.
        let too_long = leases.grant(START, 1, MAX_TTL + 1);
        assert_eq!(too_long, Err(ApiError::LeaseTtlTooLarge));
        assert_eq!(leases.grant(START, -7, -1), Ok(MIN_TTL));
    }

    #[test]
    fn a_lease_ends_when_its_time_is_up_and_not_before() {
        let mut leases = LeaseTable::default();
        leases.grant(START, 1, 10).unwrap();
        leases.grant(START, 2, 5).unwrap();
        assert_eq!(leases.next_end(), Some(at(5)));
        assert_eq!(leases.first_ended(at(5) - Duration::from_nanos(1)), None);
        assert_eq!(leases.first_ended(at(5)), Some(2));
        assert_eq!(leases.ids().collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_renewed_lease_has_its_full_time_again() {
        let mut leases = LeaseTable::default();
        leases.grant(START, 1, 10).unwrap();
        assert_eq!(leases.renew(at(9), 1), Ok(10));
        assert_eq!(leases.first_ended(at(18)), None);
        let info = leases.info(at(18), 1).unwrap();
        assert_eq!((info.remaining, info.granted), (1, 10));
        // Expired: its holder must not believe that it still holds the lease.
        assert_eq!(leases.renew(at(19), 1), Err(ApiError::LeaseNotFound));
        assert_eq!(leases.renew(at(1), 2), Err(ApiError::LeaseNotFound));
    }

    #[test]
    fn a_key_follows_its_last_lease() {
        let mut leases = LeaseTable::default();
        leases.grant(START, 1, 10).unwrap();
        leases.grant(START, 2, 10).unwrap();
        for step in [
            moved("b", 0, 1),
            moved("a", 0, 1),
            moved("b", 1, 2),
            moved("c", 0, 1),
            moved("c", 1, 0),
        ] {
            leases.follow(&step);
        }
        assert_eq!(leases.revoke(1), Ok(vec![Bytes::from_static(b"a")]));
        assert_eq!(leases.revoke(1), Err(ApiError::LeaseNotFound));
        assert_eq!(leases.revoke(2), Ok(vec![Bytes::from_static(b"b")]));
        assert_eq!(leases.next_end(), None);
    }
}
