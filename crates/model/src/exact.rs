//! Reads lists and maps without spare capacity, for values that replicas hold in great number.

use litemap::LiteMap;
use serde::{Deserialize, Deserializer};

pub(crate) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut items = Vec::deserialize(deserializer)?;
    items.shrink_to_fit();
    Ok(items)
}

pub(crate) fn map<'de, D, K, V>(deserializer: D) -> Result<LiteMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    let mut pairs = LiteMap::deserialize(deserializer)?.into_tuple_vec();
    pairs.shrink_to_fit();
    Ok(LiteMap::from_sorted_store_unchecked(pairs))
}
