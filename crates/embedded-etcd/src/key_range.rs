//! The keys of a request: etcd's pair of `key` and `range_end`, parsed once.

use std::ops::Bound;

use bytes::Bytes;

/// A set of keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyRange {
    /// This key alone.
    One(Bytes),
    /// From `start` up to but not including `end`; nothing when `start >= end`.
    Range { start: Bytes, end: Bytes },
    /// This key and all after it.
    From(Bytes),
}

/// The bounds of a set of keys.
pub type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

impl KeyRange {
    /// Reads etcd's convention: an empty end means one key, an end of one zero byte means no end.
    #[must_use]
    pub fn new(key: impl Into<Bytes>, range_end: impl Into<Bytes>) -> Self {
        let (start, end) = (key.into(), range_end.into());
        match &end[..] {
            [] => Self::One(start),
            [0] => Self::From(start),
            _ => Self::Range { start, end },
        }
    }

    /// Returns true if `key` is in the set.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::One(one) => one == key,
            Self::Range { start, end } => start <= key && key < &end[..],
            Self::From(start) => start <= key,
        }
    }

    /// Returns true if the set can hold no key at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Range { start, end } if start >= end)
    }

    /// The bounds for an ordered map; `None` for a set that holds nothing, for which an ordered map
    /// would panic.
    #[must_use]
    pub fn bounds(&self) -> Option<Bounds<'_>> {
        match self {
            Self::One(key) => Some((Bound::Included(key), Bound::Included(key))),
            Self::Range { .. } if self.is_empty() => None,
            Self::Range { start, end } => Some((Bound::Included(start), Bound::Excluded(end))),
            Self::From(start) => Some((Bound::Included(start), Bound::Unbounded)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(key: &'static [u8], end: &'static [u8]) -> KeyRange {
        KeyRange::new(key, end)
    }

    #[test]
    fn the_end_tells_one_key_from_a_range_from_all_that_follow() {
        let keys: [&[u8]; 5] = [b"a", b"b", b"b\0", b"c", b"\xff"];
        let table: [(KeyRange, &[&[u8]]); 6] = [
            (range(b"b", b""), &[b"b"]),
            (range(b"b", b"c"), &[b"b", b"b\0"]),
            (range(b"b", b"\0"), &[b"b", b"b\0", b"c", b"\xff"]),
            (range(b"c", b"b"), &[]),
            (range(b"b", b"b"), &[]),
            (range(b"\0", b"\0"), &keys),
        ];
        for (range, expected) in table {
            let found: Vec<_> = keys.iter().filter(|key| range.contains(key)).collect();
            assert_eq!(found, expected.iter().collect::<Vec<_>>(), "{range:?}");
        }
    }

    #[test]
    fn an_inverted_range_has_no_bounds() {
        assert_eq!(range(b"c", b"b").bounds(), None);
        assert!(range(b"c", b"b").is_empty());
        assert!(!range(b"b", b"c").is_empty());
    }
}
