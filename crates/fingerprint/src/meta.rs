//! A node's metadata: that of its settings with what operators have set at run time over it.

use std::collections::BTreeMap;

/// Size limit of the dynamic metadata, names included: a node's record is one value of etcd, written at each
/// change and read by every service.
pub const DYNAMIC_BYTES_MAX: usize = 16 * 1024;

/// Name → value; `None`: the one of the settings is removed.
pub type Dynamic = BTreeMap<String, Option<String>>;

/// The dynamic metadata would be too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the node's dynamic metadata would have {bytes} bytes, more than {DYNAMIC_BYTES_MAX}: unset names that are not \
     needed any more"
)]
pub struct TooLarge {
    pub bytes: usize,
}

/// Returns what constraints see.
pub fn merge(fixed: &BTreeMap<String, String>, dynamic: &Dynamic) -> BTreeMap<String, String> {
    let mut merged = fixed.clone();
    for (name, value) in dynamic {
        match value {
            Some(value) => merged.insert(name.clone(), value.clone()),
            None => merged.remove(name),
        };
    }
    merged
}

/// Returns the dynamic metadata after a change: names in `set` get their value, those in `unset` go, also from
/// the settings.
///
/// # Errors
/// [`TooLarge`].
pub fn apply(
    fixed: &BTreeMap<String, String>,
    dynamic: &Dynamic,
    set: BTreeMap<String, String>,
    unset: &[String],
) -> Result<Dynamic, TooLarge> {
    let mut changed = dynamic.clone();
    for (name, value) in set {
        changed.insert(name, Some(value));
    }
    for name in unset {
        if fixed.contains_key(name) {
            changed.insert(name.clone(), None);
        } else {
            changed.remove(name);
        }
    }
    let size = |(name, value): (&String, &Option<String>)| {
        name.len() + value.as_ref().map_or(0, String::len)
    };
    let bytes = changed.iter().map(size).sum();
    if bytes > DYNAMIC_BYTES_MAX {
        return Err(TooLarge { bytes });
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        owned.collect()
    }

    #[test]
    fn dynamic_names_lie_over_those_of_the_settings() {
        let fixed = map(&[("rack", "r1"), ("zone", "a")]);
        let set = map(&[("rack", "r2"), ("disk", "ssd")]);
        let dynamic = apply(&fixed, &Dynamic::new(), set, &["zone".to_owned()]).unwrap();
        assert_eq!(
            merge(&fixed, &dynamic),
            map(&[("rack", "r2"), ("disk", "ssd")])
        );
        // An unset name of its own is gone; one of the settings stays removed.
        let unset = ["disk".to_owned(), "rack".to_owned(), "none".to_owned()];
        let dynamic = apply(&fixed, &dynamic, BTreeMap::new(), &unset).unwrap();
        assert_eq!(merge(&fixed, &dynamic), BTreeMap::new());
        assert!(!dynamic.contains_key("disk") && !dynamic.contains_key("none"));
        let again = apply(&fixed, &dynamic, map(&[("zone", "b")]), &[]).unwrap();
        assert_eq!(merge(&fixed, &again), map(&[("zone", "b")]));
        // A name that the settings lost is no longer removed from anything.
        assert_eq!(merge(&BTreeMap::new(), &dynamic), BTreeMap::new());
    }

    #[test]
    fn the_record_of_a_node_stays_small() {
        let large = map(&[("a", &"x".repeat(DYNAMIC_BYTES_MAX))]);
        let refused = apply(&BTreeMap::new(), &Dynamic::new(), large, &[]).unwrap_err();
        assert_eq!(refused.bytes, DYNAMIC_BYTES_MAX + 1);
    }
}
