//! Conversion of revisions between etcd's signed and our unsigned integers; none is negative.

pub(crate) fn from_etcd(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

pub(crate) fn to_etcd(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}
