//! Sizes, quota and alarms of etcd's members, and the space that they leave.

use std::fmt;

/// etcd's own default of `--quota-backend-bytes`.
pub const DEFAULT_QUOTA_BYTES: u64 = 2 << 30;

/// The limit of a member's database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quota {
    /// The member does not tell it.
    #[default]
    Unreported,
    /// The member has none: an embedded etcd.
    Unlimited,
    Bytes(u64),
}

/// The status of one member of etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdMember {
    /// Its client address.
    pub endpoint: String,
    pub member_id: u64,
    pub version: String,
    pub is_leader: bool,
    /// Size of the database. At the quota etcd refuses every write that is not a deletion. It
    /// shrinks only by defragmentation.
    pub db_bytes: u64,
    /// The part of `db_bytes` that holds data; the rest is free pages, which are reused.
    pub in_use_bytes: u64,
    pub quota: Quota,
    /// The alarm NOSPACE of this member stands: the whole cluster refuses writes.
    pub is_out_of_space: bool,
}

impl EtcdMember {
    /// Returns the limit of its database; `configured` is for members that do not report it. `None`:
    /// unlimited.
    pub fn quota_bytes(&self, configured: u64) -> Option<u64> {
        match self.quota {
            Quota::Unlimited => None,
            Quota::Bytes(bytes) => Some(bytes),
            Quota::Unreported => Some(configured),
        }
    }

    /// Returns the bytes that a defragmentation frees.
    pub fn free_bytes(&self) -> u64 {
        self.db_bytes.saturating_sub(self.in_use_bytes)
    }
}

/// Returns `part` as a percentage of `whole`, rounded down.
pub fn percent(part: u64, whole: u64) -> u64 {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// A number of bytes, for people: "1.4 GiB".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
        for (unit, shift) in UNITS {
            let size = 1_u64 << shift;
            if self.0 >= size {
                let tenths = u128::from(self.0) * 10 / u128::from(size);
                return write!(f, "{}.{} {unit}", tenths / 10, tenths % 10);
            }
        }
        write!(f, "{} B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_one_decimal_of_the_largest_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (1_600 << 10, "1.5 MiB"),
            (2 << 30, "2.0 GiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    #[test]
    fn a_reported_quota_replaces_the_configured_one() {
        let of = |quota| EtcdMember {
            quota,
            ..EtcdMember::default()
        };
        assert_eq!(of(Quota::Unreported).quota_bytes(7), Some(7));
        assert_eq!(of(Quota::Bytes(9)).quota_bytes(7), Some(9));
        assert_eq!(of(Quota::Unlimited).quota_bytes(7), None);
        assert_eq!(percent(1, 0), 100);
        assert_eq!(percent(u64::MAX, u64::MAX), 100);
    }
}
